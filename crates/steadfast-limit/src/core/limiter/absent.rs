use super::{Limiter, dispatch::Waiter};
use steadfast_spec::Lane;

use crate::core::{
    decision::{Grant, LedgerSet, WaiterId, ZoneId},
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
    const CALLED_AFTER: Nanos = 500_000_000;

    /// How often every waiter checks on the others.
    const LOOKS_EVERY: Nanos = 500_000_000;

    /// How long after the keeper of the zone's timer its deputy acts.
    const DEPUTY_AFTER: Nanos = 10_000_000;

    /// Returns when `waiter` wakes at the latest: the keeper of the zone's timer, or a granted waiter, may be
    /// absent.
    ///
    /// One present waiter that is not foremost is the deputy and keeps the same timer. All others wake twice a
    /// second.
    pub(crate) fn looks_at(&mut self, waiter: WaiterId, now: Nanos) -> Nanos {
        let mut at = self.tends_at.min(now.saturating_add(Self::LOOKS_EVERY));
        let ledgers = self.waiters[waiter.slot()].ledgers;
        for id in ledgers.iter() {
            let Some(queue) = self.ledgers[id].queue.as_mut() else { continue };
            let Some(alarm) = queue.alarm.filter(|alarm| alarm.waiter != waiter) else { continue };
            let is_there = |deputy: WaiterId| {
                deputy != waiter
                    && deputy != alarm.waiter
                    && self.waiters.get(deputy.slot()).is_some_and(|known| {
                        known.place.waiter == deputy
                            && known.outcome.is_none()
                            && now < known.seen + Self::LOOKS_EVERY + Self::DEPUTY_AFTER
                    })
            };
            if !queue.deputy.is_some_and(is_there) {
                queue.deputy = Some(waiter);
                at = at.min(alarm.at.saturating_add(Self::DEPUTY_AFTER));
            }
        }
        at
    }

    /// Records that a waiter has been granted and must collect its grant.
    pub(super) fn expect(&mut self, waiter: WaiterId, granted: Nanos) {
        self.uncollected.insert((self.expires(waiter, granted + Self::CALLED_AFTER), waiter));
        self.tend_next();
    }

    /// Records that the waiter has collected its grant or has left.
    pub(super) fn expect_no_more(&mut self, waiter: &Waiter, grant: &Grant) {
        for after in [Self::CALLED_AFTER, Self::COLLECTED_WITHIN] {
            self.uncollected.remove(&(expiry(waiter.deadline, grant.at + after), waiter.place.waiter));
        }
        self.tend_next();
    }

    /// Examines the grants that have not been collected.
    pub(super) fn tend(&mut self, now: Nanos) {
        let mut lapsed: Vec<(WaiterId, Grant)> = Vec::new();
        while let Some((_, waiter)) = self.uncollected.first().copied().filter(|(due, _)| *due <= now) {
            self.uncollected.pop_first();
            let Some(known) = self.waiters.get(waiter.slot()) else { continue };
            let (ledgers, is_over) = (known.ledgers, is_late(known, now) || self.ignores_calls(known, now));
            let known = &mut self.waiters[waiter.slot()];
            match known.outcome.take() {
                // ## Granted => Granted, and all waiters behind are called
                Some(Ok(grant)) if !is_over && now < grant.at + Self::COLLECTED_WITHIN => {
                    let due = expiry(known.deadline, grant.at + Self::COLLECTED_WITHIN);
                    known.outcome = Some(Ok(grant));
                    self.uncollected.insert((due, waiter));
                    self.call_all(ledgers, now);
                }
                // ## Granted => gone
                //
                // Its next poll asks again, with its old place.
                Some(Ok(grant)) => lapsed.push((waiter, grant)),
                other => known.outcome = other,
            }
        }
        self.tend_next();
        for (waiter, _) in &lapsed {
            self.waiters.remove(waiter.slot());
            self.woken.retain(|woken| woken != waiter);
        }
        // All absent waiters leave before the first grant moves on. Waiters not called before are called now.
        lapsed.iter().for_each(|(_, grant)| self.dismiss(grant.ledgers, now.saturating_sub(1)));
        lapsed.iter().for_each(|(_, grant)| self.call_all(grant.ledgers, now));
        lapsed.into_iter().for_each(|(_, grant)| self.give_back(grant, now));
    }

    /// Returns the zones and keys of a grant.
    pub(crate) fn zones_of(&self, grant: &Grant) -> Vec<(ZoneId, u64)> {
        let ledgers = grant.ledgers.iter().map(|id| &self.ledgers[id]);
        ledgers.map(|ledger| (ledger.zone, ledger.key)).collect()
    }

    /// Records that the request left at `sent` and its call is no longer polled. A poll would probably find the
    /// answer, so the request counts as counted by now.
    pub(crate) fn presume_counted(&mut self, grant: Grant, sent: Nanos, now: Nanos) {
        self.lose_ended(grant, sent, Some(now.saturating_sub(Self::AFTER_RESET)), now);
    }

    /// Counts a call as on its way once more, whether there is room or not: it was presumed counted, is polled
    /// again, and may leave only now.
    pub(crate) fn charge(&mut self, zones: &[(ZoneId, u64)], lane: Lane, now: Nanos) -> Option<Grant> {
        let now = self.advance(now);
        let ledgers = self.open(zones, now).ok()?;
        for id in ledgers.iter() {
            self.ledgers[id].changed();
            self.ledgers[id].in_flight.enter(now);
        }
        Some(Grant { ledgers, at: now, probes: 0, tries: 0, lane, lenient: true })
    }

    /// True if dropping absent waiters shortened the queues, for a request that would be refused.
    pub(super) fn makes_room(&mut self, ledgers: LedgerSet, now: Nanos) -> bool {
        let places = |core: &Self| -> usize {
            ledgers.iter().filter_map(|id| core.ledgers[id].queue.as_ref()).map(|queue| queue.len()).sum()
        };
        let before = places(self);
        // Each check costs time proportional to the number of waiters.
        let is_due = ledgers.iter().any(|id| {
            let called = self.ledgers[id].queue.as_ref().map(|queue| queue.called);
            called.is_some_and(|called| called == 0 || called + Self::CALLED_AFTER <= now)
        });
        if !is_due {
            return false;
        }
        self.drop_expired(ledgers, now);
        self.dismiss(ledgers, now.saturating_sub(Self::CALLED_AFTER));
        self.pump(ledgers, now);
        self.call_all(ledgers, now);
        places(self) < before
    }

    /// Wakes all waiters for a roll call, unless one has just been made.
    pub(crate) fn call_all(&mut self, ledgers: LedgerSet, now: Nanos) {
        self.dismiss(ledgers, now.saturating_sub(Self::CALLED_AFTER));
        for id in ledgers.iter() {
            if let Some(queue) = self.ledgers[id].queue.as_mut().filter(|queue| queue.called == 0) {
                queue.called = now.max(1);
                self.woken.extend(queue.places().map(|place| place.waiter));
            }
        }
    }

    /// True if the waiter was granted and has not answered an earlier roll call either.
    fn ignores_calls(&self, waiter: &Waiter, now: Nanos) -> bool {
        waiter.ledgers.iter().filter_map(|id| self.ledgers[id].queue.as_ref()).any(|queue| {
            queue.called > 0 && waiter.seen < queue.called && queue.called + Self::CALLED_AFTER <= now
        })
    }

    /// Removes waiters that did not answer the last roll call, if that was made by `until`. Their next poll restores
    /// their old place.
    pub(crate) fn dismiss(&mut self, ledgers: LedgerSet, until: Nanos) {
        for id in ledgers.iter() {
            let Some(queue) = self.ledgers[id].queue.as_mut().filter(|queue| queue.called <= until) else {
                continue;
            };
            let called = std::mem::take(&mut queue.called);
            let places: Vec<_> = queue.places().map(|place| place.waiter).collect();
            for waiter in places {
                if self.waiters[waiter.slot()].seen < called {
                    let absent = self.waiters.remove(waiter.slot());
                    self.dequeue(&absent);
                    self.woken.retain(|woken| *woken != waiter);
                }
            }
        }
    }

    /// Refuses waiters whose deadline has passed.
    fn drop_expired(&mut self, ledgers: LedgerSet, now: Nanos) {
        for id in ledgers.iter() {
            let places: Vec<_> = self.ledgers[id].queue.iter().flat_map(|queue| queue.places()).collect();
            let places: Vec<_> = places.into_iter().map(|place| place.waiter).collect();
            for waiter in places {
                if is_late(&self.waiters[waiter.slot()], now) {
                    self.refuse_late(waiter, now);
                }
            }
        }
    }

    fn expires(&self, waiter: WaiterId, due: Nanos) -> Nanos {
        expiry(self.waiters[waiter.slot()].deadline, due)
    }

    fn tend_next(&mut self) {
        self.tends_at = self.uncollected.first().map_or(Nanos::MAX, |(due, _)| *due);
    }
}

/// Returns `due`, or the instant after `deadline` if that is earlier.
fn expiry(deadline: Option<Nanos>, due: Nanos) -> Nanos {
    deadline.map_or(due, |deadline| due.min(deadline.saturating_add(1)))
}

fn is_late(waiter: &Waiter, now: Nanos) -> bool {
    waiter.deadline.is_some_and(|deadline| deadline < now)
}
