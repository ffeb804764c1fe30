use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use steadfast_dedup::journal::NotOwner;

use crate::{
    orders::{ledger::Fence, ownership::Ownership},
    rule::Micros,
    store::Store,
};

/// This process's knowledge of the owner, shared by those who ask and the thread that keeps the lease.
#[derive(Debug)]
pub(crate) struct Seat {
    ownership: Mutex<Ownership>,
    store: Arc<Store>,
    /// How often the kill switch was turned, as far as this process has heard. It never goes back, and all seats of the
    /// process share it, so a halt outlives a store that forgets it.
    turns: Arc<AtomicU64>,
}

/// How soon another process asks again at the earliest.
const SOONEST: Duration = Duration::from_secs(1);

impl Seat {
    pub(crate) fn new(ownership: Ownership, store: Arc<Store>, turns: Arc<AtomicU64>) -> Self {
        Self { ownership: Mutex::new(ownership), store, turns }
    }

    /// Takes in the turns of the kill switch that the store has told.
    pub(crate) fn hear(&self, turns: u64) {
        self.turns.fetch_max(turns, Ordering::SeqCst);
    }

    /// Returns the turns of the kill switch that were heard of.
    pub(crate) fn turns(&self) -> u64 {
        self.turns.load(Ordering::SeqCst)
    }

    /// Fails while another process may own the orders.
    pub(crate) fn owned(&self) -> Result<(), NotOwner> {
        let (ownership, now) = (self.ownership.lock(), self.store.now());
        if ownership.is_owner(now) { Ok(()) } else { Err(not_owner(&ownership, now)) }
    }

    /// Returns why this process may send no order, as far as it is known, whether it owns them or not.
    pub(crate) fn others(&self) -> NotOwner {
        not_owner(&self.ownership.lock(), self.store.now())
    }

    /// True once its ownership is over, for good.
    pub(crate) fn is_over(&self) -> bool {
        self.ownership.lock().is_over()
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

fn not_owner(ownership: &Ownership, now: Micros) -> NotOwner {
    let free_in = Duration::from_micros(ownership.free_in(now).unsigned_abs());
    NotOwner::new(ownership.owner().map(Arc::from), free_in.max(SOONEST))
}
