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
    mark::Mark,
};

/// The file is rewritten when it is this large, and at least twice what still mattered when it was rewritten last.
const REWRITE: u64 = 1024 * 1024;

/// An append-only log of entries in one file, whose end after a crash is always understood.
///
/// It does its work where it is called; [`FileJournal`](crate::journal::FileJournal) calls it on a thread of its own.
///
/// 1. An entry that was reported durable is there after a crash, or opening fails; it is never left out.
/// 2. Of other entries any may be missing. Those behind a missing one that could have come from it know less.
/// 3. The first failure to write or sync ends it: nobody knows then what is durable, and asking again would not tell.
/// 4. Opening writes what still matters to a new file, which takes the old one's place in one step. The same happens
///    when the file has grown to twice of that, so that it is never larger than that and a mebibyte.
/// 5. Nothing is reported durable, and no successor is written, unless the file and its lock still stand under their
///    names. Opening fails if what stands there is not what was written last.
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
    rewrite_at: u64,
    fold: Fold,
    failed: Option<JournalError>,
    buffer: Vec<u8>,
}

impl<D: Disk> Log<D> {
    /// Opens the log at `path`, or begins one there if there is no file.
    ///
    /// Beside it stand a lock, named as the log with `.lock` behind it, and for a moment its successor, with `.new`.
    ///
    /// # Errors
    ///
    /// [`JournalError`] if somebody else has it open, the file is not one or is damaged, or the disk fails; the file is
    /// then left as it is.
    pub fn open(disk: D, path: impl Into<PathBuf>) -> Result<Self, JournalError> {
        let path = path.into();
        let beside_it = beside(&path, ".lock");
        let mut lock = disk.lock(&beside_it).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => JournalError::InUse { path: path.clone() },
            _ => JournalError::io("lock", &path)(error),
        })?;
        let note = disk.note(&mut lock).map_err(JournalError::io("read", &beside_it))?;
        let (mark, found) = (Mark::decode(&note), read(&disk, &path)?);
        if mark.disowns(found.as_ref().map(|(head, _)| head.salt))
            && !steadfast_spec::Planted::LostJournalBegunAnew.is_on()
        {
            return Err(JournalError::Lost { path, lock: beside_it });
        }
        let (salt, fold) = match found {
            Some((head, fold)) => (head.salt, fold),
            None => (draw_salt(), Fold::default()),
        };
        let fresh = write_anew(&disk, &path, salt, &fold).map_err(Rewriting::into_error)?;
        // Only now is there one for certain.
        if mark != Mark::Written(salt) {
            let note = Mark::Written(salt).encode();
            disk.set_note(&mut lock, &note).map_err(JournalError::io("write", &beside_it))?;
        }
        Ok(Self {
            disk,
            path,
            lock,
            file: fresh.file,
            head: fresh.head,
            next: fresh.head.records,
            durable: fresh.head.records,
            size: fresh.size,
            rewrite_at: REWRITE.max(2 * fresh.size),
            fold,
            failed: None,
            buffer: Vec::new(),
        })
    }

    /// Reads a log without opening it: nothing is locked and nothing is written.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), except for the lock. `None` if there is no file.
    pub fn read(disk: &D, path: &Path) -> Result<Option<Vec<Entry>>, JournalError> {
        Ok(read(disk, path)?.map(|(_, fold)| fold.entries().cloned().collect()))
    }

    /// What still matters of everything that was written, in its order.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.fold.entries()
    }

    /// What sessions are hashed with, so that their names in the log say nothing elsewhere.
    #[must_use]
    pub fn salt(&self) -> [u8; 16] {
        self.head.salt
    }

    /// How large the file is, in bytes.
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
        // Poisoned until it has gone well, so that no way out of here leaves it believed in.
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
        if durably && steadfast_spec::Planted::JournalNotSynced.is_on() {
            self.durable = self.next;
        } else if durably {
            self.file.sync().map_err(JournalError::io("sync", &self.path))?;
            self.durable = self.next;
        }
        let full = self.size >= self.rewrite_at;
        // Behind the sync: whoever reads what stands there from here on finds what was written.
        if (durably || full) && !steadfast_spec::Planted::DisplacedJournalTrusted.is_on() {
            self.check_place()?;
        }
        if full {
            self.rewrite()?;
        }
        self.failed = None;
        Ok(())
    }

    /// Fails, and for good, unless the file and its lock are still what stands under their names.
    fn check_place(&mut self) -> Result<(), JournalError> {
        let (path, lock) = (&self.path, beside(&self.path, ".lock"));
        let in_place = self.disk.is_in_place(path, &self.file, self.size);
        let in_place = in_place.map_err(JournalError::io("find", path))?;
        let held = self.disk.holds(&lock, &self.lock).map_err(JournalError::io("find", &lock))?;
        if in_place && held {
            return Ok(());
        }
        if !in_place {
            // For the next process: this one has sent orders that are not in what stands there.
            let note = Mark::Displaced(self.head.salt).encode();
            if let Err(error) = self.disk.set_note(&mut self.lock, &note) {
                tracing::error!(%error, "lock cannot say that its journal was displaced");
            }
        }
        let displaced = JournalError::Displaced { path: if in_place { lock } else { path.clone() } };
        self.failed = Some(displaced.clone());
        Err(displaced)
    }

    fn rewrite(&mut self) -> Result<(), JournalError> {
        match write_anew(&self.disk, &self.path, self.head.salt, &self.fold) {
            Ok(fresh) => {
                (self.file, self.head) = (fresh.file, fresh.head);
                (self.next, self.durable) = (fresh.head.records, fresh.head.records);
                self.size = fresh.size;
                self.rewrite_at = REWRITE.max(2 * fresh.size);
                Ok(())
            }
            // The old file is untouched and goes on growing; the disk may have room later.
            Err(Rewriting::NotBegun(_)) => {
                self.rewrite_at = self.size.saturating_mul(2);
                Ok(())
            }
            Err(failed) => Err(failed.into_error()),
        }
    }
}

fn read<D: Disk>(disk: &D, path: &Path) -> Result<Option<(Head, Fold)>, JournalError> {
    let Some(mut file) = disk.open(path).map_err(JournalError::io("open", path))? else { return Ok(None) };
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
    Ok(Some((head, fold)))
}

/// A file that has just taken its place.
struct Fresh<F> {
    file: F,
    head: Head,
    size: u64,
}

/// How writing a successor can fail.
enum Rewriting {
    /// With the old file in its place, and nothing synced in vain.
    NotBegun(JournalError),
    /// With nobody knowing which file is the durable one, or what a sync has lost.
    Unsure(JournalError),
}

impl Rewriting {
    fn into_error(self) -> JournalError {
        match self {
            Self::NotBegun(error) | Self::Unsure(error) => error,
        }
    }
}

fn write_anew<D: Disk>(disk: &D, path: &Path, salt: Salt, fold: &Fold) -> Result<Fresh<D::File>, Rewriting> {
    let new = beside(path, ".new");
    let mut head = Head { salt, nonce: draw(), records: 0 };
    let mut bytes = head.encode().to_vec();
    for entry in fold.entries() {
        put(&mut bytes, head.seed(), head.records, 0, entry, false);
        head.records += 1;
    }
    bytes[..HEAD].copy_from_slice(&head.encode());
    let create = |error| Rewriting::NotBegun(JournalError::io("create", &new)(error));
    let mut file = disk.create(&new).map_err(create)?;
    write_all(&mut file, &bytes).map_err(|e| Rewriting::NotBegun(JournalError::io("write", &new)(e)))?;
    file.sync().map_err(|e| Rewriting::Unsure(JournalError::io("sync", &new)(e)))?;
    // After this, whichever of the two files a crash leaves under the name holds everything so far.
    disk.rename(&new, path).map_err(|e| Rewriting::Unsure(JournalError::io("rename", &new)(e)))?;
    // Before anything is appended, so that no crash can bring back the file that would lack it.
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    disk.sync_directory(directory).map_err(|e| Rewriting::Unsure(JournalError::io("sync", directory)(e)))?;
    Ok(Fresh { file, head, size: bytes.len() as u64 })
}

// What must be durable is written twice, so that no single flipped bit at the end of the file can pass for a torn write.
fn put(out: &mut Vec<u8>, seed: u32, number: u64, durable: u64, entry: &Entry, twice: bool) {
    let payload = entry.encode();
    let twice = twice && !steadfast_spec::Planted::JournalWrittenOnce.is_on();
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

/// A number that no other file has. The standard library seeds its hashers from the operating system.
fn draw() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn draw_salt() -> Salt {
    let mut salt = Salt::default();
    salt[..8].copy_from_slice(&draw().to_le_bytes());
    salt[8..].copy_from_slice(&draw().to_le_bytes());
    salt
}
