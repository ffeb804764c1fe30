//! The scoreboard of planted bugs: does what we test with find what it is there to find?
//!
//! The sources contain no bug. Each bug is a file of `crates/steadfast-verify/planted`: texts of the sources, their replacements,
//! and the detectors of the bug. All bugs are planted at once in a copy of the workspace, where `STEADFAST_PLANTED` turns one on.
//! First every detector must pass without a bug. Then each bug is turned on, and one of its detectors must fail.
//!
//! A detector proves something only by what it says: a test that failed, or a seed that broke a promise. One that hangs,
//! dies or runs nothing has found nothing.

mod binaries;
mod bug;
mod denial;
mod detector;
mod scoreboard;
mod tree;

use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Result, bail, ensure};

use self::binaries::Binaries;
pub(crate) use self::binaries::PROFILE;
use self::bug::{Bug, FOLDER};
pub(crate) use self::detector::turn_on;
use self::detector::{Detector, Seen};
use self::scoreboard::{Score, Scoreboard};
pub(crate) use self::tree::Tree;
use crate::console;
use crate::metadata::Workspace;
use crate::report::Report;
use crate::root;
use crate::stopwatch::Stopwatch;
use crate::tally::Tally;
use crate::tidy::{Finding, Repository};

/// So many detectors run at once; most of them use more than one core themselves.
const AT_ONCE: usize = 2;

/// Plants every bug, or those named after `--only`, and says what found it; 1 if any was missed.
pub(crate) fn run(words: &[String]) -> ExitCode {
    let wanted = match Wanted::parse(words) {
        Ok(wanted) => wanted,
        Err(error) => return console::misunderstood(&error),
    };
    match Workspace::load(&root::find()).and_then(|workspace| play(&workspace, &wanted.only)) {
        Ok(scoreboard) => {
            console::data(if wanted.json { scoreboard.json() } else { scoreboard.to_string() });
            if scoreboard.is_complete() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            console::complain(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// The same as a stage: every bug is a check, and so is the evidence, which has to deny its row with a bug.
pub(crate) fn check_all(workspace: &Workspace, mut each: impl FnMut(&str)) -> Result<Report> {
    let scoreboard = play(workspace, &[])?;
    console::say(&scoreboard);
    each(&format!("figures: bugs={} found={}", scoreboard.scores.len(), scoreboard.found()));
    let (found, missed) = (scoreboard.found() as u64, scoreboard.missed() as u64);
    let failed = missed + u64::from(!scoreboard.sober.is_empty());
    Ok(Report::of_tests(Tally { passed: found, failed } + denial::check(workspace)?, None))
}

/// True if there is a bug with this name.
pub(crate) fn is_known(name: &str) -> bool {
    root::find().join(FOLDER).join(format!("{name}.toml")).is_file()
}

/// Returns the reasons why a bug cannot be planted or cannot be found.
pub(crate) fn faults(files: &Repository) -> Vec<Finding> {
    bug::check(files)
}

/// Returns the simulator of the copy with all bugs. Builds it first if it is missing.
pub(crate) fn simulator(tree: &Tree) -> Result<Command> {
    Ok(Binaries::build(tree)?.simulator()?.command())
}

/// What the command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    json: bool,
    only: Vec<String>,
}

impl Wanted {
    fn parse(words: &[String]) -> Result<Self> {
        let mut wanted = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match (word.as_str(), words.as_slice()) {
                ("--json", _) => wanted.json = true,
                ("--only", [name, ..]) => {
                    ensure!(is_known(name), "`planted --only`: no bug is called {name}");
                    wanted.only.push(name.clone());
                    words.next();
                }
                _ => bail!("usage: cargo xtask planted [--json] [--only NAME] …"),
            }
        }
        Ok(wanted)
    }
}

fn play(workspace: &Workspace, only: &[String]) -> Result<Scoreboard> {
    let tree = Tree::plant(workspace)?;
    let is_wanted = |bug: &&Bug| only.is_empty() || only.contains(&bug.name);
    let bugs: Vec<&Bug> = tree.bugs.iter().filter(is_wanted).collect();
    let mut detectors: Vec<&Detector> = Vec::new();
    for detector in bugs.iter().flat_map(|bug| &bug.detectors) {
        if !detectors.contains(&detector) {
            detectors.push(detector);
        }
    }
    console::complain("building a copy with all bugs in it");
    let binaries = Binaries::build(&tree)?;
    let clock = Stopwatch::start();
    console::complain(format_args!("no bug: {} detectors have to pass", detectors.len()));
    let sober = side_by_side(&detectors, |detector| match detector.run(&binaries, None) {
        Seen::Nothing => None,
        seen => Some(format!("{detector}: {seen}")),
    });
    let sober: Vec<String> = sober.into_iter().flatten().collect();
    for failed in &sober {
        console::complain(format_args!("no bug, and yet: {failed}"));
    }
    console::complain(format_args!("{} bugs", bugs.len()));
    let scores = side_by_side(&bugs, |bug| {
        let score = look_for(&bug.name, &bug.detectors, &binaries);
        console::complain(&score);
        score
    });
    Ok(Scoreboard { sober, scores, took: clock.elapsed() })
}

/// Turns one bug on and runs its detectors until one finds it.
fn look_for(name: &str, detectors: &[Detector], binaries: &Binaries) -> Score {
    let clock = Stopwatch::start();
    let mut found_by = None;
    let mut quiet = Vec::new();
    for detector in detectors {
        match detector.run(binaries, Some(name)) {
            Seen::Bug(what) => {
                found_by = Some((detector.to_string(), what));
                break;
            }
            seen => quiet.push(format!("{detector}: {seen}")),
        }
    }
    Score { name: name.to_owned(), found_by, quiet, took: clock.elapsed() }
}

/// Does the work for all of them, a few at a time, and keeps their order.
fn side_by_side<T: Sync, R: Send>(all: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let one_after_the_other = || {
        let mut done = Vec::new();
        while let Some((index, one)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            all.get(index).map(|one| (index, one))
        } {
            done.push((index, work(one)));
        }
        done
    };
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(one_after_the_other)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn names_are_kept_and_leftovers_refused() {
        let wanted = Wanted::parse(&words("--only no-settle --json --only no-owner-wait")).unwrap();
        assert_eq!(wanted, Wanted { json: true, only: words("no-settle no-owner-wait") });
        for line in ["--only", "now", "--json now", "--only no-such-bug"] {
            assert!(Wanted::parse(&words(line)).is_err(), "{line}");
        }
    }

    #[test]
    fn every_piece_of_work_is_done_once_and_in_its_place() {
        let all: Vec<usize> = (0..100).collect();
        assert_eq!(side_by_side(&all, |one| one * 2), all.iter().map(|one| one * 2).collect::<Vec<_>>());
    }

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
        let binaries = Binaries::shell();
        assert_eq!(sees_one.run(&binaries, None), Seen::Nothing);

        let seen = look_for("seen", &[dies.clone(), sees_one.clone()], &binaries);
        assert_eq!(seen.found_by.as_ref().map(|(_, what)| &**what), Some("its::name"));
        assert_eq!(seen.quiet.len(), 1, "what died has found nothing");
        let missed = look_for("unseen", &[sees_one, dies], &binaries);
        assert_eq!((&missed.found_by, missed.quiet.len()), (&None, 2));

        let board = Scoreboard { sober: Vec::new(), scores: vec![seen, missed], took: Duration::ZERO };
        assert_eq!((board.found(), board.missed(), board.is_complete()), (1, 1, false));
        assert!(board.to_string().contains("\nMISSED  unseen"), "{board}");
    }

    #[test]
    fn every_bug_can_be_planted() {
        let files = Repository::read(&root::find()).unwrap();
        assert_eq!(faults(&files).iter().map(ToString::to_string).collect::<Vec<_>>(), [""; 0]);
    }
}
