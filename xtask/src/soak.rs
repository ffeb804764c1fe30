//! The soak: a client's process and a gateway's under faults, for as long as is asked. Nothing may grow.
//!
//! It is a test of `steadfast-cli`, which has both; this says for how long, and whether the client leaks on purpose.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::args::Misunderstood;
use crate::metadata::Workspace;
use crate::root::cargo;
use crate::runner;
use crate::tally::Tally;
use crate::test_runner::TestRunner;

/// What a run takes beside the soak itself: the build, and orders that are in doubt at its end.
const BESIDE: Duration = Duration::from_secs(15 * 60);

/// What the words after `soak` ask for.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    minutes: u64,
    leak: bool,
}

/// Soaks; it is one check.
pub(crate) fn run(workspace: &Workspace, words: &[String]) -> Result<Tally> {
    let asked = Asked::parse(words).map_err(Misunderstood)?;
    let mut command = cargo(&workspace.root);
    command.args(["test", "--profile", "deep", "--package", "steadfast-cli", "--test", "soak"]);
    command.args(["--", "--exact", "nothing_of_a_client_grows", "--nocapture"]);
    command.env("STEADFAST_SOAK_MINUTES", asked.minutes.to_string());
    if asked.leak {
        command.env("STEADFAST_SOAK_LEAK", "1");
    }
    let limit = Duration::from_secs(60 * asked.minutes) + BESIDE;
    Ok(runner::count(TestRunner::Libtest, &mut command, Some(limit), |_| {})?.tally)
}

impl Asked {
    fn parse(words: &[String]) -> Result<Self> {
        let mut asked = Self { minutes: 2, leak: false };
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word {
                "--leak" => asked.leak = true,
                "--minutes" => {
                    let minutes = words.next().and_then(|minutes| minutes.parse().ok());
                    asked.minutes = minutes
                        .filter(|&minutes| minutes > 0)
                        .context("`soak --minutes`: expected a number of minutes")?;
                }
                other => bail!("`soak {other}`: expected [--minutes N] [--leak]"),
            }
        }
        Ok(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Asked> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Asked::parse(&words)
    }

    #[test]
    fn minutes_and_a_leak_can_be_asked_for() {
        assert_eq!(parse("").unwrap(), Asked { minutes: 2, leak: false });
        assert_eq!(parse("--minutes 10 --leak").unwrap(), Asked { minutes: 10, leak: true });
        for line in ["10", "--minutes", "--minutes 0", "--leaks"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
