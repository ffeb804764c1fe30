use std::{error::Error, fmt, io, path::PathBuf, sync::Arc};

use steadfast_call::{causes, one_line};

use super::owner::NotOwner;

/// An error of a journal. While it cannot be used, nothing is sent.
#[derive(Clone)]
#[non_exhaustive]
pub enum JournalError {
    /// Another process, or another journal of this one, has it open.
    InUse {
        /// The journal.
        path: PathBuf,
    },
    /// The file system failed.
    Io {
        /// The operation.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The file system's error.
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
    /// A durable record cannot be read any more. The file is left as it is.
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the damage begins, in bytes from the start of the file.
        offset: u64,
    },
    /// A record is whole, but this version does not understand it. The file is left as it is.
    Unknown {
        /// The file.
        path: PathBuf,
        /// Where the record begins, in bytes from the start of the file.
        offset: u64,
    },
    /// The journal or its lock was moved, removed or replaced while the journal was open. The next process would not
    /// read what is written now.
    Displaced {
        /// The journal, or its lock.
        path: PathBuf,
    },
    /// The file at the journal's path, if any, is not the journal that was written there last.
    ///
    /// Put that one back. If it is refused all the same, because an older version noticed that it was moved, put an empty
    /// file in the place of the lock. Without the journal its orders are unknown, and may be sent again under their names.
    Lost {
        /// The journal.
        path: PathBuf,
        /// Its lock, which shows that there was one.
        lock: PathBuf,
    },
    /// The journal has a second name (a hard link), under which another process could use it at the same time.
    ///
    /// Remove the other name; the journal is whole.
    Linked {
        /// The journal.
        path: PathBuf,
    },
    /// The journal at this path lacks records that were certainly written: it was cut, or an older copy was put back.
    ///
    /// Put the whole one back. If it is gone, its last orders are unknown, and would be sent again under their names:
    /// compare the service's order list with the content of the journal
    /// ([`FileJournal::read`](crate::journal::FileJournal::read)), and only then empty the lock. With an
    /// empty lock the journal is accepted as it is.
    Outdated {
        /// The journal.
        path: PathBuf,
        /// Its lock, which notes how far it was written.
        lock: PathBuf,
        /// Its length in bytes.
        length: u64,
        /// The length in bytes, of it or of its successor, when the lock was written.
        written: u64,
    },
    /// A record is longer than a journal can hold. It is not written, and its order does not leave.
    TooLong {
        /// The journal.
        path: PathBuf,
        /// The record's length in bytes.
        length: usize,
    },
    /// After an earlier failure, it is unknown what is durable.
    Poisoned,
    /// Another process writes it now.
    NotOwner(NotOwner),
}

/// There is no journal, so nothing is known of the orders of earlier processes. Some may be in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoJournal;

impl fmt::Display for NoJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no journal, so nothing is known of the orders of earlier processes")
    }
}

impl Error for NoJournal {}

impl JournalError {
    pub(super) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { doing, path, source: Arc::new(source) }
    }

    /// True if the disk, or this user's part of it, is full.
    pub(super) fn is_full(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        matches!(self, Self::Io { source, .. } if matches!(source.kind(), StorageFull | QuotaExceeded))
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return f.write_str(&one_line(causes(self)));
        }
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
                    "journal {path} is not the one that was written last: put that back; if it is refused there, too, put an \
                     empty file in the place of {lock}"
                )
            }
            Self::Linked { path } => {
                let path = path.display();
                write!(
                    f,
                    "journal {path} has another name (a hard link), which another process could use: remove that"
                )
            }
            Self::Outdated { path, lock, length, written } => {
                let (path, lock) = (path.display(), lock.display());
                write!(
                    f,
                    "journal {path} was cut or is an older copy: it has {length} bytes, and {written} were written; put \
                     the whole one back, or compare it with the order list and put an empty file in the place of {lock} to \
                     accept it"
                )
            }
            Self::TooLong { path, length } => {
                write!(f, "journal {} cannot hold a record of {length} bytes", path.display())
            }
            Self::Poisoned => f.write_str("journal failed before"),
            Self::NotOwner(not_owner) => not_owner.fmt(f),
        }
    }
}

steadfast_call::debug_in_one_line!(JournalError);

impl Error for JournalError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
