use std::{
    collections::BTreeMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::numbers::IntentNo;

/// The calls that have joined an order's call under its name, while they wait.
///
/// The protocol forgets an intent that placed nothing, and so whether the service rejected it or its caller left.
/// After a rejection the joined calls are told of it (I13); after a drop one of them takes over.
#[derive(Debug, Default)]
pub(crate) struct Joined(BTreeMap<IntentNo, Weak<AtomicBool>>);

/// Whether the order of a joined call was rejected.
#[derive(Clone, Debug)]
pub(crate) struct Rejected(Arc<AtomicBool>);

impl Joined {
    pub(crate) fn join(&mut self, intent: IntentNo) -> Rejected {
        self.0.retain(|_, waiting| waiting.strong_count() > 0);
        let known = self.0.get(&intent).and_then(Weak::upgrade);
        let rejected = known.unwrap_or_default();
        self.0.insert(intent, Arc::downgrade(&rejected));
        Rejected(rejected)
    }

    pub(crate) fn reject(&mut self, intent: IntentNo) {
        if let Some(waiting) = self.0.remove(&intent).and_then(|waiting| waiting.upgrade()) {
            waiting.store(true, Ordering::Relaxed);
        }
    }
}

impl Rejected {
    /// True if the service has rejected the order. Ask after the call has ended; a lock publishes that end.
    pub(crate) fn is_certain(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_who_wait_are_told_and_nobody_else_and_nothing_is_kept_for_those_who_are_gone() {
        let mut joined = Joined::default();
        let (first, second) = (joined.join(IntentNo(1)), joined.join(IntentNo(1)));
        let other = joined.join(IntentNo(2));
        joined.reject(IntentNo(1));
        assert!(first.is_certain() && second.is_certain() && !other.is_certain());
        assert!(!joined.join(IntentNo(1)).is_certain(), "a later call is another one");
        drop((first, second, other));
        let kept = joined.join(IntentNo(3));
        assert_eq!(joined.0.len(), 1);
        joined.reject(IntentNo(7));
        assert!(!kept.is_certain());
    }
}
