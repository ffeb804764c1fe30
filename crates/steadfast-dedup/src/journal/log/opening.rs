use std::{
    io,
    path::{Path, PathBuf},
};

use super::{
    super::{
        content::{LogContent, read},
        disk::Disk,
        entry::Entry,
        error::JournalError,
        fold::Fold,
        lock_note::LockNote,
        paths::{beside, folder_of},
        successor::{RewriteError, Successor, draw_salt, write_anew},
    },
    Log, REWRITE,
};

impl<D: Disk> Log<D> {
    /// Opens the log at `path`, or begins one there if there is no file.
    ///
    /// A lock, with the log's name and `.lock`, stays beside it, and for a moment its successor, with `.new`.
    ///
    /// # Errors
    ///
    /// [`JournalError`] if another process has it open, the file is not a log or is damaged, or the disk fails; the
    /// file is then left as it is.
    pub fn open(disk: D, path: impl Into<PathBuf>) -> Result<Self, JournalError> {
        match Self::open_even_if_full(disk, path)? {
            (log, None) => Ok(log),
            (_, Some(full)) => Err(full),
        }
    }

    /// As [`open`](Self::open), also where the disk is too full for the successor of a log that is there. Then it tells that,
    /// and the log [waits](Self::is_waiting) for room.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open): there has to be room for a log that is not there yet.
    pub fn open_even_if_full(
        disk: D,
        path: impl Into<PathBuf>,
    ) -> Result<(Self, Option<JournalError>), JournalError> {
        let path = path.into();
        let beside_it = beside(&path, ".lock");
        let mut lock = disk.lock(&beside_it).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => JournalError::InUse { path: path.clone() },
            _ => JournalError::io("lock", &path)(error),
        })?;
        let note = disk.note(&mut lock).map_err(JournalError::io("read", &beside_it))?;
        let lock_note = LockNote::decode(&note);
        let (found, is_begun) = match read(&disk, &path, lock_note)? {
            Some(found) if found.linked => return Err(JournalError::Linked { path }),
            Some(found) => {
                if lock_note.is_between() {
                    // The file found must survive a loss of power before the note names it alone.
                    let folder = folder_of(&path);
                    disk.sync_directory(folder).map_err(JournalError::io("sync", folder))?;
                }
                (found, false)
            }
            None => {
                let fold = Fold::default();
                let fresh = write_anew(&disk, &path, &mut lock, draw_salt(), None, &fold);
                let Successor { file, head, reached } = fresh.map_err(RewriteError::into_error)?;
                let (size, reached) = (reached.size, Some(reached));
                (LogContent { file, head, size, reached, linked: false, fold }, true)
            }
        };
        let LogContent { file, head, size, reached, fold, .. } = found;
        let mut log = Self {
            disk,
            path,
            lock,
            file,
            is_begun,
            head,
            next: head.records,
            durable: head.records,
            size,
            reached,
            rewrite_at: REWRITE.max(2 * size),
            fold,
            waiting: Vec::new(),
            failed: None,
            buffer: Vec::new(),
        };
        match log.append([]) {
            Err(full) if log.is_waiting() => Ok((log, Some(full))),
            opened => opened.map(|()| (log, None)),
        }
    }

    /// Reads a log without opening it: nothing is locked or written.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), except for the lock and its note. `None` if there is no file.
    pub fn read(disk: &D, path: &Path) -> Result<Option<Vec<Entry>>, JournalError> {
        Ok(read(disk, path, LockNote::None)?.map(|found| found.fold.entries().cloned().collect()))
    }

    /// Fails as [`open`](Self::open) would, by its lock's note, `note`; nothing is locked or written.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), except that another process may have it open.
    pub fn check(disk: &D, path: &Path, note: &[u8]) -> Result<(), JournalError> {
        match read(disk, path, LockNote::decode(note))? {
            Some(found) if found.linked => Err(JournalError::Linked { path: path.to_owned() }),
            _ => Ok(()),
        }
    }
}
