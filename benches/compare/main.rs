//! Runs the benches and puts their figures beside each other, as ratios: machines are noisy, ratios of one run less so.
//!
//! `--check` holds the counts that no busy machine changes (instructions, allocations, bytes) against the ceilings in
//! `benches/ceilings.toml`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "its figures are on stdout, all else is on stderr"
)]

mod ceilings;
mod figure;
mod plot;
mod programs;
mod ratio;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use clap::Parser;

use self::{
    ceilings::{Ceilings, Tally},
    figure::Figure,
    programs::{Programs, SUBJECTS, Subject},
};

/// The benches as one table of ratios.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask bench")]
struct Args {
    /// limiter, overhead, burst, renewal or loopback; all if absent.
    #[arg(value_parser = known)]
    subject: Option<String>,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
    /// Holds counts of instructions, allocations and bytes against their ceilings.
    #[arg(long, requires = "built")]
    check: bool,
    /// Makes today's counts the ceilings.
    #[arg(long, requires = "built")]
    set_ceilings: bool,
    /// The program of a bench; `cargo xtask bench` builds those that count, in CI's profile, and names them.
    #[arg(long, value_name = "NAME=PATH", value_parser = built)]
    built: Vec<(String, PathBuf)>,
    /// Draws the figures into `benches/plots`.
    #[arg(long)]
    plots: bool,
}

fn known(name: &str) -> Result<String> {
    let names: Vec<_> = SUBJECTS.iter().map(|subject| subject.name).collect();
    ensure!(names.contains(&name), "expected {}", names.join(", "));
    Ok(name.to_owned())
}

fn built(text: &str) -> Result<(String, PathBuf)> {
    let (name, path) = text.split_once('=').context("expected NAME=PATH")?;
    Ok((name.to_owned(), path.into()))
}

fn main() -> ExitCode {
    match Args::parse().run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

impl Args {
    /// False if a ceiling was broken.
    fn run(self) -> Result<bool> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let wanted = |subject: &&Subject| self.subject.as_ref().is_none_or(|name| name == subject.name);
        let subjects: Vec<Subject> = SUBJECTS.iter().filter(wanted).copied().collect();
        if self.check {
            let tally = check(folder, &Programs::of(folder, self.built), &subjects)?;
            println!("{} passed, {} failed", tally.passed, tally.failed);
            return Ok(tally.failed == 0);
        }
        if self.set_ceilings {
            let programs = Programs::of(folder, self.built);
            let found = SUBJECTS.iter().map(|subject| Ok((subject.name, programs.count(*subject)?)));
            Ceilings::write(folder, &found.collect::<Result<Vec<_>>>()?)?;
            return Ok(true);
        }
        let programs = Programs::build(folder, subjects.iter().flat_map(|subject| subject.benches()))?;
        let mut ratios = Vec::new();
        for subject in subjects {
            let figures = programs.run(subject)?;
            if self.plots {
                plot::draw(folder, subject.name, &figures)?;
            }
            ratios.extend(ratio::of(subject.name, &figures));
        }
        if self.json {
            println!("{}", ratio::json(&ratios));
        } else {
            ratios.iter().for_each(|ratio| println!("{ratio}"));
        }
        Ok(true)
    }
}

/// Holds every count of these subjects against its ceiling.
fn check(folder: &Path, programs: &Programs, subjects: &[Subject]) -> Result<Tally> {
    let ceilings = Ceilings::read(folder)?;
    let mut sum = Tally::default();
    for subject in subjects.iter().copied() {
        let tally = ceilings.check(subject.name, &programs.count(subject)?);
        sum = Tally { passed: sum.passed + tally.passed, failed: sum.failed + tally.failed };
    }
    Ok(sum)
}
