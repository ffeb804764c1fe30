use std::{
    fmt, io,
    path::{self, Path, PathBuf},
    sync::{
        Arc,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use parking_lot::Mutex;

use super::{
    Journal,
    disk::{Disk, FileSystem},
    durable::{Durable, Report},
    entry::Entry,
    error::JournalError,
    log::Log,
};

/// A journal in one file of this machine.
///
/// A thread of its own writes it, so a disk never blocks the runtime. Sends that begin during a sync share the next
/// one.
///
/// Tests that pause tokio's time must not use it: paused time runs ahead while the thread writes, and every send
/// would time out. Use a [`Log`] behind a [`Journal`] of the test's own, which writes on the calling thread.
///
/// # Drop
///
/// Dropping it waits until everything that was added is written.
///
/// # Example
///
/// ```
/// use steadfast_dedup::{OrderTracker, Settings, journal::FileJournal};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("orders.journal");
/// let tracker = OrderTracker::journaled(Settings::default(), FileJournal::open(&path)?);
/// assert!(tracker.recovered()?.is_empty(), "nothing was left in doubt");
/// assert!(FileJournal::open(&path).is_err(), "it is in use");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct FileJournal {
    queue: Option<Sender<Job>>,
    writer: Option<JoinHandle<()>>,
    entries: Mutex<Vec<Entry>>,
    salt: [u8; 16],
    path: PathBuf,
    /// Why the last write failed, if it did.
    failure: Arc<Mutex<Option<JournalError>>>,
}

/// How often a full disk is asked for room.
const ROOM: Duration = Duration::from_secs(1);

/// How often a check is repeated because the lock was written meanwhile.
const CHECKS: usize = 8;

enum Job {
    Append(Entry),
    /// With an entry of its own, or as a barrier behind all others.
    Sync(Option<Entry>, Report),
}

impl FileJournal {
    /// Opens the journal at `path`, or begins one there if there is no file.
    ///
    /// A lock file with the journal's name and `.lock` stays beside it. Both must remain where they are: to begin a
    /// new journal, move both away.
    ///
    /// # Errors
    ///
    /// [`JournalError`] if another process has it open, it is not this user's own file or has a second name, it is
    /// damaged, cut, older than the one that was written last or a different one, or the disk fails.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, JournalError> {
        Self::on(FileSystem, &absolute(path.as_ref())?)
    }

    /// As [`open`](Self::open), also where the disk is full and the journal is there already: for a program whose cancels
    /// must get out. No order can be written down then, as [`failure`](Journal::failure) says; once a second the disk is
    /// asked for room.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open): there has to be room for a journal that is not there yet.
    pub fn open_even_if_full(path: impl AsRef<Path>) -> Result<Self, JournalError> {
        let path = absolute(path.as_ref())?;
        let (log, full) = Log::open_even_if_full(FileSystem, &path)?;
        Self::written_by(log, full, path)
    }

    /// Opens the journal at `path` on the caller's own disk.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn on<D>(disk: D, path: &Path) -> Result<Self, JournalError>
    where
        D: Disk + 'static,
        D::Lock: 'static,
        D::File: 'static,
    {
        Self::written_by(Log::open(disk, path)?, None, path.to_owned())
    }

    /// Starts the writer of a log. `full`: why no order can be written down yet.
    fn written_by<D>(log: Log<D>, full: Option<JournalError>, path: PathBuf) -> Result<Self, JournalError>
    where
        D: Disk + 'static,
        D::Lock: 'static,
        D::File: 'static,
    {
        let (salt, entries) = (log.salt(), log.entries().cloned().collect());
        let (queue, jobs) = mpsc::channel();
        let failure = Arc::<Mutex<Option<JournalError>>>::default();
        full.into_iter().for_each(|full| tell(&Err(full), &failure));
        let told = Arc::clone(&failure);
        let spawned =
            thread::Builder::new().name("steadfast-journal".into()).spawn(move || run(log, &jobs, &told));
        let writer = spawned.map_err(JournalError::io("start the writer of", &path))?;
        Ok(Self {
            queue: Some(queue),
            writer: Some(writer),
            entries: Mutex::new(entries),
            salt,
            path,
            failure,
        })
    }

    /// Returns the entries of the journal at `path` without opening it: another process may go on writing it.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open). `None` if there is no file.
    pub fn read(path: impl AsRef<Path>) -> Result<Option<Vec<Entry>>, JournalError> {
        Log::read(&FileSystem, path.as_ref())
    }

    /// Fails where [`open`](Self::open) would, without opening it: another process may go on writing it.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), except for one that is in use: the process that has it open has checked it.
    pub fn check(path: impl AsRef<Path>) -> Result<(), JournalError> {
        let (disk, path) = (FileSystem, path.as_ref());
        let mut lock = path.as_os_str().to_owned();
        lock.push(".lock");
        let note = || match std::fs::read(&lock) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            note => note.map_err(JournalError::io("read", &lock)),
        };
        let mut noted = note()?;
        let mut checked = Log::check(&disk, path, &noted);
        // The process that has it open may have replaced the file between the two reads.
        for _ in 0..CHECKS {
            let now = note()?;
            if checked.is_ok() || now == noted {
                break;
            }
            noted = now;
            checked = Log::check(&disk, path, &noted);
        }
        checked
    }

    fn give(&self, job: Job) {
        // A writer that has died drops the reports of its jobs, which ends the waits for them.
        if let Some(queue) = &self.queue {
            drop(queue.send(job));
        }
    }
}

impl Journal for FileJournal {
    fn recover(&self) -> Vec<Entry> {
        std::mem::take(&mut self.entries.lock())
    }

    fn append(&self, entry: Entry) {
        self.give(Job::Append(entry));
    }

    fn append_durably(&self, entry: Entry) -> Durable {
        // Refused by itself: the writer has others beside it.
        if let Err(length) = entry.check_length() {
            return Durable::known(Err(JournalError::TooLong { path: self.path.clone(), length }));
        }
        let (report, durable) = Durable::pending();
        self.give(Job::Sync(Some(entry), report));
        durable
    }

    fn flush(&self) -> Durable {
        let (report, durable) = Durable::pending();
        self.give(Job::Sync(None, report));
        durable
    }

    fn failure(&self) -> Option<JournalError> {
        let is_dead = self.writer.as_ref().is_none_or(JoinHandle::is_finished);
        self.failure.lock().clone().or(is_dead.then_some(JournalError::Poisoned))
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn salt(&self) -> [u8; 16] {
        self.salt
    }
}

impl Drop for FileJournal {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has reported that.
            drop(writer.join());
        }
    }
}

impl fmt::Debug for FileJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileJournal").finish_non_exhaustive()
    }
}

/// The working folder may be moved with the journal in it: a relative path would go on leading to it.
fn absolute(path: &Path) -> Result<PathBuf, JournalError> {
    path::absolute(path).map_err(JournalError::io("find", path))
}

// Everything that waits is written at once and synced once.
fn run<D: Disk>(mut log: Log<D>, jobs: &Receiver<Job>, failure: &Mutex<Option<JournalError>>) {
    let (mut entries, mut reports) = (Vec::new(), Vec::new());
    loop {
        let patience = if log.is_waiting() { ROOM } else { Duration::MAX };
        let (first, is_last) = match jobs.recv_timeout(patience) {
            Ok(first) => (Some(first), false),
            Err(RecvTimeoutError::Timeout) => (None, false),
            Err(RecvTimeoutError::Disconnected) => (None, true),
        };
        if is_last && !log.is_waiting() {
            return;
        }
        for job in first.into_iter().chain(jobs.try_iter()) {
            match job {
                Job::Append(entry) => entries.push(entry),
                Job::Sync(entry, report) => {
                    entries.extend(entry);
                    reports.push(report);
                }
            }
        }
        let written = if reports.is_empty() { log.append(&entries) } else { log.append_durably(&entries) };
        tell(&written, failure);
        entries.clear();
        for report in reports.drain(..) {
            report.tell(written.clone());
        }
        if is_last {
            return;
        }
    }
}

/// Notes how a write ended, and logs what is new about it.
fn tell(written: &Result<(), JournalError>, failure: &Mutex<Option<JournalError>>) {
    let mut known = failure.lock();
    match (written, &*known) {
        (Ok(()), Some(_)) => {
            tracing::info!("journal has room again");
            *known = None;
        }
        // The first failure is the cause, so it stays; but a full disk gives way to a failure that room does not mend.
        (Err(error), was) if was.as_ref().is_none_or(|was| was.is_full() && !error.is_full()) => {
            tracing::error!(%error, source = ?std::error::Error::source(error), "journal failed");
            *known = Some(error.clone());
        }
        _ => {}
    }
}
