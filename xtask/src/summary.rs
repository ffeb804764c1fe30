use std::fmt;
use std::time::Duration;

use crate::report::{Report, Verdict};
use crate::tally::Tally;

/// What every stage of a run came to.
#[derive(Debug)]
pub(crate) struct Summary {
    pub(crate) rows: Vec<Row>,
}

/// One stage of a [`Summary`].
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) took: Duration,
    pub(crate) report: Report,
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
                Verdict::Passed if report.tally.total() > 0 => writeln!(f, "ok      {}", report.tally)?,
                Verdict::Passed => writeln!(f, "ok")?,
                Verdict::Failed(why) => {
                    let why = why.lines().next().unwrap_or_default();
                    writeln!(f, "FAILED  {}: {why}", report.tally)?;
                }
                Verdict::Skipped(why) => writeln!(f, "skipped: {why}")?,
            }
        }
        let all: Duration = self.rows.iter().map(|row| row.took).sum();
        writeln!(f, "{:>8.1} s  in all", all.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_has_a_line_with_its_time_and_verdict() {
        let row = |name, report| Row { name, took: Duration::from_millis(1500), report };
        let summary = Summary {
            rows: vec![
                row("format", Report::passed(Tally::default())),
                row("tests", Report::passed(Tally { passed: 12, failed: 0 })),
                row("docs", Report::failed("exit status: 101", Tally::default())),
                row("licences", Report::skipped("cargo-deny is not installed")),
            ],
        };
        let text = summary.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "     1.5 s  format                   ok");
        assert_eq!(lines[2], "     1.5 s  tests                    ok      12 passed, 0 failed");
        assert_eq!(
            lines[3],
            "     1.5 s  docs                     FAILED  0 passed, 1 failed: exit status: 101"
        );
        assert_eq!(lines[4], "     1.5 s  licences                 skipped: cargo-deny is not installed");
        assert_eq!(lines[5], "     6.0 s  in all");
        assert_eq!(summary.tally(), Tally { passed: 12, failed: 1 });
        assert_eq!(summary.failures(), ["docs: exit status: 101"]);
    }
}
