use std::task::Waker;

use crate::core::decision::WaiterId;

/// The wakers of the waiters, by waiter slot. A slot may meanwhile belong to another waiter.
///
/// A waker may own a future that takes the limiter's lock when it is dropped. So each waker removed is returned, to
/// be dropped without the lock.
#[derive(Default)]
pub(super) struct Wakers(Vec<Option<(WaiterId, Waker)>>);

impl Wakers {
    /// Returns how many are kept.
    #[cfg(all(test, shuttle))]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn take(&mut self, waiter: WaiterId) -> Option<Waker> {
        let kept = self.0.get_mut(waiter.slot())?.take_if(|(whose, _)| *whose == waiter);
        kept.map(|(_, waker)| waker)
    }

    /// Keeps the waker of `waiter`. Returns the one replaced.
    pub(super) fn keep(&mut self, waiter: WaiterId, waker: &Waker) -> Option<Waker> {
        if self.0.len() <= waiter.slot() {
            self.0.resize(waiter.slot() + 1, None);
        }
        match &mut self.0[waiter.slot()] {
            Some((whose, kept)) => {
                *whose = waiter;
                replace(kept, waker)
            }
            none => {
                *none = Some((waiter, waker.clone()));
                None
            }
        }
    }

    /// Removes the waker of `waiter`, and memory that is not needed.
    pub(super) fn forget(&mut self, waiter: WaiterId) -> Option<Waker> {
        let forgotten = self.take(waiter);
        while self.0.last().is_some_and(Option::is_none) {
            self.0.pop();
        }
        if self.0.is_empty() {
            self.0 = Vec::new();
        }
        forgotten
    }
}

/// Replaces `kept`, unless it wakes the same task. Returns the one replaced.
pub(super) fn replace(kept: &mut Waker, waker: &Waker) -> Option<Waker> {
    (!kept.will_wake(waker)).then(|| std::mem::replace(kept, waker.clone()))
}
