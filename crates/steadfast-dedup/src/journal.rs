//! The trace of sends that outlives the process.
//!
//! A crash between the send of an order and its answer leaves an order in doubt that nobody remembers. With a
//! [`Journal`] the ledger writes down that a send begins *before* it begins, and the next process looks for every order
//! whose answer is not written down.
//!
//! # Rules
//!
//! 1. [`Record::Begun`] is durable before the order goes down the stack. Everything else may be lost: an answer that is
//!    not written down is a doubt, which the next process resolves.
//! 2. The position in the journal is the clock. Lists that were seen before a send stand before it, and are durable
//!    with it.
//! 3. A journal that fails keeps orders from being sent. Reads and cancels go on.
//! 4. A send that waits longer than a second for the disk gives its permit back and asks for one anew.
//! 5. What is written holds no secret.
//! 6. A journal that is not where it was fails like one that cannot be written: after each sync, and before a send is
//!    told durable, the file and its lock must still be what stands under their names. One that was moved, removed or
//!    replaced is what the next process would read, or would not. The lock says which journal it belongs to, so that the
//!    next process does not begin anew where that one is missing ([`JournalError::Lost`]).
//!
//! 7. The lock also notes how far the journal was written, after each sync. A journal that lacks some of it was cut, or put
//!    back from an older copy, while no process ran, and is refused ([`JournalError::Outdated`]); one that goes further
//!    is what a loss of power may leave.
//! 8. A journal with another name is refused, and no send is told durable in one ([`JournalError::Linked`]): the lock goes
//!    by the name.
//!
//! # Believing a journal all the same
//!
//! Whoever removes the lock says that the journal is to be believed as it stands. Nothing else does. Before that, compare
//! the service's order list with what the journal holds ([`FileJournal::read`]; on the command line
//! `steadfast orders unresolved --journal FILE`): an order that it lacks would be sent again under its name.
//!
//! What rules 6 to 8 cannot know: a journal that is gone, or put back, together with its lock; a copy under another name,
//! which is a journal of its own; and after a loss of power, a cut of what was written in the last seconds before. What
//! is sent in the moment between the check and the send is in the file that was moved. Elsewhere than on Unix see
//! [`FileSystem`].
//!
//! # Why a log
//!
//! [`FileJournal`] is an append-only file of checked records. An embedded store would do; measured beside one (redb 4,
//! one commit per order, 230 bytes, ext4), the log took 55 µs where it took 90 to 125, and wrote 4.6 KB to the device
//! where it wrote 29 to 33 KB. More than that, its order of writes *is* the clock that the protocol needs, and every
//! image that a crash can leave of it is small enough to be tried.

mod disk;
mod durable;
mod entry;
mod error;
mod file;
mod fold;
mod frame;
mod log;
mod mark;
mod recorder;

use std::{fmt, path::Path};

pub(crate) use self::recorder::{Recorder, session_of};
pub use self::{
    disk::{Disk, DiskFile, FileSystem},
    durable::{Durable, Report},
    entry::{Entry, Record},
    error::JournalError,
    file::FileJournal,
    log::Log,
};

/// Where a ledger writes down what must outlive the process.
///
/// Entries become durable in the order in which they were added. Adding one returns at once.
pub trait Journal: Send + Sync + fmt::Debug {
    /// What earlier processes wrote down and still matters, in its order. Asked for once, before anything is added.
    fn recover(&self) -> Vec<Entry>;

    /// Adds an entry that may be lost.
    fn append(&self, entry: Entry);

    /// Adds an entry, and says when it is durable with all before it.
    fn append_durably(&self, entry: Entry) -> Durable;

    /// Says when everything that was added is durable.
    fn flush(&self) -> Durable;

    /// Where it is kept, for whoever is told that something is wrong with it.
    fn path(&self) -> Option<&Path> {
        None
    }

    /// What sessions are hashed with: the same for all entries of the journal.
    fn salt(&self) -> [u8; 16];
}
