//! Runs everything that has to hold before a change is merged. `cargo xtask help` tells of every command.
//!
//! A stage that fails does not hide the stages after it; only a failed build skips what needs the build.
//! The last line is always `N passed, N failed`, in tests and checks that really ran.
//! The exit code is 0, 1 if anything failed, or 2 if the command line was not understood.

mod cargo;
mod console;
mod deep;
mod evidence;
mod figures;
mod lanes;
mod plain;
mod planted;
mod process;
mod programs;
mod report;
mod repository;
mod runner;
mod stopwatch;
mod summary;
mod tidy;
mod tools;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::cargo::cargo;
use crate::deep::Extent;
use crate::figures::Figures;
use crate::report::Tally;
use crate::runner::echo;
use crate::summary::Row;
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

fn main() -> ExitCode {
    let verb = Line::parse().verb;
    let tally = match verb {
        // Their standard output is data, and their exit code their own.
        Verb::Sim { words } => {
            return program(&["run", "--release", "--package", "steadfast-verify"], &words);
        }
        Verb::Bench { words } => return program(&["run", "--package", "benches"], &words),
        verb => run(verb).unwrap_or_else(|error| {
            console::say(format_args!("error: {error:#}"));
            Tally::FAILURE
        }),
    };
    console::say(tally);
    if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(verb: Verb) -> Result<Tally> {
    let workspace = Workspace::load(&cargo::root())?;
    let summary = match verb {
        Verb::Bench { .. } | Verb::Sim { .. } => return Ok(Tally::default()),
        Verb::Tidy => return tidy::run(&workspace),
        Verb::Test { install } => {
            tools::ensure(install)?;
            plain::run_all(&workspace)
        }
        Verb::Ci { deep: false, .. } => plain::run_all(&workspace),
        Verb::Ci { deep: true, full: false } => return prove(&workspace, Extent::Sample),
        Verb::Ci { deep: true, full: true } => return prove(&workspace, Extent::Full),
        Verb::Evidence(args) => return evidence::run(&workspace, &args),
        Verb::Planted(args) => return planted::run(&workspace, &args),
    };
    console::say(format_args!("\n{summary}"));
    tell(&summary.failures());
    Ok(summary.tally())
}

/// Runs every deep stage, and judges what they measured.
fn prove(workspace: &Workspace, extent: Extent) -> Result<Tally> {
    let mut figures = Figures::default();
    let stages: Vec<_> = deep::all(extent).collect();
    let build = |say: &mut dyn FnMut(&str)| deep::build(&stages, workspace, None, say);
    let mut summary = deep::run(&stages, workspace, build, &mut figures);
    summary.rows.push(Row::run("a row denied with a bug", &mut echo, |say| evidence::deny(workspace, say)));
    console::say(format_args!("\n{summary}"));
    let (rows, broken) = evidence::conclude(workspace, figures)?;
    tell(&[summary.failures(), broken].concat());
    Ok(summary.tally() + rows)
}

/// Says once more what failed, where it is found: at the end. `.ci/run` repeats it from the first line on.
fn tell(failures: &[String]) {
    if !failures.is_empty() {
        console::say(format_args!("\n=== what failed ===\n{}\n", failures.join("\n\n")));
    }
}

/// Builds and runs a program of its own, so that a fresh clone compiles xtask without it; its exit code is ours.
fn program(run: &[&str], words: &[String]) -> ExitCode {
    let root = cargo::root();
    let mut command = cargo(&root);
    command.args(run).args(["--quiet", "--"]).args(words);
    cargo::name_state(&mut command, &root);
    match command.status() {
        Ok(status) => {
            status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
        }
        Err(error) => {
            console::complain(format_args!("error: cargo did not start: {error}"));
            ExitCode::FAILURE
        }
    }
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
        let good = "test --install; ci; ci --deep; ci --deep --full; bench --json limiter; sim --help; planted --only no-settle; \
            evidence --only F7 --planted no-settle";
        for line in good.split("; ") {
            assert!(is_understood(line), "{line}");
        }
        let bad = "release; ci --install; ci --full; tidy now; planted --only no-such-bug; evidence --only F99; \
            evidence --planted no-settle";
        for line in bad.split("; ") {
            assert!(!is_understood(line), "{line}");
        }
    }
}
