//! The disk of this machine, which can be made full.

use std::{
    fs::File,
    io,
    path::Path,
    sync::{Arc, Mutex},
};

use steadfast_dedup::journal::{Disk, DiskFile, FileSystem};

/// A full one takes only so many bytes of a longer write, and refuses one that is not longer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fillable(Arc<Mutex<Option<usize>>>);

impl Fillable {
    pub(crate) fn fill(&self, takes: usize) {
        *self.0.lock().unwrap() = Some(takes);
    }

    pub(crate) fn make_room(&self) {
        *self.0.lock().unwrap() = None;
    }
}

#[derive(Debug)]
pub(crate) struct FillableFile(File, Fillable);

impl Disk for Fillable {
    type File = FillableFile;
    type Lock = File;

    fn lock(&self, path: &Path) -> io::Result<File> {
        FileSystem.lock(path)
    }

    fn holds(&self, path: &Path, lock: &File) -> io::Result<bool> {
        FileSystem.holds(path, lock)
    }

    fn note(&self, lock: &mut File) -> io::Result<Vec<u8>> {
        FileSystem.note(lock)
    }

    fn set_note(&self, lock: &mut File, note: &[u8], durably: bool) -> io::Result<()> {
        FileSystem.set_note(lock, note, durably)
    }

    fn is_linked(&self, file: &FillableFile) -> io::Result<bool> {
        FileSystem.is_linked(&file.0)
    }

    fn is_in_place(&self, path: &Path, file: &FillableFile, size: u64) -> io::Result<bool> {
        FileSystem.is_in_place(path, &file.0, size)
    }

    fn open(&self, path: &Path) -> io::Result<Option<FillableFile>> {
        Ok(FileSystem.open(path)?.map(|file| FillableFile(file, self.clone())))
    }

    fn create(&self, path: &Path) -> io::Result<FillableFile> {
        FileSystem.create(path).map(|file| FillableFile(file, self.clone()))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        FileSystem.rename(from, to)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        FileSystem.sync_directory(path)
    }
}

impl DiskFile for FillableFile {
    fn read_all(&mut self) -> io::Result<Vec<u8>> {
        self.0.read_all()
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let takes = *self.1.0.lock().unwrap();
        match takes {
            Some(takes) if takes == 0 || bytes.len() <= takes => Err(io::ErrorKind::StorageFull.into()),
            takes => self.0.append(&bytes[..takes.unwrap_or(bytes.len())]),
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync()
    }

    fn truncate(&mut self, size: u64) -> io::Result<()> {
        self.0.truncate(size)
    }
}
