//! The note that a sidecar leaves beside its journal, for the other verbs.

use std::{
    fs::{self, File},
    io::{Read, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use steadfast::call::file::open_own;

use super::beside;

/// Where the sidecar of a journal is, and what opens it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Facts {
    pub(crate) admin_url: String,
    pub(crate) token_file: PathBuf,
}

/// The file with a sidecar's facts. It ends with the sidecar.
pub(crate) struct Note(PathBuf);

impl Note {
    /// Writes down where the operator's listener of the sidecar with this journal is, and where its local token.
    pub(crate) fn write(journal: &Path, admin_url: String, token_file: PathBuf) -> std::io::Result<Self> {
        let note = Self(path_of(journal));
        let text = serde_json::to_vec(&Facts { admin_url, token_file })?;
        let mut file = open_own(&note.0, File::options().write(true).create(true).truncate(true))?;
        file.write_all(&text)?;
        Ok(note)
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        // One that is left is not read: the journal is free then, or the next sidecar has written its own.
        let _ = fs::remove_file(&self.0);
    }
}

/// Returns the operator's address of the sidecar that has noted down that it has the journal. It may have died since.
pub(crate) fn admin_of(journal: &Path) -> Option<String> {
    let text = read_own(&path_of(journal)).ok()?;
    Some(serde_json::from_str::<Facts>(&text).ok()?.admin_url)
}

/// Returns the path of the note.
pub(crate) fn path_of(journal: &Path) -> PathBuf {
    beside(journal, ".sidecar")
}

/// Reads a file of this user's own.
pub(crate) fn read_own(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    open_own(path, File::options().read(true))?.read_to_string(&mut text)?;
    Ok(text)
}
