mod keep;
mod record;

use std::{
    ffi::OsStr,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    time::{Duration, UNIX_EPOCH},
};

use parking_lot::Mutex;
use steadfast_spec::WallClock;

pub(crate) use self::record::{Entry, Record};
use crate::{InvalidLimiter, keys::Seed};

/// The file that carries a limiter's windows from one process to the next.
///
/// It is never synchronised to the disk: what a process has written survives its own end, and a machine that lost
/// its power is back only after the windows have gone by. If a file is torn all the same, its checksum says so.
pub(crate) struct Journal {
    path: PathBuf,
    seed: Seed,
    clock: WallClock,
    /// Held for as long as the journal is.
    _lock: File,
    /// One writer at a time.
    writing: Mutex<()>,
    /// Something has changed since the last record.
    dirty: AtomicBool,
    /// A task is there to write it.
    kept: AtomicBool,
}

/// What the file held when the journal was opened.
pub(crate) enum Found {
    /// There is none.
    Nothing,
    /// One that cannot be understood.
    Damaged,
    /// What an earlier limiter wrote.
    Record(Record),
}

impl Journal {
    /// More than a limiter with its most keys writes; whatever is longer is no journal.
    const LONGEST: u64 = 64 * 1024 * 1024;

    /// By how much the wall clock may have been set forward between two processes without anybody's noticing.
    const CLOCK_ERROR: Duration = Duration::from_secs(1);

    pub(crate) fn open(path: &Path, clock: WallClock) -> Result<(Self, Found), InvalidLimiter> {
        let failed = |error: io::Error| InvalidLimiter::Journal { path: path.to_owned(), kind: error.kind() };
        let lock = private(OpenOptions::new().write(true).create(true).truncate(false))
            .open(beside(path, "lock"))
            .map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(InvalidLimiter::JournalInUse(path.to_owned())),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let found = read(path).map_err(failed)?;
        let seed = if let Found::Record(record) = &found { record.seed } else { Seed::random() };
        let (dirty, kept) = (AtomicBool::new(false), AtomicBool::new(false));
        let path = path.to_owned();
        Ok((Self { path, seed, clock, _lock: lock, writing: Mutex::new(()), dirty, kept }, found))
    }

    /// What keys are hashed with, in this process and the next.
    pub(crate) fn seed(&self) -> Seed {
        self.seed
    }

    /// How long ago `record` was written, at least. A clock that went back says nothing, so no time has passed.
    pub(crate) fn ago(&self, record: &Record) -> Duration {
        Duration::from_nanos(self.now().saturating_sub(record.written)).saturating_sub(Self::CLOCK_ERROR)
    }

    pub(crate) fn record(&self, keys: Vec<Entry>, closed: bool) -> Record {
        Record { seed: self.seed, written: self.now(), closed, keys }
    }

    /// Replaces the file, so that whoever reads it sees this record or the one before, never half of one.
    pub(crate) fn write(&self, record: &Record) -> io::Result<()> {
        let text = record.encode();
        let _alone = self.writing.lock();
        let next = beside(&self.path, "new");
        match fs::remove_file(&next) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        private(OpenOptions::new().write(true).create_new(true)).open(&next)?.write_all(text.as_bytes())?;
        fs::rename(&next, &self.path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Nanoseconds since 1970.
    fn now(&self) -> u64 {
        let since = self.clock.now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }
}

fn read(path: &Path) -> io::Result<Found> {
    let file = match fs::metadata(path).map(|found| found.is_file()) {
        Ok(true) => File::open(path)?,
        // Opening a pipe would wait for ever, and writing would replace what is no file of ours.
        Ok(false) => return Err(io::ErrorKind::InvalidInput.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(error),
    };
    let mut text = Vec::new();
    file.take(Journal::LONGEST).read_to_end(&mut text)?;
    let record = String::from_utf8(text).ok().and_then(|text| Record::decode(&text));
    Ok(record.map_or(Found::Damaged, Found::Record))
}

/// The file of the same name with `ending` added.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or(OsStr::new("")).to_owned();
    name.push(".");
    name.push(ending);
    path.with_file_name(name)
}

/// For this user only.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}
