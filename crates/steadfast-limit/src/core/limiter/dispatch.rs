use std::time::Duration;

use steadfast_spec::Lane;

use super::Limiter;
use crate::{
    core::{
        decision::{Ask, Decision, Grant, LedgerSet, WaiterId},
        event::Event,
        key_state::{Ledger, is_paced},
        queue::{Alarm, Answered, Place},
        time::Nanos,
        trust::trust_level::Change,
    },
    error::Refusal,
};

/// A waiting request.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) ledgers: LedgerSet,
    pub(super) place: Place,
    pub(super) deadline: Option<Nanos>,
    pub(super) outcome: Option<Result<Grant, Refusal>>,
    /// When it was last polled.
    pub(super) seen: Nanos,
}

/// Why a waiter cannot be granted now, seen from one of its queues.
enum Stop {
    /// This zone has no room. It opens at the instant given, or after an event.
    Here(Option<Nanos>),
    /// This zone has room, another one does not.
    Elsewhere,
}

/// Operations on the queues.
impl Limiter {
    /// Stops a zone after a 429.
    pub(super) fn stop(&mut self, id: usize, pause: Nanos, again: bool, lenient: bool, now: Nanos) {
        let ledger = &mut self.ledgers[id];
        let rules = &self.rules[usize::from(ledger.zone.0)];
        let (zone, key) = (rules.zone, ledger.key);
        // Windows no longer than the pause empty during it. A longer one is probably spent only if the try after a
        // pause fails as well. The lanes that must get out try after every pause.
        if again && rules.longest() > pause {
            ledger.fill(now + rules.longest());
        }
        if !lenient {
            self.events.push(Event::ModelMismatch { zone, key, ours: ledger.uses(rules, now) });
            let tried = ledger.tried > 0;
            let change = ledger.caution().ladder.mismatch(tried, rules.shortest_limit(), now);
            self.report_change(id, change);
        }
        let ledger = &self.ledgers[id];
        self.events.push(Event::Frozen { zone, key, pause: Duration::from_nanos(pause), again });
        let doomed: Vec<_> = ledger.queue.iter().flat_map(|queue| queue.places()).map(|p| p.waiter).collect();
        for waiter in doomed {
            if self.waiters[waiter.slot()].deadline.is_some_and(|deadline| deadline < now + pause) {
                self.refuse_late(waiter, now);
            }
        }
    }

    /// Reports what a key has learned or unlearned.
    pub(super) fn report_change(&mut self, id: usize, change: Change) {
        let ledger = &self.ledgers[id];
        let rules = &self.rules[usize::from(ledger.zone.0)];
        let (zone, key, ladder) = (rules.zone, ledger.key, ledger.ladder());
        if change.step {
            self.events.push(Event::Stepped { zone, key, step: ladder.step() });
        }
        if change.limit {
            let documented = rules.shortest_limit();
            let limit = ladder.learned().unwrap_or(documented);
            self.events.push(Event::Learned { zone, key, limit, documented });
        }
    }

    /// Grants all waiters of `ledgers` that can be granted, foremost first, and sets the alarms.
    pub(super) fn pump(&mut self, ledgers: LedgerSet, now: Nanos) {
        for id in ledgers.iter() {
            if self.ledgers[id].queue.is_some() {
                self.stirred.push(id);
            }
        }
        while let Some(id) = self.stirred.pop() {
            if self.ledgers.get(id).is_some_and(|ledger| ledger.queue.is_some()) {
                self.pump_one(id, now);
            }
        }
    }

    /// Passed waiters count as if they were on their way, so a request passes them only if they would all still fit.
    /// If this zone itself is full, the loop ends: in a zone used alone no waiter passes another. A waiter stopped
    /// by another zone keeps its place here without stopping the rest.
    fn pump_one(&mut self, id: usize, now: Nanos) {
        let mut passed: Option<Place> = None;
        let mut ahead = 0;
        let mut alarm = None;
        while let Some(place) = self.ledgers[id].queue.as_ref().and_then(|q| q.behind(passed.as_ref())) {
            let waiter = &self.waiters[place.waiter.slot()];
            let ledgers = waiter.ledgers;
            if waiter.deadline.is_some_and(|deadline| deadline < now) {
                self.refuse_late(place.waiter, now);
                continue;
            }
            match self.stop_of(id, ledgers, &place, ahead, now) {
                Some(Stop::Here(opens)) => {
                    alarm = opens.map(|at| Alarm { waiter: place.waiter, at });
                    break;
                }
                Some(Stop::Elsewhere) => {
                    passed = Some(place);
                    ahead += 1;
                }
                None => {
                    // A pacer may still refuse; the next turn of the loop then stops the waiter.
                    if self.pace(ledgers, place.lane, now) {
                        let tries = self.tries(ledgers, place.lane, now);
                        let grant = self.spend(ledgers, place.lane, tries, now);
                        self.conclude(place.waiter, Ok(grant));
                    }
                }
            }
        }
        let Some(queue) = self.ledgers[id].queue.as_mut() else { return };
        // The alarm moves to the foremost waiter, or to an earlier instant. An alarm that comes too early costs one
        // poll and is then set again.
        let before = std::mem::replace(&mut queue.alarm, alarm);
        if let Some(alarm) = alarm
            && before.is_none_or(|before| before.waiter != alarm.waiter || alarm.at < before.at)
        {
            self.woken.push(alarm.waiter);
        }
        if queue.is_empty() {
            self.ledgers[id].queue = None;
        }
    }

    /// Returns what stops the waiter at `place`, seen from the queue of `here`, with `ahead` before it.
    fn stop_of(
        &mut self,
        here: usize,
        ledgers: LedgerSet,
        place: &Place,
        ahead: u32,
        now: Nanos,
    ) -> Option<Stop> {
        let opens = self.opens(here, place.lane, ahead, now);
        if opens.is_none_or(|opens| opens > now) {
            return Some(Stop::Here(opens));
        }
        ledgers
            .iter()
            .filter(|id| *id != here)
            .any(|id| {
                let ahead = self.ledgers[id].queue.as_ref().map_or(0, |queue| queue.ahead_of(place));
                self.opens(id, place.lane, ahead, now).is_none_or(|opens| opens > now)
            })
            .then_some(Stop::Elsewhere)
    }

    /// Grants at once if every zone has room and no queue.
    pub(super) fn grant(&mut self, ledgers: LedgerSet, lane: Lane, now: Nanos) -> Option<Grant> {
        let is_clear = |id| {
            let ledger: &Ledger = &self.ledgers[id];
            ledger.is_clear(&self.rules[usize::from(ledger.zone.0)], lane, now)
        };
        if ledgers.iter().all(is_clear) {
            // Nothing is lost and no 429 was met, so there is nothing else to record.
            return self.pace(ledgers, lane, now).then(|| {
                for id in ledgers.iter() {
                    self.ledgers[id].changed();
                    self.ledgers[id].in_flight.enter(now);
                }
                Grant { ledgers, at: now, probes: 0, tries: 0, lane, lenient: false }
            });
        }
        let free = ledgers.iter().all(|id| {
            self.ledgers[id].queue.is_none() && self.opens(id, lane, 0, now).is_some_and(|opens| opens <= now)
        });
        (free && self.pace(ledgers, lane, now)).then(|| {
            let tries = self.tries(ledgers, lane, now);
            self.spend(ledgers, lane, tries, now)
        })
    }

    fn opens(&mut self, id: usize, lane: Lane, ahead: u32, now: Nanos) -> Option<Nanos> {
        let ledger = &mut self.ledgers[id];
        let version = ledger.version;
        let recent = self.recent.filter(|(of, _)| *of == id).map(|(_, answered)| answered);
        let known = ledger.queue.as_ref().and_then(|queue| queue.answered).into_iter().chain(recent);
        for known in known {
            if (known.version, known.lane, known.ahead) == (version, lane, ahead) {
                return known.opens;
            }
        }
        let rules = &self.rules[usize::from(ledger.zone.0)];
        let opens = ledger.opens(rules, lane, ahead, self.settings.strict_critical, now, &mut self.scratch);
        let answered = Answered { version, lane, ahead, opens };
        match ledger.queue.as_mut() {
            Some(queue) => queue.answered = Some(answered),
            None => self.recent = Some((id, answered)),
        }
        opens
    }

    fn pace(&mut self, ledgers: LedgerSet, lane: Lane, now: Nanos) -> bool {
        if !is_paced(lane) {
            return true;
        }
        for (charged, id) in ledgers.iter().enumerate() {
            let ledger = &mut self.ledgers[id];
            if !ledger.pace(&self.rules[usize::from(ledger.zone.0)], lane, now) {
                ledger.changed();
                // The pacer has just set when the zone opens. A waiter of the zone must set its alarm for that.
                if ledger.queue.is_some() {
                    self.stirred.push(id);
                }
                ledgers.iter().take(charged).for_each(|id| self.ledgers[id].unpace(lane));
                return false;
            }
        }
        true
    }

    /// Returns the zones in which only the log admits a request that is granted now, one bit each.
    fn tries(&mut self, ledgers: LedgerSet, lane: Lane, now: Nanos) -> u8 {
        let strict = self.settings.strict_critical;
        ledgers.iter().enumerate().fold(0, |tries, (bit, id)| {
            let ledger = &self.ledgers[id];
            let rules = &self.rules[usize::from(ledger.zone.0)];
            tries | u8::from(ledger.is_try(rules, lane, strict, now, &mut self.scratch)) << bit
        })
    }

    /// Spends a slot in every zone.
    fn spend(&mut self, ledgers: LedgerSet, lane: Lane, tries: u8, now: Nanos) -> Grant {
        let (mut probes, mut lenient) = (0, false);
        for (bit, id) in ledgers.iter().enumerate() {
            let ledger = &mut self.ledgers[id];
            ledger.changed();
            ledger.in_flight.enter(now);
            ledger.tried += u16::from(tries >> bit & 1);
            let rules = &self.rules[usize::from(ledger.zone.0)];
            lenient |= ledger.is_lenient(rules, lane, self.settings.strict_critical, now);
            let learned = ledger.ladder().learned();
            // Critical requests keep the documented limit, unspread. Their refusal says nothing of the others.
            lenient |= lane == Lane::Critical && ledger.ladder().spreads();
            if let Some(caution) = &mut ledger.caution {
                if lane == Lane::Bulk {
                    caution.bulk_opens = now + rules.every_second(lane, learned);
                }
                probes |= u8::from(caution.freeze.granted(now)) << bit;
            }
        }
        Grant { ledgers, at: now, probes, tries, lane, lenient }
    }

    pub(super) fn enqueue(
        &mut self,
        ledgers: LedgerSet,
        ask: &Ask<'_>,
        former: Option<WaiterId>,
        now: Nanos,
    ) -> WaiterId {
        // A granted waiter was the foremost of its lane; all later arrivals stand behind its old place.
        let arrival = former.map_or(self.arrivals + 1, |former| former.turn);
        self.arrivals = self.arrivals.max(arrival);
        let entry = self.waiters.vacant_entry();
        let waiter = WaiterId { slot: entry.key() as u32, turn: arrival };
        let turn = if ask.head_of_lane { -arrival } else { arrival };
        let place = Place { lane: ask.lane, turn, waiter };
        entry.insert(Waiter { ledgers, place, deadline: ask.deadline, outcome: None, seen: now });
        for id in ledgers.iter() {
            self.ledgers[id].queue.get_or_insert_default().insert(place);
        }
        waiter
    }

    /// Removes a waiter from all its queues. The waiters behind it must be examined again.
    pub(super) fn dequeue(&mut self, waiter: &Waiter) {
        for id in waiter.ledgers.iter() {
            if let Some(queue) = self.ledgers[id].queue.as_mut() {
                queue.remove(&waiter.place);
                self.stirred.push(id);
            }
        }
    }

    /// Ends the wait of a request that is still queued.
    fn conclude(&mut self, waiter: WaiterId, outcome: Result<Grant, Refusal>) {
        let known = &mut self.waiters[waiter.slot()];
        let granted = outcome.as_ref().ok().map(Grant::at);
        known.outcome = Some(outcome);
        for id in known.ledgers.iter() {
            if let Some(queue) = self.ledgers[id].queue.as_mut() {
                queue.remove(&known.place);
                self.stirred.push(id);
            }
        }
        self.woken.push(waiter);
        if let Some(at) = granted {
            self.expect(waiter, at);
        }
    }

    pub(super) fn refuse_late(&mut self, waiter: WaiterId, now: Nanos) {
        let known = &self.waiters[waiter.slot()];
        if known.outcome.is_some() {
            return;
        }
        let (ledgers, place) = (known.ledgers, known.place);
        let mut worst = None;
        for id in ledgers.iter() {
            let ahead = self.ledgers[id].queue.as_ref().map_or(0, |queue| queue.ahead_of(&place));
            let behind = self.estimate_behind(id, place.lane, ahead, now);
            // The zone's own way of counting may be stricter than the log used by the estimate.
            let opens = self.opens(id, place.lane, ahead, now).unwrap_or(now);
            worst = worst.max(Some((behind.max(opens), id)));
        }
        let refusal = self.missed(worst, now);
        self.conclude(waiter, Err(refusal));
    }

    /// Returns why a request need not even queue.
    pub(super) fn hopeless(&self, ledgers: LedgerSet, ask: &Ask<'_>, now: Nanos) -> Option<Refusal> {
        if let Some(deadline) = ask.deadline {
            let estimates = ledgers.iter().map(|id| (self.estimate(id, ask.lane, ask.head_of_lane, now), id));
            let worst = estimates.max();
            if deadline < now || worst.is_some_and(|(at, _)| at > deadline) {
                return Some(self.missed(worst, now));
            }
        }
        let bound = self.settings.queue_bounds[ask.lane as usize];
        ledgers.iter().find_map(|id| {
            let ledger = &self.ledgers[id];
            let waiting = ledger.queue.as_ref()?.waiting()[ask.lane as usize];
            let zone = self.rules[usize::from(ledger.zone.0)].zone;
            (waiting >= bound).then_some(Refusal::QueueFull { zone, lane: ask.lane })
        })
    }

    fn missed(&self, worst: Option<(Nanos, usize)>, now: Nanos) -> Refusal {
        worst.map_or(Refusal::NoZone, |(at, id)| Refusal::WouldMissDeadline {
            zone: self.rules[usize::from(self.ledgers[id].zone.0)].zone,
            earliest: Duration::from_nanos(at - now),
        })
    }

    pub(super) fn estimate(&self, id: usize, lane: Lane, head: bool, now: Nanos) -> Nanos {
        let ahead = self.ledgers[id].queue.as_ref().map_or(0, |queue| queue.ahead_of_new(lane, head));
        let ledger = &self.ledgers[id];
        let rules = &self.rules[usize::from(ledger.zone.0)];
        let alone = ledger.estimate_alone(rules, lane, self.settings.strict_critical, now);
        alone.max(self.estimate_behind(id, lane, ahead, now))
    }

    fn estimate_behind(&self, id: usize, lane: Lane, ahead: u32, now: Nanos) -> Nanos {
        let ledger = &self.ledgers[id];
        let rules = &self.rules[usize::from(ledger.zone.0)];
        ledger.estimate(rules, lane, ahead, self.settings.strict_critical, now)
    }

    /// Returns the decision for a waiter. Its id ends here unless it still waits.
    pub(super) fn decision(&mut self, waiter: WaiterId) -> Decision {
        if !self.woken.is_empty() {
            self.woken.retain(|woken| *woken != waiter);
        }
        let known = &mut self.waiters[waiter.slot()];
        let Some(outcome) = known.outcome.take() else {
            let alarms = known.ledgers.iter().filter_map(|id| self.ledgers[id].queue.as_ref()?.alarm);
            let own = alarms.filter(|alarm| alarm.waiter == waiter).map(|alarm| alarm.at);
            return Decision::Queued { waiter, alarm: own.chain(known.deadline).min() };
        };
        let known = self.waiters.remove(waiter.slot());
        if let Ok(grant) = &outcome {
            self.expect_no_more(&known, grant);
        }
        match outcome {
            Ok(grant) => Decision::Granted(grant),
            Err(refusal) => Decision::Refused(refusal),
        }
    }
}
