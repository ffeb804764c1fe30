//! Records sends so that they outlive the process.
//!
//! A crash between the send of an order and its answer leaves an order in doubt that no process knows of. With a
//! [`Journal`] the tracker writes down that a send begins *before* it begins, and the next process searches for every
//! order whose answer is not written down.
//!
//! # Rules
//!
//! 1. [`Record::Begun`] is durable before the order goes down the stack. Every other record may be lost: an answer
//!    that is not written down is a doubt, which the next process resolves.
//! 2. The position in the journal is the clock. Lists that were seen before a send are before it in the journal, and
//!    durable with it.
//! 3. A journal that fails stops new orders. Reads and cancels go on. One that finds the disk full goes on once there is
//!    room, also if it was [opened](FileJournal::open_even_if_full) on a full disk; after any other failure orders leave
//!    again in the next process ([`Journal::failure`]).
//! 4. A send that waits longer than a second for the disk gives its permit back and asks for another.
//! 5. No secret is written.
//! 6. A journal that is not in its place fails like one that cannot be written: after each sync, and before a send is
//!    reported durable, the file and its lock must still be at their paths. If the file was moved, removed or
//!    replaced, the next process would read another one, or none. The lock names its journal, so the next process
//!    does not begin a new one where that is missing ([`JournalError::Lost`]).
//! 7. The lock also notes how far the journal was written, after each sync. A journal that lacks some of it was cut,
//!    or put back from an older copy, while no process ran, and is not opened ([`JournalError::Outdated`]). One that
//!    goes further is what a loss of power may leave.
//! 8. A journal with a second name is not opened, and no send is reported durable in one ([`JournalError::Linked`]): the
//!    lock goes by the name.
//!
//! # Accepting a journal as it is
//!
//! Removing the lock makes the next process accept the journal as it is. Nothing else does. Before that, compare the
//! service's order list with the content of the journal ([`FileJournal::read`]; on the command line
//! `steadfast orders unresolved --journal FILE`): an order that it lacks would be sent again under its name.
//!
//! Rules 6 to 8 do not notice: a journal that is gone, or put back, together with its lock; a copy under another
//! name, which is a journal of its own; and, after a loss of power, a cut of the last seconds before it. An order
//! sent in the moment between the check and the send is in the file that was moved. For systems other than Unix see
//! [`FileSystem`].
//!
//! # Why a log
//!
//! [`FileJournal`] is an append-only file of checked records. An embedded store would work too; measured beside one
//! (redb 4, one commit per order, 230 bytes, ext4), the log took 55 µs instead of 90 to 125, and wrote 4.6 KB to the
//! device instead of 29 to 33 KB. Also, its order of writes *is* the clock that the protocol needs, and every image
//! that a crash can leave of it is small enough to be tested.

mod content;
mod disk;
mod durable;
mod entry;
mod error;
mod file;
mod fold;
mod frame;
mod lock_note;
mod log;
mod on_disk;
mod owner;
mod paths;
mod recorder;
mod successor;

use std::{fmt, path::Path};

#[cfg(test)]
pub(crate) use self::fold::Fold;
pub(crate) use self::recorder::{Recorder, session_of};
pub use self::{
    disk::{Disk, DiskFile, FileSystem},
    durable::{Durable, Report},
    entry::{Entry, Record},
    error::{JournalError, NoJournal},
    file::FileJournal,
    log::Log,
    owner::NotOwner,
};

/// The store for everything about orders that must outlive the process.
///
/// Entries become durable in the order in which they were added. Adding one returns at once.
pub trait Journal: Send + Sync + fmt::Debug {
    /// Returns the entries of earlier processes that still matter, in their order. Called once, before anything is
    /// added.
    fn recover(&self) -> Vec<Entry>;

    /// Adds an entry that may be lost.
    fn append(&self, entry: Entry);

    /// Adds an entry; the result tells when it is durable with all before it.
    fn append_durably(&self, entry: Entry) -> Durable;

    /// Tells when everything that was added is durable.
    fn flush(&self) -> Durable;

    /// Fails while this process does not own the orders, so that none may leave. Asked before each send, once more where
    /// the transport polls its body, and before a list counts.
    ///
    /// # Errors
    ///
    /// [`NotOwner`], where processes share a journal.
    fn owned(&self) -> Result<(), NotOwner> {
        Ok(())
    }

    /// True if that may come to fail.
    fn can_be_lost(&self) -> bool {
        false
    }

    /// Returns how often the kill switch was turned that all processes share: an odd number while it halts. Asked where
    /// [`owned`](Self::owned) is, if that may fail.
    fn halt_turns(&self) -> u64 {
        0
    }

    /// Returns why no order can be written down now, as far as known; `None` if nothing speaks against it.
    fn failure(&self) -> Option<JournalError> {
        None
    }

    /// Returns its path, for error messages.
    fn path(&self) -> Option<&Path> {
        None
    }

    /// Returns the salt that sessions are hashed with: the same for all entries of the journal.
    fn salt(&self) -> [u8; 16];
}
