//! The scoreboard of planted bugs: do our tests find the bugs that they are there to find?
//!
//! The sources contain no bug. Each bug is a file of `crates/steadfast-verify/planted`: texts of the sources, their replacements,
//! and the detectors of the bug. All bugs are planted at once in a copy of the workspace, where `STEADFAST_PLANTED` turns one on.
//! First every detector must pass without a bug. Then each bug is turned on, and one of its detectors must fail.
//!
//! A detector proves something only by its words: a test that failed, or a seed that broke a promise. One that hangs,
//! dies or runs nothing has found nothing.

mod bug;
mod detector;
mod sample;
mod tree;

use std::fmt;
use std::thread;

use anyhow::{Result, ensure};

pub(crate) use self::bug::check as faults;
use self::bug::{Bug, FOLDER};
use self::detector::{Detector, Seen};
pub(crate) use self::tree::Tree;
use crate::lanes::Lanes;
use crate::programs::{Part, Programs};
use crate::report::{Report, Tally};
use crate::stopwatch::Stopwatch;
use crate::workspace::Workspace;
use crate::{cargo, console};

/// So many detectors run at once. Some wait most of the time, and some use more than one core themselves.
const AT_ONCE: usize = 5;

/// The files or folders of `tests` that detectors run, and those that look for secrets.
const TESTS: &[&str] = &["it", "journal", "gateway", "outage", "secrets"];

/// Which bugs are turned on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bugs {
    All,
    Sample,
}

/// Plants every bug that the tree knows, and says which detector found it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only this bug; may be repeated.
    #[arg(long, value_name = "NAME", value_parser = known)]
    only: Vec<String>,
}

/// Returns the name if there is a bug with it.
pub(crate) fn known(name: &str) -> Result<String> {
    let file = cargo::root().join(FOLDER).join(format!("{name}.toml"));
    ensure!(file.is_file(), "no bug is called {name}");
    Ok(name.to_owned())
}

/// Plants the bugs. Standard output is the scoreboard; all else is on stderr.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<Tally> {
    console::keep_stdout_for_data();
    let tree = Tree::plant(workspace)?;
    let is_wanted = |bug: &&Bug| args.only.is_empty() || args.only.contains(&bug.name);
    let bugs: Vec<&Bug> = tree.bugs.iter().filter(is_wanted).collect();
    let scoreboard = play(&tree, &bugs, &mut |line| console::complain(line))?;
    console::data(&scoreboard);
    Ok(scoreboard.tally())
}

/// The same as a stage.
pub(crate) fn check(workspace: &Workspace, bugs: Bugs, each: &mut dyn FnMut(&str)) -> Result<Report> {
    let tree = Tree::plant(workspace)?;
    let chosen = match bugs {
        Bugs::All => tree.bugs.iter().collect(),
        Bugs::Sample => sample::of(&tree.bugs, workspace)?,
    };
    let scoreboard = play(&tree, &chosen, each)?;
    let (planted, turned_on) = (tree.bugs.len(), scoreboard.scores.len());
    each(&format!("figures: planted={planted} bugs={turned_on} found={}", scoreboard.found()));
    let missed = scoreboard.scores.iter().filter(|score| score.found_by.is_none()).map(ToString::to_string);
    let why = [scoreboard.sober.clone(), missed.collect()].concat().join("\n");
    Ok(Report::of_tests(scoreboard.tally(), (!why.is_empty()).then_some(why)))
}

/// Builds what the detectors run.
pub(crate) fn build(tree: &Tree, say: &mut dyn FnMut(&str)) -> Result<Programs> {
    Programs::build(&tree.site, Part::Tests(TESTS), say)
}

fn play(tree: &Tree, bugs: &[&Bug], say: &mut dyn FnMut(&str)) -> Result<Scoreboard> {
    let mut detectors: Vec<&Detector> = Vec::new();
    for detector in bugs.iter().flat_map(|bug| &bug.detectors) {
        if !detectors.contains(&detector) {
            detectors.push(detector);
        }
    }
    say("building a copy with all bugs in it");
    let programs = build(tree, &mut *say)?;
    let clock = Stopwatch::start();
    say(&format!("no bug: {} detectors have to pass", detectors.len()));
    let sober = side_by_side(&detectors, |detector| match detector.run(&programs, None) {
        Seen::Nothing => None,
        seen => {
            console::say(format_args!("no bug, and yet: {detector}: {seen}"));
            Some(format!("{detector}: {seen}"))
        }
    });
    say(&format!("{} s without a bug; {} bugs", clock.elapsed().as_secs(), bugs.len()));
    let scores = side_by_side(bugs, |bug| {
        let score = look_for(&bug.name, &bug.detectors, &programs);
        console::say(&score);
        score
    });
    let sober = sober.into_iter().flatten().collect();
    Ok(Scoreboard { sober, scores, seconds: clock.elapsed().as_secs() })
}

/// Turns one bug on and runs its detectors until one finds it.
fn look_for(name: &str, detectors: &[Detector], programs: &Programs) -> Score {
    let clock = Stopwatch::start();
    let mut found_by = None;
    let mut quiet = Vec::new();
    for detector in detectors {
        match detector.run(programs, Some(name)) {
            Seen::Bug(what) => {
                found_by = Some((detector.to_string(), what));
                break;
            }
            seen => quiet.push(format!("{detector}: {seen}")),
        }
    }
    Score { name: name.to_owned(), found_by, quiet, seconds: clock.elapsed().as_secs() }
}

/// Does the work for all of them, a few at a time, and keeps their order.
fn side_by_side<T: Copy + Send, R: Send>(all: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let lanes = Lanes::new(all, |_| ());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| lanes.drain((), &work));
        }
    });
    lanes.done().map(|(_, result)| result).collect()
}

/// The result of looking for one bug.
#[derive(Debug)]
struct Score {
    name: String,
    /// The detector, and what it saw.
    found_by: Option<(String, String)>,
    /// The words of the detectors that did not find it.
    quiet: Vec<String>,
    seconds: u64,
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, found_by, quiet, seconds } = self;
        match found_by {
            Some((detector, what)) => write!(f, "found   {name:<28} {seconds:>4} s  {detector}: {what}"),
            None => write!(f, "MISSED  {name:<28} {seconds:>4} s  {}", quiet.join("; ")),
        }
    }
}

/// Every bug, and whether it was found.
#[derive(Debug)]
struct Scoreboard {
    /// The detectors that did not pass without a bug.
    sober: Vec<String>,
    scores: Vec<Score>,
    seconds: u64,
}

impl Scoreboard {
    fn found(&self) -> usize {
        self.scores.iter().filter(|score| score.found_by.is_some()).count()
    }

    /// A check for each bug, and a failure for each detector that does not pass without one.
    fn tally(&self) -> Tally {
        let (found, all) = (self.found() as u64, self.scores.len() as u64);
        Tally { passed: found, failed: all - found + self.sober.len() as u64 }
    }
}

impl fmt::Display for Scoreboard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.sober[..] {
            [] => writeln!(f, "passed  no bug")?,
            failed => failed.iter().try_for_each(|failed| writeln!(f, "FAILED  no bug: {failed}"))?,
        }
        self.scores.iter().try_for_each(|score| writeln!(f, "{score}"))?;
        write!(f, "{} of {} found in {} s", self.found(), self.scores.len(), self.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::Repository;

    #[cfg(unix)]
    #[test]
    fn a_bug_that_its_detectors_do_not_see_is_missed() {
        // Behaves like tests that fail with one bug, and pass with any other.
        let sees_one = Detector::script(
            "if [ \"$STEADFAST_PLANTED\" = seen ]; then
                echo 'test its::name ... FAILED'; echo 'test result: FAILED. 3 passed; 1 failed'; exit 101
            else
                echo 'test result: ok. 4 passed; 0 failed'
            fi",
        );
        let dies = Detector::script("kill -9 $$");
        let programs = Programs::shells();
        assert_eq!(sees_one.run(&programs, None), Seen::Nothing);

        let seen = look_for("seen", &[dies.clone(), sees_one.clone()], &programs);
        assert_eq!(seen.found_by.as_ref().map(|(_, what)| &**what), Some("its::name"));
        assert_eq!(seen.quiet.len(), 1, "a detector that died has found nothing");
        let missed = look_for("unseen", &[sees_one, dies], &programs);
        assert_eq!((&missed.found_by, missed.quiet.len()), (&None, 2));

        let mut board = Scoreboard { sober: Vec::new(), scores: vec![seen, missed], seconds: 0 };
        assert_eq!(board.tally(), Tally { passed: 1, failed: 1 });
        assert!(board.to_string().contains("\nMISSED  unseen"), "{board}");
        board.sober.push("sim".to_owned());
        assert_eq!(board.tally().failed, 2);
    }

    #[test]
    fn every_bug_can_be_planted() {
        let files = Repository::read(&cargo::root()).unwrap();
        assert_eq!(faults(&files), [""; 0]);
    }
}
