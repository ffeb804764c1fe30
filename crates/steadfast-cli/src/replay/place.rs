//! The place of an orders' file's journal.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    exit::Failed,
    journal::{beside, folder_of},
};

/// The ending of a journal's name, if no other journal is named.
pub(super) const JOURNAL: &str = ".journal";

/// Returns the journal of an orders' file. It stands beside the file itself, also if the given path is a link, or if
/// the journal was begun under another name of the file in the same folder.
pub(super) fn journal_of(file: &Path) -> Result<PathBuf, Failed> {
    let named = beside(file, JOURNAL);
    if let [journal, more @ ..] = &*journals_of_other_names(file) {
        if named.exists() || !more.is_empty() {
            return Err(Failed::usage(format_args!(
                "{} and {} are journals of one file with several names: nothing was sent; say by --journal which of them \
                 tells what was sent",
                more.first().unwrap_or(&named).display(),
                journal.display()
            )));
        }
        return Ok(journal.clone());
    }
    let is_link = fs::symlink_metadata(file).is_ok_and(|named| named.is_symlink());
    // A pipe or the like has no place of its own.
    let itself = fs::canonicalize(file).ok().filter(|itself| is_link && itself.is_file());
    let Some(journal) = itself.map(|itself| beside(&itself, JOURNAL)) else { return Ok(named) };
    if named.exists() && fs::canonicalize(&named).ok() != fs::canonicalize(&journal).ok() {
        return Err(Failed::usage(format_args!(
            "{} stands beside a link, and the journal is {}: nothing was sent; say by --journal which of them tells what \
             was sent",
            named.display(),
            journal.display()
        )));
    }
    Ok(journal)
}

/// Returns the journals in the folder that were begun under another name of this file (a hard link).
fn journals_of_other_names(file: &Path) -> Vec<PathBuf> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let of = |path: &Path| fs::metadata(path).ok().filter(|found| found.is_file());
        let Some(own) = of(file).filter(|own| own.nlink() > 1) else { return Vec::new() };
        let is_own = |name: &Path| of(name).is_some_and(|it| (it.dev(), it.ino()) == (own.dev(), own.ino()));
        let named = beside(file, JOURNAL);
        let journals =
            fs::read_dir(folder_of(file)).into_iter().flatten().flatten().map(|found| found.path());
        journals
            .filter(|journal| journal.extension().is_some_and(|ending| ending == "journal"))
            .filter(|journal| is_own(&journal.with_extension("")) && journal.file_name() != named.file_name())
            .collect()
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        Vec::new()
    }
}
