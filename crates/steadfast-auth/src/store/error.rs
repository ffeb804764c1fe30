use std::{error::Error, fmt, io};

use steadfast_call::{BoxError, causes, file::NotOwn, one_line};

/// An error of a [`TokenStore`](crate::TokenStore). `place` is the store's path or address.
#[non_exhaustive]
pub enum StoreError {
    /// The file system returned an error.
    Io {
        /// The file or directory.
        place: String,
        /// The error of the file system.
        source: io::Error,
    },
    /// Users other than the owner may read or replace the file.
    OpenToOthers {
        /// The file or directory.
        place: String,
        /// Its permission bits.
        mode: u32,
    },
    /// The file belongs to another user, who may have put it there.
    OfAnother {
        /// The file.
        place: String,
        /// The owner's user id.
        owner: u32,
    },
    /// The path is a symbolic link or no regular file, so other users may be able to read it.
    NotAFile {
        /// The path.
        place: String,
    },
    /// The record cannot be read: it is torn, or was edited. Its count of wrong logins is lost, so no login is sent
    /// until a person [allows](crate::TokenStore::reset) it.
    Garbled {
        /// The store.
        place: String,
    },
    /// The record is of a version that this program does not know.
    UnknownVersion {
        /// The store.
        place: String,
        /// The record's version.
        version: u64,
    },
    /// The record belongs to another base address, API key or user.
    OtherAccount {
        /// The store.
        place: String,
    },
    /// Another process has written since the record was read.
    Superseded {
        /// The store.
        place: String,
    },
    /// Another process has held the lease for too long.
    Busy {
        /// The store.
        place: String,
    },
    /// A store of another kind failed.
    Other(BoxError),
}

impl StoreError {
    pub(crate) fn io(place: impl fmt::Display, source: io::Error) -> Self {
        let place = place.to_string();
        match NotOwn::of(&source) {
            Some(NotOwn::OpenToOthers { mode }) => Self::OpenToOthers { place, mode },
            Some(NotOwn::OfAnother { owner }) => Self::OfAnother { place, owner },
            Some(NotOwn::NotPlain) => Self::NotAFile { place },
            _ => Self::Io { place, source },
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return f.write_str(&one_line(causes(self)));
        }
        match self {
            Self::Io { place, .. } => write!(f, "{place} cannot be used"),
            Self::OpenToOthers { place, mode } => {
                write!(f, "{place} is open to others (mode {mode:04o}): allow its owner only")
            }
            Self::OfAnother { place, owner } => {
                write!(f, "{place} belongs to another user (user id {owner})")
            }
            Self::NotAFile { place } => write!(f, "{place} is a link or no regular file"),
            Self::Garbled { place } => {
                write!(
                    f,
                    "{place} is damaged: it holds no record that can be read, so that nobody knows of wrong logins"
                )
            }
            Self::UnknownVersion { place, version } => {
                write!(f, "{place} is of version {version}, which this program does not know")
            }
            Self::OtherAccount { place } => {
                write!(f, "{place} belongs to another base address, api_key or user")
            }
            Self::Superseded { place } => write!(f, "{place} has been written by somebody else"),
            Self::Busy { place } => write!(f, "{place} is held by another login"),
            Self::Other(_) => f.write_str("token store failed"),
        }
    }
}

steadfast_call::debug_in_one_line!(StoreError);

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Other(source) => Some(&**source),
            _ => None,
        }
    }
}
