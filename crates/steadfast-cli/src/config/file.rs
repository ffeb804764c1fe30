use std::{
    fs::{self, File, Metadata},
    path::{Path, PathBuf},
};

use secrecy::SecretString;
use steadfast_call::file::open_own;

use super::{
    Problem, Problems,
    entry::{Entry, entries},
    key::{FORMS, Kind},
    options,
    zones::Zones,
};
use crate::readable;

/// A config file whose keys and values are valid.
#[derive(Clone)]
pub(crate) struct ConfigFile {
    path: PathBuf,
    entries: Vec<Entry>,
    zones: Zones,
}

impl ConfigFile {
    /// Reads a file, or returns all that is wrong with it.
    pub(crate) fn read(path: &Path) -> Result<Self, Problems> {
        let whole = |what: String| Problems::new(path, vec![Problem::of_file(what)]);
        let file = fs::metadata(path).map_err(|error| whole(error.to_string()))?;
        plain(&file).and_then(|()| trusted(&file)).map_err(whole)?;
        let text = fs::read_to_string(path).map_err(|error| whole(error.to_string()))?;
        let entries = entries(&text).map_err(|problems| Problems::new(path, problems))?;
        for secret in entries.iter().filter(|entry| entry.key.kind == Kind::Secret) {
            readable::hide(&SecretString::from(secret.text()));
        }
        if let Some(secret) = entries.iter().find(|entry| entry.key.kind == Kind::Secret) {
            open_own(path, File::options().read(true)).map_err(|error| {
                let (name, path) = (&secret.key.name, path.display());
                whole(format!("it holds {name}, and {error}: `chmod go-rwx {path}`, or use {name}-file"))
            })?;
        }
        let mut problems = options::problems(&entries);
        match Zones::of(&entries) {
            Ok(zones) if problems.is_empty() => return Ok(Self { path: path.to_owned(), entries, zones }),
            Ok(_) => {}
            Err(of_zones) => problems.extend(of_zones),
        }
        Err(Problems::new(path, problems))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns what it changes of the service's zones.
    pub(crate) fn zones(&self) -> &Zones {
        &self.zones
    }

    pub(crate) fn entry(&self, table: &str, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key.table == table && entry.key.name == name)
    }

    /// Returns what holds for an option of the verbs with this table. `orders` looks into the sidecar's journal unless it
    /// has one of its own.
    pub(super) fn taken(&self, table: &str, name: &str) -> Option<&Entry> {
        let own = self.entry(table, name);
        own.or_else(|| if (table, name) == ("orders", "journal") { self.entry("proxy", name) } else { None })
    }

    /// Returns how the file gives a secret: by which form, and the entry.
    pub(crate) fn secret(&self, name: &str) -> Option<(&'static str, &Entry)> {
        FORMS.iter().find_map(|form| Some((*form, self.entry("", &format!("{name}{form}"))?)))
    }

    /// Returns where an entry stands.
    pub(crate) fn place(&self, entry: &Entry) -> String {
        format!("{}:{}", self.path.display(), entry.line)
    }
}

/// Refuses what cannot be read at once: a proxy that waited for a pipe at a reload would answer no cancel.
fn plain(file: &Metadata) -> Result<(), String> {
    match (file.is_file(), file.len()) {
        (false, _) => Err("it is no regular file".to_owned()),
        (true, length) if length > LONGEST => {
            Err(format!("it has {length} bytes, and a config {LONGEST} at most"))
        }
        (true, _) => Ok(()),
    }
}

/// The longest config file, in bytes.
const LONGEST: u64 = 1 << 20;

/// Refuses a file that another user could have written: it says where credentials go, and which commands run.
#[cfg(unix)]
fn trusted(file: &Metadata) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt;

    let (owner, mode) = (file.uid(), file.mode() & 0o7777);
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        return Err(format!("it belongs to another user (user id {owner})"));
    }
    if mode & 0o022 != 0 {
        return Err(format!("its group or others may change it (mode {mode:04o}): `chmod go-w`"));
    }
    Ok(())
}

#[cfg(not(unix))]
fn trusted(_: &Metadata) -> Result<(), String> {
    Ok(())
}
