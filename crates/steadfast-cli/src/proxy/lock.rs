//! One proxy for an account.
//!
//! On Linux a [`Presence`] tells of it on the whole machine. The files tell of it elsewhere, and to a container that shares
//! the folders.

use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
};

use steadfast::call::file::open_own;

#[cfg(target_os = "linux")]
use super::machine::Presence;
use crate::{
    account::Account,
    exit::{Failed, print_note},
    secret::variable_of,
};

/// Keeps another proxy of the account from starting as long as it lives.
#[expect(dead_code, reason = "what is open holds the locks")]
pub(super) struct Lock {
    files: Vec<File>,
    #[cfg(target_os = "linux")]
    presence: Option<Presence>,
}

impl Lock {
    /// Takes the account's lock in the user's runtime folder, if that is safe, in the state folder, and on the machine. A
    /// proxy of a service manager or a timer may not know the runtime folder, so one of the two is not enough.
    pub(super) fn of(account: &Account) -> Result<Self, Failed> {
        let lock = Self::in_folders(account)?;
        #[cfg(target_os = "linux")]
        let lock = Self { presence: Some(Presence::of(account)?), ..lock };
        Ok(lock)
    }

    /// Takes the locks in the folders alone, for a proxy whose store tells which of several places orders.
    pub(super) fn in_folders(account: &Account) -> Result<Self, Failed> {
        let mut folders = vec![account.folder()?];
        folders.extend(runtime_folder()?.map(|folder| folder.join("steadfast")));
        let name = format!("proxy-{}.lock", account.identity().label());
        let mut files = Vec::new();
        for folder in folders {
            let path = folder.join(&name);
            make_folder_of(&path)?;
            files.push(take(&path, "another proxy of this account is running; nothing was sent")?);
        }
        Ok(Self {
            files,
            #[cfg(target_os = "linux")]
            presence: None,
        })
    }
}

/// Makes the folder of a file, for its user alone.
pub(super) fn make_folder_of(path: &Path) -> Result<(), Failed> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|error| Failed::usage(format!("{}: {error}", folder.display())))
}

/// Locks a file as long as it is open. `held` says what it means that another program holds it.
pub(super) fn take(path: &Path, held: &str) -> Result<File, Failed> {
    let unusable = |error: &dyn std::fmt::Display| Failed::usage(format!("{}: {error}", path.display()));
    let file = open_own(path, File::options().read(true).write(true).create(true))
        .map_err(|error| unusable(&error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(unusable(&held)),
        Err(TryLockError::Error(error)) => Err(unusable(&error)),
    }
}

/// Returns the user's runtime folder, if there is one that only this user can reach.
fn runtime_folder() -> Result<Option<PathBuf>, Failed> {
    let Some(folder) = variable_of("XDG_RUNTIME_DIR")?.map(PathBuf::from) else { return Ok(None) };
    match unsafe_reason(&folder) {
        None => Ok(Some(folder)),
        Some(reason) => {
            print_note(format_args!("steadfast: XDG_RUNTIME_DIR is not used: {reason}"));
            Ok(None)
        }
    }
}

/// Returns the reason for which a folder must not be trusted; `None` if only this user can reach it.
fn unsafe_reason(folder: &Path) -> Option<&'static str> {
    if !folder.is_absolute() {
        return Some("it is not an absolute path");
    }
    let Ok(found) = std::fs::symlink_metadata(folder) else { return Some("it does not exist") };
    if !found.is_dir() {
        return Some("it is no folder");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        if found.uid() != rustix::process::geteuid().as_raw() {
            return Some("it belongs to another user");
        }
        if found.mode() & 0o077 != 0 {
            return Some("other users can reach it");
        }
    }
    None
}

#[cfg(all(test, unix))]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn a_runtime_folder_is_used_only_if_no_other_user_can_reach_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let chmod = |mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        chmod(0o700);
        assert_eq!(unsafe_reason(path), None);
        for mode in [0o755, 0o770, 0o702] {
            chmod(mode);
            assert_eq!(unsafe_reason(path), Some("other users can reach it"), "{mode:o}");
        }
        chmod(0o700);
        fs::write(path.join("file"), "").unwrap();
        std::os::unix::fs::symlink(path, path.join("link")).unwrap();
        for (other, reason) in [
            (path.join("file"), "it is no folder"),
            (path.join("link"), "it is no folder"),
            (path.join("none"), "it does not exist"),
            (PathBuf::from("run"), "it is not an absolute path"),
        ] {
            assert_eq!(unsafe_reason(&other), Some(reason), "{}", other.display());
        }
    }
}
