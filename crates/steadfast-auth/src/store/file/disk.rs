use std::{
    fs::{self, File, TryLockError},
    io::{self, Read, Seek, Write},
    path::Path,
    time::Duration,
};

use steadfast_call::file::{open_own, replace_own};

use super::StoreError;

/// The largest file that is read; a record is a few kilobytes.
const LARGEST: u64 = 1024 * 1024;
/// The pause between two places. The OTP zone admits three a second (§8).
const BETWEEN_PLACES_MS: i64 = 400;
/// No queue is this long. A place further ahead was taken before the clock was set back.
const FARTHEST_PLACE_MS: i64 = 10_000;

fn failed(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    move |error| StoreError::io(path.display(), error)
}

/// Makes the directory of `path` if it is missing. Refuses one in which others could put files.
pub(super) fn prepare_directory(path: &Path) -> Result<(), StoreError> {
    let directory = directory_of(path);
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(directory).map_err(failed(directory))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let mode = fs::metadata(directory).map_err(failed(directory))?.mode();
        // In a sticky directory users cannot replace each other's files.
        if mode & 0o022 != 0 && mode & 0o1000 == 0 {
            let place = directory.display().to_string();
            return Err(StoreError::OpenToOthers { place, mode: mode & 0o7777 });
        }
    }
    Ok(())
}

/// Opens a file of this user for reading; `None` if there is none.
pub(super) fn open(path: &Path) -> Result<Option<File>, StoreError> {
    match open_own(path, File::options().read(true)) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(path)(error)),
    }
}

/// Reads the whole file; `None` if there is none.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(file) = open(path)? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes).map_err(failed(path))?;
    Ok(Some(bytes))
}

/// Opens the lock file, and makes it if it is missing.
pub(super) fn open_lock(path: &Path) -> Result<File, StoreError> {
    open_own(path, File::options().write(true).create(true).truncate(false)).map_err(failed(path))
}

/// Takes the next place from the file at `path`, at `now` or later. Returns how long to wait, or `None` while another
/// process takes a place.
pub(super) fn take_place(path: &Path, now: i64) -> Result<Option<Duration>, StoreError> {
    let options = File::options().read(true).write(true).create(true).truncate(false).clone();
    let mut file = open_own(path, &options).map_err(failed(path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(failed(path)(error)),
    }
    let mut text = Vec::new();
    (&file).take(LARGEST).read_to_end(&mut text).map_err(failed(path))?;
    let last: Option<i64> = String::from_utf8_lossy(&text).trim().parse().ok();
    let next = last.map_or(now, |last| last.saturating_add(BETWEEN_PLACES_MS).max(now));
    let place = if next > now.saturating_add(FARTHEST_PLACE_MS) { now } else { next };
    // A torn file holds no number; then the next process does not wait.
    let written = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| write!(file, "{place}"));
    written.map_err(failed(path))?;
    Ok(Some(Duration::from_millis((place - now).unsigned_abs())))
}

/// Replaces the file at `path`, by way of the file `fresh` beside it.
pub(super) fn replace(path: &Path, fresh: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    // Checked before each write too: a link, or a file open to others, must not be replaced silently.
    drop(open(path)?);
    replace_own(path, fresh, bytes).map_err(failed(path))
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
