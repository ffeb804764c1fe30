use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::bug::{Bug, Changed, plant};
use crate::programs::Site;
use crate::repository::{Repository, paths};
use crate::workspace::Workspace;

const SWITCH: &str = include_str!("switch.rs");
const SWITCH_FILE: &str = "crates/steadfast-spec/src/planted.rs";

/// A copy of the workspace with all bugs planted in it.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(super) bugs: Vec<Bug>,
    pub(crate) site: Site,
}

impl Tree {
    /// Creates the copy, or brings it up to date.
    pub(crate) fn plant(workspace: &Workspace) -> Result<Self> {
        let files = Repository::read(&workspace.root)?;
        let bugs = Bug::all(&files)?;
        let mut changed = match plant(&bugs, &files) {
            Ok(changed) => changed,
            Err(findings) => bail!("bugs cannot be planted\n{}", findings.join("\n")),
        };
        let names: Vec<&str> = bugs.iter().map(|bug| &*bug.name).collect();
        let switch = format!("{SWITCH}\nconst NAMES: &[&str] = &{names:#?};\n");
        changed.insert(SWITCH_FILE.to_owned(), switch);
        let target = workspace.target.join("planted");
        let root = target.join("tree");
        bring_up_to_date(&root, &workspace.root, &paths(&workspace.root)?, &changed)?;
        Ok(Self { bugs, site: Site::with_bugs(root, target, workspace) })
    }
}

/// Writes only files that differ, so that cargo rebuilds little, and removes files that are gone.
fn bring_up_to_date(copy: &Path, root: &Path, paths: &BTreeSet<String>, changed: &Changed) -> Result<()> {
    let mut wanted = BTreeSet::new();
    for path in paths.iter().chain(changed.keys()) {
        let (from, to) = (root.join(path), copy.join(path));
        let content = match changed.get(path) {
            Some(text) => text.clone().into_bytes(),
            // Git also lists files that were removed since the last commit.
            None if !from.is_file() => continue,
            None => fs::read(&from).with_context(|| format!("{} cannot be read", from.display()))?,
        };
        if fs::read(&to).ok().as_ref() != Some(&content) {
            to.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(&to, content).with_context(|| format!("{} cannot be written", to.display()))?;
        }
        wanted.insert(to);
    }
    remove_others(copy, &wanted)
}

fn remove_others(folder: &Path, wanted: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, wanted)?;
        } else if !wanted.contains(&path) {
            fs::remove_file(&path).with_context(|| format!("{} cannot be removed", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn a_copy_has_what_is_there_and_is_written_only_where_it_differs() {
        let folder = std::env::temp_dir().join(format!("xtask-planted-{}", std::process::id()));
        let (root, copy) = (folder.join("root"), folder.join("copy"));
        fs::create_dir_all(root.join("src")).unwrap();
        fs::create_dir_all(copy.join("src")).unwrap();
        for (path, text) in [("src/a.rs", "a"), ("src/b.rs", "b")] {
            fs::write(root.join(path), text).unwrap();
        }
        let paths: BTreeSet<String> = ["src/a.rs", "src/b.rs", "src/gone.rs"].map(str::to_owned).into();
        let changed: Changed = [("src/b.rs".to_owned(), "wrong".to_owned())].into();
        for path in ["src/a.rs", "src/gone.rs"] {
            fs::write(copy.join(path), "a").unwrap();
        }
        let old = SystemTime::UNIX_EPOCH;
        fs::File::options().write(true).open(copy.join("src/a.rs")).unwrap().set_modified(old).unwrap();
        bring_up_to_date(&copy, &root, &paths, &changed).unwrap();
        let kept = fs::metadata(copy.join("src/a.rs")).unwrap().modified().unwrap();
        let wrong = fs::read_to_string(copy.join("src/b.rs")).unwrap();
        let is_gone = !copy.join("src/gone.rs").exists();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!((kept, &*wrong, is_gone), (old, "wrong", true));
    }
}
