use std::time::Duration;

use steadfast_call::Lane;

use super::Limiter;
use crate::{
    core::{
        decision::{Ask, WaiterId},
        key_set::KeySet,
        key_state::{KeyState, Question},
        queue::Place,
        rules::Rules,
        time::Nanos,
    },
    error::Refusal,
};

/// How long a request would wait at least, and which requests wait in vain.
impl Limiter {
    /// Returns why a request need not even queue. One that waited before as `former` has a place.
    pub(super) fn hopeless(
        &self,
        keys: KeySet,
        ask: &Ask<'_>,
        former: Option<WaiterId>,
        now: Nanos,
    ) -> Option<Refusal> {
        if let Some(send_by) = ask.send_by {
            let estimates = keys.iter().map(|id| {
                let (state, rules) = self.keys.get(id);
                let ahead = state.queue().map_or(0, |queue| match former {
                    Some(former) => queue.ahead_of(&Place::of(former, ask)),
                    None => queue.ahead_of_new(ask.lane, ask.head_of_lane),
                });
                (self.estimate_of(state, rules, ask.lane, ahead, now), id)
            });
            let worst = estimates.max();
            if send_by < now || worst.is_some_and(|(at, _)| at > send_by) {
                return Some(self.missed_deadline(worst, now));
            }
        }
        if former.is_some() {
            return None;
        }
        let bound = self.settings.queue_bounds[ask.lane as usize];
        keys.iter().find_map(|id| {
            let (state, rules) = self.keys.get(id);
            let waiting = state.queue()?.waiting()[ask.lane as usize];
            (waiting >= bound).then_some(Refusal::QueueFull { zone: rules.zone, lane: ask.lane })
        })
    }

    /// Returns the refusal of a request that the `worst` of its keys admits too late, at the instant given.
    pub(super) fn missed_deadline(&self, worst: Option<(Nanos, usize)>, now: Nanos) -> Refusal {
        worst.map_or(Refusal::NoZone, |(at, id)| Refusal::WouldMissDeadline {
            zone: self.keys.get(id).1.zone,
            earliest: Duration::from_nanos(at - now),
        })
    }

    /// Returns when a request that came now would be granted at the earliest, if none ahead of it gave up.
    pub(super) fn estimate(&self, id: usize, lane: Lane, head: bool, now: Nanos) -> Nanos {
        let (state, rules) = self.keys.get(id);
        let ahead = state.queue().map_or(0, |queue| queue.ahead_of_new(lane, head));
        self.estimate_of(state, rules, lane, ahead, now)
    }

    /// Returns the same for a key with `ahead` before the request. The zone's own way of counting may be stricter
    /// than the log.
    pub(super) fn estimate_of(
        &self,
        state: &KeyState,
        rules: &Rules,
        lane: Lane,
        ahead: u32,
        now: Nanos,
    ) -> Nanos {
        let strict = self.settings.strict_critical;
        let alone = state.opens(rules, lane, Question::Alone, strict, now, &mut Vec::new());
        state.estimate(rules, lane, ahead, strict, now).max(alone.unwrap_or(now))
    }
}
