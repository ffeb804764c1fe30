use std::{
    io,
    path::{Path, PathBuf},
};

use super::{
    content::{is_linked, read},
    disk::{Disk, DiskFile},
    entry::Entry,
    error::JournalError,
    fold::Fold,
    frame::{self, Head, MAX_PAYLOAD},
    lock_note::{LockNote, Reach},
    paths::{beside, folder_of},
    successor::{RewriteError, draw_salt, write_all, write_anew},
};

/// The file is rewritten once it has this size, and at least twice the size after the last rewrite.
const REWRITE: u64 = 1024 * 1024;

/// With more bytes that wait for room on the disk, a log has failed for good.
const LONGEST_WAIT: usize = 4 * 1024 * 1024;

/// An append-only log of entries in one file, whose end after a crash can always be understood.
///
/// It works on the calling thread; [`FileJournal`](crate::journal::FileJournal) calls it on a thread of its own.
///
/// 1. An entry that was reported durable is there after a crash, or opening fails; it is never left out.
/// 2. Any other entry may be missing. A send after a missing one is compared with no earlier list.
/// 3. The first failed write or sync ends the log: it is then unknown what is durable, and a retry would not tell. A write
///    that finds the disk full does not, if the file can be cut to what was written before it, and that be synced: then all
///    is known. Its entries wait, and are written before all later ones; nothing is reported durable until then.
/// 4. Opening writes the entries that still matter to a new file, which replaces the old one in one step. The same
///    happens when the file has grown to twice that size, so it is never larger than that and a mebibyte.
/// 5. Nothing is reported durable, and no successor is written, unless the file and its lock are still at their
///    paths, and the file has no second name.
/// 6. The lock notes how far the file was written: durably when it is opened or rewritten, and after each sync
///    without a sync of its own, so the note may be behind the file but never ahead of it. Opening fails if the file
///    there is not the one written last, or lacks some of it.
#[derive(Debug)]
pub struct Log<D: Disk> {
    disk: D,
    path: PathBuf,
    lock: D::Lock,
    file: D::File,
    head: Head,
    next: u64,
    durable: u64,
    size: u64,
    /// The lock's note about the file.
    reached: Reach,
    rewrite_at: u64,
    fold: Fold,
    /// Entries that found the disk full, in their order.
    waiting: Vec<Entry>,
    failed: Option<JournalError>,
    buffer: Vec<u8>,
}

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
        let path = path.into();
        let beside_it = beside(&path, ".lock");
        let mut lock = disk.lock(&beside_it).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => JournalError::InUse { path: path.clone() },
            _ => JournalError::io("lock", &path)(error),
        })?;
        let note = disk.note(&mut lock).map_err(JournalError::io("read", &beside_it))?;
        let lock_note = LockNote::decode(&note);
        let found = read(&disk, &path, lock_note)?;
        if found.as_ref().is_some_and(|found| found.linked) {
            return Err(JournalError::Linked { path });
        }
        if found.is_some() && lock_note.is_between() {
            // The file found must survive a loss of power before the note names it alone.
            let folder = folder_of(&path);
            disk.sync_directory(folder).map_err(JournalError::io("sync", folder))?;
        }
        let (salt, before, fold) = match found {
            Some(found) => (found.salt, found.reached, found.fold),
            None => (draw_salt(), None, Fold::default()),
        };
        let fresh =
            write_anew(&disk, &path, &mut lock, salt, before, &fold).map_err(RewriteError::into_error)?;
        Ok(Self {
            disk,
            path,
            lock,
            file: fresh.file,
            head: fresh.head,
            next: fresh.head.records,
            durable: fresh.head.records,
            size: fresh.reached.size,
            reached: fresh.reached,
            rewrite_at: REWRITE.max(2 * fresh.reached.size),
            fold,
            waiting: Vec::new(),
            failed: None,
            buffer: Vec::new(),
        })
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

    /// Returns the entries that still matter, in the order in which they were written.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.fold.entries()
    }

    /// Returns the salt that sessions are hashed with, so that their names in the log mean nothing elsewhere.
    #[must_use]
    pub fn salt(&self) -> [u8; 16] {
        self.head.salt
    }

    /// Returns the file's size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// True while entries wait for room on the disk. Appending anything, also nothing, tries them again.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty() && self.failed.is_none()
    }

    /// Appends entries that may be lost.
    ///
    /// # Errors
    ///
    /// [`JournalError`] if they cannot be written; from then on nothing can, unless the log [waits](Self::is_waiting) for room.
    pub fn append<'a>(&mut self, entries: impl IntoIterator<Item = &'a Entry>) -> Result<(), JournalError> {
        self.write(entries, false)
    }

    /// Appends entries and makes them durable, with all that were appended before.
    ///
    /// # Errors
    ///
    /// [`JournalError`] if that cannot be done; from then on nothing can, unless the log [waits](Self::is_waiting) for room.
    /// Then the entries are written later, and none of them is durable before another call says so.
    pub fn append_durably<'a>(
        &mut self,
        entries: impl IntoIterator<Item = &'a Entry>,
    ) -> Result<(), JournalError> {
        self.write(entries, true)
    }

    fn write<'a>(
        &mut self,
        entries: impl IntoIterator<Item = &'a Entry>,
        durably: bool,
    ) -> Result<(), JournalError> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        // Poisoned until it has succeeded, so that no early return leaves the log usable.
        self.failed = Some(JournalError::Poisoned);
        self.waiting.extend(entries.into_iter().cloned());
        self.buffer.clear();
        let (seed, durable, mut next) = (self.head.seed(), self.durable, self.next);
        for entry in &self.waiting {
            let payload = entry.encode();
            // Written, it could not be read again.
            if payload.len() > MAX_PAYLOAD {
                return Err(JournalError::TooLong { path: self.path.clone(), length: payload.len() });
            }
            // Durable records are written twice, so that no single flipped bit at the end of the file can pass for a torn
            // write.
            for _ in 0..if durably { 2 } else { 1 } {
                frame::write(&mut self.buffer, seed, next, durable, &payload);
            }
            next += 1;
        }
        let written = write_all(&mut self.file, &self.buffer);
        if let Err(error) = written.map_err(JournalError::io("write", &self.path)) {
            if error.is_full() && self.buffer.len() <= LONGEST_WAIT && self.take_back().is_ok() {
                self.failed = None;
            }
            return Err(error);
        }
        self.next = next;
        self.waiting.drain(..).for_each(|entry| self.fold.add(entry));
        self.size += self.buffer.len() as u64;
        if durably {
            self.file.sync().map_err(JournalError::io("sync", &self.path))?;
            self.durable = self.next;
        }
        let full = self.size >= self.rewrite_at;
        // After the sync: from here on, the next process reads from that path what was written.
        if durably || full {
            self.check_place()?;
        }
        if full {
            self.rewrite()?;
        } else if durably {
            self.note_reach()?;
        }
        self.failed = None;
        Ok(())
    }

    /// Cuts off what a failed write may have left, so that the file ends with the last whole write again.
    ///
    /// No sync has failed, so all of the file is what was written; after this sync it is durable, too.
    fn take_back(&mut self) -> io::Result<()> {
        self.file.truncate(self.size)?;
        self.file.sync()
    }

    /// Notes what has just been synced. The note survives a killed process; a loss of power may undo it.
    fn note_reach(&mut self) -> Result<(), JournalError> {
        self.reached = self.reach();
        let note = LockNote::written(self.head.salt, self.reached, None).encode();
        let noted = self.disk.set_note(&mut self.lock, &note, false);
        noted.map_err(JournalError::io("write", beside(&self.path, ".lock")))
    }

    /// How far the file is synced.
    fn reach(&self) -> Reach {
        Reach { records: self.durable, size: self.size, ..self.reached }
    }

    /// Fails, permanently, unless the file and its lock are still at their paths.
    fn check_place(&mut self) -> Result<(), JournalError> {
        let (path, lock) = (&self.path, beside(&self.path, ".lock"));
        let in_place = self.disk.is_in_place(path, &self.file, self.size);
        let in_place = in_place.map_err(JournalError::io("find", path))?;
        let held = self.disk.holds(&lock, &self.lock).map_err(JournalError::io("find", &lock))?;
        if in_place && held {
            if is_linked(&self.disk, &self.file, path)? {
                // Its content is right: the next process may continue it once it has one name.
                self.failed = Some(JournalError::Linked { path: path.clone() });
                return Err(JournalError::Linked { path: path.clone() });
            }
            return Ok(());
        }
        if !in_place {
            // For the next process: this one has sent orders that are not in the file there. It goes on with this file once
            // that is back.
            let note = LockNote::Displaced { salt: self.head.salt, file: Some(self.reach()) }.encode();
            if let Err(error) = self.disk.set_note(&mut self.lock, &note, true) {
                tracing::error!(%error, "lock cannot say that its journal was displaced");
            }
        }
        let displaced = JournalError::Displaced { path: if in_place { lock } else { path.clone() } };
        self.failed = Some(displaced.clone());
        Err(displaced)
    }

    fn rewrite(&mut self) -> Result<(), JournalError> {
        let before = Some(self.reached);
        match write_anew(&self.disk, &self.path, &mut self.lock, self.head.salt, before, &self.fold) {
            Ok(fresh) => {
                (self.file, self.head) = (fresh.file, fresh.head);
                (self.next, self.durable) = (fresh.head.records, fresh.head.records);
                (self.size, self.reached) = (fresh.reached.size, fresh.reached);
                self.rewrite_at = REWRITE.max(2 * self.size);
                Ok(())
            }
            // The old file is unchanged and goes on growing; the disk may have room later.
            Err(RewriteError::NotBegun(_)) => {
                self.rewrite_at = self.size.saturating_mul(2);
                Ok(())
            }
            Err(failed) => Err(failed.into_error()),
        }
    }
}
