//! Runs everything that has to hold before a change is merged. `cargo xtask help` tells of every command.
//!
//! A stage that fails does not hide the stages after it; only a failed build skips what needs the build.
//! The last line is always `N passed, N failed`, in tests and checks that really ran.
//! The exit code is 0, 1 if anything failed, or 2 if the command line was not understood.

mod cargo;
mod console;
mod deep;
mod evidence;
mod extent;
mod figures;
mod plain;
mod planted;
mod process;
mod programs;
mod report;
mod repository;
mod runner;
mod side_by_side;
mod stopwatch;
mod summary;
mod tidy;
mod tools;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::cargo::cargo;
use crate::extent::Extent;
use crate::programs::{Part, Programs, Site};
use crate::report::Tally;
use crate::runner::echo;
use crate::workspace::Workspace;

#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Line {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Everything needed to trust this build: format, tidy, licences, build, tests, doc tests, lints, docs.
    Test {
        /// Installs the system programs that tests start, with apt-get.
        #[arg(long)]
        install: bool,
    },
    /// The same.
    Ci {
        /// The deep stages only: models, storms, crashes, simulations, planted bugs, counts.
        #[arg(long)]
        deep: bool,
        /// All of the stages of which CI runs a sample.
        #[arg(long, requires = "deep")]
        full: bool,
        /// Writes the evidence that they end with into docs/evidence.md.
        #[arg(long, requires = "full")]
        write: bool,
    },
    /// The repository's own rules.
    Tidy,
    /// The benches as one table of ratios; `bench --help` tells the rest.
    #[command(disable_help_flag = true)]
    Bench {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Simulations: limits, orders, scripts, catalogue, requests; `sim --help` tells the rest.
    #[command(disable_help_flag = true)]
    Sim {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    Evidence(evidence::Args),
    Planted(planted::Args),
}

/// The options of `bench` for which benches are built as CI builds them.
const COUNTED: &[&str] = &["--check", "--set-ceilings"];

fn main() -> ExitCode {
    let tally = match Line::parse().verb {
        // Their standard output is data, and their exit code their own.
        Verb::Sim { words } => {
            return program(&["run", "--release", "--package", "steadfast-verify"], &words);
        }
        Verb::Bench { words } if words.iter().any(|word| COUNTED.contains(&&**word)) => {
            checked(|workspace| counts(workspace, &words))
        }
        Verb::Bench { words } => return program(&["run", "--package", "benches"], &words),
        Verb::Tidy => checked(tidy::run),
        Verb::Test { install } => checked(|workspace| {
            tools::ensure(install)?;
            Ok(plain::run_all(workspace))
        }),
        Verb::Ci { deep: false, .. } => checked(|workspace| Ok(plain::run_all(workspace))),
        Verb::Ci { full, write, .. } => checked(|workspace| {
            let extent = if full { Extent::Full } else { Extent::Sample };
            evidence::run_all(workspace, extent, write)
        }),
        Verb::Evidence(args) => checked(|workspace| evidence::run(workspace, &args)),
        Verb::Planted(args) => checked(|workspace| planted::run(workspace, &args)),
    };
    console::say(tally);
    if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn checked(run: impl FnOnce(&Workspace) -> Result<Tally>) -> Tally {
    let tally = Workspace::load(&cargo::root()).and_then(|workspace| run(&workspace));
    tally.unwrap_or_else(|error| {
        console::say(format_args!("error: {error:#}"));
        Tally::FAILURE
    })
}

/// Builds and runs a program of its own, so that a fresh clone compiles xtask without it; its exit code is ours.
fn program(run: &[&str], words: &[String]) -> ExitCode {
    let root = cargo::root();
    let mut command = cargo(&root);
    command.args(run).args(["--quiet", "--"]).args(words);
    cargo::name_state(&mut command, &root);
    let code = command.status().ok().and_then(|status| u8::try_from(status.code()?).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Holds the counts of the benches against their ceilings, or makes ceilings of them.
fn counts(workspace: &Workspace, words: &[String]) -> Result<Tally> {
    let programs = Programs::build(&Site::counted(workspace), Part::Counts, echo)?;
    Ok(runner::check(programs.counts()?.args(words), None, echo)?.tally)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::Line;

    #[test]
    fn the_command_line_is_well_formed() {
        Line::command().debug_assert();
        let is_understood =
            |line: &str| Line::try_parse_from(["xtask"].into_iter().chain(line.split(' '))).is_ok();
        for line in
            "ci --deep --full --write; bench --json limiter; sim --help; planted --only no-settle".split("; ")
        {
            assert!(is_understood(line), "{line}");
        }
        let bad = "release; ci --install; ci --full; ci --deep --write; tidy now; planted --only no-such-bug; evidence --only F99";
        for line in bad.split("; ") {
            assert!(!is_understood(line), "{line}");
        }
    }
}
