use std::fmt;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::process::{self, Ending};
use crate::programs::{BUG, Programs};
use crate::report::Tally;
use crate::runner;

/// A detector that has not ended by then has found nothing. One waits for a real search for an order, which takes 105 s; one
/// reads lists of 100,000 orders, without optimisation and beside other stages.
const TIME_BOX: Duration = Duration::from_secs(400);

/// A check that looks for bugs, in words: `sim` and the simulator's arguments; or `tests`, a package, the binary with the
/// tests, and parts of their names, or `--exact` and whole names, which must all fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Detector(Vec<String>);

/// The tests that each stand for one mistake of other stacks, so that each must fail by a bug of its own.
pub(super) const TRAPS: &str = "crates/steadfast-retry/tests/it/traps.rs";

/// The result of a detector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Nothing,
    Bug(String),
    /// It did not get as far as saying anything.
    Broken(String),
}

impl Detector {
    pub(super) fn parse(line: &str) -> Result<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_known = matches!(words[..], ["sim", _, ..] | ["tests", _, _, _, ..]);
        ensure!(is_known, "`{line}` is neither `sim WORDS` nor `tests PACKAGE TARGET NAMES`");
        Ok(Self(words.into_iter().map(str::to_owned).collect()))
    }

    /// Returns the tests that must all fail.
    pub(super) fn exact(&self) -> impl Iterator<Item = &str> {
        self.0.iter().skip_while(|word| *word != "--exact").skip(1).map(String::as_str)
    }

    /// Runs it with a bug planted, or with none.
    pub(super) fn run(&self, programs: &Programs, bug: Option<&str>) -> Seen {
        self.look(programs, bug).unwrap_or_else(|error| Seen::Broken(format!("{error:#}")))
    }

    fn look(&self, programs: &Programs, bug: Option<&str>) -> Result<Seen> {
        let words: Vec<&str> = self.0.iter().map(String::as_str).collect();
        let (mut command, arguments) = match words[..] {
            ["tests", package, target, ref names @ ..] => (programs.tests(package, target)?, names),
            _ => (programs.tests("steadfast-verify", "program")?, &words[1..]),
        };
        command.args(arguments);
        // Proptest would write a file into the tree, for a bug that is not there.
        command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1").env("RUST_BACKTRACE", "0");
        if let Some(bug) = bug {
            command.env(BUG, bug);
        }
        match words[0] {
            "sim" => simulate(&mut command),
            _ => test(&mut command, self.exact().count().max(1)),
        }
    }
}

impl fmt::Display for Detector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("passed"),
            Self::Bug(what) => f.write_str(what),
            Self::Broken(why) => write!(f, "broken, {why}"),
        }
    }
}

/// A simulation fails by a promise that a seed or a row broke, or by a debug assertion.
fn simulate(command: &mut Command) -> Result<Seen> {
    let mut evidence = None;
    let ending = process::stream(command, Some(TIME_BOX), |line| {
        if let Some(what) = line.strip_prefix("failed: ").or_else(|| broken_row(line)) {
            evidence.get_or_insert_with(|| what.to_owned());
        } else if line.contains(" panicked at ") {
            evidence.get_or_insert_with(|| line.trim().to_owned());
        }
    })?;
    Ok(match (ending, evidence) {
        (Ending::Exited(status), _) if status.success() => Seen::Nothing,
        (Ending::Exited(_), Some(what)) => Seen::Bug(what),
        (ending, _) => Seen::Broken(ending.failure().unwrap_or_default()),
    })
}

/// `round 1 after 2 s: 300 sends where no 429 is promised, 4 rows broken` tells of broken rows, if there are any.
fn broken_row(line: &str) -> Option<&str> {
    let rows = line.strip_prefix("round ")?.rsplit(", ").next()?;
    (rows.ends_with(" rows broken") && !rows.starts_with("0 ")).then_some(rows)
}

/// Tests fail by name: a bug is found by so many of them, or not at all.
fn test(command: &mut Command, needed: usize) -> Result<Seen> {
    let (mut tally, mut failed) = (None::<Tally>, Vec::new());
    let ending = process::stream(command, Some(TIME_BOX), |line| {
        tally = runner::libtest(line).or(tally);
        if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
            failed.push(name.to_owned());
        }
    })?;
    let (ending, over_time) = (ending.failure(), matches!(ending, Ending::OverTime(_)));
    Ok(match (tally, &failed[..]) {
        _ if over_time => Seen::Broken(ending.unwrap_or_default()),
        (Some(tally), [name, ..]) if tally.failed > 0 && failed.len() >= needed => Seen::Bug(name.clone()),
        (Some(_), [_, ..]) => Seen::Broken(format!("of {needed} only {} failed", failed.join(" "))),
        (Some(tally), []) if tally.passed > 0 && ending.is_none() => Seen::Nothing,
        (Some(Tally { passed: 0, failed: 0 }), _) => Seen::Broken("no test ran".to_owned()),
        _ => Seen::Broken(ending.unwrap_or_default()),
    })
}

#[cfg(all(test, unix))]
impl Detector {
    /// Returns a detector whose tests are a script.
    pub(super) fn script(script: &str) -> Self {
        Self(["tests", "steadfast-retry", "it", "-c", script].map(str::to_owned).into())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::process::shell;

    #[test]
    fn a_bug_is_found_by_names_of_as_many_tests_as_have_to_fail() {
        let script = "echo 'test a::b ... FAILED'; echo 'test result: FAILED. 3 passed; 1 failed'; exit 101";
        assert_eq!(test(&mut shell(script), 1).unwrap(), Seen::Bug("a::b".to_owned()));
        assert!(
            matches!(test(&mut shell(script), 2).unwrap(), Seen::Broken(why) if why.contains("only a::b"))
        );
        let script = "echo 'test a::b ... ok'; echo 'test result: ok. 1 passed; 0 failed'";
        assert_eq!(test(&mut shell(script), 1).unwrap(), Seen::Nothing);
    }

    #[test]
    fn tests_that_die_or_do_not_run_find_nothing() {
        for script in [
            "exit 101",
            "echo 'test result: ok. 0 passed; 0 failed'",
            "echo 'test a ... FAILED'; kill -9 $$",
            "echo 'test result: ok. 1 passed; 0 failed'; exit 1",
        ] {
            assert!(matches!(test(&mut shell(script), 1).unwrap(), Seen::Broken(_)), "{script}");
        }
        let gone = Detector::parse("tests steadfast-retry gone name").unwrap();
        assert!(matches!(gone.run(&Programs::shells(), Some("some-bug")), Seen::Broken(_)));
    }

    #[test]
    fn a_simulation_finds_by_its_promises_and_not_by_dying() {
        let found = |script| simulate(&mut shell(script)).unwrap();
        assert_eq!(
            found("echo failed: seed 3 duplicated >&2; exit 1"),
            Seen::Bug("seed 3 duplicated".into())
        );
        let rows = "echo 'round 1 after 2 s: 3 sends where no 429 is promised, 4 rows broken'; exit 1";
        assert_eq!(found(rows), Seen::Bug("4 rows broken".into()));
        assert_eq!(found("true"), Seen::Nothing);
        let none = "echo 'round 1 after 2 s: 3 sends where no 429 is promised, 0 rows broken'; exit 1";
        assert!(matches!(found(none), Seen::Broken(_)));
        assert!(matches!(found("echo error: no row has such a name >&2; exit 1"), Seen::Broken(_)));
    }

    #[test]
    fn a_detector_is_read_from_its_line() {
        let exact = |line| Detector::parse(line).unwrap().exact().count();
        assert_eq!(exact("tests steadfast-retry it --exact a b"), 2);
        assert_eq!(exact("sim orders --first"), 0);
        for line in ["", "sim", "tests steadfast-retry it", "look closely"] {
            assert!(Detector::parse(line).is_err(), "{line}");
        }
    }
}
