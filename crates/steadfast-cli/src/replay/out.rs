use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use crate::exit::Failed;

/// The file of results: written beside its place, and put there once it is whole.
///
/// What was there before stays until then, also when nothing comes of the run.
pub(super) struct OutFile {
    file: File,
    /// Where it is written, and where it belongs; `None` for a device or a pipe, which is written to as it is.
    places: Option<(PathBuf, PathBuf)>,
}

impl OutFile {
    /// Refuses a place that one of the run's own files has, and one that cannot be written.
    pub(super) fn check(out: &Path, own: &[PathBuf]) -> Result<(), Failed> {
        if steadfast_spec::Planted::ResultsInPlace.is_on() {
            return Ok(());
        }
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
        let found = fs::metadata(out).ok();
        let is_device = found.as_ref().is_some_and(|found| !found.is_file());
        if is_device || steadfast_spec::Planted::ResultsInPlace.is_on() {
            return Ok(Self { file: File::create(out)?, places: None });
        }
        // A link stays, and what it leads to is replaced.
        let place = fs::canonicalize(out).unwrap_or_else(|_| out.to_owned());
        let mut part = place.clone().into_os_string();
        part.push(format!(".{}.part", std::process::id()));
        let part = PathBuf::from(part);
        let file = OpenOptions::new().write(true).create_new(true).open(&part)?;
        if let Some(found) = found {
            file.set_permissions(found.permissions())?;
        }
        Ok(Self { file, places: Some((part, place)) })
    }

    /// A handle to write by.
    pub(super) fn writer(&self) -> Result<File, Failed> {
        self.file.try_clone().map_err(Failed::error)
    }

    /// Puts the file in its place.
    pub(super) fn finish(self) -> io::Result<()> {
        let Some((part, place)) = self.places else { return Ok(()) };
        self.file.sync_all()?;
        fs::rename(&part, &place).map_err(|error| {
            io::Error::new(error.kind(), format!("results stay in {}: {error}", part.display()))
        })
    }
}

/// True for a place that takes what is written without anybody at its other end: a file, one that is not there yet, a
/// character device, and this process's own output, whatever that is.
fn is_written_at_once(out: &Path) -> bool {
    let own_output = ["/dev/stdout", "/dev/stderr"].iter().any(|own| out == Path::new(own));
    if own_output || out.starts_with("/dev/fd") || out.starts_with("/proc/self/fd") {
        return true;
    }
    let Ok(found) = fs::metadata(out) else { return true };
    #[cfg(unix)]
    if std::os::unix::fs::FileTypeExt::is_char_device(&found.file_type()) {
        return true;
    }
    found.is_file()
}

/// True if two paths lead to one file, which need not be there yet.
fn is_same(one: &Path, other: &Path) -> bool {
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
    use std::io::Write;

    use super::*;

    #[test]
    fn c04_what_was_there_stays_until_the_results_are_whole() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("r.csv");
        fs::write(&out, "yesterday").unwrap();
        let begun = OutFile::create(&out).unwrap();
        begun.writer().unwrap().write_all(b"today").unwrap();
        assert_eq!(fs::read_to_string(&out).unwrap(), "yesterday");
        begun.finish().unwrap();
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
        out.writer().unwrap().write_all(b"new").unwrap();
        out.finish().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        let null = Path::new("/dev/null");
        OutFile::create(null).unwrap().finish().unwrap();
        assert!(!fs::metadata(null).unwrap().is_file());
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
}
