//! A Unix socket at a path, for programs of this user.

use std::{
    fs::{self, File},
    io::ErrorKind,
    os::unix::{
        fs::{FileTypeExt, MetadataExt, PermissionsExt},
        net::UnixStream,
    },
    path::{Path, PathBuf},
};

use tokio::net::UnixListener;

use super::lock::{self, make_folder_of};
use crate::exit::Failed;

/// The path of a socket that this process listens at. It goes with this value.
pub(super) struct Place {
    path: PathBuf,
    /// Held as long as the socket is there, so that two processes never replace it at once.
    _lock: File,
}

/// Listens at `path`, for this user alone. A socket there is replaced only if nothing listens at it.
pub(super) fn listen(path: &Path) -> Result<(UnixListener, Place), Failed> {
    let unusable = |error: &dyn std::fmt::Display| Failed::usage(format!("{}: {error}", path.display()));
    make_folder_of(path)?;
    if is_open_to_others(path).map_err(|error| unusable(&error))? {
        return Err(unusable(
            &"other users can put a socket of their own there; name a folder that is yours",
        ));
    }
    let lock = lock::take(&beside(path, ".lock"), "another program listens there")?;
    make_free(path).map_err(|reason| unusable(&reason))?;
    // Programs never find it with the rights that the system gives it at first.
    let fresh = beside(path, ".new");
    make_free(&fresh).map_err(|reason| unusable(&reason))?;
    let listener = UnixListener::bind(&fresh).map_err(|error| unusable(&error))?;
    let placed = fs::set_permissions(&fresh, fs::Permissions::from_mode(0o600))
        .and_then(|()| fs::rename(&fresh, path));
    if let Err(error) = placed {
        let _ = fs::remove_file(&fresh);
        return Err(unusable(&error));
    }
    Ok((listener, Place { path: path.to_owned(), _lock: lock }))
}

impl Drop for Place {
    fn drop(&mut self) {
        // The next process replaces it if it stays.
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes a socket that a process has left. Everything else stays.
fn make_free(path: &Path) -> Result<(), String> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    if !found.file_type().is_socket() {
        return Err("it is there already, and is no socket".to_owned());
    }
    match UnixStream::connect(path) {
        Ok(_) => Err("another program listens there".to_owned()),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|error| error.to_string())
        }
        Err(error) => Err(error.to_string()),
    }
}

/// True if another user could replace what is at `path`.
fn is_open_to_others(path: &Path) -> std::io::Result<bool> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let found = fs::metadata(folder)?;
    Ok(found.uid() != rustix::process::geteuid().as_raw() || found.mode() & 0o022 != 0)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(path: &Path) -> String {
        listen(path).map(|_| ()).unwrap_err().to_string()
    }

    #[tokio::test]
    async fn a_socket_is_for_its_user_and_replaced_only_if_nothing_listens() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run").join("proxy.sock");
        let (listener, place) = listen(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(UnixStream::connect(&path).is_ok());
        assert!(reason(&path).contains("another program listens"), "it holds the lock");
        drop((listener, place));
        assert!(!path.exists());

        // A process that was killed has left its socket; another program's still listens.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        drop(listen(&path).unwrap());
        let other = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(reason(&path).contains("another program listens"));
        assert!(UnixStream::connect(&path).is_ok(), "it is left as it was");
        drop(other);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "mine").unwrap();
        assert!(reason(&path).contains("no socket"));
        assert_eq!(fs::read(&path).unwrap(), b"mine");
    }

    #[tokio::test]
    async fn a_folder_of_all_users_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        assert!(reason(&folder.path().join("proxy.sock")).contains("other users"));
    }
}
