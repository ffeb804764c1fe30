use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::{
    error::OrderWithheld,
    journal::{Journal, NotOwner},
};

/// The kill switch of a tracker: whether orders and changes may leave.
///
/// A counter that grows with every turn of the switch and is even while they may leave. A request belongs to the epoch
/// in which it was made and leaves in no other: an order that waited in a queue during a halt does not leave after a
/// resume. Where processes share the orders, their common switch counts as well.
#[derive(Debug, Default)]
pub(crate) struct Halt {
    turns: AtomicU64,
    /// The journal, where processes share it: orders may leave only from its owner, and it tells of the common switch.
    shared: Option<Arc<dyn Journal>>,
}

/// A time between two halts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HaltEpoch {
    /// The turns of the tracker's own switch.
    own: u64,
    /// The turns of the switch that processes share.
    common: u64,
}

impl HaltEpoch {
    /// Of calls that are made during a halt. It is odd, so that nothing leaves in it.
    pub(crate) const HALTED: Self = Self { own: u64::MAX, common: 0 };

    fn is_halted(self) -> bool {
        !self.own.is_multiple_of(2) || !self.common.is_multiple_of(2)
    }
}

impl Halt {
    pub(crate) fn new(journal: &Arc<dyn Journal>) -> Self {
        let shared = journal.can_be_lost().then(|| Arc::clone(journal));
        Self { turns: AtomicU64::default(), shared }
    }

    /// Fails while another process may own the orders.
    pub(crate) fn owned(&self) -> Result<(), NotOwner> {
        self.shared.as_ref().map_or(Ok(()), |journal| journal.owned())
    }

    /// True if the orders may become another process's.
    pub(crate) fn can_be_lost(&self) -> bool {
        self.shared.is_some()
    }

    /// Fails unless requests of this epoch may leave.
    pub(crate) fn check(&self, epoch: Option<HaltEpoch>) -> Result<(), OrderWithheld> {
        self.owned().map_err(OrderWithheld::NotOwner)?;
        if epoch.is_some_and(|epoch| self.permits(epoch)) { Ok(()) } else { Err(OrderWithheld::Halted) }
    }

    pub(crate) fn halt(&self) {
        self.turn(|turns| turns.is_multiple_of(2));
    }

    pub(crate) fn resume(&self) {
        self.turn(|turns| !turns.is_multiple_of(2));
    }

    /// Returns the epoch that a request made now belongs to; `None` while everything is halted.
    pub(crate) fn epoch(&self) -> Option<HaltEpoch> {
        let own = self.turns.load(Ordering::SeqCst);
        let common = self.shared.as_ref().map_or(0, |journal| journal.halt_turns());
        let epoch = HaltEpoch { own, common };
        (!epoch.is_halted()).then_some(epoch)
    }

    /// True if its own switch halts, whatever the common one does.
    pub(crate) fn halts_itself(&self) -> bool {
        !self.turns.load(Ordering::SeqCst).is_multiple_of(2)
    }

    /// True if no halt keeps requests of this epoch.
    fn permits(&self, epoch: HaltEpoch) -> bool {
        self.epoch() == Some(epoch)
    }

    fn turn(&self, due: impl Fn(u64) -> bool) {
        // A second halt changes nothing.
        let _ = self
            .turns
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |turns| due(turns).then(|| turns + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_before_a_halt_is_not_permitted_after_it() {
        let halt = Halt::default();
        let before = halt.epoch().unwrap();
        assert!(halt.permits(before));
        halt.halt();
        halt.halt();
        assert!(!halt.permits(before) && halt.epoch().is_none());
        halt.resume();
        halt.resume();
        let after = halt.epoch().unwrap();
        assert!(!halt.permits(before) && halt.permits(after));
        assert!(!halt.permits(HaltEpoch::HALTED));
    }
}
