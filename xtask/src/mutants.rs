//! A sample of mutants: small changes to our own code, one at a time, that its tests have to notice. `cargo mutants -p CRATE`
//! tries all of a crate, which takes hours.
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
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::cargo::CargoTool;
use crate::process::{self, Ending};
use crate::report::Tally;
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

/// Tries the sample, and shows its figures to `each`. What does not fit into the time is left out.
///
/// Passed are the caught, failed the missed; what does not compile is neither.
pub(crate) fn sample(
    workspace: &Workspace,
    time_box: Option<Duration>,
    mut each: impl FnMut(&str),
) -> Result<Tally> {
    let clock = Stopwatch::start();
    let mut command = Command::new(TOOL.ready(workspace)?);
    let left = time_box.map(|limit| limit.saturating_sub(clock.elapsed()).max(LEAST));
    let folder = workspace.target.join("mutants/sample");
    fs::create_dir_all(&folder)?;
    command.current_dir(&workspace.root).args(["mutants", "--colors", "never"]);
    command.args(sampled().iter().flat_map(|package| ["--package", package]));
    // That the tests pass without a mutant is what the plain stages say.
    command.args(["--baseline", "skip", "--timeout", PATIENCE]);
    command.args(SAMPLE.iter().flat_map(|(file, _)| ["--file", file]));
    let names: Vec<String> = SAMPLE.iter().map(|(_, name)| literally(name)).collect();
    command.args(names.iter().flat_map(|name| ["--re", name]));
    command.arg("--output").arg(&folder).args(["--annotations", "none", "--caught"]);
    // All but the doc tests: those are one program each, and would be built for each mutant.
    command.args(["--", "--tests"]).args(SKIPPED).env("PROPTEST_CASES", CASES);
    // What a crate depends on is built once, with the plain tests, and not again in each copy of the tree.
    command.env("CARGO_TARGET_DIR", workspace.target.join("mutants/build"));
    command.env("CARGO_BUILD_BUILD_DIR", &workspace.target).env("CARGO_INCREMENTAL", "1");
    let ending = process::stream(&mut command, left, |_, line| each(line))?;
    let found = folder.join("mutants.out");
    let why = ending.failure().unwrap_or_default();
    ensure!(found.is_dir(), "cargo-mutants tried nothing: {why}");
    let passed = lines(&found, "caught")? + lines(&found, "timeout")?;
    let tally = Tally { passed, failed: lines(&found, "missed")? };
    // Its exit code tells a missed mutant from one that ran into its time limit; the lists do so, too.
    let over_time = matches!(ending, Ending::OverTime(_));
    ensure!(tally.total() > 0 || over_time, "no mutant was tried: {why}");
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
        let is_member = |package: &&str| workspace.members.iter().any(|member| member.name == **package);
        assert!(sampled().iter().all(is_member));
        assert!(SAMPLE.iter().all(|(file, _)| workspace.root.join(file).is_file()));
        assert!(SAMPLE.is_sorted() && (8..=15).contains(&SAMPLE.len()));
    }
}
