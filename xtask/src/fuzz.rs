//! An input that is worth keeping is copied from below the target folder into `fuzz/corpus` by hand, small and with a name
//! that says what it is; every CI run replays those.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::cargo::{self, CargoTool};
use crate::console;
use crate::report::Tally;
use crate::runner::{self, echo};
use crate::workspace::Workspace;

const TOOL: CargoTool = CargoTool { name: "cargo-fuzz", version: "0.13.2" };

/// An answer of the gateway is seldom longer, and short inputs are tried more often.
const MAX_LEN: &str = "-max_len=4096";

/// Inputs that a fuzzer thinks up, for everything that reads foreign bytes, on the stable compiler.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// One target; all if absent.
    #[arg(value_parser = known)]
    target: Option<String>,
    /// So long for each.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    minutes: u64,
}

fn known(target: &str) -> Result<String> {
    let all = targets(&cargo::root())?;
    ensure!(all.iter().any(|name| name == target), "there are {}", all.join(", "));
    Ok(target.to_owned())
}

/// Fuzzes every target, or one; each is one check. A target that breaks does not stop the next.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<Tally> {
    let program = TOOL.ready(workspace)?;
    let all = targets(&workspace.root)?;
    let chosen = all.iter().filter(|name| args.target.as_ref().is_none_or(|target| target == *name));
    chosen.map(|target| fuzz(workspace, &program, target, args.minutes)).sum()
}

/// Every target has a folder of seeds.
fn targets(root: &Path) -> Result<Vec<String>> {
    let corpora = fs::read_dir(root.join("fuzz/corpus"))?;
    let names = corpora.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<Result<Vec<_>>>()?;
    names.sort_unstable();
    Ok(names)
}

fn fuzz(workspace: &Workspace, program: &Path, target: &str, minutes: u64) -> Result<Tally> {
    let folder = workspace.target.join("fuzz");
    // The fuzzer writes into its first corpus: the second, which is checked in, is only read.
    let (found, broken) = (folder.join("found").join(target), folder.join("broken").join(target));
    fs::create_dir_all(&found)?;
    fs::create_dir_all(&broken)?;
    let mut command = Command::new(program);
    // Without a sanitizer no nightly compiler is needed; our crates have no `unsafe` that one could catch.
    command.current_dir(&workspace.root).args(["fuzz", "run", "--features", "libfuzzer", "-s", "none"]);
    command.arg("--target-dir").arg(&folder).arg(target).arg(&found);
    command.arg(workspace.root.join("fuzz/corpus").join(target));
    command.args(["--", MAX_LEN, "-print_final_stats=1", "-rss_limit_mb=2048"]);
    command.arg(format!("-max_total_time={}", 60 * minutes));
    command.arg(format!("-artifact_prefix={}/", broken.display()));
    command.env("CARGO_TERM_COLOR", "never");
    console::say(format_args!("\n=== fuzz {target} ==="));
    let report = runner::check(&mut command, None, echo)?;
    if report.tally.failed > 0 {
        console::say(format_args!("{target}: the input is in {}", broken.display()));
    }
    Ok(report.tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_seeds_and_a_program() {
        let root = cargo::root();
        let names = targets(&root).unwrap();
        assert!(names.len() >= 7, "{names:?}");
        for name in names {
            assert!(root.join("fuzz/fuzz_targets").join(&name).with_extension("rs").is_file(), "{name}");
        }
    }
}
