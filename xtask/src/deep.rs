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
use self::stage::{Pace, What};
use crate::console;
use crate::extent::Extent;
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
    build: impl Fn(&mut dyn FnMut(&str)) -> Result<Programs> + Sync,
    figures: &mut Figures,
) -> Summary {
    let site = stage::Site { extent, workspace, programs: OnceLock::new() };
    let build = || {
        let row = Row::run("deep build", &mut echo, |say| {
            let built = build(say);
            let failure = built.as_ref().err().map(|error| format!("{error:#}"));
            let _ = site.programs.set(built.unwrap_or_default());
            Ok(Report::of_tests(Tally::of(failure.is_none()), failure))
        });
        (row, None)
    };
    let run = |stage: &Deep| {
        if stage.needs_programs() {
            site.programs.wait();
        }
        console::say(format_args!("begun: {}", stage.name));
        let mut said = Vec::new();
        let (row, measured) = stage.run(&site, &mut |line| said.push(line.to_owned()));
        console::say(said.join("\n"));
        (row, Some((stage.key.clone(), measured)))
    };
    let of = |pace| stages.iter().filter(|stage| stage.pace == pace).collect::<Vec<_>>();
    let (computing, waiting, alone) = (of(Pace::Computes), of(Pace::Waits), of(Pace::Alone));
    // Stages that need none of these programs are run while they are built.
    let computing: Vec<Option<&Deep>> = [None].into_iter().chain(computing.into_iter().map(Some)).collect();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let (waited, computed) = thread::scope(|scope| {
        let waited = scope.spawn(|| side_by_side(&waiting, 1, |stage| run(stage)));
        let computed = side_by_side(&computing, cores, |stage| stage.map_or_else(build, run));
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

/// Builds the part of the tree that these stages need.
pub(crate) fn build(stages: &[Deep], workspace: &Workspace, say: &mut dyn FnMut(&str)) -> Result<Programs> {
    let [plain, optimised, counted] =
        [Site::plain, Site::optimised, Site::counted].map(|site| site(workspace));
    let need = |is: fn(&What) -> bool| stages.iter().any(|stage| is(stage.what(Extent::Full)));
    let parts = if need(|what| matches!(what, What::Tests(..) | What::Properties(_))) {
        // The plain ones are there already, as long as no tree with bugs is built.
        vec![(&plain, Part::Everything), (&optimised, Part::Tests(TESTS))]
    } else if need(|what| matches!(what, What::Simulation(_))) {
        vec![(&optimised, Part::Simulator)]
    } else {
        Vec::new()
    };
    let counts = need(|what| matches!(what, What::Costs | What::Growth)).then_some((&counted, Part::Counts));
    parts.into_iter().chain(counts).try_fold(Programs::default(), |programs, (site, part)| {
        Ok(Programs::build(site, part, &mut *say)?.or(programs))
    })
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
        let nothing = |_: &mut dyn FnMut(&str)| anyhow::bail!("nothing was built");
        let summary = run(&stages, Extent::Full, &workspace, nothing, &mut figures);
        let names: BTreeSet<&str> = summary.rows.iter().map(|row| &*row.name).collect();
        let wanted = stages.iter().map(|stage| &*stage.name).chain(["deep build"]).collect();
        assert_eq!((names, summary.rows.len()), (wanted, stages.len() + 1));
        assert!(summary.rows.iter().all(Row::is_failed));
        assert!(stages.iter().all(|stage| figures[&stage.key].is_failed));
    }
}
