use steadfast_call::Lane;

use super::{Limiter, waiters::Waiter};
use crate::core::{
    decision::{Grant, WaiterId, ZoneId},
    key_set::KeySet,
    settings::Settings,
    time::Nanos,
};

/// Waiters that are not polled: futures that are kept and left alone, such as the idle branch of a `select!`.
///
/// They look like any other waiter until they are granted. A grant that is not collected goes to the next waiter,
/// and waiters that do not answer a roll call made meanwhile leave the queues. So any number of such futures delays
/// others by a second at most.
impl Limiter {
    /// A grant not collected within this time goes to the next waiter.
    const COLLECTED_WITHIN: Nanos = 1_000_000_000;

    /// A grant not collected within this time starts a roll call. A waiter that does not answer it for as long again
    /// counts as absent.
    pub(super) const CALLED_AFTER: Nanos = 500_000_000;

    /// How often every waiter checks on the others.
    const WAKES_EVERY: Nanos = 500_000_000;

    /// How long after the keeper of the zone's timer its deputy acts.
    const DEPUTY_AFTER: Nanos = 10_000_000;

    /// Returns when `waiter` wakes at the latest, and makes it the deputy in each queue where that place is free.
    ///
    /// The foremost waiter of a queue keeps its timer, and may be absent, as may a granted one. So one other waiter, the
    /// deputy, keeps the same timer; all others wake twice a second.
    pub(crate) fn plan_wake(&mut self, waiter: WaiterId, now: Nanos) -> Nanos {
        let mut at = self.waiters.next_check().min(now.saturating_add(Self::WAKES_EVERY));
        let Some(keys) = self.waiters.get(waiter).map(Waiter::keys) else { return at };
        for id in keys.iter() {
            let Some(queue) = self.keys.queue_mut(id) else { continue };
            let Some(alarm) = queue.alarm().filter(|alarm| alarm.waiter != waiter) else { continue };
            let is_there = |deputy: WaiterId| {
                deputy != waiter
                    && deputy != alarm.waiter
                    && self.waiters.get(deputy).is_some_and(|known| {
                        known.waits() && now < known.seen() + Self::WAKES_EVERY + Self::DEPUTY_AFTER
                    })
            };
            if !queue.deputy().is_some_and(is_there) {
                queue.appoint(waiter);
                at = at.min(alarm.at.saturating_add(Self::DEPUTY_AFTER));
            }
        }
        at
    }

    /// Examines the grants that have not been collected.
    pub(super) fn examine_uncollected(&mut self, now: Nanos) {
        let mut lapsed: Vec<Grant> = Vec::new();
        while let Some(waiter) = self.waiters.next_due(now) {
            let Some(known) = self.waiters.get(waiter) else { continue };
            let (keys, Some(granted)) = (known.keys(), known.granted_at()) else { continue };
            let is_over = known.is_late(now) || self.ignores_calls(known, now);
            if !is_over && now < granted + Self::COLLECTED_WITHIN {
                // ## Granted => Granted, and all waiters behind are called
                self.waiters.check_at(waiter, granted + Self::COLLECTED_WITHIN);
                self.call_roll(keys, now);
            } else {
                // ## Granted => gone
                //
                // Its next poll asks again, with its old place.
                let outcome = self.waiters.remove(waiter).and_then(Waiter::into_outcome);
                lapsed.extend(outcome.and_then(Result::ok));
            }
        }
        // All absent waiters leave before the first grant moves on. Waiters not called before are called now.
        lapsed.iter().for_each(|grant| self.dismiss(grant.keys(), now.saturating_sub(1)));
        lapsed.iter().for_each(|grant| self.call_roll(grant.keys(), now));
        lapsed.into_iter().for_each(|grant| self.give_back(grant, now));
    }

    /// Returns the zones and keys of a grant.
    pub(crate) fn zones_of(&self, grant: &Grant) -> Vec<(ZoneId, u64)> {
        let states = grant.keys().iter().map(|id| self.keys.get(id).0);
        states.map(|state| (state.zone(), state.key())).collect()
    }

    /// Records that the request left at `sent` and its call is no longer polled. A poll would probably find the
    /// answer, so the request counts as counted by now.
    pub(crate) fn presume_counted(&mut self, grant: Grant, sent: Nanos, now: Nanos) {
        self.lose_ended(grant, sent, Some(now.saturating_sub(Settings::AFTER_RESET)), now);
    }

    /// Counts a call as on its way once more, whether there is room or not: it was presumed counted, is polled
    /// again, and may leave only now.
    pub(crate) fn count_again(&mut self, zones: &[(ZoneId, u64)], lane: Lane, now: Nanos) -> Option<Grant> {
        let now = self.advance(now);
        let keys = self.keys.open(zones, now).ok()?;
        keys.iter().for_each(|id| self.keys.get_mut(id).0.spend(now));
        let mut grant = Grant::new(keys, lane, now);
        grant.make_unproving();
        Some(grant)
    }

    /// Drops absent waiters, for a request that would be refused otherwise. True if that shortened the queues.
    pub(super) fn drop_absent(&mut self, keys: KeySet, now: Nanos) -> bool {
        // Each check costs time proportional to the number of waiters.
        let is_due = keys
            .iter()
            .filter_map(|id| self.keys.queue(id))
            .any(|queue| queue.called().is_none_or(|called| called + Self::CALLED_AFTER <= now));
        if !is_due {
            return false;
        }
        let before = self.places(keys);
        self.drop_expired(keys, now);
        self.dismiss(keys, now.saturating_sub(Self::CALLED_AFTER));
        self.dispatch(keys, now);
        self.call_roll(keys, now);
        self.places(keys) < before
    }

    /// Returns how many wait in the queues of `keys`.
    fn places(&self, keys: KeySet) -> usize {
        keys.iter().filter_map(|id| self.keys.queue(id)).map(|queue| queue.len()).sum()
    }

    /// Wakes all waiters for a roll call, unless one has just been made.
    pub(crate) fn call_roll(&mut self, keys: KeySet, now: Nanos) {
        self.dismiss(keys, now.saturating_sub(Self::CALLED_AFTER));
        for id in keys.iter() {
            if let Some(queue) = self.keys.queue_mut(id)
                && queue.begin_call(now)
            {
                queue.waiters().into_iter().for_each(|waiter| self.waiters.wake(waiter));
            }
        }
    }

    /// True if the waiter was granted and has not answered an earlier roll call either.
    fn ignores_calls(&self, waiter: &Waiter, now: Nanos) -> bool {
        let called = waiter.keys().iter().filter_map(|id| self.keys.queue(id)?.called());
        called.into_iter().any(|called| waiter.seen() < called && called + Self::CALLED_AFTER <= now)
    }

    /// Removes waiters that did not answer the last roll call, if that was made by `until`. Their next poll restores
    /// their old place.
    pub(crate) fn dismiss(&mut self, keys: KeySet, until: Nanos) {
        for id in keys.iter() {
            let Some(queue) = self.keys.queue_mut(id) else { continue };
            let Some(called) = queue.end_call(until) else { continue };
            for waiter in queue.waiters() {
                if self.waiters.get(waiter).is_some_and(|known| known.seen() < called)
                    && let Some(absent) = self.waiters.remove(waiter)
                {
                    self.dequeue(absent.keys(), absent.place());
                }
            }
        }
    }

    /// Refuses waiters that can no longer be sent in time.
    fn drop_expired(&mut self, keys: KeySet, now: Nanos) {
        for waiter in keys
            .iter()
            .flat_map(|id| self.keys.queue(id).map(|queue| queue.waiters()).unwrap_or_default())
            .collect::<Vec<_>>()
        {
            if self.waiters.get(waiter).is_some_and(|known| known.is_late(now)) {
                self.refuse_late(waiter, now);
            }
        }
    }
}
