use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Tells whether something has changed since the last record, and whether a task exists to write it.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    has_changed: AtomicBool,
    has_writer: AtomicBool,
}

impl Pending {
    /// Records a change, or that a change taken was not written.
    pub(crate) fn note(&self) {
        self.has_changed.store(true, SeqCst);
    }

    /// Records a change. True if the caller must start a writer.
    pub(crate) fn change(&self) -> bool {
        self.note();
        !self.has_writer.swap(true, SeqCst)
    }

    /// Takes the changes so far, for one record. False ends the writer: nothing is left to write.
    pub(crate) fn take(&self) -> bool {
        while !self.has_changed.swap(false, SeqCst) {
            self.has_writer.store(false, SeqCst);
            // A change between the two accesses has seen a writer that was about to end.
            if !self.has_changed.load(SeqCst) || self.has_writer.swap(true, SeqCst) {
                return false;
            }
        }
        true
    }

    /// Records that no writer exists, so the next change starts one.
    pub(crate) fn writer_ended(&self) {
        self.has_writer.store(false, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: it claimed to be the writer for a moment, and a change inside of a runtime relied on it.
    #[test]
    fn a_change_that_nothing_can_write_yet_claims_no_writer() {
        let pending = Pending::default();
        pending.note();
        assert!(pending.change(), "the next change starts a writer");
        assert!(!pending.change(), "which is the only one");
        assert!(pending.take());
        assert!(!pending.take());
        pending.note();
        assert!(pending.change() && pending.take());
    }
}
