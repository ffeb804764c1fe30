//! The bugs that CI turns on: those in files that a change touches, and a third of the others in turn.

use std::collections::BTreeSet;
use std::path::Path;

use super::bug::Bug;
use crate::cargo::git;

/// All bugs have had their turn after so many commits.
const TURNS: usize = 3;

/// Chooses from the bugs; all of them where it cannot be told what has changed, as in a clone without history.
pub(super) fn of<'a>(bugs: &'a [Bug], root: &Path) -> Vec<&'a Bug> {
    let history = || {
        let commits: usize = git(root, &["rev-list", "--count", "HEAD"])?.parse().ok()?;
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
    let is_in_turn = |place: usize| place % TURNS == commits % TURNS;
    let chosen = bugs.iter().enumerate().filter(|(place, bug)| is_in_turn(*place) || bug.is_in(changed));
    chosen.map(|(_, bug)| bug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bug_has_its_turn_and_is_chosen_if_its_place_or_its_file_has_changed() {
        let bug = |name: u8| {
            let text = format!(
                "what = 'x'\nfound-by = ['sim x']\n[[replace]]\nfile = 'crates/{name}.rs'\nold = 'o'\n\
                 new = 'planted::is_on(\"{name}\")'"
            );
            Bug::parse(&name.to_string(), &text).unwrap()
        };
        let bugs: Vec<Bug> = (0..6).map(bug).collect();
        let of = |changed: &str, commits| -> Vec<&str> {
            choose(&bugs, &[changed.to_owned()].into(), commits).iter().map(|bug| &*bug.name).collect()
        };
        assert_eq!(
            (of("", 6), of("", 7), of("README.md", 8)),
            (vec!["0", "3"], vec!["1", "4"], vec!["2", "5"])
        );
        for changed in ["crates/1.rs", "crates/steadfast-verify/planted/1.toml"] {
            assert_eq!(of(changed, 0), ["0", "1", "3"]);
        }
    }
}
