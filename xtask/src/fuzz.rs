//! Fuzzing: `cargo xtask fuzz [TARGET] [--minutes N]`, on the stable compiler.
//!
//! What the fuzzer finds stays below the target folder. An input that is worth keeping is copied into `fuzz/corpus` by
//! hand, small and with a name that says what it is; every CI run replays those.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, anyhow, bail, ensure};

use crate::args::Misunderstood;
use crate::cargo_tool::CargoTool;
use crate::console;
use crate::metadata::Workspace;
use crate::process;
use crate::tally::Tally;

const TOOL: CargoTool = CargoTool { name: "cargo-fuzz", version: "0.13.2" };

/// An answer of the gateway is seldom longer, and short inputs are tried more often.
const MAX_LEN: &str = "-max_len=4096";

/// What the words after `fuzz` ask for.
#[derive(Debug, PartialEq, Eq)]
struct Asked<'a> {
    target: Option<&'a str>,
    minutes: u64,
}

/// Fuzzes every target, or one; each is one check. A target that breaks does not stop the next.
pub(crate) fn run(workspace: &Workspace, words: &[String]) -> Result<Tally> {
    let asked = Asked::parse(words).map_err(Misunderstood)?;
    let all = targets(&workspace.root)?;
    let chosen: Vec<&String> =
        all.iter().filter(|name| asked.target.is_none_or(|target| target == *name)).collect();
    if chosen.is_empty() {
        bail!(Misunderstood(anyhow!("`fuzz`: there is no such target; there are {}", all.join(", "))));
    }
    let program = TOOL.ready(workspace)?;
    chosen.into_iter().map(|target| fuzz(workspace, &program, target, asked.minutes)).sum()
}

impl<'a> Asked<'a> {
    fn parse(words: &'a [String]) -> Result<Self> {
        let mut asked = Self { target: None, minutes: 5 };
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word {
                "--minutes" => {
                    let minutes = words.next().and_then(|minutes| minutes.parse().ok());
                    asked.minutes = minutes
                        .filter(|&minutes| minutes > 0)
                        .context("`fuzz --minutes`: expected a number of minutes")?;
                }
                target if !target.starts_with('-') && asked.target.is_none() => asked.target = Some(target),
                other => bail!("`fuzz {other}`: expected [TARGET] [--minutes N]"),
            }
        }
        Ok(asked)
    }
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
    let mut executions = None;
    let ending = process::stream(&mut command, None, |_, line| {
        executions = executed(line).or(executions);
        console::say(line);
    })?;
    let executions = executions.unwrap_or(0);
    console::say(format_args!("figures: fuzz_targets=1 executions={executions}"));
    if let Some(why) = ending.failure() {
        console::say(format_args!("{target}: {why}; the input is in {}", broken.display()));
        return Ok(Tally::FAILURE);
    }
    ensure!(executions > 0, "{target}: nothing was executed");
    Ok(Tally::SUCCESS)
}

/// `stat::number_of_executed_units: 1234`
fn executed(line: &str) -> Option<u64> {
    line.trim().strip_prefix("stat::number_of_executed_units:")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_target_and_its_minutes_are_understood() {
        assert_eq!(Asked::parse(&words("")).unwrap(), Asked { target: None, minutes: 5 });
        let one = words("journal --minutes 2");
        assert_eq!(Asked::parse(&one).unwrap(), Asked { target: Some("journal"), minutes: 2 });
        for line in ["--minutes", "--minutes 0", "--minutes soon", "--hours 1", "journal form"] {
            assert!(Asked::parse(&words(line)).is_err(), "{line}");
        }
    }

    #[test]
    fn the_fuzzers_count_is_found_among_its_lines() {
        assert_eq!(executed("stat::number_of_executed_units: 52113"), Some(52_113));
        assert_eq!(executed("stat::average_exec_per_sec:     1200"), None);
        assert_eq!(executed("#8192\tpulse  cov: 96 ft: 120"), None);
    }

    #[test]
    fn every_target_has_seeds_and_a_program() {
        let root = root::find();
        let names = targets(&root).unwrap();
        assert!(names.len() >= 7, "{names:?}");
        for name in names {
            assert!(root.join("fuzz/fuzz_targets").join(&name).with_extension("rs").is_file(), "{name}");
        }
    }
}
