use std::{
    fmt,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    path::Path,
};

use steadfast_spec::file::open_own;

/// What a [`Log`](crate::journal::Log) asks of a file system.
///
/// The real one is [`FileSystem`]. A test brings one that loses what was not synced, tears writes and runs full.
pub trait Disk: Send + fmt::Debug {
    /// An open file.
    type File: DiskFile;
    /// Keeps everybody else out until it is dropped.
    type Lock: Send + fmt::Debug;

    /// Takes the lock that stands at `path`.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if somebody else holds it; what the file system says otherwise.
    fn lock(&self, path: &Path) -> io::Result<Self::Lock>;

    /// True while the lock that was taken at `path` is what stands there: nobody else can take another one.
    ///
    /// # Errors
    ///
    /// What the file system says.
    fn holds(&self, path: &Path, lock: &Self::Lock) -> io::Result<bool>;

    /// What was noted in a lock last, by whoever held it; nothing in a new one.
    ///
    /// # Errors
    ///
    /// What the file system says.
    fn note(&self, lock: &mut Self::Lock) -> io::Result<Vec<u8>>;

    /// Notes something in a lock, in place of what was noted: `durably`, or so that only a loss of power can take it.
    ///
    /// # Errors
    ///
    /// What the file system says.
    fn set_note(&self, lock: &mut Self::Lock, note: &[u8], durably: bool) -> io::Result<()>;

    /// True while the open file of `size` bytes is what stands at `path`: whoever opens it next reads what was written.
    ///
    /// # Errors
    ///
    /// What the file system says.
    fn is_in_place(&self, path: &Path, file: &Self::File, size: u64) -> io::Result<bool>;

    /// True if the open file has another name, under which somebody else could take another lock.
    ///
    /// # Errors
    ///
    /// What the file system says.
    fn is_linked(&self, file: &Self::File) -> io::Result<bool>;

    /// Opens a file for reading; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`PermissionDenied`](io::ErrorKind::PermissionDenied) if it is no plain file or others may read it; what the
    /// file system says otherwise.
    fn open(&self, path: &Path) -> io::Result<Option<Self::File>>;

    /// Creates an empty file for appending, in place of any that is there, readable by nobody else.
    ///
    /// # Errors
    ///
    /// What the file system says.
    fn create(&self, path: &Path) -> io::Result<Self::File>;

    /// Puts one file in the place of another, as one step.
    ///
    /// # Errors
    ///
    /// What the file system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Makes the names in a directory durable.
    ///
    /// # Errors
    ///
    /// What the file system says.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
}

/// A file of a [`Disk`].
pub trait DiskFile: Send + fmt::Debug {
    /// All bytes of the file.
    ///
    /// # Errors
    ///
    /// What the file system says.
    fn read_all(&mut self) -> io::Result<Vec<u8>>;

    /// Appends some of the bytes, and says how many.
    ///
    /// # Errors
    ///
    /// What the file system says.
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Makes everything appended durable.
    ///
    /// # Errors
    ///
    /// What the file system says; after one nobody knows what is durable.
    fn sync(&mut self) -> io::Result<()>;
}

/// The file system of this machine.
///
/// Files are created for their owner alone; others are opened only if they are this user's own, as
/// [`open_own`](steadfast_spec::file::open_own) says.
///
/// Whether a file was moved, removed or replaced is known on Unix by its device and inode. Elsewhere it is known only if
/// nothing of its size stands under its name; one that was replaced by another of the same size, or has another name (a
/// hard link), is not noticed.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileSystem;

impl Disk for FileSystem {
    type File = File;
    type Lock = File;

    fn lock(&self, path: &Path) -> io::Result<File> {
        let file = open_own(path, OpenOptions::new().create(true).truncate(false).read(true).write(true))?;
        match file.try_lock() {
            // Between its opening and this it may have been removed, and another one made and taken.
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
        // Removed first, so that what is created is new: never a link, and with its own permissions.
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
        // Its length is synced too, because the bytes could not be read without it.
        self.sync_data()
    }
}

/// More than any note is long.
const NOTE: u64 = 4_096;

/// True if what was opened is what stands at `path` now.
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
