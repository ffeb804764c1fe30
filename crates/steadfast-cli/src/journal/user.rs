//! The user whose orders a journal holds, noted beside it.
//!
//! A journal knows the service of its orders, and not the user. Run for another user, rows that it tells of would count
//! as placed in an account that has none of them.

use std::{fs, io, path::Path};

use steadfast::auth::Identity;
use steadfast_call::file::replace_own;

use super::beside;
use crate::exit::Failed;

/// The ending of the note. It holds the [label](Identity::user_label) of the user, which is no secret.
pub(crate) const USER: &str = ".user";

/// Refuses a journal of another user's orders, and notes the user beside one that has no note yet.
///
/// A run that has only a token does not know its user: nothing is compared and noted.
pub(crate) fn claim(journal: &Path, identity: &Identity) -> Result<(), Failed> {
    let Some(user) = identity.user_label() else { return Ok(()) };
    let note = beside(journal, USER);
    let unusable =
        |error: io::Error| Failed::usage(format_args!("{}: {error}; nothing was sent", note.display()));
    let noted = match fs::read_to_string(&note) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        noted => Some(noted.map_err(unusable)?),
    };
    match noted {
        Some(noted) if noted.trim() == user => Ok(()),
        Some(_) if journal.exists() => Err(Failed::usage(format_args!(
            "journal {} is of another user's orders: nothing was sent; check STEADFAST_CLIENT_ID, or name another journal \
             with --journal",
            journal.display()
        ))),
        _ => {
            let part = beside(&note, &format!(".{}.part", std::process::id()));
            replace_own(&note, &part, format!("{user}\n").as_bytes()).map_err(unusable)
        }
    }
}
