use std::time::Duration;

use steadfast_call::Lane;

use super::Limiter;
use crate::core::{
    decision::ZoneId,
    event::Event,
    queue::Queue,
    snapshot::{LaneSnapshot, Snapshot, ZoneSnapshot},
    time::Nanos,
    trust::trust_level::Change,
};

/// The state of the limiter for its user.
impl Limiter {
    /// Returns what the limiter holds at `now`. Idle keys are dropped first.
    pub fn snapshot(&mut self, now: Nanos) -> Snapshot {
        let now = self.advance(now);
        self.sweep(now);
        let mut zones: Vec<_> = self.keys.ids().into_iter().map(|id| self.zone_snapshot(id, now)).collect();
        zones.sort_by_key(|(order, zone)| (*order, zone.key));
        Snapshot { zones: zones.into_iter().map(|(_, zone)| zone).collect(), bytes: self.heap_bytes() }
    }

    fn zone_snapshot(&self, id: usize, now: Nanos) -> (ZoneId, ZoneSnapshot) {
        let (state, rules) = self.keys.get(id);
        let waiting = state.queue().map(Queue::waiting).unwrap_or_default();
        let snapshot = ZoneSnapshot {
            zone: rules.zone,
            key: state.key(),
            in_flight: state.on_their_way(),
            lost: state.lost(),
            windows: state.uses(rules, now),
            paused_for: state.paused_until(Lane::Bulk, now).map(|until| Duration::from_nanos(until - now)),
            step: state.trust().step(),
            lanes: Lane::ALL.map(|lane| LaneSnapshot {
                lane,
                waiting: waiting[lane as usize],
                next_free: Duration::from_nanos(self.estimate(id, lane, false, now) - now),
                learned: state.learned(lane),
            }),
        };
        (state.zone(), snapshot)
    }

    fn heap_bytes(&self) -> usize {
        self.keys.heap_bytes() + self.waiters.heap_bytes() + self.scratch.capacity() * size_of::<Nanos>()
    }

    /// Reports what a key has learned or unlearned in all lanes but the critical one.
    pub(super) fn report_change(&mut self, id: usize, change: Change) {
        let (state, rules) = self.keys.get(id);
        if change.step {
            let (zone, key, step) = (rules.zone, state.key(), state.trust().step());
            self.events.push(Event::Stepped { zone, key, step });
        }
        if change.limit {
            self.report_limit(id, Lane::Bulk);
        }
    }

    /// Reports what a key has learned or unlearned in the critical lane, which is not spread.
    pub(super) fn report_critical_change(&mut self, id: usize, change: Change) {
        if change.limit {
            self.report_limit(id, Lane::Critical);
        }
    }

    fn report_limit(&mut self, id: usize, lane: Lane) {
        let (state, rules) = self.keys.get(id);
        let documented = rules.shortest_limit();
        let limit = state.learned(lane).unwrap_or(documented);
        let (zone, key, critical) = (rules.zone, state.key(), lane == Lane::Critical);
        self.events.push(Event::Learned { zone, key, critical, limit, documented });
    }
}
