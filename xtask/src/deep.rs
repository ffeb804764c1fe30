//! The deep stages: searches rather than checks, which take the time that they are given. `xtask/deep.toml` has them.
//!
//! They repeat nothing of the plain stages. A stage over its time box is ended and has failed.

mod properties;
mod stage;

use std::sync::OnceLock;
use std::thread;

use anyhow::{Context as _, Result};
use serde::Deserialize;

pub(crate) use self::stage::Deep;
use self::stage::Pace;
use crate::console;
use crate::figures::Figures;
use crate::programs::{Part, Programs, Site};
use crate::report::{Report, Tally};
use crate::runner::echo;
use crate::side_by_side::side_by_side;
use crate::summary::{Row, Summary};
use crate::workspace::Workspace;

const TABLE: &str = include_str!("../deep.toml");

/// The tests in files of their own that compute for long. All others are run as the plain tests are built.
const TESTS: &[&str] = &["it", "journal", "gateway", "memory"];

/// Whether stages run all that they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Extent {
    /// A part of the longest ones, as CI has time for.
    Sample,
    Full,
}

/// The builds whose programs stages share.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Build {
    /// Tests as the plain part builds them: nearly nothing is left to build.
    Plain,
    /// The simulator, and the tests that compute for long.
    Optimised,
}

impl Build {
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain build",
            Self::Optimised => "deep build",
        }
    }
}

#[derive(Deserialize)]
struct Table {
    stage: Vec<Deep>,
}

/// Every deep stage, in order.
pub(crate) fn all() -> Result<Vec<Deep>> {
    let table: Table = toml::from_str(TABLE).context("xtask/deep.toml")?;
    Ok(table.stage)
}

/// Runs these stages with programs that `build` builds, and keeps what they measured.
pub(crate) fn run(
    stages: &[Deep],
    extent: Extent,
    workspace: &Workspace,
    build: impl Fn(Build, &mut dyn FnMut(&str)) -> Result<Programs> + Sync,
    figures: &mut Figures,
) -> Summary {
    let site = stage::Site { extent, workspace, plain: OnceLock::new(), programs: OnceLock::new() };
    let build = |how: Build| {
        let row = Row::run(how.name(), &mut echo, |say| {
            let built = build(how, say);
            let failure = built.as_ref().err().map(|error| format!("{error:#}"));
            let _ = match how {
                Build::Plain => site.plain.set(built.unwrap_or_default()),
                Build::Optimised => site
                    .programs
                    .set(built.map(|programs| programs.or(site.plain.wait().clone())).unwrap_or_default()),
            };
            Ok(Report::of_tests(Tally::of(failure.is_none()), failure))
        });
        (row, None)
    };
    let run = |stage: &Deep| {
        stage.await_programs(&site);
        console::say(format_args!("begun: {}", stage.name));
        let mut said = Vec::new();
        let (row, measured) = stage.run(&site, &mut |line| said.push(line.to_owned()));
        console::say(said.join("\n"));
        (row, Some((stage.key.clone(), measured)))
    };
    let of = |pace| stages.iter().filter(|stage| stage.pace == pace).collect::<Vec<_>>();
    let (computing, waiting, alone) = (of(Pace::Computes), of(Pace::Waits), of(Pace::Alone));
    // While the searches are built, stages run that wait, or that build programs of their own.
    let builds = [Build::Plain, Build::Optimised].map(Err);
    let computing: Vec<Result<&Deep, Build>> =
        builds.into_iter().chain(computing.into_iter().map(Ok)).collect();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let (waited, computed) = thread::scope(|scope| {
        let waited = scope.spawn(|| side_by_side(&waiting, 1, |stage| run(stage)));
        let computed = side_by_side(&computing, cores, |step| step.map_or_else(build, run));
        (waited.join().unwrap_or_default(), computed)
    });
    let rest = side_by_side(&alone, 1, |stage| run(stage));
    let mut summary = Summary::default();
    for (row, measured) in computed.into_iter().chain(waited).chain(rest) {
        figures.extend(measured);
        summary.rows.push(row);
    }
    summary
}

/// Builds what these stages need of the tree.
pub(crate) fn build(
    how: Build,
    stages: &[Deep],
    workspace: &Workspace,
    say: &mut dyn FnMut(&str),
) -> Result<Programs> {
    let is_any = |wanted: fn(&Deep) -> bool| stages.iter().any(wanted);
    let (site, part) = match how {
        Build::Plain if is_any(Deep::runs_tests) => (Site::plain(workspace), Part::Everything),
        Build::Optimised if is_any(|stage| stage.runs_tests() && stage.pace != Pace::Waits) => {
            (Site::optimised(workspace), Part::Tests(TESTS))
        }
        Build::Optimised if is_any(Deep::simulates) => (Site::optimised(workspace), Part::Simulator),
        _ => return Ok(Programs::default()),
    };
    Programs::build(&site, part, say)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_table_is_well_formed_and_three_stages_have_a_sample() {
        let stages = all().unwrap();
        let keys: BTreeSet<_> = stages.iter().map(|stage| &stage.key).collect();
        let names: BTreeSet<_> = stages.iter().map(|stage| &stage.name).collect();
        assert_eq!((keys.len(), names.len()), (stages.len(), stages.len()), "each name and key is used once");
        let sampled = stages.iter().filter(|stage| stage.sample.is_some()).map(|stage| &*stage.key);
        assert_eq!(sampled.collect::<Vec<_>>(), ["planted", "model", "properties"]);
    }

    #[test]
    fn every_stage_runs_once_and_fails_if_nothing_was_built() {
        let workspace = Workspace::load(&crate::cargo::root()).unwrap();
        let stages: Vec<Deep> = all().unwrap().into_iter().filter(Deep::needs_programs).collect();
        let mut figures = Figures::default();
        let nothing = |_, _: &mut dyn FnMut(&str)| anyhow::bail!("nothing was built");
        let summary = run(&stages, Extent::Full, &workspace, nothing, &mut figures);
        let names: BTreeSet<&str> = summary.rows.iter().map(|row| &*row.name).collect();
        let wanted = stages.iter().map(|stage| &*stage.name).chain(["plain build", "deep build"]).collect();
        assert_eq!((names, summary.rows.len()), (wanted, stages.len() + 2));
        assert!(summary.rows.iter().all(Row::is_failed));
        assert!(stages.iter().all(|stage| figures[&stage.key].is_failed));
    }

    #[cfg(unix)]
    #[test]
    fn only_a_stage_that_waits_runs_without_the_searches() {
        let workspace = Workspace::load(&crate::cargo::root()).unwrap();
        let stages = ["computes", "waits"].map(|pace| {
            toml::from_str(&format!(
                "key = '{pace}'\nname = '{pace}'\nminutes = 1\npace = '{pace}'\n\
                 run = {{ tests = ['steadfast-retry', 'it', '-c true'] }}"
            ))
            .unwrap()
        });
        let only_plain = |how, _: &mut dyn FnMut(&str)| match how {
            Build::Plain => Ok(Programs::shells()),
            Build::Optimised => anyhow::bail!("no search was built"),
        };
        let summary = run(&stages, Extent::Full, &workspace, only_plain, &mut Figures::default());
        let failures = summary.failures();
        let is_without_programs = |name| {
            failures
                .iter()
                .any(|failure| failure.starts_with(&format!("{name}: no tests it of steadfast-retry")))
        };
        assert!(is_without_programs("computes") && !is_without_programs("waits"), "{failures:?}");
    }
}
