use std::fmt;
use std::iter::Sum;
use std::ops::AddAssign;

/// Counts tests and checks that really ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Tally {
    pub(crate) const SUCCESS: Self = Self { passed: 1, failed: 0 };
    pub(crate) const FAILURE: Self = Self { passed: 0, failed: 1 };

    pub(crate) fn of(passed: bool) -> Self {
        if passed { Self::SUCCESS } else { Self::FAILURE }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        let mut sum = Self::default();
        tallies.for_each(|tally| sum += tally);
        sum
    }
}

/// Writes the last line of every run; `.ci/run` reads it back, so its words bind.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// The result of a stage.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) verdict: Verdict,
    pub(crate) tally: Tally,
}

/// How a stage ended, and why: the first line of a failure is for the summary, the others are the last lines of its output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Passed,
    Failed(String),
    Skipped(String),
}

impl Report {
    /// A failure counts at least once, even if nothing could be counted.
    pub(crate) fn failed(why: impl Into<String>, mut tally: Tally) -> Self {
        tally.failed = tally.failed.max(1);
        Self { verdict: Verdict::Failed(why.into()), tally }
    }

    pub(crate) fn skipped(why: impl Into<String>) -> Self {
        Self { verdict: Verdict::Skipped(why.into()), tally: Tally::default() }
    }

    /// Judges counted tests: a run in which no test ran proves nothing, and has failed.
    pub(crate) fn of_tests(tally: Tally, failure: Option<String>) -> Self {
        match failure {
            Some(why) => Self::failed(why, tally),
            None if tally.failed > 0 => Self::failed("not everything passed", tally),
            None if tally.passed == 0 => Self::failed("no test ran", tally),
            None => Self { verdict: Verdict::Passed, tally },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_has_the_words_that_scripts_read() {
        let sum: Tally = [Tally { passed: 40, failed: 0 }, Tally::SUCCESS, Tally::FAILURE].into_iter().sum();
        assert_eq!(sum.to_string(), "41 passed, 1 failed");
    }

    #[test]
    fn what_fails_or_runs_nothing_is_a_failure() {
        let failed = |passed, failed, why: Option<&str>| {
            Report::of_tests(Tally { passed, failed }, why.map(str::to_owned)).tally.failed
        };
        assert_eq!(failed(9, 0, None), 0);
        assert_eq!(failed(0, 0, None), 1, "no test ran");
        assert_eq!(failed(9, 3, None), 3);
        assert_eq!(failed(9, 0, Some("exit status: 101")), 1, "the process failed after its tests");
    }
}
