use std::{
    ffi::OsStr,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use parking_lot::Mutex;
use steadfast_call::file::{NotOwn, open_own};

use crate::{
    core::event::NextStart,
    error::InvalidLimiter,
    persist::{
        journal_clocks::JournalClocks,
        pending::Pending,
        record::{Content, Record},
    },
    request::keys::Seed,
};

/// The file that carries a limiter's windows from one process to the next.
///
/// It is never synced to the disk. What a process has written survives the end of that process, and a machine that
/// lost its power is back only after the windows have passed. The checksum detects a torn file.
pub(crate) struct Journal {
    path: PathBuf,
    seed: Seed,
    clocks: JournalClocks,
    /// Held as long as the journal is open.
    _lock: File,
    /// Held by the one that writes.
    writing: Mutex<()>,
    pending: Pending,
}

/// The content of the file when the journal was opened.
pub(crate) enum Found {
    /// No file, and there never was one.
    Nothing,
    /// No file any more, or one marked as out of date.
    Stale,
    /// A file that cannot be understood.
    Damaged,
    /// The record of an earlier limiter.
    Record(Record),
}

impl Journal {
    /// More than a limiter with the default number of keys writes. A longer file is no journal.
    const LONGEST: u64 = 64 * 1024 * 1024;

    pub(crate) fn open(path: &Path, clocks: JournalClocks) -> Result<(Self, Found), InvalidLimiter> {
        let failed = |error: io::Error| match NotOwn::of(&error) {
            Some(why) => InvalidLimiter::JournalNotOwn { path: path.to_owned(), why },
            None => InvalidLimiter::Journal { path: path.to_owned(), kind: error.kind() },
        };
        let lock_path = beside(path, "lock");
        // The lock file outlives the journal and shows that there was one.
        let was_there = lock_path.exists();
        let options = OpenOptions::new().write(true).create(true).truncate(false).clone();
        let lock = open_own(&lock_path, &options).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(InvalidLimiter::JournalInUse(path.to_owned())),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let found = match read(path).map_err(failed)? {
            Found::Nothing if was_there => Found::Stale,
            found => found,
        };
        let seed = if let Found::Record(record) = &found { record.seed } else { Seed::random() };
        let (path, writing, pending) = (path.to_owned(), Mutex::new(()), Pending::default());
        Ok((Self { path, seed, clocks, _lock: lock, writing, pending }, found))
    }

    /// Returns the seed of the key hashes, in this process and the next.
    pub(crate) fn seed(&self) -> Seed {
        self.seed
    }

    /// Returns how long ago `record` was written, at least.
    pub(crate) fn ago(&self, record: &Record) -> Duration {
        self.clocks.since(record.written)
    }

    /// Replaces the file atomically: a reader sees this record or the previous one, never half of one.
    ///
    /// The content is taken when no other writer is at work, so the last record written is the latest.
    pub(crate) fn write(&self, closed: bool, content: impl FnOnce() -> Content) -> io::Result<()> {
        let _alone = self.writing.lock();
        let content = content();
        let text = Record { seed: self.seed, written: self.clocks.now(), closed, content }.encode();
        let next = beside(&self.path, "new");
        match fs::remove_file(&next) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let options = OpenOptions::new().write(true).create_new(true).clone();
        open_own(&next, &options)?.write_all(text.as_bytes())?;
        fs::rename(&next, &self.path)
    }

    /// Marks the file as out of date, because a later record could not be written. On a full disk a new file fails,
    /// but one byte can be overwritten in place. If that fails too, the file is removed.
    pub(crate) fn mark_stale(&self) -> NextStart {
        let _alone = self.writing.lock();
        let mark = || -> io::Result<()> {
            let mut file = open_own(&self.path, OpenOptions::new().write(true))?;
            file.seek(SeekFrom::Start(Record::FLAG_AT))?;
            file.write_all(&[Record::STALE])
        };
        let told = match mark().or_else(|_| fs::remove_file(&self.path)) {
            Ok(()) => true,
            // The lock file shows that there was a journal.
            Err(error) => error.kind() == io::ErrorKind::NotFound && beside(&self.path, "lock").exists(),
        };
        if told { NextStart::Pessimistic } else { NextStart::Unaware }
    }

    /// Writes the last record. Nothing is sent after it.
    pub(crate) fn close(&self, content: impl FnOnce() -> Content) {
        if let Err(error) = self.write(true, content) {
            let next = self.mark_stale();
            tracing::warn!(path = %self.path.display(), %error, ?next, "journal could not be closed");
        }
    }

    /// Returns what is left to write.
    pub(crate) fn pending(&self) -> &Pending {
        &self.pending
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn read(path: &Path) -> io::Result<Found> {
    let file = match open_own(path, OpenOptions::new().read(true)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(error),
    };
    let mut text = Vec::new();
    file.take(Journal::LONGEST).read_to_end(&mut text)?;
    if Record::is_stale(&text) {
        return Ok(Found::Stale);
    }
    let record = String::from_utf8(text).ok().and_then(|text| Record::decode(&text));
    Ok(record.map_or(Found::Damaged, Found::Record))
}

/// Returns the path of the file with `ending` added to its name.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or(OsStr::new("")).to_owned();
    name.push(".");
    name.push(ending);
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use steadfast_call::{BootClock, WallClock};
    use tempfile::TempDir;

    use super::*;

    /// Regression: it was taken before the lock, so of two writers the one with the older record could be last.
    #[test]
    fn the_content_is_taken_when_no_other_writer_is_at_work() {
        let folder = TempDir::new().unwrap();
        let clocks = JournalClocks::new(WallClock::system(), BootClock::system());
        let (journal, _) = Journal::open(&folder.path().join("limits"), clocks).unwrap();
        let content = || {
            assert!(journal.writing.is_locked());
            Content::default()
        };
        journal.write(false, content).unwrap();
        journal.close(content);
    }
}
