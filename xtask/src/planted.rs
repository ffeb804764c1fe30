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

use anyhow::{Result, bail, ensure};

pub(crate) use self::bug::check as faults;
use self::bug::{Bug, FOLDER};
use self::detector::{Detector, Seen};
pub(crate) use self::tree::Tree;
use crate::extent::Extent;
use crate::programs::{Part, Programs};
use crate::report::{Report, Tally};
use crate::runner::echo;
use crate::side_by_side::side_by_side;
use crate::stopwatch::Stopwatch;
use crate::summary::{Row, Summary};
use crate::workspace::Workspace;
use crate::{cargo, console};

/// So many detectors run at once. Some wait most of the time, and some use more than one core themselves.
const AT_ONCE: usize = 5;

/// The files or folders of `tests` that detectors run, and those that look for secrets.
const TESTS: &[&str] = &["it", "journal", "gateway", "outage", "secrets"];

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

/// Plants the bugs.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<Tally> {
    let tree = Tree::plant(workspace)?;
    let is_wanted = |bug: &&Bug| args.only.is_empty() || args.only.contains(&bug.name);
    let bugs: Vec<&Bug> = tree.bugs.iter().filter(is_wanted).collect();
    let summary = play(&tree, &bugs, &mut echo)?;
    console::tell(&summary.failures());
    Ok(summary.tally())
}

/// The same as a stage.
pub(crate) fn check(workspace: &Workspace, extent: Extent, each: &mut dyn FnMut(&str)) -> Result<Report> {
    let tree = Tree::plant(workspace)?;
    let chosen = match extent {
        Extent::Full => tree.bugs.iter().collect(),
        Extent::Sample => sample::of(&tree.bugs, &workspace.root),
    };
    let summary = play(&tree, &chosen, each)?;
    let (planted, turned_on, tally) = (tree.bugs.len(), chosen.len(), summary.tally());
    each(&format!("figures: planted={planted} bugs={turned_on} found={}", tally.passed));
    let failures = summary.failures();
    Ok(Report::of_tests(tally, (!failures.is_empty()).then(|| failures.join("\n"))))
}

/// Returns a row for each bug, and before them one for each detector that does not pass without a bug.
fn play(tree: &Tree, bugs: &[&Bug], say: &mut dyn FnMut(&str)) -> Result<Summary> {
    let mut detectors: Vec<&Detector> = Vec::new();
    for detector in bugs.iter().flat_map(|bug| &bug.detectors) {
        if !detectors.contains(&detector) {
            detectors.push(detector);
        }
    }
    say("building a copy with all bugs in it");
    let programs = Programs::build(&tree.site, Part::Tests(TESTS), &mut *say)?;
    let clock = Stopwatch::start();
    say(&format!("no bug: {} detectors have to pass", detectors.len()));
    let sober = side_by_side(&detectors, AT_ONCE, |detector| match detector.run(&programs, None) {
        Seen::Nothing => None,
        seen => Some(Row::run("no bug", &mut |_| {}, |_| bail!("{detector}: {seen}"))),
    });
    say(&format!("{} s without a bug; {} bugs", clock.elapsed().as_secs(), bugs.len()));
    let looked_for = side_by_side(bugs, AT_ONCE, |bug| look_for(&bug.name, &bug.detectors, &programs));
    Ok(Summary { rows: sober.into_iter().flatten().chain(looked_for).collect() })
}

/// Turns one bug on and runs its detectors until one finds it.
fn look_for(name: &str, detectors: &[Detector], programs: &Programs) -> Row {
    Row::run(name, &mut |_| {}, |_| {
        let mut quiet = Vec::new();
        for detector in detectors {
            match detector.run(programs, Some(name)) {
                Seen::Bug(what) => {
                    console::say(format_args!("found   {name:<28}  {detector}: {what}"));
                    return Ok(Report::of_tests(Tally::SUCCESS, None));
                }
                seen => quiet.push(format!("{detector}: {seen}")),
            }
        }
        console::say(format_args!("MISSED  {name:<28}  {}", quiet.join("; ")));
        Ok(Report::failed(quiet.join("; "), Tally::default()))
    })
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
        assert!(!seen.is_failed());
        let missed = look_for("unseen", &[sees_one, dies.clone()], &programs);
        let died = look_for("seen", &[dies], &programs);
        assert!(missed.is_failed() && died.is_failed(), "a detector that died has found nothing");
        assert_eq!(Summary { rows: vec![seen, missed] }.tally(), Tally { passed: 1, failed: 1 });
    }

    #[test]
    fn every_bug_can_be_planted() {
        let files = Repository::read(&cargo::root()).unwrap();
        assert_eq!(faults(&files), [""; 0]);
    }
}
