use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::build::Build;
use super::properties::properties;
use crate::cargo::{cargo, name_state};
use crate::extent::Extent;
use crate::figures::Measured;
use crate::planted;
use crate::programs::{self, Part, Programs};
use crate::report::{Report, Tally, Verdict};
use crate::repository::Repository;
use crate::runner;
use crate::summary::Row;
use crate::workspace::Workspace;

/// One stage.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Deep {
    /// The key of its figures.
    pub(crate) key: String,
    pub(super) name: String,
    minutes: u64,
    #[serde(default)]
    pub(super) pace: Pace,
    run: What,
    /// The part of it that CI runs, if that is not all.
    pub(super) sample: Option<What>,
}

/// The work of a deep stage.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum What {
    /// Every file of every fuzz corpus.
    Corpora,
    /// Every property test, with so many cases of each; the plain tests run proptest's own default.
    Properties(String),
    /// Tests of a package and a target by parts of their names. They do a part of their work in a plain run, and all here.
    Tests(String, String, String),
    /// Tests under the scheduler that tries orders of threads; it needs a build of its own.
    Schedules,
    /// The simulator, which judges itself.
    Simulation(String),
    /// Planted bugs, in a copy of the sources.
    Planted(Extent),
    /// Counts that no busy machine changes, against their ceilings.
    Costs,
    /// How much costs grow with all that waits beside them.
    Growth,
}

/// The load that a stage puts on the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Pace {
    /// Computes, beside as many others as there are cores: few use all cores from their beginning to their end.
    #[default]
    Computes,
    /// Waits for processes, networks and real time, beside stages that compute.
    Waits,
    /// Measures time, and has the machine to itself.
    Alone,
}

/// The place and the extent of a run.
#[derive(Debug)]
pub(super) struct Site<'a> {
    pub(super) extent: Extent,
    pub(super) workspace: &'a Workspace,
    /// There once they are built: the plain tests, and the simulator with optimised tests.
    pub(super) plain: OnceLock<Programs>,
    pub(super) optimised: OnceLock<Programs>,
}

impl Site<'_> {
    /// Builds the benches that count, beside simulations: their simulator comes first.
    fn counted(&self, say: &mut dyn FnMut(&str)) -> Result<Programs> {
        self.optimised.wait();
        Programs::build(&programs::Site::counted(self.workspace), Part::Counts, say)
    }

    /// Returns once the programs that a stage runs are built, if it does not build its own.
    pub(super) fn wait_for_programs(&self, stage: &Deep) {
        if stage.builds_alone() {
            return;
        }
        match stage.pace {
            Pace::Waits => self.plain.wait(),
            _ => self.optimised.wait(),
        };
    }

    /// Starts to describe a run of tests, optimised ones where there are any and time is not waited for.
    fn tests(&self, pace: Pace, package: &str, target: &str) -> Result<Command> {
        let plain = || self.plain.wait().tests(package, target);
        match pace {
            Pace::Waits => plain(),
            _ => self.optimised.wait().tests(package, target).or_else(|_| plain()),
        }
    }
}

impl Deep {
    /// The build that it needs beside that of the simulator and of plain tests.
    pub(super) fn build(&self) -> Option<Build> {
        match (&self.run, self.pace) {
            (What::Schedules | What::Corpora, _) => Some(Build::Searches),
            (What::Planted(_), _) => Some(Build::Planted),
            (What::Costs | What::Growth, _) => Some(Build::Counts),
            (What::Simulation(_), _) | (What::Tests(..), Pace::Waits) => None,
            (What::Tests(..) | What::Properties(_), _) => Some(Build::Tests),
        }
    }

    /// True if it builds its own programs.
    pub(super) fn builds_alone(&self) -> bool {
        matches!(self.build(), Some(Build::Searches | Build::Planted | Build::Counts))
    }

    /// The work of it that this extent has.
    pub(super) fn what(&self, extent: Extent) -> &What {
        self.sample.as_ref().filter(|_| extent == Extent::Sample).unwrap_or(&self.run)
    }

    pub(super) fn run(&self, site: &Site<'_>, say: &mut dyn FnMut(&str)) -> (Row, Measured) {
        let mut measured = Measured::default();
        let row = Row::run(&self.name, say, |say| {
            self.report(site, &mut |line| {
                measured.read(line);
                say(line);
            })
        });
        measured.is_failed = row.is_failed();
        (row, measured)
    }

    fn report(&self, site: &Site<'_>, each: &mut dyn FnMut(&str)) -> Result<Report> {
        let Site { extent, workspace, .. } = site;
        let limit = Some(self.time_box());
        match self.what(*extent) {
            What::Corpora => {
                // `fuzz` is a workspace of its own, whose tests feed every file of every corpus to its target. That needs
                // neither a fuzzer nor a nightly compiler.
                let mut command = cargo(&workspace.root);
                command.args(["test", "--manifest-path", "fuzz/Cargo.toml", "--no-fail-fast"]);
                command.env("CARGO_TARGET_DIR", workspace.target.join("corpora"));
                command.env("CARGO_BUILD_BUILD_DIR", &workspace.target);
                runner::count_quietly(command.args(["--", "--show-output"]), limit, each)
            }
            What::Properties(cases) => self.properties(site, cases, each),
            What::Tests(package, target, names) => {
                let mut command = site.tests(self.pace, package, target)?;
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
                let mut command = site.optimised.wait().tests("steadfast-verify", "program")?;
                name_state(&mut command, &workspace.root);
                runner::check(command.args(words.split_whitespace()), limit, each)
            }
            What::Planted(extent) => planted::check(workspace, *extent, each),
            What::Costs => runner::check(site.counted(each)?.counts()?.arg("--check"), limit, each),
            What::Growth => runner::check(&mut site.counted(each)?.growth()?, limit, each),
        }
    }

    /// A box is far longer than the stage needs, so one that fills it hangs.
    fn time_box(&self) -> Duration {
        Duration::from_secs(60 * self.minutes)
    }

    /// Runs only the properties again: a test without proptest would do the same as before.
    fn properties(&self, site: &Site<'_>, cases: &str, each: &mut dyn FnMut(&str)) -> Result<Report> {
        let (mut tally, mut failure) = (Tally::default(), None);
        for ((package, target), names) in properties(&Repository::read(&site.workspace.root)?) {
            let mut command =
                site.tests(self.pace, package, target).context("`TESTS` in xtask/src/deep.rs")?;
            command.env("PROPTEST_CASES", cases).args(names).arg("--show-output");
            let report = runner::count_quietly(&mut command, Some(self.time_box()), &mut *each)?;
            ensure!(report.tally != Tally::default(), "{package} {target}: nothing was run");
            tally += report.tally;
            if let Verdict::Failed(why) = report.verdict {
                failure.get_or_insert(format!("{package} {target}: {why}"));
            }
        }
        Ok(Report::of_tests(tally, failure))
    }
}
