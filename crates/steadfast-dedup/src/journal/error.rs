use std::{error::Error, fmt, io, path::PathBuf, sync::Arc};

/// A journal that cannot be used. Nothing is sent while it cannot.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum JournalError {
    /// Another process, or another journal of this one, has it open.
    InUse {
        /// The journal.
        path: PathBuf,
    },
    /// The file system failed.
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What it said.
        source: Arc<io::Error>,
    },
    /// The file is not a journal, or its head is damaged.
    NotAJournal {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by another version, older or newer, that this one does not know.
    Version {
        /// The file.
        path: PathBuf,
        /// The version of its format.
        found: u32,
    },
    /// What was durable once cannot be read any more. The file is left as it is.
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the damage begins, in bytes from the start of the file.
        offset: u64,
    },
    /// A record is whole and says something that this version does not understand. The file is left as it is.
    Unknown {
        /// The file.
        path: PathBuf,
        /// Where the record begins, in bytes from the start of the file.
        offset: u64,
    },
    /// The journal or its lock was moved, removed or replaced while the journal was open: the next process would not read
    /// what is written now.
    Displaced {
        /// The journal, or its lock.
        path: PathBuf,
    },
    /// What stands at the journal's path, if anything, is not the journal that was written there last. Put that one back
    /// and remove the lock; without it, the orders in it are not known, and may be sent again under their names.
    Lost {
        /// The journal.
        path: PathBuf,
        /// Its lock, which says that there was one.
        lock: PathBuf,
    },
    /// An earlier failure left nobody sure of what is durable.
    Poisoned,
}

impl JournalError {
    pub(super) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { doing, path, source: Arc::new(source) }
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse { path } => write!(f, "journal {} is in use", path.display()),
            Self::Io { doing, path, .. } => write!(f, "journal cannot {doing} {}", path.display()),
            Self::NotAJournal { path } => {
                write!(f, "{} is not a journal, or its head is damaged", path.display())
            }
            Self::Version { path, found } => {
                write!(f, "journal {} has format version {found}, which is not known", path.display())
            }
            Self::Damaged { path, offset } => {
                write!(f, "journal {} is damaged at byte {offset}", path.display())
            }
            Self::Unknown { path, offset } => {
                write!(f, "journal {} holds an unknown record at byte {offset}", path.display())
            }
            Self::Displaced { path } => {
                write!(f, "{} was moved, removed or replaced while the journal was open", path.display())
            }
            Self::Lost { path, lock } => {
                let (path, lock) = (path.display(), lock.display());
                write!(
                    f,
                    "journal {path} is not the one that was written last: put that back and remove {lock}"
                )
            }
            Self::Poisoned => f.write_str("journal failed before"),
        }
    }
}

impl Error for JournalError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
