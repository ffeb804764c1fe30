//! Writes a log's successor: the entries that still matter, in a new file that takes the old one's place in one step.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    io,
    path::Path,
};

use super::{
    disk::{Disk, DiskFile},
    error::JournalError,
    fold::Fold,
    frame::{self, HEAD, Head, Salt},
    lock_note::{LockNote, Reach},
    paths::{beside, folder_of},
};

/// A new file that has just taken the old one's place.
pub(super) struct Successor<F> {
    pub(super) file: F,
    pub(super) head: Head,
    pub(super) reached: Reach,
}

/// Why a successor was not written.
pub(super) enum RewriteError {
    /// The old file is in its place, and no sync has failed.
    NotBegun(JournalError),
    /// It is unknown which file is the durable one, or what a failed sync has lost.
    Unsure(JournalError),
}

impl RewriteError {
    pub(super) fn into_error(self) -> JournalError {
        match self {
            Self::NotBegun(error) | Self::Unsure(error) => error,
        }
    }
}

/// Writes a new file and puts it in place. `before`: the lock's note about the file that it replaces.
pub(super) fn write_anew<D: Disk>(
    disk: &D,
    path: &Path,
    lock: &mut D::Lock,
    salt: Salt,
    before: Option<Reach>,
    fold: &Fold,
) -> Result<Successor<D::File>, RewriteError> {
    let (new, beside_it) = (beside(path, ".new"), beside(path, ".lock"));
    let (begun, mut records) = (Head { salt, nonce: draw(), records: 0 }, 0);
    let mut bytes = begun.encode().to_vec();
    for entry in fold.entries() {
        frame::write(&mut bytes, begun.seed(), records, 0, &entry.encode());
        records += 1;
    }
    let head = Head { records, ..begun };
    bytes[..HEAD].copy_from_slice(&head.encode());
    let create = |error| RewriteError::NotBegun(JournalError::io("create", &new)(error));
    let mut file = disk.create(&new).map_err(create)?;
    if let Err(error) = write_all(&mut file, &bytes) {
        // On a full disk its first half would take the last room from others.
        drop(file.truncate(0));
        return Err(RewriteError::NotBegun(JournalError::io("write", &new)(error)));
    }
    file.sync().map_err(|e| RewriteError::Unsure(JournalError::io("sync", &new)(e)))?;
    let reached = Reach { nonce: head.nonce, records: head.records, size: bytes.len() as u64 };
    if let Some(before) = before {
        // Before the names change: a crash may leave either of the two.
        let note = LockNote::written(salt, before, Some(reached)).encode();
        let noted = disk.set_note(lock, &note, true);
        noted.map_err(|e| RewriteError::NotBegun(JournalError::io("write", &beside_it)(e)))?;
    }
    // From here on, whichever of the two files a crash leaves under the name holds everything so far.
    disk.rename(&new, path).map_err(|e| RewriteError::Unsure(JournalError::io("rename", &new)(e)))?;
    // Before anything is appended, so that no crash can bring back the file that would lack it.
    let folder = folder_of(path);
    disk.sync_directory(folder).map_err(|e| RewriteError::Unsure(JournalError::io("sync", folder)(e)))?;
    // Only now is this file, and no other, certain to be there.
    let noted = disk.set_note(lock, &LockNote::written(salt, reached, None).encode(), true);
    noted.map_err(|e| RewriteError::Unsure(JournalError::io("write", &beside_it)(e)))?;
    Ok(Successor { file, head, reached })
}

pub(super) fn write_all(file: &mut impl DiskFile, mut bytes: &[u8]) -> io::Result<()> {
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

/// Returns a number that no other file has. The standard library seeds its hashers from the operating system.
fn draw() -> u64 {
    RandomState::new().build_hasher().finish()
}

pub(super) fn draw_salt() -> Salt {
    let mut salt = Salt::default();
    salt[..8].copy_from_slice(&draw().to_le_bytes());
    salt[8..].copy_from_slice(&draw().to_le_bytes());
    salt
}
