//! The deep stages: what searches rather than checks, and takes what time it is given.
//!
//! They repeat nothing of the plain stages. A stage over its time box is ended and has failed: a box is far
//! longer than the stage needs, so what fills it hangs.

mod figures;
mod sabotaged;
mod sinks;
mod table;
mod what;

use std::process::Command;
use std::time::Duration;

use anyhow::Result;

pub(crate) use self::figures::Figures;
use self::sinks::SINKS;
use self::table::TABLE;
use self::what::What;
use crate::bench;
use crate::metadata::Workspace;
use crate::mutants;
use crate::planted;
use crate::report::{Report, Verdict};
use crate::runner;
use crate::stage;
use crate::summary::Row;
use crate::test_runner::TestRunner;

/// One stage.
pub(crate) struct Deep {
    /// What [`Figures`] know it by.
    pub(crate) key: &'static str,
    name: &'static str,
    what: What,
    time_box: Duration,
}

/// Every deep stage, in order.
pub(crate) fn all() -> impl Iterator<Item = &'static Deep> {
    TABLE.iter()
}

impl Deep {
    const fn new(key: &'static str, name: &'static str, what: What, minutes: u64) -> Self {
        Self { key, name, what, time_box: Duration::from_secs(60 * minutes) }
    }

    /// Runs the stage, and keeps what it measured.
    pub(crate) fn run(&self, workspace: &Workspace, figures: &mut Figures) -> Row {
        let row = stage::row(self.name, || self.report(workspace, figures));
        self.keep_verdict(&row, figures);
        row
    }

    /// True if a bug can be planted in what the stage runs.
    pub(crate) fn takes_bugs(&self) -> bool {
        matches!(self.what, What::Simulation(_) | What::Tests(_))
    }

    /// Runs the stage over a build in which this bug is planted, and keeps what it measured.
    pub(crate) fn run_with(&self, bug: &str, workspace: &Workspace, figures: &mut Figures) -> Row {
        let row = stage::row(self.name, || {
            let command = sabotaged::command(self, workspace, bug)?;
            match self.what {
                What::Simulation(_) => self.judge(command, figures),
                _ => self.count(TestRunner::Libtest, command, figures),
            }
        });
        self.keep_verdict(&row, figures);
        row
    }

    fn keep_verdict(&self, row: &Row, figures: &mut Figures) {
        if matches!(row.report.verdict, Verdict::Failed(_)) || row.report.tally.failed > 0 {
            figures.fail(self.key);
        }
    }

    fn report(&self, workspace: &Workspace, figures: &mut Figures) -> Result<Report> {
        let installed = TestRunner::installed(&workspace.root);
        match self.what {
            What::Corpora => self.count(TestRunner::Libtest, what::fuzz_corpora(workspace), figures),
            What::Properties => self.count(installed, what::properties(workspace, installed)?, figures),
            What::Tests(tests) => self.count(installed, tests.command(workspace, installed), figures),
            What::Secrets => {
                let report = self.count(installed, what::secrets(workspace, installed), figures)?;
                let sinks = if report.tally.failed == 0 { SINKS.len() } else { 0 };
                figures.read(self.key, &format!("figures: sinks={sinks} leaks={}", report.tally.failed));
                Ok(report)
            }
            What::Schedules { package, names } => {
                let mut command = what::schedules(workspace, package, names);
                runner::count_quietly(&mut command, self.time_box, |line| figures.read(self.key, line))
            }
            What::Simulation(arguments) => self.judge(what::simulation(workspace, arguments), figures),
            What::Mutants => {
                let each = |line: &str| figures.read(self.key, line);
                Ok(Report::of_tests(mutants::sample(workspace, Some(self.time_box), each)?, None))
            }
            What::Planted => planted::check_all(workspace, |line| figures.read(self.key, line)),
            What::Costs => Ok(Report::of_tests(bench::check_all(workspace)?, None)),
        }
    }

    fn judge(&self, mut command: Command, figures: &mut Figures) -> Result<Report> {
        runner::judge(&mut command, self.time_box, |line| figures.read(self.key, line))
    }

    fn count(&self, test_runner: TestRunner, mut command: Command, figures: &mut Figures) -> Result<Report> {
        let each = |line: &str| figures.read(self.key, line);
        runner::count(test_runner, &mut command, Some(self.time_box), each)
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
