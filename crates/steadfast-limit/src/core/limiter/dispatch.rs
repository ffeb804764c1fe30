use steadfast_call::Lane;

use super::{Limiter, waiters::Waiter};
use crate::{
    core::{
        decision::{Ask, Decision, Grant, WaiterId},
        key_set::KeySet,
        queue::{Alarm, Place},
        time::Nanos,
    },
    error::Refusal,
};

/// Why a waiter cannot be granted now, seen from one of its queues.
enum Obstacle {
    /// This zone has no room. It opens at the instant given, or after an event.
    Here(Option<Nanos>),
    /// This zone's smoother holds it up until this instant, and not all behind it are smoothed.
    Smoothed(Nanos),
    /// This zone has room, another one does not.
    Elsewhere,
}

/// A look through one queue, from its front.
struct Scan {
    /// The key whose queue it is.
    here: usize,
    /// How many waiters were passed. All of them stand ahead of the next one.
    ahead: u32,
    remembered: Remembered,
}

/// Answers that hold for all later waiters of a lane in the scan: they have more ahead of them, and no slot is given back
/// meanwhile.
#[derive(Default)]
struct Remembered {
    /// Other zones that have no room.
    full: Vec<(usize, Lane)>,
    /// The lane in which the queue's own zone has room for every waiter.
    roomy: Option<Lane>,
}

/// Operations on the queues.
impl Limiter {
    /// Grants all waiters of `keys` that can be granted, foremost first, and sets the alarms.
    pub(super) fn dispatch(&mut self, keys: KeySet, now: Nanos) {
        self.mark_dirty(keys);
        while let Some(id) = self.dirty.pop() {
            if self.keys.queue(id).is_some() {
                self.dispatch_one(id, now);
            }
        }
    }

    /// Has the queues of `keys` examined again.
    fn mark_dirty(&mut self, keys: KeySet) {
        self.dirty.extend(keys.iter().filter(|id| self.keys.queue(*id).is_some()));
    }

    /// Grants the waiters of one queue that can be granted, and sets its alarm.
    ///
    /// Passed waiters count as if they were on their way, so a request passes them only if they would all still fit.
    /// If this zone itself is full, the loop ends. A waiter stopped by another zone or by the smoother keeps its place
    /// here without stopping the rest.
    fn dispatch_one(&mut self, id: usize, now: Nanos) {
        let mut scan = Scan { here: id, ahead: 0, remembered: Remembered::default() };
        let mut alarm: Option<Alarm> = None;
        while let Some(place) = self.keys.queue(id).and_then(|queue| queue.at(scan.ahead)) {
            let Some(waiter) = self.waiters.get(place.waiter) else { break };
            let keys = waiter.keys();
            #[cfg(test)]
            if self.scans_plainly {
                scan.remembered = Remembered::default();
            }
            if waiter.is_late(now) {
                self.refuse_late(place.waiter, now);
                continue;
            }
            match self.obstacle_of(&mut scan, keys, &place, now) {
                Some(Obstacle::Here(opens)) => {
                    let own = opens.map(|at| Alarm { waiter: place.waiter, at });
                    alarm = alarm.into_iter().chain(own).min_by_key(|alarm| alarm.at);
                    break;
                }
                Some(Obstacle::Smoothed(at)) => {
                    // The smoother opens for all waiters at the same instant, so the foremost keeps the timer.
                    alarm.get_or_insert(Alarm { waiter: place.waiter, at });
                    scan.ahead += 1;
                }
                Some(Obstacle::Elsewhere) => scan.ahead += 1,
                None => {
                    // A smoother may still refuse; the next turn of the loop then stops the waiter.
                    scan.remembered.roomy = None;
                    if self.charge_smoothers(keys, place.lane, now) {
                        let grant = self.spend(keys, place.lane, now);
                        self.conclude(place.waiter, Ok(grant));
                    }
                }
            }
        }
        if let Some(waiter) = self.keys.queue_mut(id).and_then(|queue| queue.set_alarm(alarm)) {
            self.waiters.wake(waiter);
        }
        self.keys.get_mut(id).0.close_empty_queue();
    }

    /// Returns the obstacle of the waiter at `place`, the next one of the scan.
    fn obstacle_of(&mut self, scan: &mut Scan, keys: KeySet, place: &Place, now: Nanos) -> Option<Obstacle> {
        let Scan { here, ahead, ref mut remembered } = *scan;
        let lane = place.lane;
        let opens =
            if remembered.roomy == Some(lane) { Some(now) } else { self.opens(here, lane, ahead, now) };
        if opens.is_none_or(|opens| opens > now) {
            let smoothed = self.keys.get(here).0.smoothed_until(lane);
            return Some(match opens {
                // Trading, which stands behind it, is not smoothed.
                Some(at) if at <= smoothed && lane == Lane::Verification => Obstacle::Smoothed(at),
                _ => Obstacle::Here(opens),
            });
        }
        let is_full = |limiter: &mut Self, id| {
            let ahead = limiter.keys.queue(id).map_or(0, |queue| queue.ahead_of(place));
            limiter.opens(id, lane, ahead, now).is_none_or(|opens| opens > now)
        };
        let elsewhere = keys
            .iter()
            .filter(|id| *id != here)
            .find(|id| remembered.full.contains(&(*id, lane)) || is_full(self, *id))?;
        if !remembered.full.contains(&(elsewhere, lane)) {
            remembered.full.push((elsewhere, lane));
            let all = self.keys.queue(here).map_or(0, |queue| queue.len() as u32);
            let is_roomy = self.opens(here, lane, all, now).is_some_and(|opens| opens <= now);
            remembered.roomy = is_roomy.then_some(lane);
        }
        Some(Obstacle::Elsewhere)
    }

    pub(super) fn enqueue(
        &mut self,
        keys: KeySet,
        ask: &Ask<'_>,
        former: Option<WaiterId>,
        now: Nanos,
    ) -> WaiterId {
        let place = self.waiters.add(keys, ask, former, now);
        keys.iter().for_each(|id| self.keys.get_mut(id).0.enqueue(place));
        place.waiter
    }

    /// Removes a place from all its queues. The waiters behind it must be examined again.
    pub(super) fn dequeue(&mut self, keys: KeySet, place: Place) {
        for id in keys.iter() {
            if let Some(queue) = self.keys.queue_mut(id) {
                queue.remove(&place);
                self.dirty.push(id);
            }
        }
    }

    /// Ends the wait of a request that is still queued.
    fn conclude(&mut self, waiter: WaiterId, outcome: Result<Grant, Refusal>) {
        let Some(known) = self.waiters.get(waiter) else { return };
        let (keys, place) = (known.keys(), known.place());
        let granted = outcome.as_ref().ok().map(Grant::at);
        self.waiters.conclude(waiter, outcome);
        self.dequeue(keys, place);
        if let Some(at) = granted {
            self.waiters.check_at(waiter, at + Self::CALLED_AFTER);
        }
    }

    /// Refuses a request that can no longer be granted in time, if it is still queued.
    pub(super) fn refuse_late(&mut self, waiter: WaiterId, now: Nanos) {
        let Some(known) = self.waiters.get(waiter).filter(|known| known.waits()) else { return };
        let (keys, place) = (known.keys(), known.place());
        let mut worst = None;
        for id in keys.iter() {
            let ahead = self.keys.queue(id).map_or(0, |queue| queue.ahead_of(&place));
            let (state, rules) = self.keys.get(id);
            let behind = state.estimate(rules, place.lane, ahead, self.settings.strict_critical, now);
            // The zone's own way of counting may be stricter than the log used by the estimate.
            let opens = self.opens(id, place.lane, ahead, now).unwrap_or(now);
            worst = worst.max(Some((behind.max(opens), id)));
        }
        let refusal = self.missed_deadline(worst, now);
        self.conclude(waiter, Err(refusal));
    }

    /// Returns the decision for a waiter. Its id ends here unless it still waits.
    pub(super) fn decision(&mut self, waiter: WaiterId) -> Decision {
        self.waiters.unwake(waiter);
        match self.waiters.collect(waiter) {
            Some(Ok(grant)) => return Decision::Granted(grant),
            Some(Err(refusal)) => return Decision::Refused(refusal),
            None => {}
        }
        let known = self.waiters.get(waiter);
        let keys = known.map(Waiter::keys).unwrap_or_default();
        let alarms = keys.iter().filter_map(|id| self.keys.queue(id)?.alarm());
        let own = alarms.filter(|alarm| alarm.waiter == waiter).map(|alarm| alarm.at);
        Decision::Queued { waiter, alarm: own.chain(known.and_then(Waiter::send_by)).min() }
    }
}

#[cfg(test)]
mod tests;
