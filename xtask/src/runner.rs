use std::collections::VecDeque;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::console;
use crate::process;
use crate::report::{Report, Tally};

/// How many of its last lines tell why a command failed.
const TELLING: usize = 40;

/// Where the lines of a command go that nothing is read from.
pub(crate) fn echo(line: &str) {
    console::say(line);
}

/// Runs a command that judges itself: one check, passed or failed. `each` line is shown to it.
pub(crate) fn check(
    command: &mut Command,
    limit: Option<Duration>,
    each: impl FnMut(&str),
) -> Result<Report> {
    let failure = failure(command, limit, each)?;
    Ok(Report::of_tests(Tally::of(failure.is_none()), failure))
}

/// Runs a command that runs tests, and sums its counts. `each` line is shown to it.
pub(crate) fn count(
    counts: fn(&str) -> Option<Tally>,
    command: &mut Command,
    limit: Option<Duration>,
    mut each: impl FnMut(&str),
) -> Result<Report> {
    let mut tally = Tally::default();
    let failure = failure(command, limit, |line| {
        each(line);
        tally += counts(line).unwrap_or_default();
    })?;
    Ok(Report::of_tests(tally, failure))
}

/// The same for libtest, but without the output of tests that pass: of tests that have to panic, a scheduler of threads
/// says at length how they did, which reads like failures.
pub(crate) fn count_quietly(
    command: &mut Command,
    limit: Option<Duration>,
    mut each: impl FnMut(&str),
) -> Result<Report> {
    let mut printed = Vec::new();
    let report = count(libtest, command, limit, |line| printed.push(line.to_owned()))?;
    let shown = |line: &&String| {
        report.tally.failed > 0 || libtest(line).is_some() || line.trim().starts_with("figures: ")
    };
    printed.iter().filter(shown).for_each(|line| each(line));
    Ok(report)
}

/// Runs a command and shows `each` line to it. Returns of one that fails why it did, and its last lines.
fn failure(
    command: &mut Command,
    limit: Option<Duration>,
    mut each: impl FnMut(&str),
) -> Result<Option<String>> {
    let mut last = VecDeque::with_capacity(TELLING);
    let ending = process::stream(command, limit, |line| {
        each(line);
        if last.len() == TELLING {
            last.pop_front();
        }
        last.push_back(line.to_owned());
    })?;
    Ok(ending.failure().map(|why| {
        last.push_front(why);
        Vec::from(last).join("\n")
    }))
}

/// Reads the counts of nextest's summary; any other line is `None`.
///
/// ```text
///      Summary [   3.218s] 41/42 tests run: 40 passed (1 slow), 1 failed, 2 skipped
/// ```
///
/// Nextest names failures in many ways (failed, timed out, exec failed, not run after a cancellation), so everything
/// that was to run and did not pass counts as failed. It shows libtest's line of each failed test, which must not be
/// counted again.
pub(crate) fn nextest(line: &str) -> Option<Tally> {
    let (_, rest) = line.trim().strip_prefix("Summary [")?.split_once("] ")?;
    let (ran, endings) = rest.split_once(" run: ")?;
    let ran = ran.split(' ').next()?;
    let asked: u64 = ran.rsplit('/').next()?.parse().ok()?;
    let passed = endings.split(", ").find_map(|ending| number_before(ending, " passed")).unwrap_or(0);
    Some(Tally { passed, failed: asked.checked_sub(passed)? })
}

/// Reads the counts of libtest's result; any other line is `None`.
///
/// ```text
/// test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
/// ```
pub(crate) fn libtest(line: &str) -> Option<Tally> {
    let (_, endings) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let count = |word| endings.split("; ").find_map(|ending| number_before(ending, word));
    Some(Tally { passed: count(" passed")?, failed: count(" failed")? })
}

fn number_before(text: &str, word: &str) -> Option<u64> {
    text.split_once(word)?.0.parse().ok()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::process::shell;
    use crate::report::Verdict;

    fn tally(passed: u64, failed: u64) -> Option<Tally> {
        Some(Tally { passed, failed })
    }

    #[test]
    fn whatever_did_not_pass_under_nextest_has_failed() {
        for (line, counts) in [
            (" Summary [ 9.1s] 4 tests run: 4 passed (1 slow, 1 leaky), 19 skipped", tally(4, 0)),
            (
                "Summary [ 1.2s] 9 tests run: 5 passed, 2 failed, 1 timed out, 1 exec failed, 0 skipped",
                tally(5, 4),
            ),
            ("Summary [ 1.2s] 3/8 tests run: 3 passed, 0 skipped", tally(3, 5)),
            ("Summary [ 1.2s] 2 tests run: 2 failed, 0 skipped", tally(0, 2)),
            ("    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured", None),
            ("Summary of the day", None),
        ] {
            assert_eq!(nextest(line), counts, "{line}");
        }
    }

    #[test]
    fn counts_of_several_results_are_summed_and_a_later_failure_is_one() {
        let results = "echo 'test result: ok. 2 passed; 0 failed'; echo 'test result: ok. 3 passed; 0 failed; 1 ignored'";
        let ran = |script: &str| count_quietly(&mut shell(script), None, |_| {}).unwrap();
        assert_eq!(Some(ran(results).tally), tally(5, 0));
        assert_eq!(Some(ran(&format!("{results}; exit 101")).tally), tally(5, 1));
        assert_eq!(Some(ran("true").tally), tally(0, 1), "no test ran");
    }

    #[test]
    fn a_check_that_fails_tells_its_last_lines() {
        assert_eq!(check(&mut shell("true"), None, |_| {}).unwrap().tally, Tally::SUCCESS);
        let report = check(&mut shell("seq 100; exit 3"), None, |_| {}).unwrap();
        let Verdict::Failed(why) = report.verdict else { panic!("{report:?}") };
        let lines: Vec<&str> = why.lines().collect();
        assert_eq!((lines.len(), lines[0], lines[1], lines[40]), (41, "exit status: 3", "61", "100"));
    }
}
