//! Mutants: small changes to our own code, one at a time, that its tests have to notice.
//!
//! Each mutant meets the tests of its own crate. Those that no test can tell from the code are excluded in
//! `.cargo/mutants.toml`, each with its reason.
//!
//! The sample was drawn by lot: of each crate's mutants, the few whose names come first when they are sorted by the SHA-256 of
//! `steadfast F12`, the name as `cargo mutants --list --line-col=false` prints it, and its number among equal ones (a
//! newline between the three). Left out were those that do not compile, those whose tests hang until their time is over,
//! names that several of one crate have, and files with structs that leave out fields, because the tool tries those
//! whatever names it is given.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::cargo::{CargoTool, known_crate};
use crate::process::{self, Ending};
use crate::report::Tally;
use crate::runner::echo;
use crate::stopwatch::Stopwatch;
use crate::workspace::Workspace;

const TOOL: CargoTool = CargoTool { name: "cargo-mutants", version: "27.1.0" };

/// The sample, by files and names: the first few of each crate that decides about money.
const SAMPLE: &[(&str, &str)] = &[
    (
        "crates/steadfast-auth/src/login/browser/listener.rs",
        "replace request_line -> io::Result<String> with Ok(\"xyzzy\".into())",
    ),
    (
        "crates/steadfast-dedup/src/guard/guarded_body.rs",
        "replace && with || in <impl Body for GuardedBody<B>>::is_end_stream",
    ),
    ("crates/steadfast-dedup/src/protocol/matcher.rs", "replace is_exit_leg -> bool with true"),
    (
        "crates/steadfast-dedup/src/protocol/schedule.rs",
        "replace next_watch -> Duration with Default::default()",
    ),
    ("crates/steadfast-limit/src/core/limiter/dispatch.rs", "delete ! in Limiter::on_429"),
    ("crates/steadfast-limit/src/core/spent/stamps.rs", "replace Stamps<'a>::held -> usize with 0"),
    ("crates/steadfast-retry/src/jitter.rs", "replace + with - in share"),
    (
        "crates/steadfast-retry/src/settings.rs",
        "replace Settings::remaining -> Remaining with Default::default()",
    ),
];

/// What a mutant of the sample may take to be tested. Beyond it the tests hang, and have noticed.
const PATIENCE: &str = "120";

/// How the sample's tests are kept fast: the model is the slowest of them by far, and properties get a few cases each.
const SKIPPED: &[&str] = &["--", "--skip", "model::"];
const CASES: &str = "32";

/// What is left for the sample if the tool's own build took all of the time.
const LEAST: Duration = Duration::from_secs(120);

/// Small changes to our own code, one at a time, that its tests have to notice: a fixed sample, or those of one crate.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Every mutant of this crate, which takes hours.
    #[arg(value_parser = known_crate)]
    package: Option<String>,
    /// As many of them, in any order, as so many minutes allow.
    #[arg(long, value_name = "N", requires = "package", value_parser = clap::value_parser!(u64).range(1..))]
    minutes: Option<u64>,
}

/// Tries mutants; each is one check.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<Tally> {
    let Some(package) = &args.package else { return sample(workspace, None, echo) };
    let mutants = Mutants::of(workspace, package, vec![package])?;
    // Any order, so that what the time allows is a fair part.
    let which = ["--shuffle", "--minimum-test-timeout", "30", "--timeout-multiplier", "2"];
    mutants.run(&which, &[], args.minutes.map(|minutes| Duration::from_secs(60 * minutes)), &mut echo)
}

/// Tries the sample, and shows its figures to `each`. What does not fit into the time is left out.
pub(crate) fn sample(
    workspace: &Workspace,
    time_box: Option<Duration>,
    mut each: impl FnMut(&str),
) -> Result<Tally> {
    let clock = Stopwatch::start();
    let mutants = Mutants::of(workspace, "sample", sampled())?;
    let left = time_box.map(|limit| limit.saturating_sub(clock.elapsed()).max(LEAST));
    // That the tests pass without a mutant is what the plain stages say.
    let mut which = vec!["--baseline", "skip", "--timeout", PATIENCE];
    let names: Vec<String> = SAMPLE.iter().map(|(_, name)| literally(name)).collect();
    which.extend(SAMPLE.iter().flat_map(|(file, _)| ["--file", file]));
    which.extend(names.iter().flat_map(|name| ["--re", name]));
    let tally = mutants.run(&which, SKIPPED, left, &mut each)?;
    each(&format!("figures: mutants={} caught={}", tally.total(), tally.passed));
    Ok(tally)
}

/// The crates of the sample.
fn sampled() -> Vec<&'static str> {
    let mut packages: Vec<_> = SAMPLE.iter().filter_map(|(file, _)| file.split('/').nth(1)).collect();
    packages.dedup();
    packages
}

/// The regular expression that matches this text only. A backslash before `<` or `>` would mean the edge of a word.
fn literally(text: &str) -> String {
    let means_itself = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '<' | '>');
    text.chars().flat_map(|c| (!means_itself(c)).then_some('\\').into_iter().chain([c])).collect()
}

/// The mutants of one crate or of a few.
struct Mutants<'a> {
    workspace: &'a Workspace,
    name: &'a str,
    packages: Vec<&'a str>,
    program: PathBuf,
}

impl<'a> Mutants<'a> {
    fn of(workspace: &'a Workspace, name: &'a str, packages: Vec<&'a str>) -> Result<Self> {
        Ok(Self { workspace, name, packages, program: TOOL.ready(workspace)? })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.workspace.root).args(["mutants", "--colors", "never"]);
        command.args(self.packages.iter().flat_map(|package| ["--package", package]));
        command
    }

    /// Runs those that `which` chooses. Passed are the caught, failed the missed; what does not compile is neither.
    fn run(
        &self,
        which: &[&str],
        skipped: &[&str],
        time_box: Option<Duration>,
        say: &mut dyn FnMut(&str),
    ) -> Result<Tally> {
        let folder = self.workspace.target.join("mutants").join(self.name);
        fs::create_dir_all(&folder)?;
        let mut command = self.command();
        command.args(which).arg("--output").arg(&folder).args(["--annotations", "none", "--caught"]);
        // All but the doc tests: those are one program each, and would be built for each mutant.
        command.args(["--", "--tests"]).args(skipped);
        if !skipped.is_empty() {
            command.env("PROPTEST_CASES", CASES);
        }
        // What a crate depends on is built once, with the plain tests, and not again in each copy of the tree.
        command.env("CARGO_TARGET_DIR", self.workspace.target.join("mutants/build"));
        command.env("CARGO_BUILD_BUILD_DIR", &self.workspace.target).env("CARGO_INCREMENTAL", "1");
        let ending = process::stream(&mut command, time_box, |_, line| say(line))?;
        let found = folder.join("mutants.out");
        if !found.is_dir() {
            bail!("cargo-mutants tried nothing: {}", ending.failure().unwrap_or_default());
        }
        let passed = lines(&found, "caught")? + lines(&found, "timeout")?;
        let tally = Tally { passed, failed: lines(&found, "missed")? };
        // Its exit code tells a missed mutant from one that ran into its time limit; the lists do so, too.
        let over_time = matches!(ending, Ending::OverTime(_));
        let why = ending.failure().unwrap_or_default();
        ensure!(tally.total() > 0 || over_time, "no mutant was tried ({}): {why}", self.name);
        Ok(tally)
    }
}

fn lines(folder: &Path, list: &str) -> Result<u64> {
    let file = folder.join(list).with_extension("txt");
    let text = fs::read_to_string(&file).with_context(|| format!("{} is missing", file.display()))?;
    Ok(text.lines().count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo;

    #[test]
    fn the_sample_is_of_crates_that_exist_and_stays_small() {
        let workspace = Workspace::load(&cargo::root()).unwrap();
        assert!(sampled().iter().all(|package| workspace.member(package).is_ok()));
        assert!(SAMPLE.iter().all(|(file, _)| workspace.root.join(file).is_file()));
        assert!(SAMPLE.is_sorted() && (8..=15).contains(&SAMPLE.len()));
    }
}
