use std::task::Waker;

use crate::core::decision::WaiterId;

/// The wakers of the waiters, by waiter slot. A slot may meanwhile belong to another waiter.
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

    /// Keeps the waker of `waiter`.
    pub(super) fn keep(&mut self, waiter: WaiterId, waker: &Waker) {
        if self.0.len() <= waiter.slot() {
            self.0.resize(waiter.slot() + 1, None);
        }
        match &mut self.0[waiter.slot()] {
            Some((whose, kept)) => {
                *whose = waiter;
                kept.clone_from(waker);
            }
            none => *none = Some((waiter, waker.clone())),
        }
    }

    /// Removes the waker of `waiter`.
    pub(super) fn forget(&mut self, waiter: WaiterId) {
        self.take(waiter);
        while self.0.last().is_some_and(Option::is_none) {
            self.0.pop();
        }
        if self.0.is_empty() {
            self.0 = Vec::new();
        }
    }
}
