use std::{
    fmt,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    path::Path,
};

use steadfast_call::file::open_own;

/// The file system as a [`Log`](crate::journal::Log) uses it.
///
/// The real one is [`FileSystem`]. Tests have one that loses unsynced data, tears writes and runs full.
pub trait Disk: Send + fmt::Debug {
    /// An open file.
    type File: DiskFile;
    /// Keeps all others out until it is dropped.
    type Lock: Send + fmt::Debug;

    /// Takes the lock at `path`.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if another process or handle holds it; otherwise the file system's
    /// error.
    fn lock(&self, path: &Path) -> io::Result<Self::Lock>;

    /// True while the lock that was taken at `path` is still the file there, so that no other can be taken.
    ///
    /// # Errors
    ///
    /// The file system's error.
    fn holds(&self, path: &Path, lock: &Self::Lock) -> io::Result<bool>;

    /// Returns the last note in a lock, by any earlier holder; empty in a new one.
    ///
    /// # Errors
    ///
    /// The file system's error.
    fn note(&self, lock: &mut Self::Lock) -> io::Result<Vec<u8>>;

    /// Replaces the note in a lock: `durably`, or so that only a loss of power can undo it.
    ///
    /// # Errors
    ///
    /// The file system's error.
    fn set_note(&self, lock: &mut Self::Lock, note: &[u8], durably: bool) -> io::Result<()>;

    /// True while the open file of `size` bytes is still the one at `path`, so that the next process reads it.
    ///
    /// # Errors
    ///
    /// The file system's error.
    fn is_in_place(&self, path: &Path, file: &Self::File, size: u64) -> io::Result<bool>;

    /// True if the open file has a second name, under which another lock could be taken.
    ///
    /// # Errors
    ///
    /// The file system's error.
    fn is_linked(&self, file: &Self::File) -> io::Result<bool>;

    /// Opens a file for reading; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`PermissionDenied`](io::ErrorKind::PermissionDenied) if it is no plain file or others may read it; otherwise
    /// the file system's error.
    fn open(&self, path: &Path) -> io::Result<Option<Self::File>>;

    /// Creates an empty file for appending, which only its owner can read. Replaces any file that is there.
    ///
    /// # Errors
    ///
    /// The file system's error.
    fn create(&self, path: &Path) -> io::Result<Self::File>;

    /// Replaces one file by another in one step.
    ///
    /// # Errors
    ///
    /// The file system's error.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Makes the names in a directory durable.
    ///
    /// # Errors
    ///
    /// The file system's error.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
}

/// A file of a [`Disk`].
pub trait DiskFile: Send + fmt::Debug {
    /// Returns all bytes of the file.
    ///
    /// # Errors
    ///
    /// The file system's error.
    fn read_all(&mut self) -> io::Result<Vec<u8>>;

    /// Appends some of the bytes, and returns how many.
    ///
    /// # Errors
    ///
    /// The file system's error.
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Makes everything appended durable.
    ///
    /// # Errors
    ///
    /// The file system's error. After one, it is unknown what is durable.
    fn sync(&mut self) -> io::Result<()>;

    /// Cuts the file to its first `size` bytes; later bytes are appended there.
    ///
    /// # Errors
    ///
    /// The file system's error. Without a method of its own a disk cannot cut: a log that finds it full has failed for good.
    fn truncate(&mut self, size: u64) -> io::Result<()> {
        let _ = size;
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The file system of this machine.
///
/// Files are created for their owner alone; others are opened only if they are this user's own, as
/// [`open_own`](steadfast_call::file::open_own) says.
///
/// On Unix a file that was moved, removed or replaced is noticed by its device and inode. Elsewhere it is noticed
/// only if no file of its size is at its path: one that was replaced by another of the same size, or that has a
/// second name (a hard link), is not noticed.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileSystem;

impl Disk for FileSystem {
    type File = File;
    type Lock = File;

    fn lock(&self, path: &Path) -> io::Result<File> {
        let file = open_own(path, OpenOptions::new().create(true).truncate(false).read(true).write(true))?;
        match file.try_lock() {
            // Between open and lock it may have been removed, and another one made and taken.
            Ok(()) if self.holds(path, &file)? => Ok(file),
            Ok(()) => Err(io::Error::other("it was removed or replaced while it was taken")),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn holds(&self, path: &Path, lock: &File) -> io::Result<bool> {
        stands(path, &lock.metadata()?)
    }

    fn note(&self, lock: &mut File) -> io::Result<Vec<u8>> {
        let mut note = Vec::new();
        lock.rewind()?;
        lock.take(NOTE).read_to_end(&mut note)?;
        Ok(note)
    }

    fn set_note(&self, lock: &mut File, note: &[u8], durably: bool) -> io::Result<()> {
        lock.rewind()?;
        lock.write_all(note)?;
        if lock.metadata()?.len() != note.len() as u64 {
            lock.set_len(note.len() as u64)?;
        }
        if durably { lock.sync_data() } else { Ok(()) }
    }

    fn is_in_place(&self, path: &Path, file: &File, size: u64) -> io::Result<bool> {
        let opened = file.metadata()?;
        Ok(opened.len() == size && stands(path, &opened)?)
    }

    fn is_linked(&self, file: &File) -> io::Result<bool> {
        Ok(has_other_name(&file.metadata()?))
    }

    fn open(&self, path: &Path) -> io::Result<Option<File>> {
        match open_own(path, OpenOptions::new().read(true)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some),
        }
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        // Removed first, so that the created file is new: never a link, and with its own permissions.
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => open_own(path, OpenOptions::new().create_new(true).append(true)),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        // Elsewhere a directory cannot be opened, and its names are made durable with it.
        if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
    }
}

impl DiskFile for File {
    fn read_all(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        // This also syncs the length, because the bytes could not be read without it.
        self.sync_data()
    }

    fn truncate(&mut self, size: u64) -> io::Result<()> {
        self.set_len(size)
    }
}

/// Longer than any note.
const NOTE: u64 = 4_096;

/// True if the opened file is the one at `path` now.
fn stands(path: &Path, opened: &fs::Metadata) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(named) => Ok(is_same(&named, opened)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(unix)]
fn is_same(named: &fs::Metadata, opened: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    opened.nlink() > 0 && (named.dev(), named.ino()) == (opened.dev(), opened.ino())
}

#[cfg(not(unix))]
fn is_same(named: &fs::Metadata, opened: &fs::Metadata) -> bool {
    named.is_file() && named.len() == opened.len()
}

#[cfg(unix)]
fn has_other_name(opened: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    opened.nlink() > 1
}

#[cfg(not(unix))]
fn has_other_name(_: &fs::Metadata) -> bool {
    false
}
