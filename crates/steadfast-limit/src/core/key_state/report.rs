use std::time::Duration;

use steadfast_call::Lane;

use super::KeyState;
use crate::core::{
    rules::{Bound, Rules},
    snapshot::WindowUse,
    spent::stamps::Stamps,
    time::Nanos,
};

/// The state of a key for the limiter's user.
impl KeyState {
    /// Returns how many requests are on their way.
    pub(crate) fn on_their_way(&self) -> u32 {
        self.in_flight.len()
    }

    /// Returns how many requests without an answer are still held.
    pub(crate) fn lost(&self) -> usize {
        self.lost.counted().len()
    }

    /// Returns how full each window is at `now`.
    pub(crate) fn uses(&self, rules: &Rules, now: Nanos) -> Vec<WindowUse> {
        let stamps = Stamps::new(&self.log, rules.unit, self.lost.counted());
        let used = |bound: &Bound| WindowUse {
            limit: bound.limit,
            period: Duration::from_nanos(bound.nominal),
            used: stamps.held(now, bound.period) + self.in_flight.len() as usize,
        };
        rules.bounds.iter().map(used).collect()
    }

    /// Returns the end of the pause in `lane`, if it is not over at `now`.
    pub(crate) fn paused_until(&self, lane: Lane, now: Nanos) -> Option<Nanos> {
        self.penalty.as_ref().and_then(|penalty| penalty.breaker().paused_until(lane, now))
    }

    /// Returns until when a 429 closes the zone for the lanes that can wait, or 0.
    pub(crate) fn closed_until(&self, now: Nanos) -> Nanos {
        let full = self.penalty.as_ref().map_or(0, |penalty| penalty.full_until());
        full.max(self.paused_until(Lane::Bulk, now).unwrap_or(0))
    }
}
