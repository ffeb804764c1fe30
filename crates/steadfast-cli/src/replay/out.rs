use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

use crate::exit::Failed;

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
        let mut part = place.clone().into_os_string();
        part.push(format!(".{}.part", std::process::id()));
        let part = PathBuf::from(part);
        let file = OpenOptions::new().write(true).create_new(true).open(&part)?;
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
        })
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
mod tests {
    use super::*;

    #[test]
    fn c04_what_was_there_stays_until_the_results_are_whole() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("r.csv");
        fs::write(&out, "yesterday").unwrap();
        let begun = OutFile::create(&out).unwrap();
        begun.writer().write_all(b"today").unwrap();
        assert_eq!(fs::read_to_string(&out).unwrap(), "yesterday");
        assert!(begun.finish().is_ok());
        assert_eq!(fs::read_to_string(&out).unwrap(), "today");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[cfg(unix)]
    #[test]
    fn c04_a_link_and_a_device_stay_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let out = OutFile::create(&link).unwrap();
        out.writer().write_all(b"new").unwrap();
        assert!(out.finish().is_ok());
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        let null = Path::new("/dev/null");
        assert!(OutFile::create(null).unwrap().finish().is_ok());
        assert!(!fs::metadata(null).unwrap().is_file());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn c04_rows_that_a_full_device_does_not_take_are_kept() {
        let out = OutFile::create(Path::new("/dev/full")).unwrap();
        let mut rows = csv::Writer::from_writer(out.writer());
        rows.write_record(["line", "status"]).unwrap();
        assert!(rows.flush().is_err(), "it is told once");
        rows.write_record(["2", "placed"]).unwrap();
        rows.flush().unwrap();
        let unput = out.finish().err().unwrap();
        assert_eq!((&*unput.rows, unput.error.is_none()), (&b"line,status\n2,placed\n"[..], true));
    }

    #[test]
    fn c04_no_file_of_the_run_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let orders = folder.path().join("orders.csv");
        fs::write(&orders, "").unwrap();
        let journal = folder.path().join("not-there-yet.journal");
        let own = [orders.clone(), journal.clone()];
        for taken in [orders.clone(), journal, folder.path().join(".").join("orders.csv")] {
            assert!(OutFile::check(&taken, &own).is_err(), "{}", taken.display());
        }
        assert!(OutFile::check(&folder.path().join("results.csv"), &own).is_ok());
        #[cfg(unix)]
        {
            let hard = folder.path().join("hard");
            fs::hard_link(&orders, &hard).unwrap();
            assert!(OutFile::check(&hard, &own).is_err());
        }
    }

    #[test]
    fn c04_only_results_take_the_place_of_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("r.csv");
        for (text, may_go) in [
            ("line,status,orderId,resolution,msg\n2,placed,7,,ok\n", true),
            ("line,status,orderId,resolution,msg\r\n", true),
            ("line,status,orderId,resolution,msg", false),
            ("line,status,orderId,resolution,msg2\n", false),
            ("{\"version\":2,\"failures\":1}\n", false),
            ("", false),
        ] {
            fs::write(&out, text).unwrap();
            assert_eq!(OutFile::check(&out, &[]).is_ok(), may_go, "{text:?}");
        }
    }
}
