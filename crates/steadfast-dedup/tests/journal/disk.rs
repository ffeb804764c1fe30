//! A disk in memory that keeps every state a crash may leave.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use steadfast_dedup::journal::{Disk, DiskFile};

/// Clones refer to the same disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct SimDisk(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    files: Vec<Inode>,
    /// The current names.
    names: BTreeMap<PathBuf, usize>,
    /// The names at the last sync, and each later state; a crash leaves one of them.
    durable: BTreeMap<PathBuf, usize>,
    unsynced: Vec<BTreeMap<PathBuf, usize>>,
    locked: bool,
    /// The note in the lock.
    note: Vec<u8>,
    /// The last durable note and all later ones: a crash leaves one of them.
    notes: Vec<Vec<u8>>,
    /// The number of operations so far that change something.
    operations: u64,
    fault: Option<Fault>,
    /// The number of an operation that fails as well.
    second: Option<(u64, How)>,
    /// The most bytes that one write accepts.
    longest_write: Option<usize>,
    interrupts: bool,
    /// The disk has just accepted its last bytes.
    filled: bool,
    crashed: bool,
}

#[derive(Clone, Debug, Default)]
struct Inode {
    durable: Vec<u8>,
    /// The unsynced writes, in order.
    writes: Vec<Vec<u8>>,
}

/// A failure of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The number of the operation at which it occurs, counted from zero.
    pub(crate) at: u64,
    pub(crate) how: How,
    /// Whether it also affects all later ones.
    pub(crate) lasts: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// The process ends just before the operation; everything fails from then on.
    Crash,
    /// A write is half done and then the disk is full; nothing else can grow either.
    Full,
    /// The device fails.
    Broken,
}

/// The remains of an unsynced write after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Torn {
    Absent,
    Zero,
    Garbage,
}

impl SimDisk {
    pub(crate) fn with_fault(fault: Fault) -> Self {
        let disk = Self::default();
        disk.0.lock().fault = Some(fault);
        disk
    }

    pub(crate) fn set_fault(&self, how: How, after: u64, lasts: bool) {
        let mut state = self.0.lock();
        state.fault = Some(Fault { at: state.operations + after, how, lasts });
    }

    /// Lets one more operation fail, so many after this one.
    pub(crate) fn set_second_fault(&self, how: How, after: u64) {
        let mut state = self.0.lock();
        state.second = Some((state.operations + after, how));
    }

    pub(crate) fn short_writes(self, longest: usize) -> Self {
        let mut state = self.0.lock();
        (state.longest_write, state.interrupts) = (Some(longest), true);
        drop(state);
        self
    }

    pub(crate) fn operations(&self) -> u64 {
        self.0.lock().operations
    }

    /// Returns the bytes that a running process would read.
    pub(crate) fn bytes(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.0.lock();
        state.names.get(path).map(|&file| state.files[file].now())
    }

    /// Returns a disk with one file.
    pub(crate) fn holding(path: &Path, bytes: Vec<u8>) -> Self {
        Self::with_note(path, bytes, Vec::new())
    }

    /// Returns a disk with one file and its lock.
    pub(crate) fn with_note(path: &Path, bytes: Vec<u8>, note: Vec<u8>) -> Self {
        let disk = Self::default();
        {
            let mut state = disk.0.lock();
            (state.note, state.notes) = (note.clone(), vec![note]);
            state.files.push(Inode { durable: bytes, writes: Vec::new() });
            state.names.insert(path.to_owned(), 0);
            state.durable = state.names.clone();
        }
        disk
    }

    /// Returns every note that a power loss now can leave in the lock.
    pub(crate) fn notes(&self) -> Vec<Vec<u8>> {
        let notes = self.0.lock().notes.clone();
        if notes.is_empty() { vec![Vec::new()] } else { notes }
    }

    /// Visits every state of the file at `path` that a power loss now can leave, counting whole writes.
    ///
    /// Each name is what it was at any moment since names were synced; each file keeps its durable part and any
    /// selection of the later writes, since a disk may write them in any order. `visit` gets the durable bytes and
    /// the writes that may be torn.
    pub(crate) fn images(&self, path: &Path, mut visit: impl FnMut(Option<&Image>)) {
        let state = self.0.lock();
        for names in std::iter::once(&state.durable).chain(&state.unsynced) {
            match names.get(path) {
                None => visit(None),
                Some(&file) => {
                    let Inode { durable, writes } = &state.files[file];
                    visit(Some(&Image { durable: durable.clone(), writes: writes.clone() }));
                }
            }
        }
    }
}

/// The durable part of a file, and its unsynced writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Image {
    pub(crate) durable: Vec<u8>,
    pub(crate) writes: Vec<Vec<u8>>,
}

impl Image {
    /// Returns the file with `write` torn after `cut` bytes, and `torn` in place of its rest. Of the other writes,
    /// those with a bit in `kept` are there.
    pub(crate) fn torn(&self, kept: u32, write: usize, cut: usize, torn: Torn, garbage: u8) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        for (index, data) in self.writes.iter().enumerate() {
            let from = bytes.len();
            if index == write {
                bytes.extend_from_slice(&data[..cut]);
                match torn {
                    // A missing write ends the file, unless a later one is there.
                    Torn::Absent if kept >> (index + 1) == 0 => return bytes,
                    Torn::Absent | Torn::Zero => bytes.resize(from + data.len(), 0),
                    Torn::Garbage => {
                        let mix = |at: usize| {
                            garbage.wrapping_mul(167).wrapping_add(at as u8).wrapping_mul(29) ^ 0x5a
                        };
                        bytes.extend((cut..data.len()).map(mix));
                    }
                }
            } else if kept >> index & 1 == 1 {
                bytes.extend_from_slice(data);
            } else {
                if kept >> index == 0 && index > write {
                    return bytes;
                }
                bytes.resize(from + data.len(), 0);
            }
        }
        bytes
    }
}

impl Inode {
    /// Cuts what is not synced yet; a log never cuts more.
    fn truncate(&mut self, size: usize) {
        let mut rest = size.checked_sub(self.durable.len()).unwrap();
        for write in &mut self.writes {
            write.truncate(rest);
            rest -= write.len();
        }
        self.writes.retain(|write| !write.is_empty());
    }

    fn now(&self) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        self.writes.iter().for_each(|write| bytes.extend_from_slice(write));
        bytes
    }
}

impl State {
    /// Counts an operation, and fails it if it is due to fail.
    fn operate(&mut self) -> io::Result<()> {
        let number = self.operations;
        self.operations += 1;
        if self.crashed {
            return Err(io::ErrorKind::Other.into());
        }
        let first = self.fault.filter(|it| number == it.at || it.lasts && number > it.at).map(|it| it.how);
        let second = self.second.filter(|(at, _)| *at == number).map(|(_, how)| how);
        match first.or(second) {
            Some(how) => Err(match how {
                How::Crash => {
                    self.crashed = true;
                    io::ErrorKind::Other.into()
                }
                How::Full => io::ErrorKind::StorageFull.into(),
                How::Broken => io::Error::other("the device fails"),
            }),
            None => Ok(()),
        }
    }
}

impl Disk for SimDisk {
    type File = SimFile;
    type Lock = SimLock;

    fn lock(&self, _: &Path) -> io::Result<SimLock> {
        let mut state = self.0.lock();
        if state.locked {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        state.locked = true;
        Ok(SimLock(self.clone()))
    }

    fn holds(&self, _: &Path, _: &SimLock) -> io::Result<bool> {
        Ok(self.0.lock().locked)
    }

    fn note(&self, _: &mut SimLock) -> io::Result<Vec<u8>> {
        Ok(self.0.lock().note.clone())
    }

    fn set_note(&self, _: &mut SimLock, note: &[u8], durably: bool) -> io::Result<()> {
        let mut state = self.0.lock();
        state.operate()?;
        state.note = note.to_vec();
        if durably {
            state.notes.clear();
        }
        state.notes.push(note.to_vec());
        Ok(())
    }

    fn is_linked(&self, _: &SimFile) -> io::Result<bool> {
        Ok(false)
    }

    fn is_in_place(&self, path: &Path, file: &SimFile, size: u64) -> io::Result<bool> {
        let state = self.0.lock();
        let now = state.files[file.file].now();
        Ok(state.names.get(path) == Some(&file.file) && now.len() as u64 == size)
    }

    fn open(&self, path: &Path) -> io::Result<Option<SimFile>> {
        let state = self.0.lock();
        Ok(state.names.get(path).map(|&file| SimFile { disk: self.clone(), file }))
    }

    fn create(&self, path: &Path) -> io::Result<SimFile> {
        let mut state = self.0.lock();
        state.operate()?;
        state.files.push(Inode::default());
        let file = state.files.len() - 1;
        state.rename(|names| {
            names.insert(path.to_owned(), file);
        });
        Ok(SimFile { disk: self.clone(), file })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        state.operate()?;
        state.rename(|names| {
            if let Some(file) = names.remove(from) {
                names.insert(to.to_owned(), file);
            }
        });
        Ok(())
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        state.operate()?;
        let here = if path == Path::new(".") { Path::new("") } else { path };
        if path.as_os_str().is_empty() || !state.names.keys().any(|name| name.parent() == Some(here)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.durable = state.names.clone();
        state.unsynced.clear();
        Ok(())
    }
}

impl State {
    fn rename(&mut self, change: impl FnOnce(&mut BTreeMap<PathBuf, usize>)) {
        change(&mut self.names);
        self.unsynced.push(self.names.clone());
    }
}

/// A file of a [`SimDisk`].
#[derive(Debug)]
pub(crate) struct SimFile {
    disk: SimDisk,
    file: usize,
}

impl DiskFile for SimFile {
    fn read_all(&mut self) -> io::Result<Vec<u8>> {
        Ok(self.disk.0.lock().files[self.file].now())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.disk.0.lock();
        if std::mem::take(&mut state.interrupts) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        state.interrupts = state.longest_write.is_some();
        let mut taken = bytes.len().min(state.longest_write.unwrap_or(usize::MAX));
        if let Err(error) = state.operate() {
            if error.kind() != io::ErrorKind::StorageFull || state.filled {
                return Err(error);
            }
            // Half of it still finds room; later writes find none.
            state.filled = true;
            taken /= 2;
            let at = state.operations;
            state.fault = state.fault.map(|fault| Fault { at, ..fault });
        }
        state.files[self.file].writes.push(bytes[..taken].to_vec());
        Ok(taken)
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.disk.0.lock();
        state.operate()?;
        let inode = &mut state.files[self.file];
        let writes = std::mem::take(&mut inode.writes);
        writes.iter().for_each(|write| inode.durable.extend_from_slice(write));
        Ok(())
    }

    fn truncate(&mut self, size: u64) -> io::Result<()> {
        let mut state = self.disk.0.lock();
        state.operate()?;
        state.files[self.file].truncate(usize::try_from(size).unwrap());
        Ok(())
    }
}

/// The lock of a [`SimDisk`].
#[derive(Debug)]
pub(crate) struct SimLock(SimDisk);

impl Drop for SimLock {
    fn drop(&mut self) {
        self.0.0.lock().locked = false;
    }
}
