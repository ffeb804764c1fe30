use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::console;
use crate::process;
use crate::report::Report;
use crate::tally::Tally;
use crate::test_runner::TestRunner;

/// Runs a command that either succeeds or does not, and echoes what it prints.
pub(crate) fn check(command: &mut Command) -> Result<Report> {
    let ending = process::stream(command, None, |_, line| console::say(line))?;
    Ok(match ending.failure() {
        None => Report::passed(Tally::default()),
        Some(why) => Report::failed(why, Tally::default()),
    })
}

/// Runs a command that judges itself within its time box: one check, passed or failed. `each` line is shown to it.
pub(crate) fn judge(command: &mut Command, limit: Duration, mut each: impl FnMut(&str)) -> Result<Report> {
    let ending = process::stream(command, Some(limit), |_, line| {
        console::say(line);
        each(line);
    })?;
    Ok(match ending.failure() {
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
    let ending = process::stream(command, limit, |_, line| {
        console::say(line);
        each(line);
        tally += runner.counts(line).unwrap_or_default();
    })?;
    Ok(Report::of_tests(tally, ending.failure()))
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
