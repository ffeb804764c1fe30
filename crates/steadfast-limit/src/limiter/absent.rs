use super::{Limiter, pump::Waiter};
use crate::{Grant, Lane, Nanos, WaiterId, ZoneId, decision::LedgerSet};

/// Those who are not there: futures that are kept and that nobody polls, such as the idle branch of a `select!`.
///
/// They look like any other waiter until a grant is theirs. So a grant that is not collected is given on, and whoever
/// else does not answer a roll call made meanwhile leaves its queues: one such future costs others a second at most,
/// and any number of them costs no more than one.
impl Limiter {
    /// A grant that is not collected within this time goes to the next.
    const COLLECTED_WITHIN: Nanos = 1_000_000_000;

    /// A grant that is not collected after this time is reason for a roll call; whoever does not answer it for as long
    /// again is not there.
    const CALLED_AFTER: Nanos = 500_000_000;

    /// How often everybody who waits looks whether the others are there.
    const LOOKS_EVERY: Nanos = 500_000_000;

    /// By how much a deputy leaves the zone's timer to its keeper.
    const DEPUTY_AFTER: Nanos = 10_000_000;

    /// When `waiter` looks again at the latest, though nothing may concern it: whoever keeps the zone's timer may not
    /// be there, nor who has been granted.
    ///
    /// One of those who are not foremost, and who is there, keeps the timer beside him; all others look twice a second.
    pub(crate) fn looks_at(&mut self, waiter: WaiterId, now: Nanos) -> Nanos {
        if steadfast_spec::Planted::GrantKeptForNobody.is_on() {
            return Nanos::MAX;
        }
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

    /// A waiter has been granted, and is to come for it.
    pub(super) fn expect(&mut self, waiter: WaiterId, granted: Nanos) {
        if steadfast_spec::Planted::GrantKeptForNobody.is_on() {
            return;
        }
        self.uncollected.insert((self.expires(waiter, granted + Self::CALLED_AFTER), waiter));
        self.tend_next();
    }

    /// The waiter has come, or has left.
    pub(super) fn expect_no_more(&mut self, waiter: &Waiter, grant: &Grant) {
        for after in [Self::CALLED_AFTER, Self::COLLECTED_WITHIN] {
            self.uncollected.remove(&(expiry(waiter.deadline, grant.at + after), waiter.place.waiter));
        }
        self.tend_next();
    }

    /// Looks at the grants that nobody has collected.
    pub(super) fn tend(&mut self, now: Nanos) {
        let mut lapsed: Vec<(WaiterId, Grant)> = Vec::new();
        while let Some((_, waiter)) = self.uncollected.first().copied().filter(|(due, _)| *due <= now) {
            self.uncollected.pop_first();
            let Some(known) = self.waiters.get(waiter.slot()) else { continue };
            let (ledgers, is_over) = (known.ledgers, is_late(known, now) || self.ignores_calls(known, now));
            let known = &mut self.waiters[waiter.slot()];
            match known.outcome.take() {
                // ## Granted => Granted, and all those behind are called
                Some(Ok(grant)) if !is_over && now < grant.at + Self::COLLECTED_WITHIN => {
                    let due = expiry(known.deadline, grant.at + Self::COLLECTED_WITHIN);
                    known.outcome = Some(Ok(grant));
                    self.uncollected.insert((due, waiter));
                    self.call_all(ledgers, now);
                }
                // ## Granted => gone
                //
                // At its next poll it asks again, and has its old place.
                Some(Ok(grant)) => lapsed.push((waiter, grant)),
                other => known.outcome = other,
            }
        }
        self.tend_next();
        for (waiter, _) in &lapsed {
            self.waiters.remove(waiter.slot());
            self.woken.retain(|woken| woken != waiter);
        }
        // All who are absent leave before the first grant goes on. Who was not called before is called now.
        lapsed.iter().for_each(|(_, grant)| self.dismiss(grant.ledgers, now.saturating_sub(1)));
        lapsed.iter().for_each(|(_, grant)| self.call_all(grant.ledgers, now));
        lapsed.into_iter().for_each(|(_, grant)| self.give_back(grant, now));
    }

    /// What a request falls under.
    pub(crate) fn zones_of(&self, grant: &Grant) -> Vec<(ZoneId, u64)> {
        let ledgers = grant.ledgers.iter().map(|id| &self.ledgers[id]);
        ledgers.map(|ledger| (ledger.zone, ledger.key)).collect()
    }

    /// The request left at `sent`, and nobody polls its call any more: whoever looked would find its answer, so it is taken
    /// for counted by now.
    pub(crate) fn presume_counted(&mut self, grant: Grant, sent: Nanos, now: Nanos) {
        self.lose_ended(grant, sent, Some(now.saturating_sub(Self::AFTER_RESET)), now);
    }

    /// A call that was taken for counted is polled again, and may leave only now: it is on its way once more, whether
    /// there is room or not.
    pub(crate) fn charge(&mut self, zones: &[(ZoneId, u64)], lane: Lane, now: Nanos) -> Option<Grant> {
        let now = self.advance(now);
        let ledgers = self.open(zones, now).ok()?;
        for id in ledgers.iter() {
            self.ledgers[id].changed();
            self.ledgers[id].in_flight.enter(now);
        }
        Some(Grant { ledgers, at: now, probes: 0, tries: 0, lane, lenient: true })
    }

    /// A request would be refused because of those who wait: true if some of them need not be waited for.
    pub(super) fn makes_room(&mut self, ledgers: LedgerSet, now: Nanos) -> bool {
        let places = |core: &Self| -> usize {
            ledgers.iter().filter_map(|id| core.ledgers[id].queue.as_ref()).map(|queue| queue.len()).sum()
        };
        let before = places(self);
        // Each look costs as much as there are waiters.
        let is_due = ledgers.iter().any(|id| {
            let called = self.ledgers[id].queue.as_ref().map(|queue| queue.called);
            called.is_some_and(|called| called == 0 || called + Self::CALLED_AFTER <= now)
        });
        if !is_due || steadfast_spec::Planted::GrantKeptForNobody.is_on() {
            return false;
        }
        self.drop_expired(ledgers, now);
        self.dismiss(ledgers, now.saturating_sub(Self::CALLED_AFTER));
        self.pump(ledgers, now);
        self.call_all(ledgers, now);
        places(self) < before
    }

    /// Everybody who waits there is to show that he is there, unless that has just been asked.
    pub(crate) fn call_all(&mut self, ledgers: LedgerSet, now: Nanos) {
        self.dismiss(ledgers, now.saturating_sub(Self::CALLED_AFTER));
        for id in ledgers.iter() {
            if let Some(queue) = self.ledgers[id].queue.as_mut().filter(|queue| queue.called == 0) {
                queue.called = now.max(1);
                self.woken.extend(queue.places().map(|place| place.waiter));
            }
        }
    }

    /// True if the waiter, who has been granted, has not answered a roll call made before that either.
    fn ignores_calls(&self, waiter: &Waiter, now: Nanos) -> bool {
        waiter.ledgers.iter().filter_map(|id| self.ledgers[id].queue.as_ref()).any(|queue| {
            queue.called > 0 && waiter.seen < queue.called && queue.called + Self::CALLED_AFTER <= now
        })
    }

    /// Whoever has not answered the last roll call, if that was made until then, leaves; at its next poll it has its old
    /// place again.
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

    /// Whoever waits past its deadline is told so.
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

/// `due`, or the instant after `deadline` if that is earlier.
fn expiry(deadline: Option<Nanos>, due: Nanos) -> Nanos {
    deadline.map_or(due, |deadline| due.min(deadline.saturating_add(1)))
}

fn is_late(waiter: &Waiter, now: Nanos) -> bool {
    waiter.deadline.is_some_and(|deadline| deadline < now)
}
