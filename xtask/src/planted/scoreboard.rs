use std::fmt;
use std::time::Duration;

use serde_json::json;

/// What became of one bug.
#[derive(Debug)]
pub(super) struct Score {
    pub(super) name: String,
    /// The detector, and what it saw.
    pub(super) found_by: Option<(String, String)>,
    /// What the detectors said that did not find it.
    pub(super) quiet: Vec<String>,
    pub(super) took: Duration,
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, found_by, quiet, took } = self;
        let took = took.as_secs_f64();
        match found_by {
            Some((detector, what)) => write!(f, "found   {name:<28} {took:>5.1} s  {detector}: {what}"),
            None => write!(f, "MISSED  {name:<28} {took:>5.1} s  {}", quiet.join("; ")),
        }
    }
}

/// Every bug, and whether it was found.
#[derive(Debug)]
pub(super) struct Scoreboard {
    /// The detectors that did not pass without a bug.
    pub(super) sober: Vec<String>,
    pub(super) scores: Vec<Score>,
    pub(super) took: Duration,
}

impl Scoreboard {
    pub(super) fn found(&self) -> usize {
        self.scores.iter().filter(|score| score.found_by.is_some()).count()
    }

    pub(super) fn missed(&self) -> usize {
        self.scores.len() - self.found()
    }

    /// True if every bug was found, and no detector cries without one.
    pub(super) fn is_complete(&self) -> bool {
        self.missed() == 0 && self.sober.is_empty()
    }

    pub(super) fn json(&self) -> String {
        let bugs = self.scores.iter().map(|score| {
            let (found_by, what) = score.found_by.clone().unzip();
            json!({
                "name": score.name,
                "found_by": found_by,
                "what": what,
                "quiet": score.quiet,
                "seconds": score.took.as_secs_f64(),
            })
        });
        let board = json!({
            "planted": self.scores.len(),
            "found": self.found(),
            "failed_without_a_bug": self.sober,
            "seconds": self.took.as_secs_f64(),
            "bugs": bugs.collect::<Vec<_>>(),
        });
        format!("{board:#}")
    }
}

impl fmt::Display for Scoreboard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.sober[..] {
            [] => writeln!(f, "passed  no bug")?,
            failed => failed.iter().try_for_each(|failed| writeln!(f, "FAILED  no bug: {failed}"))?,
        }
        for score in &self.scores {
            writeln!(f, "{score}")?;
        }
        write!(f, "{} of {} found in {} s", self.found(), self.scores.len(), self.took.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(found: bool) -> Score {
        Score {
            name: "bug".to_owned(),
            found_by: found.then(|| ("sim".to_owned(), "seed 1".to_owned())),
            quiet: Vec::new(),
            took: Duration::ZERO,
        }
    }

    #[test]
    fn a_missed_bug_and_a_false_alarm_are_both_failures() {
        let board = |found, sober| Scoreboard { sober, scores: vec![score(found)], took: Duration::ZERO };
        assert!(board(true, Vec::new()).is_complete());
        assert!(!board(false, Vec::new()).is_complete());
        assert!(!board(true, vec!["sim".to_owned()]).is_complete());
        assert!(board(false, Vec::new()).to_string().ends_with("0 of 1 found in 0 s"));
        assert!(board(true, Vec::new()).json().contains("\"found\": 1"));
    }
}
