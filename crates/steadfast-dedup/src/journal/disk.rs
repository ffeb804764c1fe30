use std::{
    fmt,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Write},
    path::Path,
};

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
/// Files are created for their owner alone. A symbolic link, anything that is not a plain file, and a file that its
/// group or others may read, are refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileSystem;

impl Disk for FileSystem {
    type File = File;
    type Lock = File;

    fn lock(&self, path: &Path) -> io::Result<File> {
        refuse_unsafe(path)?;
        let file = private(OpenOptions::new().create(true).truncate(false).write(true)).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn open(&self, path: &Path) -> io::Result<Option<File>> {
        if !refuse_unsafe(path)? {
            return Ok(None);
        }
        let file = File::open(path)?;
        // What was looked at is what was opened.
        if !is_same(&fs::symlink_metadata(path)?, &file.metadata()?) {
            return Err(denied("file was replaced while it was opened"));
        }
        Ok(Some(file))
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        // Removed first, so that what is created is new: never a link, and with its own permissions.
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => private(OpenOptions::new().create_new(true).append(true)).open(path),
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

fn denied(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

/// False if there is nothing at `path`.
fn refuse_unsafe(path: &Path) -> io::Result<bool> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    if !found.is_file() {
        return Err(denied("not a plain file"));
    }
    if is_open_to_others(&found) {
        return Err(denied("its group or others have access to it"));
    }
    Ok(true)
}

#[cfg(unix)]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(0o600)
}

#[cfg(unix)]
fn is_open_to_others(file: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.permissions().mode() & 0o077 != 0
}

#[cfg(unix)]
fn is_same(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

#[cfg(not(unix))]
fn is_open_to_others(_: &fs::Metadata) -> bool {
    false
}

#[cfg(not(unix))]
fn is_same(_: &fs::Metadata, _: &fs::Metadata) -> bool {
    true
}
