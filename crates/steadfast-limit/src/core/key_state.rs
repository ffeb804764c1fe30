mod admission;
mod report;
mod restart;
mod spread;

use std::time::Duration;

use steadfast_call::Lane;

pub(crate) use self::admission::Question;
use crate::core::{
    count::{paced, smoother::Smoother},
    decision::{Share, ZoneId},
    lanes::is_smoothed,
    queue::{Place, Queue},
    rules::Rules,
    spent::{
        in_flight::InFlight,
        log::StampLog,
        lost::{Lost, LostAt},
    },
    time::Nanos,
    trust::{
        circuit_breaker::Verdict,
        penalty::Penalty,
        trust_level::{Change, TrustLevel},
    },
};

/// Holds what one key has spent in one zone, and its queue.
#[derive(Debug)]
pub(crate) struct KeyState {
    zone: ZoneId,
    key: u64,
    in_flight: InFlight,
    /// How many requests on their way only the log has admitted, at a gateway that may interpolate.
    optimistic: u16,
    /// Changes whenever an input of [`opens`](Self::opens) other than time changes.
    version: u32,
    log: StampLog,
    lost: Lost,
    penalty: Option<Box<Penalty>>,
    smoother: Option<Box<Smoother>>,
    queue: Option<Box<Queue>>,
}

impl KeyState {
    /// For how long a request on its way holds back the lanes that must get out, before its window is added. Without
    /// this bound, a gateway that hangs would hold back cancels until those requests are given up. A packet that was
    /// lost twice has arrived by then.
    pub(crate) const PATIENCE: Nanos = 3_000_000_000;

    pub(crate) fn new(zone: ZoneId, key: u64) -> Self {
        Self {
            zone,
            key,
            in_flight: InFlight::default(),
            optimistic: 0,
            version: 0,
            log: StampLog::default(),
            lost: Lost::default(),
            penalty: None,
            smoother: None,
            queue: None,
        }
    }

    pub(crate) fn zone(&self) -> ZoneId {
        self.zone
    }

    pub(crate) fn key(&self) -> u64 {
        self.key
    }

    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    pub(crate) fn queue(&self) -> Option<&Queue> {
        self.queue.as_deref()
    }

    pub(crate) fn queue_mut(&mut self) -> Option<&mut Queue> {
        self.queue.as_deref_mut()
    }

    /// Adds a waiter.
    pub(crate) fn enqueue(&mut self, place: Place) {
        self.queue.get_or_insert_default().insert(place);
    }

    /// Drops the queue if no request waits in it.
    pub(crate) fn close_empty_queue(&mut self) {
        self.queue.take_if(|queue| queue.is_empty());
    }

    /// Spends a slot for a request that is granted at `now`.
    pub(crate) fn spend(&mut self, now: Nanos) {
        self.changed();
        self.in_flight.enter(now);
    }

    /// Spends a slot and records what the grant means for a key that has met 429s. Returns the key's share in it;
    /// `optimistic` says that only the log admits the request.
    pub(crate) fn grant(&mut self, rules: &Rules, lane: Lane, optimistic: bool, now: Nanos) -> Share {
        self.spend(now);
        self.optimistic += u16::from(optimistic);
        let learned = self.learned(lane);
        let mut awaited = false;
        if let Some(penalty) = &mut self.penalty {
            if lane == Lane::Bulk {
                penalty.hold_back_bulk(now + paced::every_second(rules, lane, learned));
            }
            awaited = penalty.breaker_mut().granted(lane, rules.apart(), now);
        }
        Share { at: now, lane, awaited, optimistic }
    }

    /// Charges the smoother for a request of `lane`, if the lane is smoothed. False if the request comes too early.
    pub(crate) fn charge_smoother(&mut self, rules: &Rules, lane: Lane, now: Nanos) -> bool {
        let Some(smoothing) = rules.smoothing.filter(|_| is_smoothed(lane)) else { return true };
        if self.smoother.is_none() {
            self.smoother = Smoother::new(smoothing, now).map(Box::new);
        }
        let is_charged = self.smoother.as_mut().is_none_or(|smoother| smoother.charge(now));
        if !is_charged {
            self.changed();
        }
        is_charged
    }

    /// Returns when the smoother opens for `lane`, or 0 if it does not hold it back.
    pub(crate) fn smoothed_until(&self, lane: Lane) -> Nanos {
        self.smoother.as_ref().filter(|_| is_smoothed(lane)).map_or(0, |smoother| smoother.opens())
    }

    /// Gives back the charge of a request of `lane` that never left.
    pub(crate) fn give_back_charge(&mut self, lane: Lane) {
        if let Some(smoother) = self.smoother.as_mut().filter(|_| is_smoothed(lane)) {
            smoother.give_back();
        }
    }

    /// Records an answer that is no 429. Returns what the key has unlearned: in the critical lane, and in all others.
    pub(crate) fn answered(&mut self, rules: &Rules, share: Share, now: Nanos) -> (Change, Change) {
        self.stamp(rules, share.at, now);
        self.optimistic_ended(share);
        let Some(penalty) = &mut self.penalty else { return Default::default() };
        penalty.breaker_mut().answered(share);
        let critical = penalty.critical_mut().clean(rules.profile, rules.shortest_limit(), now);
        (critical, penalty.trust_mut().clean(rules.profile, rules.shortest_limit(), now))
    }

    /// Records a 429. The optimistic grants are counted until [`optimistic_ended`](Self::optimistic_ended), because
    /// the refused request may explain the refusal.
    pub(crate) fn refused(
        &mut self,
        rules: &Rules,
        share: Share,
        retry_after: Option<Duration>,
        now: Nanos,
    ) -> Verdict {
        self.stamp(rules, share.at, now);
        self.penalty_mut().breaker_mut().refused(share, retry_after, now)
    }

    /// Records a 429 that the limiter's own log does not explain. Returns what the key has learned.
    pub(crate) fn mismatch(&mut self, rules: &Rules, now: Nanos) -> Change {
        let optimistic = self.optimistic > 0;
        self.penalty_mut().trust_mut().mismatch(optimistic, rules.shortest_limit(), now)
    }

    /// Records such a 429 for a request of the critical lane. Returns what that lane has learned.
    pub(crate) fn critical_mismatch(&mut self, rules: &Rules, now: Nanos) -> Change {
        self.penalty_mut().critical_mut().mismatch(false, rules.shortest_limit(), now)
    }

    /// Records that the request is no longer on its way, if only the log had admitted it.
    pub(crate) fn optimistic_ended(&mut self, share: Share) {
        self.optimistic = self.optimistic.saturating_sub(share.optimistic.into());
    }

    /// Records that the answer to a request is lost.
    pub(crate) fn lose(&mut self, rules: &Rules, share: Share, at: LostAt, now: Nanos) {
        self.changed();
        self.in_flight.leave(share.at);
        self.lost.expire(now, self.retention(rules));
        self.lost.push(LostAt { counted: at.counted + rules.settle, ..at });
        self.no_answer(share, now);
    }

    /// Frees the slot of a request that never left.
    pub(crate) fn give_back(&mut self, share: Share, now: Nanos) {
        self.changed();
        self.in_flight.leave(share.at);
        self.give_back_charge(share.lane);
        self.no_answer(share, now);
    }

    pub(crate) fn trust(&self) -> TrustLevel {
        self.penalty.as_ref().map(|penalty| penalty.trust()).unwrap_or_default()
    }

    /// Returns the learned limit of the shortest window for `lane`. The critical lane learns from its own 429s only.
    pub(crate) fn learned(&self, lane: Lane) -> Option<u32> {
        let penalty = self.penalty.as_ref()?;
        if lane == Lane::Critical { penalty.critical().learned() } else { penalty.trust().learned() }
    }

    /// True if the key has nothing left to remember at `now`.
    pub(crate) fn is_idle(&mut self, rules: &Rules, now: Nanos) -> bool {
        // A bucket forgets what has expired.
        self.changed();
        self.log.expire(now, self.retention(rules), rules.unit);
        self.lost.expire(now, self.retention(rules));
        self.penalty.take_if(|penalty| penalty.is_over(rules.shortest_limit(), now));
        self.in_flight.is_empty()
            && self.queue.is_none()
            && self.log.is_empty()
            && self.lost.is_empty()
            && self.penalty.is_none()
    }

    /// Returns the bytes that the key takes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        let smoother = self.smoother.as_ref().map_or(0, |smoother| size_of_val(&**smoother));
        let queue = self.queue.as_ref().map_or(0, |queue| size_of_val(&**queue));
        let penalty = self.penalty.as_ref().map_or(0, |penalty| size_of_val(&**penalty));
        self.in_flight.heap_bytes()
            + self.log.heap_bytes()
            + self.lost.heap_bytes()
            + smoother
            + queue
            + penalty
    }

    /// Records a change that outdates earlier results of [`opens`](Self::opens).
    fn changed(&mut self) {
        self.version = self.version.wrapping_add(1);
    }

    /// Logs the answer to a request that was granted at `granted`.
    fn stamp(&mut self, rules: &Rules, granted: Nanos, now: Nanos) {
        self.changed();
        self.in_flight.leave(granted);
        self.log.expire(now, self.retention(rules), rules.unit);
        self.log.push(now + rules.settle, rules.unit, rules.usual);
    }

    /// Records that a request brought no answer. If the zone awaited it, the next request is awaited instead.
    fn no_answer(&mut self, share: Share, now: Nanos) {
        self.optimistic_ended(share);
        if let Some(penalty) = &mut self.penalty {
            penalty.breaker_mut().unanswered(share, now);
        }
    }

    fn penalty_mut(&mut self) -> &mut Penalty {
        self.penalty.get_or_insert_default()
    }

    /// Returns how long a stamp matters. After a 429 the rules look back two periods.
    fn retention(&self, rules: &Rules) -> Nanos {
        if self.penalty.is_some() { rules.retention.max(2 * rules.longest()) } else { rules.retention }
    }
}
