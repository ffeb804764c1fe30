use crate::tally::Tally;

/// What a stage says at its end.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) verdict: Verdict,
    pub(crate) tally: Tally,
}

/// How a stage ended, and why: the first line of a failure is for the summary, the others are what was said last.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Passed,
    Failed(String),
    Skipped(String),
}

impl Report {
    pub(crate) fn passed(tally: Tally) -> Self {
        Self { verdict: Verdict::Passed, tally }
    }

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
            None => Self::passed(tally),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_without_counts_is_one_failure() {
        assert_eq!(Report::failed("lints", Tally::default()).tally, Tally::FAILURE);
        let three = Tally { passed: 5, failed: 3 };
        assert_eq!(Report::failed("tests", three).tally, three);
    }

    #[test]
    fn a_run_without_a_test_has_failed() {
        let report = Report::of_tests(Tally::default(), None);
        assert_eq!(report.verdict, Verdict::Failed("no test ran".to_owned()));
    }

    #[test]
    fn a_counted_failure_fails_the_stage_even_if_the_process_succeeds() {
        let report = Report::of_tests(Tally { passed: 9, failed: 1 }, None);
        assert_eq!(report.verdict, Verdict::Failed("not everything passed".to_owned()));
    }

    #[test]
    fn a_failing_process_fails_the_stage_even_if_all_tests_passed() {
        let report = Report::of_tests(Tally { passed: 9, failed: 0 }, Some("exit status: 101".to_owned()));
        assert_eq!(report.tally, Tally { passed: 9, failed: 1 });
    }
}
