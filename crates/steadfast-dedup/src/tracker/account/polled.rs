//! Notices calls that their callers keep and do not poll any more.

use std::sync::Arc;

use super::Account;
use crate::{
    protocol::event::Event,
    tracker::{
        polled_calls::{POLLED_WITHIN, PolledCall},
        waiters::About,
    },
};

impl Account {
    /// Adds a call that waits; [`remove_polled`](Self::remove_polled) removes it by the number that this returns.
    pub(crate) fn add_polled(&self, call: Arc<dyn PolledCall>) -> u64 {
        self.shared.look(|state| state.calls.add(call))
    }

    pub(crate) fn remove_polled(&self, number: u64) {
        // Dropped without the lock.
        drop(self.shared.look(|state| state.calls.remove(number)));
    }

    /// Lets time pass: the protocol decides what is due, and calls are checked if that is due.
    pub(crate) fn tick(self: &Arc<Self>) {
        let is_check_due = self.with(|state, now, effects| {
            effects.extend(state.protocol.step(now, Event::Tick));
            state.calls.begin_check(now)
        });
        if is_check_due {
            // One whose order has not left may go on whenever it is polled again.
            let is_sent = |call: &Arc<dyn PolledCall>| {
                call.intent().is_some_and(|intent| self.shared.look(|state| state.protocol.is_sent(intent)))
            };
            self.unpolled().into_iter().filter(is_sent).for_each(PolledCall::leave_unpolled);
        }
    }

    /// Waits until no order is in flight or in doubt and no call is open. Calls that are not polled meanwhile end, or go
    /// on without their callers.
    pub(super) async fn quiet(self: &Arc<Self>) {
        loop {
            let quiet = self.wait(About::Change, |state| state.is_quiet().then_some(()));
            if self.within(POLLED_WITHIN, quiet).await.is_some() {
                return;
            }
            self.unpolled().into_iter().for_each(PolledCall::leave_unpolled);
        }
    }

    /// Wakes all calls that wait, and returns those that were woken before and not polled since.
    fn unpolled(&self) -> Vec<Arc<dyn PolledCall>> {
        let now = self.shared.clock().now();
        let mut calls = self.shared.look(|state| state.calls.waiting());
        // Without the lock: a waker may run anything.
        calls.retain(|call| !call.wake(now));
        calls
    }
}
