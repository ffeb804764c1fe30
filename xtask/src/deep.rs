//! The deep stages: searches rather than checks, which take the time that they are given.
//!
//! They repeat nothing of the plain stages. A stage over its time box is ended and has failed: a box is far
//! longer than the stage needs, so one that fills it hangs.

mod lanes;
mod names;
mod table;

use std::sync::OnceLock;
use std::time::Duration;
use std::{iter, thread};

use anyhow::{Context as _, Result, ensure};

use self::lanes::Lanes;
use self::names::{Named, SINKS};
use self::table::TABLE;
use crate::cargo::cargo;
use crate::console;
use crate::figures::{Figures, Measured};
use crate::planted::{self, Tree};
use crate::programs::{Part, Programs, Site};
use crate::report::{Report, Tally, Verdict};
use crate::repository::Repository;
use crate::runner::{self, echo};
use crate::summary::{Row, Summary};
use crate::workspace::Workspace;

/// Cases for each property; the plain tests run proptest's own default.
const CASES: &str = "10000";

/// The tests in files of their own that some stage runs.
const TESTS: &[&str] = &["it", "journal", "gateway", "kill", "memory", "secrets", "soak", "traceability"];

/// One stage.
pub(crate) struct Deep {
    /// What [`Figures`] know it by.
    pub(crate) key: &'static str,
    name: &'static str,
    what: What,
    time_box: Duration,
    pace: Pace,
}

/// What a deep stage runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// Every file of every fuzz corpus.
    Corpora,
    /// Every property test, with more cases.
    Properties,
    /// Tests of a package and a target by parts of their names. They do a part of their work in a plain run, and all here.
    Tests(&'static str, &'static str, &'static str),
    /// The tests that search for secrets, each in its sink. They are plain tests, run again to be counted.
    Secrets,
    /// Tests under the scheduler that tries orders of threads; it needs a build of its own.
    Schedules,
    /// The simulator, which judges itself.
    Simulation(&'static str),
    /// Every planted bug, in a copy of the sources.
    Planted,
    /// Counts that no busy machine changes, against their ceilings.
    Costs,
}

/// What a stage does with the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// Computes, beside as many others as there are cores: few use all cores from their beginning to their end.
    Computes,
    /// Waits for processes, networks and real time, beside stages that compute.
    Waits,
    /// Measures time, and has the machine to itself.
    Alone,
}

/// Every deep stage, in order.
pub(crate) fn all() -> impl Iterator<Item = &'static Deep> {
    TABLE.iter()
}

/// Runs these stages with programs that `build` builds, and keeps what they measured.
pub(crate) fn run(
    stages: &[&'static Deep],
    workspace: &Workspace,
    build: impl FnOnce(&mut dyn FnMut(&str)) -> Result<Programs>,
    figures: &mut Figures,
) -> Summary {
    // Stages that need none of these programs are run while they are built.
    let programs = OnceLock::new();
    let lanes = Lanes::new(stages, |stage: &&'static Deep| stage.pace);
    let run = |stage: &&'static Deep| {
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
    stages: &[&Deep],
    workspace: &Workspace,
    bug: Option<&str>,
    say: &mut dyn FnMut(&str),
) -> Result<Programs> {
    let needs_tests =
        |stage: &&Deep| matches!(stage.what, What::Tests(..) | What::Properties | What::Secrets);
    let part = if stages.iter().any(needs_tests) {
        Part::Tests(TESTS)
    } else if stages.iter().any(|stage| matches!(stage.what, What::Simulation(_))) {
        Part::Simulator
    } else {
        return Ok(Programs::default());
    };
    let site = if bug.is_some() { Tree::plant(workspace)?.site } else { Site::of(workspace) };
    Ok(Programs::build(&site, part, say)?.with(bug))
}

impl Deep {
    const fn new(key: &'static str, name: &'static str, minutes: u64, what: What) -> Self {
        Self { key, name, what, time_box: Duration::from_secs(60 * minutes), pace: Pace::Computes }
    }

    const fn waits(self) -> Self {
        Self { pace: Pace::Waits, ..self }
    }

    const fn alone(self) -> Self {
        Self { pace: Pace::Alone, ..self }
    }

    /// False if the stage builds its own programs.
    fn needs_programs(&self) -> bool {
        !matches!(self.what, What::Corpora | What::Schedules | What::Planted | What::Costs)
    }

    /// True if a bug can be planted in what the stage runs.
    pub(crate) fn takes_bugs(&self) -> bool {
        matches!(self.what, What::Simulation(_) | What::Tests(..))
    }

    fn run(
        &self,
        workspace: &Workspace,
        programs: &OnceLock<Programs>,
        say: &mut dyn FnMut(&str),
    ) -> (Row, Measured) {
        let mut measured = Measured::default();
        let row = Row::run(self.name, say, |say| {
            self.report(workspace, programs, &mut |line| {
                measured.read(line);
                say(line);
            })
        });
        if row.is_failed() {
            measured.fail();
        }
        (row, measured)
    }

    fn report(
        &self,
        workspace: &Workspace,
        programs: &OnceLock<Programs>,
        each: &mut dyn FnMut(&str),
    ) -> Result<Report> {
        let limit = Some(self.time_box);
        match self.what {
            What::Corpora => {
                // `fuzz` is a workspace of its own, whose tests feed every file of every corpus to its target. That needs
                // neither a fuzzer nor a nightly compiler.
                let mut command = cargo(&workspace.root);
                command.args(["test", "--manifest-path", "fuzz/Cargo.toml", "--no-fail-fast"]);
                command.env("CARGO_TARGET_DIR", workspace.target.join("corpora"));
                command.env("CARGO_BUILD_BUILD_DIR", &workspace.target);
                runner::count_quietly(command.args(["--", "--show-output"]), limit, each)
            }
            What::Properties => {
                // Only the properties run again: a test without proptest would do the same as before.
                let named = Named::properties(&Repository::read(&workspace.root)?);
                self.named(&named, programs.wait(), &[("PROPTEST_CASES", CASES)], each)
            }
            What::Secrets => {
                let named =
                    Named::find(&Repository::read(&workspace.root)?, SINKS.iter().map(|sink| sink.1))?;
                let report = self.named(&named, programs.wait(), &[], each)?;
                let sinks = if report.tally.failed == 0 { SINKS.len() } else { 0 };
                each(&format!("figures: sinks={sinks} leaks={}", report.tally.failed));
                Ok(report)
            }
            What::Tests(package, target, names) => {
                let mut command = programs.wait().tests(package, target)?;
                command.env("STEADFAST_DEEP", "1").args(names.split_whitespace()).arg("--show-output");
                match self.pace {
                    Pace::Computes => &mut command,
                    Pace::Waits => command.args(["--test-threads", "4"]),
                    Pace::Alone => command.args(["--test-threads", "1"]),
                };
                runner::count_quietly(&mut command, limit, each)
            }
            What::Schedules => {
                // Flags of the compiler change every crate, so the other builds are kept.
                let mut command = cargo(&workspace.root);
                command.env("RUSTFLAGS", "--cfg shuttle");
                command.env("CARGO_TARGET_DIR", workspace.target.join("shuttle"));
                command.args(["test", "--profile", "deep", "--no-fail-fast", "--lib", "schedules"]);
                command.args(["--package", "steadfast-limit", "--package", "steadfast-dedup"]);
                command.args(["--package", "steadfast-auth", "--", "--show-output"]);
                runner::count_quietly(&mut command, limit, each)
            }
            What::Simulation(words) => {
                let mut command = programs.wait().simulator(&workspace.root)?;
                runner::check(command.args(words.split_whitespace()), limit, each)
            }
            What::Planted => planted::check_all(workspace, each),
            What::Costs => {
                let mut command = cargo(&workspace.root);
                command.args(["run", "--quiet", "--package", "benches", "--", "--check"]);
                runner::check(&mut command, limit, each)
            }
        }
    }

    /// Runs tests by their names, one program after the other.
    fn named(
        &self,
        named: &Named,
        programs: &Programs,
        variables: &[(&str, &str)],
        each: &mut dyn FnMut(&str),
    ) -> Result<Report> {
        let (mut tally, mut failure) = (Tally::default(), None);
        for ((package, target), names) in named.places() {
            let mut command = programs.tests(package, target).context("`TESTS` in xtask/src/deep.rs")?;
            command.envs(variables.iter().copied()).args(names).arg("--show-output");
            let report = runner::count_quietly(&mut command, Some(self.time_box), &mut *each)?;
            ensure!(report.tally.total() > 0, "{package} {target}: nothing was run");
            tally += report.tally;
            if let Verdict::Failed(why) = report.verdict {
                failure.get_or_insert(format!("{package} {target}: {why}"));
            }
        }
        Ok(Report::of_tests(tally, failure))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_stages_have_the_same_key_or_name() {
        let keys: BTreeSet<_> = all().map(|deep| deep.key).collect();
        let names: BTreeSet<_> = all().map(|deep| deep.name).collect();
        assert_eq!((keys.len(), names.len()), (TABLE.len(), TABLE.len()));
    }
}
