mod leftovers;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

use self::leftovers::{PART, remove_leftovers};
use crate::{exit::Failed, journal::beside};

/// The file of results: written under a temporary name, and renamed once it is complete.
///
/// An existing file stays until then, also if the run fails.
pub(super) struct OutFile {
    sheet: Arc<Mutex<Sheet>>,
    /// The temporary path and the final one; `None` for a device or a pipe, which is written directly.
    places: Option<(PathBuf, PathBuf)>,
}

impl OutFile {
    /// Refuses a path that is one of the run's own files, one with contents other than results, and one that cannot be
    /// written.
    pub(super) fn check(out: &Path, own: &[PathBuf]) -> Result<(), Failed> {
        let name = out.display();
        if out.is_dir() {
            return Err(Failed::usage(format_args!("{name} is a directory")));
        }
        if !is_written_at_once(out) {
            return Err(Failed::usage(format_args!(
                "--out {name} is neither a file nor a device, and could wait for a reader for ever: name a file; nothing \
                 was sent"
            )));
        }
        match own.iter().find(|own| is_same(own, out)) {
            Some(own) => Err(Failed::usage(format_args!(
                "--out {name} would overwrite {}: name another file; nothing was sent",
                own.display()
            ))),
            None if !is_own_output(out) && !holds_results_only(out) => Err(Failed::usage(format_args!(
                "--out {name} is there and does not begin as results do, and would be lost: name another file, or remove it; \
                 nothing was sent"
            ))),
            None if fs::metadata(out).is_ok_and(|found| !found.is_file()) => Ok(()),
            None => match Self::create(out)?.places {
                Some((part, _)) => fs::remove_file(part).map_err(Failed::error),
                None => Ok(()),
            },
        }
    }

    pub(super) fn create(out: &Path) -> Result<Self, Failed> {
        Self::open(out).map_err(|error| Failed::usage(format_args!("{}: {error}", out.display())))
    }

    fn open(out: &Path) -> io::Result<Self> {
        if is_own_output(out) {
            // The process that opened it for this one may have written to it.
            let file = OpenOptions::new().append(true).open(out)?;
            return Ok(Self { sheet: Sheet::new(file), places: None });
        }
        let found = fs::metadata(out).ok();
        let is_device = found.as_ref().is_some_and(|found| !found.is_file());
        if is_device {
            return Ok(Self { sheet: Sheet::new(File::create(out)?), places: None });
        }
        // A link stays, and its target is replaced.
        let place = fs::canonicalize(out).unwrap_or_else(|_| out.to_owned());
        let part = beside(&place, &format!(".{}{PART}", std::process::id()));
        // One with our own number is of a run that was killed, as numbers are given again.
        let _ = fs::remove_file(&part);
        let file = OpenOptions::new().write(true).create_new(true).open(&part)?;
        // The lock ends with the process, and shows others that the file is in use. Without it no leftover is removed.
        let _ = file.try_lock();
        if let Some(found) = found {
            file.set_permissions(found.permissions())?;
        }
        Ok(Self { sheet: Sheet::new(file), places: Some((part, place)) })
    }

    /// Returns a handle for writing.
    pub(super) fn writer(&self) -> OutWriter {
        OutWriter(self.sheet.clone())
    }

    /// Puts the file in its place if every row of it is on the disk. An incomplete file is removed.
    pub(super) fn finish(self) -> Result<(), Unput> {
        let mut sheet = self.sheet.lock();
        let Some((part, place)) = self.places else {
            return if sheet.is_cut { Err(sheet.unput(None)) } else { Ok(()) };
        };
        let synced = if sheet.is_cut { Ok(()) } else { sheet.file.sync_all() };
        if sheet.is_cut || synced.is_err() {
            // The rest of it is useless, and the rows are printed elsewhere.
            let _ = fs::remove_file(&part);
            return Err(sheet.unput(synced.err()));
        }
        fs::rename(&part, &place).map_err(|error| {
            let error = io::Error::new(error.kind(), format!("results stay in {}: {error}", part.display()));
            sheet.unput(Some(error))
        })?;
        remove_leftovers(&place);
        Ok(())
    }
}

/// Results that could not be put in their place.
pub(super) struct Unput {
    /// Everything that was to be written.
    pub(super) rows: Vec<u8>,
    /// The reason; `None` if a failed write has reported it already.
    pub(super) error: Option<io::Error>,
}

/// The written results, kept in memory in case the file does not take them.
struct Sheet {
    file: File,
    rows: Vec<u8>,
    /// A write has failed: the file is incomplete.
    is_cut: bool,
}

impl Sheet {
    fn new(file: File) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { file, rows: Vec::new(), is_cut: false }))
    }

    fn unput(&mut self, error: Option<io::Error>) -> Unput {
        Unput { rows: std::mem::take(&mut self.rows), error }
    }
}

/// Writes rows. The first failure is reported once and ends the run; later rows are kept in memory.
pub(super) struct OutWriter(Arc<Mutex<Sheet>>);

impl Write for OutWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut sheet = self.0.lock();
        if !sheet.is_cut
            && let Err(error) = sheet.file.write_all(bytes)
        {
            // The caller tries the same bytes again.
            sheet.is_cut = true;
            return Err(error);
        }
        sheet.rows.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns true for a destination that accepts data without a reader: a file, a new file, a character device, or this
/// process's own output.
fn is_written_at_once(out: &Path) -> bool {
    if is_own_output(out) {
        return true;
    }
    let Ok(found) = fs::metadata(out) else { return true };
    #[cfg(unix)]
    if std::os::unix::fs::FileTypeExt::is_char_device(&found.file_type()) {
        return true;
    }
    found.is_file()
}

/// Returns true for the names of this process's own output.
fn is_own_output(out: &Path) -> bool {
    let named = ["/dev/stdout", "/dev/stderr"].iter().any(|own| out == Path::new(own));
    named || out.starts_with("/dev/fd") || out.starts_with("/proc/self/fd")
}

/// Returns true unless results would overwrite other contents: an existing file must begin like results.
fn holds_results_only(out: &Path) -> bool {
    match fs::metadata(out) {
        Ok(found) if found.is_file() => {}
        _ => return true,
    }
    let header = super::result::COLUMNS.join(",");
    let mut line = Vec::new();
    let read = File::open(out).and_then(|file| file.take(header.len() as u64 + 1).read_to_end(&mut line));
    read.is_ok() && line.strip_prefix(header.as_bytes()).is_some_and(|end| end == b"\n" || end == b"\r")
}

/// Returns true if two paths lead to the same file, which need not exist yet.
pub(super) fn is_same(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    if let (Ok(one), Ok(other)) = (fs::metadata(one), fs::metadata(other)) {
        use std::os::unix::fs::MetadataExt;
        return (one.dev(), one.ino()) == (other.dev(), other.ino());
    }
    resolved(one) == resolved(other)
}

fn resolved(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        path.file_name().map_or_else(|| folder.clone(), |name| folder.join(name))
    })
}

#[cfg(test)]
mod tests;
