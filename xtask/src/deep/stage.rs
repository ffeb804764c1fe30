use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::names::{Named, SINKS};
use crate::cargo::cargo;
use crate::figures::Measured;
use crate::planted::{self, Bugs};
use crate::programs::Programs;
use crate::report::{Report, Tally, Verdict};
use crate::repository::Repository;
use crate::runner;
use crate::summary::Row;
use crate::workspace::Workspace;

/// One stage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deep {
    /// The key of its figures.
    pub(crate) key: &'static str,
    pub(super) name: &'static str,
    pub(super) what: What,
    /// The part of it that CI runs, if that is not all.
    sample: Option<What>,
    time_box: Duration,
    pub(super) pace: Pace,
}

/// The work of a deep stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Every file of every fuzz corpus.
    Corpora,
    /// Every property test, with so many cases of each; the plain tests run proptest's own default.
    Properties(&'static str),
    /// Tests of a package and a target by parts of their names. They do a part of their work in a plain run, and all here.
    Tests(&'static str, &'static str, &'static str),
    /// The tests that search for secrets, each in its sink. They are plain tests, run again to be counted.
    Secrets,
    /// Tests under the scheduler that tries orders of threads; it needs a build of its own.
    Schedules,
    /// The simulator, which judges itself.
    Simulation(&'static str),
    /// Planted bugs, in a copy of the sources.
    Planted(Bugs),
    /// Counts that no busy machine changes, against their ceilings.
    Costs,
}

/// The load that a stage puts on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// Computes, beside as many others as there are cores: few use all cores from their beginning to their end.
    Computes,
    /// Waits for processes, networks and real time, beside stages that compute.
    Waits,
    /// Measures time, and has the machine to itself.
    Alone,
}

impl Deep {
    pub(super) const fn new(key: &'static str, name: &'static str, minutes: u64, what: What) -> Self {
        let time_box = Duration::from_secs(60 * minutes);
        Self { key, name, what, sample: None, time_box, pace: Pace::Computes }
    }

    /// CI runs only so much of it.
    pub(super) const fn sampled(self, sample: What) -> Self {
        Self { sample: Some(sample), ..self }
    }

    /// The part of it that CI runs.
    pub(super) fn sample(self) -> Self {
        Self { what: self.sample.unwrap_or(self.what), ..self }
    }

    pub(super) const fn waits(self) -> Self {
        Self { pace: Pace::Waits, ..self }
    }

    pub(super) const fn alone(self) -> Self {
        Self { pace: Pace::Alone, ..self }
    }

    /// False if the stage builds its own programs.
    pub(super) fn needs_programs(&self) -> bool {
        !matches!(self.what, What::Corpora | What::Schedules | What::Planted(_) | What::Costs)
    }

    /// True if a bug can be planted in what the stage runs.
    pub(crate) fn takes_bugs(&self) -> bool {
        matches!(self.what, What::Simulation(_) | What::Tests(..) | What::Secrets)
    }

    pub(super) fn run(
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
            What::Properties(cases) => {
                // Only the properties run again: a test without proptest would do the same as before.
                let named = Named::properties(&Repository::read(&workspace.root)?);
                self.named(&named, programs.wait(), &[("PROPTEST_CASES", cases)], each)
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
            What::Planted(bugs) => planted::check(workspace, bugs, each),
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
