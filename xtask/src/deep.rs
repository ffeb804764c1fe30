//! The deep stages: searches rather than checks, which take the time that they are given. `xtask/deep.toml` has them.
//!
//! They repeat nothing of the plain stages. A stage over its time box is ended and has failed.

mod build;
mod properties;
mod stage;

use std::sync::OnceLock;
use std::thread;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use self::build::Build;
use self::stage::What;
pub(crate) use self::stage::{Deep, Pace};
use crate::extent::Extent;
use crate::figures::Figures;
use crate::programs::{Part, Programs, Site};
use crate::report::{Report, Tally};
use crate::runner::echo;
use crate::side_by_side::side_by_side;
use crate::summary::{Row, Summary};
use crate::workspace::Workspace;
use crate::{cargo, console};

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

/// The stages of a run of CI: all of them, or those that need no build but the one in turn. Outside a clone all are.
pub(crate) fn of(extent: Extent, workspace: &Workspace) -> Result<Vec<Deep>> {
    let mut stages = all()?;
    if let (Extent::Sample, Some(commits)) = (extent, cargo::commits(&workspace.root)) {
        let in_turn = Build::in_turn(commits);
        stages.retain(|stage| stage.build().is_none_or(|build| build == in_turn));
        console::say(format_args!("in turn: {in_turn:?}"));
    }
    Ok(stages)
}

/// Runs these stages with the programs that `build` builds for those of a pace, and keeps what they measured.
pub(crate) fn run(
    stages: &[Deep],
    extent: Extent,
    workspace: &Workspace,
    build: impl Fn(Pace, &mut dyn FnMut(&str)) -> Result<Programs> + Sync,
    figures: &mut Figures,
) -> Summary {
    let site = stage::Site { extent, workspace, plain: OnceLock::new(), optimised: OnceLock::new() };
    let build = |pace| {
        let (name, programs) = match pace {
            Pace::Waits => ("plain build", &site.plain),
            _ => ("deep build", &site.optimised),
        };
        let row = Row::run(name, &mut echo, |say| {
            let built = build(pace, say);
            let failure = built.as_ref().err().map(|error| format!("{error:#}"));
            let _ = programs.set(built.unwrap_or_default());
            Ok(Report::of_tests(Tally::of(failure.is_none()), failure))
        });
        (row, None)
    };
    let run = |stage: &Deep| {
        site.wait_for_programs(stage);
        console::say(format_args!("begun: {}", stage.name));
        let mut said = Vec::new();
        let (row, measured) = stage.run(&site, &mut |line| said.push(line.to_owned()));
        said.push(format!("ended: {} after {} s", row.name, row.took.as_secs()));
        console::say(said.join("\n"));
        (row, Some((stage.key.clone(), measured)))
    };
    let of = |pace| stages.iter().filter(|stage| stage.pace == pace).collect::<Vec<_>>();
    let (computing, waiting, alone) = (of(Pace::Computes), of(Pace::Waits), of(Pace::Alone));
    // Each kind of programs is built first, beside stages that need none of them.
    let computing: Vec<Option<&Deep>> = [None].into_iter().chain(computing.into_iter().map(Some)).collect();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let (waited, computed) = thread::scope(|scope| {
        let waited = scope.spawn(|| {
            let built = build(Pace::Waits);
            [built].into_iter().chain(side_by_side(&waiting, 1, |stage| run(stage))).collect::<Vec<_>>()
        });
        let computed =
            side_by_side(&computing, cores, |stage| stage.map_or_else(|| build(Pace::Computes), run));
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

/// Builds the part of the tree that those of these stages need that have this pace: the plain tests, which have been built
/// before, or the simulator and optimised tests.
pub(crate) fn build(
    stages: &[Deep],
    pace: Pace,
    workspace: &Workspace,
    say: &mut dyn FnMut(&str),
) -> Result<Programs> {
    let need = |is: fn(&Deep) -> bool| stages.iter().any(is);
    let need_tests = need(|stage| matches!(stage.what(Extent::Full), What::Tests(..)));
    let need_simulator = need(|stage| matches!(stage.what(Extent::Full), What::Simulation(_)));
    let (site, part) = match pace {
        Pace::Waits if need_tests => (Site::plain(workspace), Part::Everything),
        Pace::Waits => return Ok(Programs::default()),
        _ if need(|stage| stage.build() == Some(Build::Tests)) => {
            (Site::optimised(workspace), Part::Tests(TESTS))
        }
        _ if need_simulator => (Site::optimised(workspace), Part::Simulator),
        _ => return Ok(Programs::default()),
    };
    Programs::build(&site, part, say)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_table_is_well_formed() {
        let stages = all().unwrap();
        let keys: BTreeSet<_> = stages.iter().map(|stage| &stage.key).collect();
        let names: BTreeSet<_> = stages.iter().map(|stage| &stage.name).collect();
        assert_eq!((keys.len(), names.len()), (stages.len(), stages.len()), "each name and key is used once");
        let sampled = stages.iter().filter(|stage| stage.sample.is_some()).map(|stage| &*stage.key);
        let short = ["planted", "orders", "unbounded", "pipe"];
        assert_eq!(sampled.collect::<Vec<_>>(), short);
    }

    #[test]
    fn three_commits_in_a_row_run_all_that_ci_has_time_for() {
        let mut builds = vec![Build::Searches, Build::Planted, Build::Counts];
        for commits in 7..10 {
            builds.retain(|build| *build != Build::in_turn(commits));
        }
        assert_eq!(builds, []);
    }

    #[test]
    fn every_stage_runs_once_and_fails_if_nothing_was_built() {
        let workspace = Workspace::load(&crate::cargo::root()).unwrap();
        let stages: Vec<Deep> = all().unwrap().into_iter().filter(|stage| !stage.builds_alone()).collect();
        let mut figures = Figures::default();
        let nothing = |_: Pace, _: &mut dyn FnMut(&str)| anyhow::bail!("nothing was built");
        let summary = run(&stages, Extent::Full, &workspace, nothing, &mut figures);
        let names: BTreeSet<&str> = summary.rows.iter().map(|row| &*row.name).collect();
        let wanted = stages.iter().map(|stage| &*stage.name).chain(["plain build", "deep build"]).collect();
        assert_eq!((names, summary.rows.len()), (wanted, stages.len() + 2));
        assert!(summary.rows.iter().all(Row::is_failed));
        assert!(stages.iter().all(|stage| figures[&stage.key].is_failed));
    }
}
