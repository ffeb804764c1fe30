//! State files that no other user can have made, changed or replaced.
//!
//! Stores, journals and their locks are opened with [`open_own`]. Files that other programs provide are opened as
//! usual: a secret mounted by a service manager may belong to root, or be a link.

use std::{
    error::Error,
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::Path,
};

/// Opens a file of this user. A file that `options` create has mode 0600.
///
/// On Unix, the checks are made on the opened file, not on the name before:
///
/// 1. A symbolic link as the last part of `path` is not followed; links in its directories are.
/// 2. It is a regular file. A pipe is refused without a wait.
/// 3. Its owner is the user that this process acts for (the effective user id).
/// 4. Its group and others have no access to it.
///
/// On other systems, only a link or a file that is not regular is refused, by a look at the name before it is opened.
/// Owners and permissions are not checked there.
///
/// `options` must not truncate, because the file would be emptied before the checks. Flags set by `custom_flags` are
/// replaced.
///
/// # Errors
///
/// [`PermissionDenied`](io::ErrorKind::PermissionDenied) with [`NotOwn`] inside, which [`NotOwn::of`] finds; otherwise
/// the error of the file system.
pub fn open_own(path: &Path, options: &OpenOptions) -> io::Result<File> {
    let file = match open(path, options.clone()) {
        Ok(file) => file,
        // Only to give one error text: opening a link, a directory or a pipe fails with different errors on different
        // systems.
        Err(error) => {
            let named = fs::symlink_metadata(path);
            let is_plain = named.map_or(true, |named| named.is_file());
            return Err(if is_plain { error } else { NotOwn::NotPlain.into() });
        }
    };
    check(&file.metadata()?)?;
    Ok(file)
}

/// Replaces the file at `path` by one of this user with this content: a crash leaves the old content or the new one whole.
///
/// It is written to `fresh`, a name beside `path` that nothing else uses at the same time, synced and renamed. Then the
/// directory is synced, where the system can do that.
///
/// # Errors
///
/// The error of the file system. `fresh` is removed, and the content is the old one, or the new one that a crash of the
/// machine may undo.
pub fn replace_own(path: &Path, fresh: &Path, content: &[u8]) -> io::Result<()> {
    // A process that was killed during a write has left this file.
    let _ = fs::remove_file(fresh);
    let written = open_own(fresh, File::options().write(true).create_new(true)).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()
    });
    if let Err(error) = written.and_then(|()| fs::rename(fresh, path)) {
        // The first error is the one to report.
        let _ = fs::remove_file(fresh);
        return Err(error);
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if cfg!(unix) { File::open(directory.unwrap_or(Path::new(".")))?.sync_all() } else { Ok(()) }
}

#[cfg(unix)]
fn open(path: &Path, mut options: OpenOptions) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;

    use rustix::fs::OFlags;

    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.mode(0o600).custom_flags(flags.bits().cast_signed()).open(path)
}

#[cfg(not(unix))]
fn open(path: &Path, options: OpenOptions) -> io::Result<File> {
    match fs::symlink_metadata(path) {
        Ok(named) if !named.is_file() => Err(NotOwn::NotPlain.into()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => options.open(path),
    }
}

fn check(opened: &fs::Metadata) -> Result<(), NotOwn> {
    if !opened.is_file() {
        return Err(NotOwn::NotPlain);
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let (owner, mode) = (opened.uid(), opened.mode() & 0o7777);
        if owner != rustix::process::geteuid().as_raw() {
            return Err(NotOwn::OfAnother { owner });
        }
        if mode & 0o077 != 0 {
            return Err(NotOwn::OpenToOthers { mode });
        }
    }
    Ok(())
}

/// Why a file is not used: another user may have made it, or may read or change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotOwn {
    /// It is a symbolic link, or no regular file.
    NotPlain,
    /// It belongs to another user.
    OfAnother {
        /// The owner's user id.
        owner: u32,
    },
    /// Its group or others have access to it.
    OpenToOthers {
        /// Its permission bits.
        mode: u32,
    },
}

impl NotOwn {
    /// Returns the reason inside an error of [`open_own`], if there is one.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

impl fmt::Display for NotOwn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPlain => f.write_str("it is a link or no regular file"),
            Self::OfAnother { owner } => write!(f, "it belongs to another user (user id {owner})"),
            Self::OpenToOthers { mode } => {
                write!(f, "its group or others have access to it (mode {mode:04o})")
            }
        }
    }
}

impl Error for NotOwn {}

impl From<NotOwn> for io::Error {
    fn from(why: NotOwn) -> Self {
        Self::new(io::ErrorKind::PermissionDenied, why)
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::{
        os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink},
        path::PathBuf,
        process::Command,
    };

    use tempfile::TempDir;

    use super::*;

    fn place() -> (TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        (directory, path)
    }

    fn refusal(path: &Path, options: &OpenOptions) -> Option<NotOwn> {
        let error = open_own(path, options).unwrap_err();
        assert!(NotOwn::of(&error).is_none() || error.kind() == io::ErrorKind::PermissionDenied);
        NotOwn::of(&error)
    }

    fn reading() -> OpenOptions {
        File::options().read(true).clone()
    }

    fn writing() -> OpenOptions {
        File::options().write(true).create(true).truncate(false).clone()
    }

    #[test]
    fn what_is_made_is_for_this_user_alone_and_opens_again() {
        let (_directory, path) = place();
        assert_eq!(open_own(&path, &reading()).unwrap_err().kind(), io::ErrorKind::NotFound);
        let made = open_own(&path, &writing()).unwrap().metadata().unwrap();
        assert_eq!(made.mode() & 0o7777, 0o600);
        open_own(&path, &reading()).unwrap();
    }

    #[test]
    fn what_its_group_or_others_may_use_is_refused() {
        let (_directory, path) = place();
        fs::write(&path, "").unwrap();
        for mode in [0o640, 0o604, 0o620, 0o602, 0o666] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(refusal(&path, &reading()), Some(NotOwn::OpenToOthers { mode }));
        }
    }

    /// A foreign file used to be accepted if its mode was tight.
    #[test]
    fn x03_a_file_of_another_owner_is_refused() {
        let (_directory, mut path) = place();
        if rustix::process::geteuid().is_root() {
            open_own(&path, &writing()).unwrap();
            chown(&path, Some(65_534), None).unwrap();
        } else {
            // Root's file, which everyone may read: the owner is checked first.
            path = "/etc/passwd".into();
        }
        let owner = fs::metadata(&path).unwrap().uid();
        assert_eq!(refusal(&path, &reading()), Some(NotOwn::OfAnother { owner }));
    }

    /// The name used to be checked before the file was opened, so a link could be put there in between.
    #[test]
    fn x03_a_link_is_not_followed_whoever_made_it() {
        let (directory, path) = place();
        let target = directory.path().join("target");
        open_own(&target, &writing()).unwrap();
        symlink(&target, &path).unwrap();
        for options in [reading(), writing()] {
            assert_eq!(refusal(&path, &options), Some(NotOwn::NotPlain));
        }
        fs::remove_file(&target).unwrap();
        assert_eq!(refusal(&path, &writing()), Some(NotOwn::NotPlain));
        assert!(!target.exists(), "made through a link");
    }

    #[test]
    fn a_replaced_file_is_whole_for_this_user_alone_and_leaves_nothing_beside_it() {
        let (directory, path) = place();
        let fresh = directory.path().join("state.new");
        fs::write(&fresh, "the half of a killed proc").unwrap();
        for content in ["one", "two"] {
            replace_own(&path, &fresh, content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        let taken = directory.path().join("taken");
        fs::create_dir_all(taken.join("by")).unwrap();
        assert!(replace_own(&taken, &fresh, b"three").is_err());
        assert!(!fresh.exists(), "left beside it");
    }

    #[test]
    fn a_directory_and_a_pipe_are_refused_at_once() {
        let (directory, path) = place();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        for path in [directory.path(), &path] {
            for options in [reading(), writing()] {
                assert_eq!(refusal(path, &options), Some(NotOwn::NotPlain), "{}", path.display());
            }
        }
    }
}
