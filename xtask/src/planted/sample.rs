//! The bugs that CI turns on: those that a change could have to do with, and a third of the others in turn.

use std::collections::BTreeSet;

use anyhow::Result;

use super::bug::Bug;
use crate::cargo::git;
use crate::repository::Repository;
use crate::workspace::Workspace;

/// All bugs have had their turn after so many commits.
const TURNS: usize = 3;

/// Chooses from the bugs; all of them where it cannot be told what has changed, as in a clone without history.
pub(super) fn of<'a>(bugs: &'a [Bug], workspace: &Workspace) -> Result<Vec<&'a Bug>> {
    let files = Repository::read(&workspace.root)?;
    let history = || {
        let commits: usize = git(&workspace.root, &["rev-list", "--count", "HEAD"])?.parse().ok()?;
        let names = git(&workspace.root, &["diff", "--name-only", &base(workspace)?])?;
        Some((commits, names.lines().map(str::to_owned).collect()))
    };
    Ok(match history() {
        Some((commits, changed)) => choose(bugs, &files, &changed, commits),
        None => bugs.iter().collect(),
    })
}

/// The commit that a branch began from; on the main branch itself, the one before.
fn base(workspace: &Workspace) -> Option<String> {
    let ask = |words: &[&str]| git(&workspace.root, words);
    let head = ask(&["rev-parse", "HEAD"])?;
    let fork = ["origin/main", "main"].iter().find_map(|main| ask(&["merge-base", "HEAD", main]));
    fork.filter(|fork| *fork != head).or_else(|| ask(&["rev-parse", "--verify", "--quiet", "HEAD~1"]))
}

/// Chooses by the files that have changed and by the number of commits. Each crate that bugs are planted in has one at least.
fn choose<'a>(
    bugs: &'a [Bug],
    files: &Repository,
    changed: &BTreeSet<String>,
    commits: usize,
) -> Vec<&'a Bug> {
    let mut seen = BTreeSet::new();
    let chosen = bugs.iter().enumerate().filter(|(place, bug)| {
        let is_in_turn = place % TURNS == commits % TURNS;
        let is_first = seen.insert(bug.subject());
        is_in_turn || is_first || bug.concerns(changed, files)
    });
    chosen.map(|(_, bug)| bug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bug(name: &str, file: &str, found_by: &str) -> Bug {
        let text = format!(
            "what = 'x'\nfound-by = ['{found_by}']\n[[replace]]\nfile = '{file}'\nold = 'o'\n\
             new = 'planted::is_on(\"{name}\")'"
        );
        Bug::parse(name, &text).unwrap()
    }

    fn names(chosen: &[&Bug]) -> Vec<String> {
        chosen.iter().map(|bug| bug.name.clone()).collect()
    }

    #[test]
    fn each_bug_has_its_turn_and_each_crate_has_a_bug() {
        let bugs: Vec<Bug> =
            (0..9).map(|n| bug(&n.to_string(), &format!("crates/c{}/src/a.rs", n / 6), "sim x")).collect();
        let of = |commits| names(&choose(&bugs, &Repository::default(), &BTreeSet::new(), commits));
        assert_eq!(
            (of(0), of(1), of(2)),
            (
                ["0", "3", "6"].map(str::to_owned).into(),
                ["0", "1", "4", "6", "7"].map(str::to_owned).into(),
                ["0", "2", "5", "6", "8"].map(str::to_owned).into(),
            )
        );
    }

    #[test]
    fn a_bug_is_chosen_if_its_place_its_file_or_its_test_has_changed() {
        let found_by = "tests c it reads::s30_ other_name";
        let bugs = [bug("first", "crates/c/src/z.rs", "sim x"), bug("b", "crates/c/src/a.rs", found_by)];
        let files = Repository::of(&[
            ("crates/c/tests/it/reads.rs", ""),
            ("crates/c/tests/it/more.rs", "fn other_name_and_more() {}"),
            ("crates/c/tests/it/unlike.rs", "fn x() {}"),
            ("crates/d/tests/it/reads.rs", ""),
        ]);
        for (changed, is_chosen) in [
            ("crates/c/src/a.rs", true),
            ("crates/steadfast-verify/planted/b.toml", true),
            ("crates/c/tests/it/reads.rs", true),
            ("crates/c/tests/it/more.rs", true),
            ("crates/c/tests/it/unlike.rs", false),
            ("crates/d/tests/it/reads.rs", false),
            ("README.md", false),
        ] {
            let changed = [changed.to_owned()].into();
            assert_eq!(choose(&bugs, &files, &changed, 0).len() == 2, is_chosen, "{changed:?}");
        }
    }
}
