use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use steadfast_dedup::journal::NotOwner;

use crate::{
    orders::{ledger::Fence, ownership::Ownership},
    store::Store,
};

/// This process's knowledge of the owner, shared by those who ask and the thread that keeps the lease.
#[derive(Debug)]
pub(crate) struct Seat {
    ownership: Mutex<Ownership>,
    store: Arc<Store>,
}

/// How soon another process asks again at the earliest.
const SOONEST: Duration = Duration::from_secs(1);

impl Seat {
    pub(crate) fn new(ownership: Ownership, store: Arc<Store>) -> Self {
        Self { ownership: Mutex::new(ownership), store }
    }

    /// Fails while another process may own the orders.
    pub(crate) fn owned(&self) -> Result<(), NotOwner> {
        let (ownership, now) = (self.ownership.lock(), self.store.now());
        if ownership.is_owner(now) {
            return Ok(());
        }
        let free_in = Duration::from_micros(ownership.free_in(now).unsigned_abs());
        Err(NotOwner::new(ownership.owner().map(Arc::from), free_in.max(SOONEST)))
    }

    /// Returns the fence of what it writes, unless its ownership is over.
    pub(crate) fn fence(&self) -> Option<Fence> {
        self.ownership.lock().fence()
    }

    pub(crate) fn owner(&self) -> Option<Arc<str>> {
        self.ownership.lock().owner().map(Arc::from)
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Ownership) -> T) -> T {
        change(&mut self.ownership.lock())
    }
}
