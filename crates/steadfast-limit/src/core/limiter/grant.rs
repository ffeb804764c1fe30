use steadfast_call::Lane;

use super::Limiter;
use crate::core::{
    decision::Grant, key_set::KeySet, key_state::Question, lanes::is_smoothed, queue::Computed, time::Nanos,
};

/// The grant of a slot in all zones of a request, or in none.
impl Limiter {
    /// Grants at once if every zone has room and no queue.
    pub(super) fn grant(&mut self, keys: KeySet, lane: Lane, now: Nanos) -> Option<Grant> {
        let is_clear = |id| {
            let (state, rules) = self.keys.get(id);
            state.is_clear(rules, lane, now)
        };
        if keys.iter().all(is_clear) {
            // Nothing is lost and no 429 was met, so there is nothing else to record.
            return self.charge_smoothers(keys, lane, now).then(|| {
                keys.iter().for_each(|id| self.keys.get_mut(id).0.spend(now));
                Grant::new(keys, lane, now)
            });
        }
        let is_free = keys.iter().all(|id| {
            self.keys.queue(id).is_none() && self.opens(id, lane, 0, now).is_some_and(|opens| opens <= now)
        });
        (is_free && self.charge_smoothers(keys, lane, now)).then(|| self.spend(keys, lane, now))
    }

    /// Returns when the zone opens for a request of `lane` with `ahead` before it.
    pub(super) fn opens(&mut self, id: usize, lane: Lane, ahead: u32, now: Nanos) -> Option<Nanos> {
        let (state, rules) = self.keys.get(id);
        let version = state.version();
        let known = state.queue().and_then(|queue| queue.computed(version, lane, ahead));
        #[cfg(test)]
        let known = known.filter(|_| !self.scans_plainly);
        if let Some(known) = known {
            return known.opens;
        }
        let (question, strict) = (Question::Next { ahead }, self.settings.strict_critical);
        let opens = state.opens(rules, lane, question, strict, now, &mut self.scratch);
        if let Some(queue) = self.keys.queue_mut(id) {
            queue.remember(Computed { version, lane, ahead, opens });
        }
        opens
    }

    /// Charges the smoothers of all zones, or none. False if the request comes too early for one.
    pub(super) fn charge_smoothers(&mut self, keys: KeySet, lane: Lane, now: Nanos) -> bool {
        if !is_smoothed(lane) {
            return true;
        }
        for (charged, id) in keys.iter().enumerate() {
            let (state, rules) = self.keys.get_mut(id);
            if !state.charge_smoother(rules, lane, now) {
                // The smoother has just set when the zone opens. A waiter of the zone must set its alarm for that.
                if state.queue().is_some() {
                    self.dirty.push(id);
                }
                keys.iter().take(charged).for_each(|id| self.keys.get_mut(id).0.give_back_charge(lane));
                return false;
            }
        }
        true
    }

    /// Spends a slot in every zone.
    pub(super) fn spend(&mut self, keys: KeySet, lane: Lane, now: Nanos) -> Grant {
        let strict = self.settings.strict_critical;
        let mut grant = Grant::new(keys, lane, now);
        for (place, id) in keys.iter().enumerate() {
            let (state, rules) = self.keys.get_mut(id);
            let is_optimistic = state.is_optimistic(rules, lane, strict, now, &mut self.scratch);
            if state.passes_unanswered(rules, lane, strict, now, &mut self.scratch) {
                grant.make_unproving();
            }
            let share = state.grant(rules, lane, is_optimistic, now);
            grant.share_in(place, share);
        }
        grant
    }
}
