//! The bugs that CI turns on: a tenth of all in turn, and of those in files that a change touches so many that a long change
//! takes no longer than a short one.

use std::collections::BTreeSet;
use std::path::Path;

use super::bug::Bug;
use crate::cargo::{commits, git};

/// All bugs have had their turn after so many runs of this stage. No multiple of three, because every third commit runs it.
const TURNS: usize = 10;
/// So many of the bugs in files that a change touches are turned on at most. Of more, some have their turn.
const MOST_TOUCHED: usize = 30;

/// Chooses from the bugs; all of them where it cannot be told what has changed, as in a clone without history.
pub(super) fn of<'a>(bugs: &'a [Bug], root: &Path) -> Vec<&'a Bug> {
    let history = || {
        let commits = commits(root)?;
        let names = git(root, &["diff", "--name-only", &base(root)?])?;
        Some((commits, names.lines().map(str::to_owned).collect()))
    };
    history().map_or_else(|| bugs.iter().collect(), |(commits, changed)| choose(bugs, &changed, commits))
}

/// The commit that a branch began from; on the main branch itself, the one before.
fn base(root: &Path) -> Option<String> {
    let ask = |words: &[&str]| git(root, words);
    let head = ask(&["rev-parse", "HEAD"])?;
    let fork = ["origin/main", "main"].iter().find_map(|main| ask(&["merge-base", "HEAD", main]));
    fork.filter(|fork| *fork != head).or_else(|| ask(&["rev-parse", "--verify", "--quiet", "HEAD~1"]))
}

fn choose<'a>(bugs: &'a [Bug], changed: &BTreeSet<String>, commits: usize) -> Vec<&'a Bug> {
    let touched: Vec<usize> = (0..bugs.len()).filter(|&place| bugs[place].is_in(changed)).collect();
    let turns = touched.len().div_ceil(MOST_TOUCHED).max(1);
    let touched: BTreeSet<usize> = touched.into_iter().skip(commits / TURNS % turns).step_by(turns).collect();
    let is_in_turn = |place: usize| place % TURNS == commits % TURNS;
    let chosen = bugs.iter().enumerate().filter(|(place, _)| is_in_turn(*place) || touched.contains(place));
    chosen.map(|(_, bug)| bug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bug(name: usize, file: usize) -> Bug {
        let text = format!(
            "what = 'x'\nfound-by = ['sim x']\n[[replace]]\nfile = 'crates/{file}.rs'\nold = 'o'\n\
             new = 'planted::is_on(\"{name}\")'"
        );
        Bug::parse(&name.to_string(), &text).unwrap()
    }

    #[test]
    fn each_bug_has_its_turn_and_is_chosen_if_its_place_or_its_file_has_changed() {
        let bugs: Vec<Bug> = (0..12).map(|name| bug(name, name)).collect();
        let of = |changed: &str, commits| -> Vec<&str> {
            choose(&bugs, &[changed.to_owned()].into(), commits).iter().map(|bug| &*bug.name).collect()
        };
        assert_eq!(
            (of("", 6), of("", 10), of("README.md", 11)),
            (vec!["6"], vec!["0", "10"], vec!["1", "11"])
        );
        for changed in ["crates/1.rs", "crates/steadfast-verify/planted/1.toml"] {
            assert_eq!(of(changed, 0), ["0", "1", "10"]);
        }
    }

    #[test]
    fn of_a_long_change_as_many_are_chosen_as_have_room_and_the_others_by_later_commits() {
        let bugs: Vec<Bug> = (0..150).map(|name| bug(name, 0)).collect();
        let changed = ["crates/0.rs".to_owned()].into();
        let of = |round| choose(&bugs, &changed, TURNS * round);
        assert!((0..5).all(|round| of(round).len() <= MOST_TOUCHED + bugs.len().div_ceil(TURNS)));
        let all: BTreeSet<&str> = (0..5).flat_map(of).map(|bug| &*bug.name).collect();
        assert_eq!(all.len(), bugs.len());
    }
}
