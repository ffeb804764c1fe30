mod opening;

use std::{io, path::PathBuf};

use super::{
    content::is_linked,
    disk::{Disk, DiskFile},
    entry::Entry,
    error::JournalError,
    fold::Fold,
    frame::{self, Head, MAX_PAYLOAD},
    lock_note::{LockNote, Reach},
    paths::beside,
    successor::{RewriteError, write_all, write_anew},
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
///    happens when the file has grown to twice that size, so it is never larger than that and a mebibyte. Where the disk is
///    full, [opening](Self::open_even_if_full) may put that off: the file found stays as it is, and all entries wait.
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
    /// False while the file is the one that was found, which is only read.
    is_begun: bool,
    head: Head,
    next: u64,
    durable: u64,
    size: u64,
    /// The lock's note about the file; none if it has none.
    reached: Option<Reach>,
    rewrite_at: u64,
    fold: Fold,
    /// Entries that found the disk full, in their order.
    waiting: Vec<Entry>,
    failed: Option<JournalError>,
    buffer: Vec<u8>,
}

impl<D: Disk> Log<D> {
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

    /// True while entries, or all later ones, wait for room on the disk. Appending anything, also nothing, tries again.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        (!self.is_begun || !self.waiting.is_empty()) && self.failed.is_none()
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
        if !self.is_begun {
            self.begin()?;
        }
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
            match self.rewrite() {
                // The old file is unchanged and goes on growing; the disk may have room later.
                Err(RewriteError::NotBegun(_)) => self.rewrite_at = self.size.saturating_mul(2),
                rewritten => rewritten.map_err(RewriteError::into_error)?,
            }
        } else if durably {
            self.note_reach()?;
        }
        self.failed = None;
        Ok(())
    }

    /// Replaces the file that was found by one that is appended to. Where the disk is full, that may be tried again: nothing
    /// was written to the file found, and nothing is reported durable before it is replaced.
    fn begin(&mut self) -> Result<(), JournalError> {
        // It may have been found long ago.
        self.check_place()?;
        let error = match self.rewrite() {
            Ok(()) => return Ok(()),
            Err(RewriteError::NotBegun(error)) if error.is_full() => error,
            Err(failed) => return Err(failed.into_error()),
        };
        if self.waiting.iter().map(|entry| entry.encode().len()).sum::<usize>() <= LONGEST_WAIT {
            self.failed = None;
        }
        Err(error)
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
        let reach = self.reach();
        self.reached = Some(reach);
        let note = LockNote::written(self.head.salt, reach, None).encode();
        let noted = self.disk.set_note(&mut self.lock, &note, false);
        noted.map_err(JournalError::io("write", beside(&self.path, ".lock")))
    }

    /// How far the file is synced.
    fn reach(&self) -> Reach {
        Reach { nonce: self.head.nonce, records: self.durable, size: self.size }
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
        // The note about a file that is only read still holds.
        if !in_place && self.is_begun {
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

    fn rewrite(&mut self) -> Result<(), RewriteError> {
        let fresh =
            write_anew(&self.disk, &self.path, &mut self.lock, self.head.salt, self.reached, &self.fold)?;
        (self.file, self.is_begun, self.head) = (fresh.file, true, fresh.head);
        (self.next, self.durable) = (fresh.head.records, fresh.head.records);
        (self.size, self.reached) = (fresh.reached.size, Some(fresh.reached));
        self.rewrite_at = REWRITE.max(2 * self.size);
        Ok(())
    }
}
