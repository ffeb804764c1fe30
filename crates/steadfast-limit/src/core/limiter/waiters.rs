use std::collections::BTreeSet;

use slab::Slab;

use crate::{
    core::{
        decision::{Ask, Grant, WaiterId},
        key_set::KeySet,
        queue::Place,
        time::Nanos,
    },
    error::Refusal,
};

/// The waiting requests, and those that have been concluded and not yet heard of it.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    all: Slab<Waiter>,
    /// The turn of the latest arrival.
    arrivals: i64,
    /// Grants not yet collected, by the instant at which each is due for a check.
    uncollected: BTreeSet<(Nanos, WaiterId)>,
    woken: Vec<WaiterId>,
}

/// A waiting request.
#[derive(Debug)]
pub(super) struct Waiter {
    keys: KeySet,
    place: Place,
    send_by: Option<Nanos>,
    outcome: Option<Result<Grant, Refusal>>,
    /// When it was last polled.
    seen: Nanos,
    /// When its grant is due for a check.
    due: Option<Nanos>,
}

impl Waiter {
    pub(super) fn keys(&self) -> KeySet {
        self.keys
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    pub(super) fn send_by(&self) -> Option<Nanos> {
        self.send_by
    }

    pub(super) fn seen(&self) -> Nanos {
        self.seen
    }

    /// True if it has been neither granted nor refused.
    pub(super) fn waits(&self) -> bool {
        self.outcome.is_none()
    }

    pub(super) fn is_late(&self, now: Nanos) -> bool {
        self.send_by.is_some_and(|send_by| send_by < now)
    }

    /// Returns when it was granted, if it was.
    pub(super) fn granted_at(&self) -> Option<Nanos> {
        self.outcome.as_ref().and_then(|outcome| outcome.as_ref().ok()).map(Grant::at)
    }

    pub(super) fn into_outcome(self) -> Option<Result<Grant, Refusal>> {
        self.outcome
    }
}

impl Waiters {
    /// Adds a waiter for `ask`. One that waited before as `former` gets its old place back.
    pub(super) fn add(&mut self, keys: KeySet, ask: &Ask<'_>, former: Option<WaiterId>, now: Nanos) -> Place {
        // A granted waiter was the foremost of its lane; all later arrivals stand behind its old place.
        let arrival = former.map_or(self.arrivals + 1, |former| former.turn);
        self.arrivals = self.arrivals.max(arrival);
        let entry = self.all.vacant_entry();
        let waiter = WaiterId { slot: entry.key() as u32, turn: arrival };
        let place = Place::of(waiter, ask);
        entry.insert(Waiter { keys, place, send_by: ask.send_by, outcome: None, seen: now, due: None });
        place
    }

    pub(super) fn get(&self, id: WaiterId) -> Option<&Waiter> {
        self.all.get(id.slot()).filter(|known| known.place.waiter == id)
    }

    /// Records that a waiter is polled.
    pub(super) fn polled(&mut self, id: WaiterId, now: Nanos) -> Option<&Waiter> {
        let known = self.all.get_mut(id.slot()).filter(|known| known.place.waiter == id)?;
        known.seen = now;
        Some(known)
    }

    /// Records the end of a wait, and wakes the waiter.
    pub(super) fn conclude(&mut self, id: WaiterId, outcome: Result<Grant, Refusal>) {
        self.all[id.slot()].outcome = Some(outcome);
        self.woken.push(id);
    }

    /// Removes a waiter with everything kept for it.
    pub(super) fn remove(&mut self, id: WaiterId) -> Option<Waiter> {
        self.get(id)?;
        self.unwake(id);
        let known = self.all.remove(id.slot());
        if let Some(due) = known.due {
            self.uncollected.remove(&(due, id));
        }
        Some(known)
    }

    /// Returns how the wait ended, and removes the waiter. `None` if it still waits.
    pub(super) fn collect(&mut self, id: WaiterId) -> Option<Result<Grant, Refusal>> {
        self.get(id).filter(|known| !known.waits())?;
        self.remove(id)?.outcome
    }

    pub(super) fn wake(&mut self, id: WaiterId) {
        self.woken.push(id);
    }

    /// Records that a waiter need not be woken: it is here.
    pub(super) fn unwake(&mut self, id: WaiterId) {
        if !self.woken.is_empty() {
            self.woken.retain(|woken| *woken != id);
        }
    }

    pub(super) fn take_woken(&mut self) -> Vec<WaiterId> {
        std::mem::take(&mut self.woken)
    }

    /// Checks at `due`, or after the waiter's `send_by` if that is earlier, whether it has collected its grant.
    pub(super) fn check_at(&mut self, id: WaiterId, due: Nanos) {
        let known = &mut self.all[id.slot()];
        let due = known.send_by.map_or(due, |send_by| due.min(send_by.saturating_add(1)));
        known.due = Some(due);
        self.uncollected.insert((due, id));
    }

    /// Returns when the next check is due.
    pub(super) fn next_check(&self) -> Nanos {
        self.uncollected.first().map_or(Nanos::MAX, |(due, _)| *due)
    }

    /// Returns the next waiter whose check is due at `now`.
    pub(super) fn next_due(&mut self, now: Nanos) -> Option<WaiterId> {
        let (due, waiter) = *self.uncollected.first()?;
        if due > now {
            return None;
        }
        self.uncollected.pop_first();
        self.all[waiter.slot()].due = None;
        Some(waiter)
    }

    /// Gives back memory, if none waits.
    pub(super) fn shrink(&mut self) {
        if self.all.is_empty() {
            self.all.shrink_to_fit();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        // A slab's entry is a value and a tag.
        self.all.capacity() * (size_of::<Waiter>() + size_of::<usize>())
    }
}
