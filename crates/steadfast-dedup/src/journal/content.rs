//! Reads a log that an earlier process left.

use std::path::Path;

use super::{
    disk::{Disk, DiskFile},
    entry::Entry,
    error::JournalError,
    fold::Fold,
    frame::{self, BadHead, Found, Head},
    lock_note::{Judged, LockNote, Reach},
    paths::beside,
};

/// The log of an earlier process, as it was found.
pub(super) struct LogContent<F> {
    /// The file, opened for reading.
    pub(super) file: F,
    pub(super) head: Head,
    /// Its length in bytes.
    pub(super) size: u64,
    /// The lock's note about this file.
    pub(super) reached: Option<Reach>,
    /// It has a second name.
    pub(super) linked: bool,
    pub(super) fold: Fold,
}

/// Reads the log at `path`, and judges it by its lock's note; `None` if there is no file.
pub(super) fn read<D: Disk>(
    disk: &D,
    path: &Path,
    lock_note: LockNote,
) -> Result<Option<LogContent<D::File>>, JournalError> {
    let lost = || JournalError::Lost { path: path.to_owned(), lock: beside(path, ".lock") };
    let Some(mut file) = disk.open(path).map_err(JournalError::io("open", path))? else {
        return if lock_note.judge(None) == Judged::Lost { Err(lost()) } else { Ok(None) };
    };
    let bytes = file.read_all().map_err(JournalError::io("read", path))?;
    let head = Head::decode(&bytes).map_err(|bad| match bad {
        BadHead::Foreign => JournalError::NotAJournal { path: path.to_owned() },
        BadHead::Version(found) => JournalError::Version { path: path.to_owned(), found },
    })?;
    let damaged = |offset: usize| JournalError::Damaged { path: path.to_owned(), offset: offset as u64 };
    let mut fold = Fold::default();
    for found in frame::scan(&bytes, head).map_err(damaged)? {
        match found {
            Found::Gap => fold.gap(),
            Found::Record { offset, payload } => {
                let unknown = || JournalError::Unknown { path: path.to_owned(), offset: offset as u64 };
                fold.add(Entry::decode(payload).ok_or_else(unknown)?);
            }
        }
    }
    fold.whole_again();
    // Checked last: the error for damage is more useful than that for missing records.
    let outdated = |reach: Reach| JournalError::Outdated {
        path: path.to_owned(),
        lock: beside(path, ".lock"),
        length: bytes.len() as u64,
        written: reach.size,
    };
    let reached = match lock_note.judge(Some(head)) {
        Judged::Lost => return Err(lost()),
        Judged::Outdated(last) => return Err(outdated(last)),
        Judged::Believed(Some(reach)) => {
            let promised = Head { records: head.records.max(reach.records), ..head };
            frame::scan(&bytes, promised).map_err(|_| outdated(reach))?;
            Some(reach)
        }
        Judged::Believed(None) => None,
    };
    let linked = is_linked(disk, &file, path)?;
    Ok(Some(LogContent { file, head, size: bytes.len() as u64, reached, linked, fold }))
}

/// True if it has a second name: a process that opens it under that name would take another lock.
pub(super) fn is_linked<D: Disk>(disk: &D, file: &D::File, path: &Path) -> Result<bool, JournalError> {
    disk.is_linked(file).map_err(JournalError::io("look at", path))
}
