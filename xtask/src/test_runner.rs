use std::path::Path;
use std::process::Command;

use crate::root::{cargo, has_subcommand};
use crate::tally::Tally;

/// What runs the tests, and so how its counts are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TestRunner {
    Nextest,
    /// `cargo test`, which needs nothing but cargo.
    Libtest,
}

impl TestRunner {
    /// Chooses nextest where it is installed.
    pub(crate) fn installed(root: &Path) -> Self {
        if has_subcommand(root, "nextest") { Self::Nextest } else { Self::Libtest }
    }

    /// Starts to describe a run of the whole workspace without doc tests.
    pub(crate) fn command(self, root: &Path) -> Command {
        let mut command = cargo(root);
        match self {
            Self::Nextest => command.args(["nextest", "run"]),
            Self::Libtest => command.arg("test"),
        };
        // Examples and benches hold no tests.
        command.args(["--lib", "--bins", "--tests", "--workspace", "--no-fail-fast"]);
        command
    }

    /// Reads the counts of a summary line; any other line is `None`.
    ///
    /// One form for each runner. They must not be mixed: nextest shows libtest's line for each failed test.
    ///
    /// ```text
    ///      Summary [   3.218s] 41/42 tests run: 40 passed (1 slow), 1 failed, 2 skipped
    /// test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
    /// ```
    pub(crate) fn counts(self, line: &str) -> Option<Tally> {
        match self {
            Self::Nextest => nextest(line.trim()),
            Self::Libtest => libtest(line),
        }
    }
}

// Nextest names failures in many ways (failed, timed out, exec failed, not run after a cancellation), so
// everything that was to run and did not pass counts as failed.
fn nextest(line: &str) -> Option<Tally> {
    let (_, rest) = line.strip_prefix("Summary [")?.split_once("] ")?;
    let (ran, endings) = rest.split_once(" run: ")?;
    let ran = ran.split(' ').next()?;
    let asked: u64 = ran.rsplit('/').next()?.parse().ok()?;
    let passed = endings.split(", ").find_map(|ending| number_before(ending, " passed")).unwrap_or(0);
    Some(Tally { passed, failed: asked.checked_sub(passed)? })
}

fn libtest(line: &str) -> Option<Tally> {
    let (_, endings) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let count = |word| endings.split("; ").find_map(|ending| number_before(ending, word));
    Some(Tally { passed: count(" passed")?, failed: count(" failed")? })
}

fn number_before(text: &str, word: &str) -> Option<u64> {
    text.split_once(word)?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::TestRunner::{Libtest, Nextest};
    use super::*;

    fn tally(passed: u64, failed: u64) -> Option<Tally> {
        Some(Tally { passed, failed })
    }

    #[test]
    fn a_nextest_summary_is_counted() {
        let counts = |line| Nextest.counts(line);
        assert_eq!(counts("     Summary [   0.005s] 1 test run: 1 passed, 0 skipped"), tally(1, 0));
        assert_eq!(
            counts(" Summary [ 9.1s] 4 tests run: 4 passed (1 slow, 1 leaky), 19 skipped"),
            tally(4, 0)
        );
        assert_eq!(counts(" Summary [   0.000s] 0 tests run: 0 passed, 7 skipped"), tally(0, 0));
    }

    #[test]
    fn whatever_did_not_pass_under_nextest_has_failed() {
        let counts = |line| Nextest.counts(line);
        assert_eq!(
            counts("Summary [ 1.2s] 9 tests run: 5 passed, 2 failed, 1 timed out, 1 exec failed, 0 skipped"),
            tally(5, 4)
        );
        assert_eq!(counts("Summary [ 1.2s] 3/8 tests run: 3 passed, 0 skipped"), tally(3, 5));
        assert_eq!(counts("Summary [ 1.2s] 2 tests run: 2 failed, 0 skipped"), tally(0, 2));
    }

    #[test]
    fn a_libtest_result_is_counted() {
        let line =
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.3s";
        assert_eq!(Libtest.counts(line), tally(12, 0));
        let line = "test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(Libtest.counts(line), tally(3, 1));
    }

    // Failed tests were counted twice: by nextest, and by the libtest result that nextest shows for each.
    #[test]
    fn a_libtest_result_inside_a_nextest_run_is_not_counted() {
        assert_eq!(
            Nextest.counts("    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured"),
            None
        );
        assert_eq!(Nextest.counts("test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured"), None);
    }

    #[test]
    fn other_lines_count_nothing() {
        for line in
            ["", "running 3 tests", "test result: unknown", "Summary of the day", "3 passed; 0 failed"]
        {
            assert_eq!((Nextest.counts(line), Libtest.counts(line)), (None, None), "{line}");
        }
    }
}
