use std::fmt;
use std::time::Duration;

use anyhow::Result;

use crate::report::{Report, Tally, Verdict};
use crate::stopwatch::Stopwatch;

/// The results of every stage of a run.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    pub(crate) rows: Vec<Row>,
}

/// One stage of a [`Summary`].
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) took: Duration,
    pub(crate) report: Report,
}

impl Row {
    /// Runs one stage, with its name before what it says.
    pub(crate) fn run(
        name: &str,
        say: &mut dyn FnMut(&str),
        stage: impl FnOnce(&mut dyn FnMut(&str)) -> Result<Report>,
    ) -> Self {
        say(&format!("\n=== {name} ==="));
        let clock = Stopwatch::start();
        let report =
            stage(&mut *say).unwrap_or_else(|error| Report::failed(format!("{error:#}"), Tally::default()));
        Self { name: name.to_owned(), took: clock.elapsed(), report }
    }

    pub(crate) fn is_failed(&self) -> bool {
        matches!(self.report.verdict, Verdict::Failed(_))
    }
}

impl Summary {
    pub(crate) fn tally(&self) -> Tally {
        self.rows.iter().map(|row| row.report.tally).sum()
    }

    /// Of each stage that failed, its name and all that is known of why.
    pub(crate) fn failures(&self) -> Vec<String> {
        let failed = |row: &Row| match &row.report.verdict {
            Verdict::Failed(why) => Some(format!("{}: {why}", row.name)),
            _ => None,
        };
        self.rows.iter().filter_map(failed).collect()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "=== summary ===")?;
        for Row { name, took, report } in &self.rows {
            write!(f, "{:>8.1} s  {name:<24} ", took.as_secs_f64())?;
            match &report.verdict {
                Verdict::Passed => writeln!(f, "ok      {}", report.tally)?,
                Verdict::Failed(why) => {
                    let why = why.lines().next().unwrap_or_default();
                    writeln!(f, "FAILED  {}: {why}", report.tally)?;
                }
                Verdict::Skipped(why) => writeln!(f, "skipped: {why}")?,
            }
        }
        Ok(())
    }
}
