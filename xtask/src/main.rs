//! Runs everything that has to hold before a change is merged.
//!
//! | command | what it does |
//! |---|---|
//! | `cargo xtask test` | checks that the needed system tools are there, then runs every plain stage |
//! | `cargo xtask test --install` | the same, but installs missing system tools first |
//! | `cargo xtask ci` | the plain stages alone |
//! | `cargo xtask ci --deep` | the deep stages alone, each in its time box; they never repeat a plain stage |
//! | `cargo xtask tidy` | the checks of the repository's own rules alone |
//! | `cargo xtask bench` | the benches as one table of ratios; with `--check`, counts against their ceilings |
//! | `cargo xtask mutants` | small changes to our own code, one at a time, that its tests have to notice |
//! | `cargo xtask fuzz` | inputs that a fuzzer thinks up, for everything that reads what we did not write |
//! | `cargo xtask soak` | a client and a gateway as processes, under faults, for as long as is asked: nothing may grow |
//! | `cargo xtask outage` | outages of a real network in the middle of an order: how many orders there are in the end |
//! | `cargo xtask coverage` | which lines of each crate the plain tests run |
//! | `cargo xtask evidence` | what stands behind each promise, measured anew |
//! | `cargo xtask planted` | plants bugs, one after the other, and says what found each |
//! | `cargo xtask sim limits`, `orders`, `scripts`, `catalogue`, `requests` | the simulations, with figures as a table or as JSON |
//!
//! A stage that fails does not hide the stages after it; only a failed build skips what needs the build.
//! The last line is always `N passed, N failed`, in tests and checks that really ran. A stage that fails
//! without counting anything (formatting, lints) is one failure; one that succeeds adds nothing.
//! The exit code is 0, 1 if anything failed, or 2 if the command line was not understood.

mod args;
mod bench;
mod cargo_tool;
mod console;
mod coverage;
mod deep;
mod evidence;
mod examples;
mod fuzz;
mod metadata;
mod mutants;
mod outage;
mod plain;
mod planted;
mod process;
mod report;
mod root;
mod runner;
mod sim;
mod soak;
mod stage;
mod stopwatch;
mod summary;
mod tally;
mod test_runner;
mod tidy;
mod tools;

use std::env;
use std::process::ExitCode;

use anyhow::Result;

use crate::args::{Misunderstood, USAGE, Verb};
use crate::deep::Figures;
use crate::metadata::Workspace;
use crate::summary::Summary;
use crate::tally::Tally;

fn main() -> ExitCode {
    let verb = match Verb::parse(env::args().skip(1)) {
        Ok(Verb::Usage) => {
            console::say(USAGE);
            return ExitCode::SUCCESS;
        }
        Ok(verb) => verb,
        Err(unknown) => {
            console::complain(format_args!("error: {unknown}\n\n{USAGE}"));
            return ExitCode::from(2);
        }
    };
    // Its standard output is data, and its exit code its own.
    match &verb {
        Verb::Bench(words) => return bench::run(words),
        Verb::Evidence(words) => return evidence::run(words),
        Verb::Planted(words) => return planted::run(words),
        Verb::Sim(words) => return sim::run(words),
        _ => {}
    }
    let tally = match run(verb) {
        Err(error) if error.is::<Misunderstood>() => return console::misunderstood(&error),
        result => result.unwrap_or_else(|error| {
            console::say(format_args!("error: {error:#}"));
            Tally::FAILURE
        }),
    };
    console::say(tally);
    if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(verb: Verb) -> Result<Tally> {
    let workspace = Workspace::load(&root::find())?;
    let summary = match verb {
        Verb::Usage | Verb::Bench(_) | Verb::Evidence(_) | Verb::Planted(_) | Verb::Sim(_) => {
            return Ok(Tally::default());
        }
        Verb::Tidy => return tidy::run(&workspace),
        Verb::Test(missing) => {
            tools::ensure(&workspace, missing)?;
            stage::run_all(plain::STAGES, &workspace)
        }
        Verb::Ci => stage::run_all(plain::STAGES, &workspace),
        Verb::Deep => return prove(&workspace),
        Verb::Coverage(words) => return coverage::run(&workspace, &words),
        Verb::Fuzz(words) => return fuzz::run(&workspace, &words),
        Verb::Mutants(words) => return mutants::run(&workspace, &words),
        Verb::Outage(words) => return outage::run(&workspace, &words),
        Verb::Soak(words) => return soak::run(&workspace, &words),
    };
    console::say(format_args!("\n{summary}"));
    tell(&summary.failures());
    Ok(summary.tally())
}

/// Runs every deep stage, and judges what they measured.
fn prove(workspace: &Workspace) -> Result<Tally> {
    let mut figures = Figures::default();
    let summary = Summary { rows: deep::all().map(|stage| stage.run(workspace, &mut figures)).collect() };
    console::say(format_args!("\n{summary}"));
    let (rows, broken) = evidence::conclude(workspace, &figures)?;
    tell(&[summary.failures(), broken].concat());
    Ok(summary.tally() + rows)
}

/// Says once more what failed, where it is found: at the end. `.ci/run` repeats it from the first line on.
fn tell(failures: &[String]) {
    if !failures.is_empty() {
        console::say(format_args!("\n=== what failed ===\n{}\n", failures.join("\n\n")));
    }
}
