//! Outages of a real network in the middle of an order, around the attempt timeout and far beyond it.
//!
//! It is a test of `steadfast`, which makes the networks; this says how long they are out, and how often.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::args::Misunderstood;
use crate::metadata::Workspace;
use crate::root::cargo;
use crate::runner;
use crate::tally::Tally;
use crate::test_runner::TestRunner;

/// Around the attempt timeout of 30 s, the earliest resend, and the kernel's own tries, whose pauses double.
const LENGTHS: [u64; 8] = [20, 28, 33, 40, 44, 49, 58, 90];
const TIMES: u64 = 5;
/// What a run takes at most beside its cells: the build.
const BESIDE: Duration = Duration::from_secs(15 * 60);
/// How long one takes beside its outage: a search for an order after a killed process, and what the kernel may send.
const CELL: u64 = 300;
/// How many run at once, of four for each length and time.
const AT_ONCE: u64 = 40;

/// What the words after `outage` ask for.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    lengths: Vec<u64>,
    times: u64,
}

/// Runs the outages; it is one check.
pub(crate) fn run(workspace: &Workspace, words: &[String]) -> Result<Tally> {
    let asked = Asked::parse(words).map_err(Misunderstood)?;
    let mut command = cargo(&workspace.root);
    command.args(["test", "--package", "steadfast", "--test", "outage", "--"]);
    command.args([
        "--exact",
        "campaign::o01_an_order_in_an_outage_is_placed_once_or_told_to_be_in_doubt",
        "--nocapture",
    ]);
    command.env("STEADFAST_OUTAGE_CAMPAIGN", asked.to_string()).env("STEADFAST_MUST_RUN", "1");
    Ok(runner::count(TestRunner::Libtest, &mut command, Some(asked.limit()), |_| {})?.tally)
}

impl Asked {
    fn parse(words: &[String]) -> Result<Self> {
        let mut asked = Self { lengths: LENGTHS.to_vec(), times: TIMES };
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word {
                "--seconds" => {
                    let lengths = words.next().unwrap_or_default().split(',').map(str::parse);
                    asked.lengths =
                        lengths.collect::<Result<_, _>>().context("`outage --seconds`: expected 20,28")?;
                    ensure!(
                        asked.lengths.iter().all(|length| (2..=600).contains(length)),
                        "an outage takes 2 to 600 s"
                    );
                }
                "--times" => {
                    let times = words.next().and_then(|times| times.parse().ok()).filter(|&times| times > 0);
                    asked.times = times.context("`outage --times`: expected a number")?;
                }
                other => bail!("`outage {other}`: expected [--seconds 20,28] [--times N]"),
            }
        }
        Ok(asked)
    }

    fn limit(&self) -> Duration {
        let cells = 4 * self.times * self.lengths.len() as u64;
        let longest = self.lengths.iter().max().copied().unwrap_or_default();
        BESIDE + Duration::from_secs(cells.div_ceil(AT_ONCE) * (2 * longest + CELL))
    }
}

impl std::fmt::Display for Asked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lengths: Vec<String> = self.lengths.iter().map(u64::to_string).collect();
        write!(f, "{};{}", lengths.join(","), self.times)
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
    fn lengths_and_times_can_be_asked_for() {
        assert_eq!(parse("").unwrap().to_string(), "20,28,33,40,44,49,58,90;5");
        assert_eq!(parse("--seconds 33,44 --times 2").unwrap().to_string(), "33,44;2");
        for line in ["33", "--seconds", "--seconds 33,", "--seconds 1", "--times", "--times 0"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
