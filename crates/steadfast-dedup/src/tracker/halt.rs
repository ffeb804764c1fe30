use std::sync::atomic::{AtomicU64, Ordering};

/// The kill switch of a tracker: whether orders and changes may leave.
///
/// A counter that grows with every turn of the switch and is even while they may leave. A request belongs to the epoch
/// in which it was made and leaves in no other: an order that waited in a queue during a halt does not leave after a
/// resume.
#[derive(Debug, Default)]
pub(crate) struct Halt(AtomicU64);

/// A time between two halts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HaltEpoch(u64);

impl HaltEpoch {
    /// Of calls that are made during a halt. It is odd, so that nothing leaves in it.
    pub(crate) const HALTED: Self = Self(u64::MAX);
}

impl Halt {
    pub(crate) fn halt(&self) {
        self.turn(|turns| turns.is_multiple_of(2));
    }

    pub(crate) fn resume(&self) {
        self.turn(|turns| !turns.is_multiple_of(2));
    }

    /// Returns the epoch that a request made now belongs to; `None` while everything is halted.
    pub(crate) fn epoch(&self) -> Option<HaltEpoch> {
        let turns = self.0.load(Ordering::SeqCst);
        turns.is_multiple_of(2).then_some(HaltEpoch(turns))
    }

    /// True if requests of this epoch may leave.
    pub(crate) fn permits(&self, epoch: HaltEpoch) -> bool {
        self.epoch() == Some(epoch)
    }

    fn turn(&self, due: impl Fn(u64) -> bool) {
        // A second halt changes nothing.
        let _ =
            self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |turns| due(turns).then(|| turns + 1));
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
