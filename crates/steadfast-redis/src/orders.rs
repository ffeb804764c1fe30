//! The owner of an account's orders, and their journal.

pub(crate) mod book;
pub(crate) mod error;
pub(crate) mod halt_call;
mod hearing;
mod keeper;
pub(crate) mod ledger;
#[cfg(test)]
mod model;
pub(crate) mod ownership;
pub(crate) mod scripts;
mod seat;
#[cfg(test)]
mod simulation;
pub(crate) mod standby;
pub(crate) mod watch;

use std::{fmt, sync::Arc, thread::JoinHandle};

use parking_lot::Mutex;
use steadfast_call::ext::Account;
use steadfast_dedup::journal::{Durable, Entry, Journal, JournalError, NotOwner};
use tokio::sync::mpsc::UnboundedSender;

pub(crate) use self::keeper::Policy;
use self::{keeper::Job, seat::Seat, watch::OrdersWatch};

/// The orders of an account, as one process has them: its own, or another one's.
///
/// One process owns the orders of an account at a time. It alone places and changes orders; every process reads and
/// cancels. What it must not forget is in a journal in the store, which the next owner reads: it sends no order again that
/// was sent, and looks for those that are in doubt, as after a crash.
///
/// 1. An owner renews its lease every 2 s. It counts as the owner for 6 s from a renewal on, by its own clock, which is
///    asked where the transport polls the order's body.
/// 2. Another process takes the orders when it has seen a lease stand still for 8 s, by its own clock, or at once if they
///    were given back. The store's clock plays no part.
/// 3. Each entry of the journal carries the fence of its owner: a number and 128 random bits. The store writes none with
///    another fence, and no order leaves before its entry is written.
/// 4. A process that has lost the orders does not get them back. Its calls that wait end in doubt
///    ([`Reason::OwnerChanged`](steadfast_dedup::Reason::OwnerChanged)): it takes no listed order for its own any more, as
///    that may be the new owner's.
/// 5. If the store may lack an entry, no process gets the orders until a person
///    [accepts](crate::Shared::accept_orders) that: an order that the journal lacks would be sent again under its name.
///
/// # Drop
///
/// Dropping it writes what was added, and gives the orders back. It waits for that, for 6 s at most if the store does not
/// answer.
pub struct Orders {
    seat: Arc<Seat>,
    account: Account,
    queue: Option<UnboundedSender<Job>>,
    keeper: Option<JoinHandle<()>>,
    entries: Mutex<Vec<Entry>>,
    salt: [u8; 16],
}

impl Orders {
    /// True while this process owns the orders.
    #[must_use]
    pub fn is_owner(&self) -> bool {
        self.seat.owned().is_ok()
    }

    /// Returns the name of the process that owns them, if it is another one and known.
    #[must_use]
    pub fn owner(&self) -> Option<Arc<str>> {
        self.seat.owner()
    }

    /// Returns what is known of the owner, now and later, also when a client has these orders.
    #[must_use]
    pub fn watch(&self) -> OrdersWatch {
        OrdersWatch::new(Arc::clone(&self.seat))
    }

    /// Returns the account.
    #[must_use]
    pub fn account(&self) -> &Account {
        &self.account
    }

    fn give(&self, job: Job) {
        // Without an owner nothing is written. A thread that has died drops the reports of its jobs, which ends the waits
        // for them.
        if let Some(queue) = &self.queue {
            drop(queue.send(job));
        }
    }

    fn durable(&self, entry: Option<Entry>) -> Durable {
        if self.queue.is_none()
            && let Err(not_owner) = self.seat.owned()
        {
            return Durable::known(Err(JournalError::NotOwner(not_owner)));
        }
        let (report, durable) = Durable::pending();
        self.give(Job::Sync(entry, report));
        durable
    }
}

impl Journal for Orders {
    fn recover(&self) -> Vec<Entry> {
        std::mem::take(&mut self.entries.lock())
    }

    fn append(&self, entry: Entry) {
        self.give(Job::Append(entry));
    }

    fn append_durably(&self, entry: Entry) -> Durable {
        self.durable(Some(entry))
    }

    fn flush(&self) -> Durable {
        self.durable(None)
    }

    fn owned(&self) -> Result<(), NotOwner> {
        self.seat.owned()
    }

    fn can_be_lost(&self) -> bool {
        true
    }

    fn halt_turns(&self) -> u64 {
        self.seat.turns()
    }

    fn salt(&self) -> [u8; 16] {
        self.salt
    }
}

impl Drop for Orders {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(keeper) = self.keeper.take() {
            // A thread that panicked has reported that.
            drop(keeper.join());
        }
    }
}

impl fmt::Debug for Orders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orders")
            .field("account", &self.account)
            .field("is_owner", &self.is_owner())
            .finish_non_exhaustive()
    }
}
