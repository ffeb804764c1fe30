use std::sync::Arc;

use steadfast_dedup::journal::{Durable, Entry, Journal, JournalError, NotOwner};

use super::seat::Seat;

/// A process's knowledge of who owns the orders of an account, from [`Standby::watch`](crate::Standby::watch) or
/// [`Orders::watch`](crate::Orders::watch).
///
/// As a [`Journal`] it is that of a client that places no orders: each is refused with the owner's name,
/// and cancels and reads pass.
///
/// # Clone
///
/// Clones know the same.
#[derive(Clone, Debug)]
pub struct OrdersWatch(Arc<Seat>);

impl OrdersWatch {
    pub(crate) fn new(seat: Arc<Seat>) -> Self {
        Self(seat)
    }

    /// True while this process owns the orders.
    #[must_use]
    pub fn is_owner(&self) -> bool {
        self.0.owned().is_ok()
    }

    /// True once this process has lost the orders for good: what it holds of them is not what the store holds.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.is_over()
    }

    /// Returns the name of the process that owns them, if it is another one and known.
    #[must_use]
    pub fn owner(&self) -> Option<Arc<str>> {
        self.0.owner()
    }
}

impl Journal for OrdersWatch {
    fn recover(&self) -> Vec<Entry> {
        Vec::new()
    }

    /// Only an owner has something to write.
    fn append(&self, _: Entry) {}

    fn append_durably(&self, _: Entry) -> Durable {
        Durable::known(Err(JournalError::NotOwner(self.0.others())))
    }

    fn flush(&self) -> Durable {
        Durable::known(Ok(()))
    }

    fn owned(&self) -> Result<(), NotOwner> {
        Err(self.0.others())
    }

    fn can_be_lost(&self) -> bool {
        true
    }

    fn halt_turns(&self) -> u64 {
        self.0.turns()
    }

    fn salt(&self) -> [u8; 16] {
        [0; 16]
    }
}
