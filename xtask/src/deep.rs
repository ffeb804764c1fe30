//! The deep stages: searches rather than checks, which take the time that they are given.
//!
//! They repeat nothing of the plain stages. A stage over its time box is ended and has failed: a box is far
//! longer than the stage needs, so one that fills it hangs.

mod names;
mod stage;
mod table;

use std::sync::OnceLock;
use std::{iter, thread};

use anyhow::Result;

pub(crate) use self::stage::Deep;
use self::stage::{Pace, What};
use self::table::TABLE;
use crate::console;
use crate::figures::Figures;
use crate::lanes::Lanes;
use crate::planted::Tree;
use crate::programs::{Part, Programs, Site};
use crate::report::{Report, Tally};
use crate::runner::echo;
use crate::summary::{Row, Summary};
use crate::workspace::Workspace;

/// The tests in files of their own that compute for long. All others are run as the plain tests are built.
const TESTS: &[&str] = &["it", "journal", "gateway", "memory"];

/// Whether stages run all that they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// A part of the longest ones, as CI has time for.
    Sample,
    Full,
}

/// Every deep stage, in order.
pub(crate) fn all(extent: Extent) -> impl Iterator<Item = Deep> {
    TABLE.iter().map(move |stage| match extent {
        Extent::Sample => stage.sample(),
        Extent::Full => *stage,
    })
}

/// Runs these stages with programs that `build` builds, and keeps what they measured.
pub(crate) fn run(
    stages: &[Deep],
    workspace: &Workspace,
    build: impl FnOnce(&mut dyn FnMut(&str)) -> Result<Programs>,
    figures: &mut Figures,
) -> Summary {
    // Stages that need none of these programs are run while they are built.
    let programs = OnceLock::new();
    let lanes = Lanes::new(stages, |stage: &Deep| stage.pace);
    let run = |stage: &Deep| {
        if stage.needs_programs() {
            programs.wait();
        }
        console::say(format_args!("begun: {}", stage.name));
        let mut said = Vec::new();
        let done = stage.run(workspace, &programs, &mut |line| said.push(line.to_owned()));
        console::say(said.join("\n"));
        done
    };
    let mut build_row = None;
    let computing = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for pace in iter::repeat_n(Pace::Computes, computing - 1).chain([Pace::Waits]) {
            let (lanes, run) = (&lanes, &run);
            scope.spawn(move || lanes.drain(pace, run));
        }
        build_row = Some(Row::run("deep build", &mut echo, |say| {
            let (built, failure) = match build(say) {
                Ok(built) => (built, None),
                Err(error) => (Programs::default(), Some(format!("{error:#}"))),
            };
            let _ = programs.set(built);
            Ok(Report::of_tests(Tally::SUCCESS, failure))
        }));
        lanes.drain(Pace::Computes, &run);
    });
    lanes.drain(Pace::Alone, &run);
    let mut summary = Summary { rows: build_row.into_iter().collect() };
    for (stage, (row, measured)) in lanes.done() {
        figures.insert(stage.key, measured);
        summary.rows.push(row);
    }
    summary
}

/// Builds the part of the tree that these stages need, with this bug turned on if there is one.
pub(crate) fn build(
    stages: &[Deep],
    workspace: &Workspace,
    bug: Option<&str>,
    say: &mut dyn FnMut(&str),
) -> Result<Programs> {
    let needs_tests =
        |stage: &Deep| matches!(stage.what, What::Tests(..) | What::Properties(_) | What::Secrets);
    let part = if stages.iter().any(needs_tests) {
        Part::Tests(TESTS)
    } else if stages.iter().any(|stage| matches!(stage.what, What::Simulation(_))) {
        Part::Simulator
    } else {
        return Ok(Programs::default());
    };
    if bug.is_some() {
        let part = if part == Part::Simulator { part } else { Part::Everything };
        return Ok(Programs::build(&Tree::plant(workspace)?.site, part, say)?.with(bug));
    }
    let plain = match part {
        Part::Simulator => Programs::default(),
        _ => Programs::build(&Site::plain(workspace), Part::Everything, &mut *say)?,
    };
    Ok(Programs::build(&Site::optimised(workspace), part, say)?.or(plain))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_stages_have_the_same_key_or_name() {
        let keys: BTreeSet<_> = all(Extent::Full).map(|deep| deep.key).collect();
        let names: BTreeSet<_> = all(Extent::Full).map(|deep| deep.name).collect();
        assert_eq!((keys.len(), names.len()), (TABLE.len(), TABLE.len()));
    }

    #[test]
    fn a_sample_differs_only_in_what_is_run() {
        let sampled: Vec<_> = all(Extent::Full).zip(all(Extent::Sample)).collect();
        assert!(sampled.iter().all(|(full, sample)| full.key == sample.key && full.pace == sample.pace));
        let keys = sampled.iter().filter(|(full, sample)| full.what != sample.what).map(|(full, _)| full.key);
        assert_eq!(keys.collect::<Vec<_>>(), ["planted", "model", "properties"]);
    }

    #[test]
    fn every_stage_runs_once_in_its_place_and_fails_if_nothing_was_built() {
        let workspace = Workspace::load(&crate::cargo::root()).unwrap();
        let stages: Vec<Deep> = all(Extent::Full).filter(Deep::takes_bugs).collect();
        let mut figures = Figures::default();
        let summary = run(&stages, &workspace, |_| anyhow::bail!("nothing was built"), &mut figures);
        let names: Vec<&str> = summary.rows.iter().map(|row| row.name).collect();
        assert_eq!(names, [vec!["deep build"], stages.iter().map(|stage| stage.name).collect()].concat());
        assert!(summary.rows.iter().all(Row::is_failed));
        assert!(stages.iter().all(|stage| figures.is_failed(stage.key)));
    }
}
