use std::collections::VecDeque;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::console;
use crate::process;
use crate::report::Report;
use crate::tally::Tally;
use crate::test_runner::TestRunner;

/// How many of its last lines tell why a command failed.
const TELLING: usize = 40;

/// Runs a command that either succeeds or does not, and echoes what it prints.
pub(crate) fn check(command: &mut Command) -> Result<Report> {
    Ok(match failure(command, None, |line| console::say(line))? {
        None => Report::passed(Tally::default()),
        Some(why) => Report::failed(why, Tally::default()),
    })
}

/// Runs a command that judges itself within its time box: one check, passed or failed. `each` line is shown to it.
pub(crate) fn judge(command: &mut Command, limit: Duration, mut each: impl FnMut(&str)) -> Result<Report> {
    let echo = |line: &str| {
        console::say(line);
        each(line);
    };
    Ok(match failure(command, Some(limit), echo)? {
        None => Report::passed(Tally { passed: 1, failed: 0 }),
        Some(why) => Report::failed(why, Tally::default()),
    })
}

/// Runs a test runner, echoes what it prints, and sums the counts in it. `each` line is shown to it.
pub(crate) fn count(
    runner: TestRunner,
    command: &mut Command,
    limit: Option<Duration>,
    mut each: impl FnMut(&str),
) -> Result<Report> {
    let mut tally = Tally::default();
    let failure = failure(command, limit, |line| {
        console::say(line);
        each(line);
        tally += runner.counts(line).unwrap_or_default();
    })?;
    Ok(Report::of_tests(tally, failure))
}

/// The same for libtest, but what it prints is echoed only if something failed: of tests that have to panic, a scheduler
/// of threads says at length how they did, which reads like failures.
pub(crate) fn count_quietly(
    command: &mut Command,
    limit: Duration,
    mut each: impl FnMut(&str),
) -> Result<Report> {
    let (mut tally, mut printed) = (Tally::default(), Vec::new());
    let failure = failure(command, Some(limit), |line| {
        each(line);
        tally += TestRunner::Libtest.counts(line).unwrap_or_default();
        printed.push(line.to_owned());
    })?;
    let report = Report::of_tests(tally, failure);
    let shown = |line: &&String| report.tally.failed > 0 || TestRunner::Libtest.counts(line).is_some();
    printed.iter().filter(shown).for_each(console::say);
    Ok(report)
}

/// Runs a command and shows `each` line to it. Of one that fails, why it did and its last lines come back.
fn failure(
    command: &mut Command,
    limit: Option<Duration>,
    mut each: impl FnMut(&str),
) -> Result<Option<String>> {
    let mut last = VecDeque::with_capacity(TELLING);
    let ending = process::stream(command, limit, |_, line| {
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

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::report::Verdict;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.arg("-c").arg(script);
        command
    }

    #[test]
    fn the_counts_of_several_summaries_are_summed() {
        let script = "echo 'test result: ok. 2 passed; 0 failed'; echo 'test result: ok. 3 passed; 0 failed'";
        let report = count(TestRunner::Libtest, &mut shell(script), None, |_| {}).unwrap();
        assert_eq!(report.tally, Tally { passed: 5, failed: 0 });
        assert_eq!(report.verdict, Verdict::Passed);
    }

    #[test]
    fn a_runner_that_breaks_after_its_summary_has_failed() {
        let script = "echo 'test result: ok. 2 passed; 0 failed'; exit 101";
        let report = count(TestRunner::Libtest, &mut shell(script), None, |_| {}).unwrap();
        assert_eq!(report.tally, Tally { passed: 2, failed: 1 });
    }

    #[test]
    fn a_failure_tells_what_was_said_last() {
        let report = check(&mut shell("seq 100; exit 3")).unwrap();
        let Verdict::Failed(why) = report.verdict else { panic!("{report:?}") };
        let lines: Vec<&str> = why.lines().collect();
        assert_eq!((lines.len(), lines[0], lines[1], lines[40]), (41, "exit status: 3", "61", "100"));
    }

    #[test]
    fn what_is_counted_quietly_is_counted_the_same() {
        let limit = Duration::from_secs(60);
        let mut seen = 0;
        let script = "echo noise; echo 'test result: ok. 2 passed; 0 failed'";
        let report = count_quietly(&mut shell(script), limit, |_| seen += 1).unwrap();
        assert_eq!(
            (report.tally, report.verdict, seen),
            (Tally { passed: 2, failed: 0 }, Verdict::Passed, 2)
        );
        let report = count_quietly(&mut shell("exit 101"), limit, |_| {}).unwrap();
        assert_eq!(report.tally, Tally::FAILURE);
    }

    #[test]
    fn what_judges_itself_is_one_check() {
        let limit = Duration::from_secs(60);
        assert_eq!(judge(&mut shell("true"), limit, |_| {}).unwrap().tally, Tally { passed: 1, failed: 0 });
        assert_eq!(judge(&mut shell("exit 3"), limit, |_| {}).unwrap().tally, Tally::FAILURE);
    }

    #[test]
    fn a_check_fails_with_its_command() {
        assert_eq!(check(&mut shell("true")).unwrap().verdict, Verdict::Passed);
        assert_eq!(check(&mut shell("false")).unwrap().tally, Tally::FAILURE);
    }
}
