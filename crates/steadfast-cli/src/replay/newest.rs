//! The journal to go on with, of all that tell of the same rows.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use steadfast::dedup::journal::{Entry, FileJournal};

use super::known::names_begun;
use crate::journal::beside;

/// Returns how to go on, of all the journals that tell of some rows; the first text names them.
///
/// Only a journal that is whole by its lock, and that tells of all that the others do, is named to go on with: an older copy
/// lacks the last orders, and they would be sent again.
pub(super) fn to_go_on_with(journals: &[(PathBuf, Vec<Entry>)]) -> (String, String) {
    let told: Vec<(&Path, BTreeSet<&str>)> =
        journals.iter().map(|(path, entries)| (path.as_path(), names_begun(entries).collect())).collect();
    let holds_all = |names: &BTreeSet<&str>| told.iter().all(|(_, others)| others.is_subset(names));
    let mut newest = told.iter().filter(|(path, names)| holds_all(names) && is_whole(path));
    match (newest.next(), newest.next()) {
        (Some((path, _)), None) => {
            (path.display().to_string(), format!("go on with it by --journal {}", path.display()))
        }
        _ => {
            let named: Vec<_> = told.iter().map(|(path, _)| path.display().to_string()).collect();
            let how = "none is certain to be the one written last, and what an older copy lacks is sent again: compare the \
                       service's order list with the orders of each, and only then go on with the right one by --journal";
            (named.join(" and "), how.to_owned())
        }
    }
}

/// True if the lock beside a journal says that it is the one written last, and whole.
fn is_whole(journal: &Path) -> bool {
    matches!(beside(journal, ".lock").try_exists(), Ok(true)) && FileJournal::check(journal).is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use steadfast::dedup::journal::Journal;

    use super::*;
    use crate::journal::records::begun;

    fn read(path: &Path) -> (PathBuf, Vec<Entry>) {
        (path.to_owned(), FileJournal::read(path).unwrap().unwrap())
    }

    /// Regression: whichever journal the folder lists first was named, and an older copy sends the last rows again.
    #[test]
    fn only_the_journal_with_the_newest_orders_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let [path, copy] = ["orders.csv.journal", "a.journal"].map(|name| folder.path().join(name));
        let journal = FileJournal::open(&path).unwrap();
        journal.append(begun(1, "line-2"));
        drop(journal);
        let lock = |path: &Path| beside(path, ".lock");
        let both = |first, then| to_go_on_with(&[read(first), read(then)]);
        fs::copy(&path, &copy).unwrap();
        fs::copy(lock(&path), lock(&copy)).unwrap();
        let same = both(&copy, &path);
        assert!(same.1.starts_with("none is certain"), "{same:?}");
        let journal = FileJournal::open(&path).unwrap();
        journal.append(begun(2, "line-3"));
        drop(journal);
        let named = format!("go on with it by --journal {}", path.display());
        for (first, then) in [(&copy, &path), (&path, &copy)] {
            assert_eq!(both(first, then), (path.display().to_string(), named.clone()));
        }
        // The newest one may be gone, and the copy the only one left.
        fs::remove_file(lock(&copy)).unwrap();
        let alone = to_go_on_with(&[read(&copy)]);
        assert_eq!(alone.0, copy.display().to_string());
        assert!(alone.1.starts_with("none is certain"), "{alone:?}");
    }
}
