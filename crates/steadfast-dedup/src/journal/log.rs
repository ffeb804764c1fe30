use std::{
    collections::hash_map::RandomState,
    ffi::OsString,
    hash::{BuildHasher, Hasher},
    io,
    path::{Path, PathBuf},
};

use super::{
    disk::{Disk, DiskFile},
    entry::Entry,
    error::JournalError,
    fold::Fold,
    frame::{self, BadHead, Found, HEAD, Head, Salt},
    mark::{Judged, Mark, Reach},
};

/// The file is rewritten once it has this size, and at least twice the size after the last rewrite.
const REWRITE: u64 = 1024 * 1024;

/// An append-only log of entries in one file, whose end after a crash can always be understood.
///
/// It works on the calling thread; [`FileJournal`](crate::journal::FileJournal) calls it on a thread of its own.
///
/// 1. An entry that was reported durable is there after a crash, or opening fails; it is never left out.
/// 2. Any other entry may be missing. A send after a missing one is compared with no earlier list.
/// 3. The first failed write or sync ends the log: it is then unknown what is durable, and a retry would not tell.
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
        let mark = Mark::decode(&note);
        let found = read(&disk, &path, mark)?;
        if found.as_ref().is_some_and(|found| found.linked) {
            return Err(JournalError::Linked { path });
        }
        if found.is_some() && mark.is_between() {
            // The file found must survive a loss of power before the note names it alone.
            let folder = folder_of(&path);
            disk.sync_directory(folder).map_err(JournalError::io("sync", folder))?;
        }
        let (salt, before, fold) = match found {
            Some(found) => (found.salt, found.reached, found.fold),
            None => (draw_salt(), None, Fold::default()),
        };
        let fresh =
            write_anew(&disk, &path, &mut lock, salt, before, &fold).map_err(Rewriting::into_error)?;
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
        Ok(read(disk, path, Mark::None)?.map(|found| found.fold.entries().cloned().collect()))
    }

    /// Fails as [`open`](Self::open) would, by its lock's note, `note`; nothing is locked or written.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), except that another process may have it open.
    pub fn check(disk: &D, path: &Path, note: &[u8]) -> Result<(), JournalError> {
        match read(disk, path, Mark::decode(note))? {
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

    /// Appends entries that may be lost.
    ///
    /// # Errors
    ///
    /// [`JournalError`] if they cannot be written; from then on nothing can.
    pub fn append<'a>(&mut self, entries: impl IntoIterator<Item = &'a Entry>) -> Result<(), JournalError> {
        self.write(entries, false)
    }

    /// Appends entries and makes them durable, with all that were appended before.
    ///
    /// # Errors
    ///
    /// [`JournalError`] if that cannot be done; from then on nothing can.
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
        self.buffer.clear();
        let (seed, durable) = (self.head.seed(), self.durable);
        for entry in entries {
            put(&mut self.buffer, seed, self.next, durable, entry, durably);
            self.next += 1;
            self.fold.add(entry.clone());
        }
        write_all(&mut self.file, &self.buffer).map_err(JournalError::io("write", &self.path))?;
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

    /// Notes what has just been synced. The note survives a killed process; a loss of power may undo it.
    fn note_reach(&mut self) -> Result<(), JournalError> {
        self.reached = Reach { records: self.durable, size: self.size, ..self.reached };
        let note = Mark::written(self.head.salt, self.reached, None).encode();
        let noted = self.disk.set_note(&mut self.lock, &note, false);
        noted.map_err(JournalError::io("write", beside(&self.path, ".lock")))
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
            // For the next process: this one has sent orders that are not in the file there.
            let note = Mark::Displaced(self.head.salt).encode();
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
            Err(Rewriting::NotBegun(_)) => {
                self.rewrite_at = self.size.saturating_mul(2);
                Ok(())
            }
            Err(failed) => Err(failed.into_error()),
        }
    }
}

/// The result of reading a log.
struct Recovered {
    salt: Salt,
    /// The lock's note about this file.
    reached: Option<Reach>,
    /// It has a second name.
    linked: bool,
    fold: Fold,
}

fn read<D: Disk>(disk: &D, path: &Path, mark: Mark) -> Result<Option<Recovered>, JournalError> {
    let lost = || JournalError::Lost { path: path.to_owned(), lock: beside(path, ".lock") };
    let Some(mut file) = disk.open(path).map_err(JournalError::io("open", path))? else {
        return if mark.judge(None) == Judged::Lost { Err(lost()) } else { Ok(None) };
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
    let reached = match mark.judge(Some(head)) {
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
    Ok(Some(Recovered { salt: head.salt, reached, linked, fold }))
}

/// True if it has a second name: a process that opens it under that name would take another lock.
fn is_linked<D: Disk>(disk: &D, file: &D::File, path: &Path) -> Result<bool, JournalError> {
    disk.is_linked(file).map_err(JournalError::io("look at", path))
}

/// A file that has just taken its place.
struct Fresh<F> {
    file: F,
    head: Head,
    reached: Reach,
}

/// How writing a successor can fail.
enum Rewriting {
    /// The old file is in its place, and no sync has failed.
    NotBegun(JournalError),
    /// It is unknown which file is the durable one, or what a failed sync has lost.
    Unsure(JournalError),
}

impl Rewriting {
    fn into_error(self) -> JournalError {
        match self {
            Self::NotBegun(error) | Self::Unsure(error) => error,
        }
    }
}

/// Writes a new file and puts it in place. `before`: the lock's note about the file that it replaces.
fn write_anew<D: Disk>(
    disk: &D,
    path: &Path,
    lock: &mut D::Lock,
    salt: Salt,
    before: Option<Reach>,
    fold: &Fold,
) -> Result<Fresh<D::File>, Rewriting> {
    let (new, beside_it) = (beside(path, ".new"), beside(path, ".lock"));
    let (begun, mut records) = (Head { salt, nonce: draw(), records: 0 }, 0);
    let mut bytes = begun.encode().to_vec();
    for entry in fold.entries() {
        put(&mut bytes, begun.seed(), records, 0, entry, false);
        records += 1;
    }
    let head = Head { records, ..begun };
    bytes[..HEAD].copy_from_slice(&head.encode());
    let create = |error| Rewriting::NotBegun(JournalError::io("create", &new)(error));
    let mut file = disk.create(&new).map_err(create)?;
    write_all(&mut file, &bytes).map_err(|e| Rewriting::NotBegun(JournalError::io("write", &new)(e)))?;
    file.sync().map_err(|e| Rewriting::Unsure(JournalError::io("sync", &new)(e)))?;
    let reached = Reach { nonce: head.nonce, records: head.records, size: bytes.len() as u64 };
    if let Some(before) = before {
        // Before the names change: a crash may leave either of the two.
        let note = Mark::written(salt, before, Some(reached)).encode();
        let noted = disk.set_note(lock, &note, true);
        noted.map_err(|e| Rewriting::NotBegun(JournalError::io("write", &beside_it)(e)))?;
    }
    // From here on, whichever of the two files a crash leaves under the name holds everything so far.
    disk.rename(&new, path).map_err(|e| Rewriting::Unsure(JournalError::io("rename", &new)(e)))?;
    // Before anything is appended, so that no crash can bring back the file that would lack it.
    let folder = folder_of(path);
    disk.sync_directory(folder).map_err(|e| Rewriting::Unsure(JournalError::io("sync", folder)(e)))?;
    // Only now is this file, and no other, certain to be there.
    let noted = disk.set_note(lock, &Mark::written(salt, reached, None).encode(), true);
    noted.map_err(|e| Rewriting::Unsure(JournalError::io("write", &beside_it)(e)))?;
    Ok(Fresh { file, head, reached })
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

// Durable records are written twice, so that no single flipped bit at the end of the file can pass for a torn write.
fn put(out: &mut Vec<u8>, seed: u32, number: u64, durable: u64, entry: &Entry, twice: bool) {
    let payload = entry.encode();
    for _ in 0..if twice { 2 } else { 1 } {
        frame::write(out, seed, number, durable, &payload);
    }
}

fn write_all(file: &mut impl DiskFile, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.append(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Returns a number that no other file has. The standard library seeds its hashers from the operating system.
fn draw() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn draw_salt() -> Salt {
    let mut salt = Salt::default();
    salt[..8].copy_from_slice(&draw().to_le_bytes());
    salt[8..].copy_from_slice(&draw().to_le_bytes());
    salt
}
