use std::{borrow::Cow, time::Duration};

use steadfast_spec::Lane;

use crate::core::{
    count::{paced, pacer::Pacer, universal},
    decision::ZoneId,
    queue::Queue,
    rules::{Bound, Rules, profile::Profile},
    snapshot::WindowUse,
    spent::{in_flight::InFlight, log::StampLog, lost::Lost, stamps::Stamps},
    time::Nanos,
    trust::{
        penalty::Caution,
        trust_level::{Counting, Ladder},
    },
};

/// Holds what one key has spent in one zone, and its queue.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) zone: ZoneId,
    pub(crate) key: u64,
    pub(crate) in_flight: InFlight,
    /// How many requests on their way only the log has admitted, at a gateway that may interpolate.
    pub(crate) tried: u16,
    /// Changes whenever an input of [`opens`](Self::opens) other than time changes.
    pub(crate) version: u32,
    pub(crate) log: StampLog,
    pub(crate) lost: Lost,
    pub(crate) caution: Option<Box<Caution>>,
    pub(crate) pacer: Option<Box<Pacer>>,
    pub(crate) queue: Option<Box<Queue>>,
}

/// True for the lanes that get a trader out of a position or tell whether there is one. Requests without an answer
/// hold these back for little more than a window.
fn must_get_out(lane: Lane) -> bool {
    lane <= Lane::Verification
}

/// True if requests without an answer hold back `lane` for little more than a window.
fn is_exempt(lane: Lane, strict: bool) -> bool {
    !strict && must_get_out(lane)
}

/// True for the lanes that can wait and are spread over the long windows.
pub(crate) fn is_paced(lane: Lane) -> bool {
    lane >= Lane::Normal || lane == Lane::Verification
}

impl Ledger {
    /// For how long a request on its way holds back the lanes that must get out, before its window is added. Without
    /// this bound, a gateway that hangs would hold back cancels until those requests are given up. A packet that was
    /// lost twice has arrived by then.
    pub(crate) const PATIENCE: Nanos = 3_000_000_000;

    pub(crate) fn new(zone: ZoneId, key: u64) -> Self {
        Self {
            zone,
            key,
            in_flight: InFlight::default(),
            tried: 0,
            version: 0,
            log: StampLog::default(),
            lost: Lost::default(),
            caution: None,
            pacer: None,
            queue: None,
        }
    }

    /// Records a change that outdates earlier results of [`opens`](Self::opens).
    pub(crate) fn changed(&mut self) {
        self.version = self.version.wrapping_add(1);
    }

    /// True if a request of `lane` can be granted at `now` without counting. If not, ask [`opens`](Self::opens).
    ///
    /// A window has room if every stamp that could fill it is older than its rule looks back.
    pub(crate) fn is_clear(&self, rules: &Rules, lane: Lane, now: Nanos) -> bool {
        self.caution.is_none()
            && self.lost.is_empty()
            && self.queue.is_none()
            && (!is_paced(lane) || self.pacer.as_ref().is_none_or(|pacer| pacer.opens() <= now))
            && rules.bounds.iter().all(|bound| {
                let most = bound.ceilings[lane as usize].min(bound.at_once);
                most.checked_sub(self.in_flight.len() + 1).is_some_and(|room| {
                    let kth = self.log.kth_latest(room as usize + 1, rules.unit);
                    kth.is_none_or(|stamp| stamp + bound.reach <= now)
                })
            })
    }

    /// Returns the first instant at which a request of `lane` could be granted after `ahead` others, if nothing
    /// happens until then. `None` if something must happen first: an answer, or a request given up.
    ///
    /// An instant not after `now` means that the request can be granted now.
    pub(crate) fn opens(
        &self,
        rules: &Rules,
        lane: Lane,
        ahead: u32,
        strict: bool,
        now: Nanos,
        scratch: &mut Vec<Nanos>,
    ) -> Option<Nanos> {
        let frozen = self.caution.as_ref().map_or(0, |caution| caution.freeze.opens());
        let learned = self.ladder().learned();
        let mut windows = |unanswered: &[Nanos], busy: u32| {
            let stamps = Stamps::new(&self.log, rules.unit, unanswered);
            let mut bounds = rules.bounds.iter().enumerate();
            bounds.try_fold(frozen.max(self.held_back(lane)), |opens, (place, bound)| {
                let counting = self.counting(rules.profile, place, lane);
                let allowed = rules.allows(place, lane, learned);
                bound_opens(bound, counting, stamps, allowed, busy, now, scratch).map(|at| opens.max(at))
            })
        };
        let busy = self.busy(lane, strict).saturating_add(ahead);
        let patient = windows(&self.unanswered_for(lane, strict, Nanos::MAX), busy);
        // As future stamps, requests on their way fill a bucket until then. Counted as busy, they may leave room now.
        let is_paced = matches!(self.counting(rules.profile, 0, lane), Counting::Paced { .. });
        let answered = (is_paced && is_exempt(lane, strict))
            .then(|| windows(self.lost_for(lane, strict), self.in_flight.len().saturating_add(ahead)))
            .flatten();
        patient.into_iter().chain(answered).min()
    }

    /// True if the log admits a request of `lane` at `now` and an interpolating gateway might refuse it. Such a
    /// request tests the log for all requests behind it.
    pub(crate) fn is_try(
        &self,
        rules: &Rules,
        lane: Lane,
        strict: bool,
        now: Nanos,
        scratch: &mut Vec<Nanos>,
    ) -> bool {
        let learns = matches!(rules.profile, Profile::Adaptive { .. });
        if !learns || self.counting(rules.profile, 0, lane) != Counting::Log {
            return false;
        }
        let unanswered = self.unanswered_for(lane, strict, Nanos::MAX);
        let stamps = Stamps::new(&self.log, rules.unit, &unanswered);
        let busy = self.busy(lane, strict);
        rules.bounds.iter().any(|bound| {
            let allowed = (bound.limit, bound.limit);
            bound_opens(bound, Counting::Universal, stamps, allowed, busy, now, scratch)
                .is_none_or(|opens| opens > now)
        })
    }

    /// Returns the earliest instant at which a request of `lane` could be granted, if all requests on their way were
    /// answered now and none of the `ahead` before it gave up.
    pub(crate) fn estimate(&self, rules: &Rules, lane: Lane, ahead: u32, strict: bool, now: Nanos) -> Nanos {
        let unanswered = self.unanswered_for(lane, strict, now);
        let stamps = Stamps::new(&self.log, rules.unit, &unanswered);
        let busy = self.busy(lane, strict) as usize;
        let frozen = self.frozen_until(now).unwrap_or(0);
        let learned = self.ladder().learned();
        let windows = rules.bounds.iter().enumerate().map(|(place, bound)| {
            let (_, ceiling) = rules.allows(place, lane, learned);
            // A whole window's worth of requests ahead adds a whole window of waiting.
            let (rounds, ahead) = (ahead / ceiling, (ahead % ceiling) as usize);
            let held = stamps.held(now, bound.period);
            let spent = held + busy + ahead;
            let frees = match (spent + 1).checked_sub(ceiling as usize) {
                None | Some(0) => now,
                Some(nth) if nth <= held => {
                    stamps.kth_latest(held + 1 - nth).map_or(now, |stamp| stamp + bound.period)
                }
                Some(_) => now + bound.period,
            };
            frees + u64::from(rounds) * bound.period
        });
        windows.fold(now, Nanos::max).max(frozen).max(self.held_back(lane))
    }

    /// Returns the earliest instant by the zone's own way of counting, with nothing on its way and no queue. It is
    /// later than [`estimate`](Self::estimate) where that way is stricter than the log.
    pub(crate) fn estimate_alone(&self, rules: &Rules, lane: Lane, strict: bool, now: Nanos) -> Nanos {
        let stamps = Stamps::new(&self.log, rules.unit, self.lost_for(lane, strict));
        let ladder = self.ladder();
        let mut scratch = Vec::new();
        let mut opens = |(place, bound): (usize, &Bound)| {
            let counting = ladder.counting(rules.profile, place == 0 && lane != Lane::Critical);
            let allowed = rules.allows(place, lane, ladder.learned());
            bound_opens(bound, counting, stamps, allowed, 0, now, &mut scratch)
        };
        rules.bounds.iter().enumerate().filter_map(&mut opens).fold(now, Nanos::max)
    }

    /// Charges the pacer for a request of `lane`, if the lane is paced. False if the request comes too early.
    pub(crate) fn pace(&mut self, rules: &Rules, lane: Lane, now: Nanos) -> bool {
        let Some(pace) = rules.pace.filter(|_| is_paced(lane)) else { return true };
        if self.pacer.is_none() {
            self.pacer = Pacer::new(pace, now).map(Box::new);
        }
        self.pacer.as_mut().is_none_or(|pacer| pacer.charge(now))
    }

    /// Gives back the charge of a request of `lane` that never left.
    pub(crate) fn unpace(&mut self, lane: Lane) {
        if let Some(pacer) = self.pacer.as_mut().filter(|_| is_paced(lane)) {
            pacer.give_back();
        }
    }

    /// Records that `tries` requests which only the log admitted are no longer on their way.
    pub(crate) fn tried_no_more(&mut self, tries: u16) {
        self.tried = self.tried.saturating_sub(tries);
    }

    /// Records that a request brought no answer. If it was the try after a pause, the next request tries.
    pub(crate) fn unanswered(&mut self, probe: bool, now: Nanos) {
        if let Some(caution) = &mut self.caution {
            caution.freeze.unanswered(probe, now);
        }
    }

    /// Returns what the key's 429s have taught, for additions.
    pub(crate) fn caution(&mut self) -> &mut Caution {
        self.caution.get_or_insert_default()
    }

    /// Logs the answer to a request that was granted at `granted`.
    pub(crate) fn stamp(&mut self, rules: &Rules, granted: Nanos, now: Nanos) {
        self.in_flight.leave(granted);
        self.log.expire(now, self.retention(rules), rules.unit);
        self.log.push(now + rules.settle, rules.unit, rules.usual);
    }

    /// Records that the answer to a request granted at `granted` is lost. The lanes that must get out count it as
    /// given up at `given_up`; for all others the gateway may count it until `counted`.
    pub(crate) fn lose(
        &mut self,
        rules: &Rules,
        granted: Nanos,
        (given_up, counted): (Nanos, Nanos),
        now: Nanos,
    ) {
        self.in_flight.leave(granted);
        self.lost.expire(now, self.retention(rules));
        self.lost.push(given_up, counted + rules.settle);
    }

    /// Returns the stamps of answered and lost requests that still matter at `now`.
    pub(crate) fn spent<'a>(&'a self, rules: &Rules, now: Nanos) -> impl Iterator<Item = Nanos> + use<'a> {
        let first = self.log.over(now, self.retention(rules), rules.unit);
        self.log.from(first, rules.unit).chain(self.lost.counted().iter().copied())
    }

    /// Adds the stamps of an earlier process. Those in the future belong to requests that it lost.
    pub(crate) fn restore(&mut self, rules: &Rules, stamps: impl Iterator<Item = Nanos>, now: Nanos) {
        let matters = |stamp: &Nanos| stamp + rules.retention > now;
        let (later, mut earlier): (Vec<_>, Vec<_>) = stamps.filter(matters).partition(|stamp| *stamp > now);
        earlier.extend(self.log.from(0, rules.unit));
        earlier.sort_unstable();
        self.log.clear();
        for stamp in earlier {
            self.log.push(stamp, rules.unit, rules.usual);
        }
        for stamp in later {
            self.lost.push(now, stamp);
        }
    }

    /// True if requests without an answer hold back the lower lanes longer than `lane`.
    pub(crate) fn is_lenient(&self, rules: &Rules, lane: Lane, strict: bool, now: Nanos) -> bool {
        let shortest = rules.bounds.iter().map(|bound| bound.period).min().unwrap_or_default();
        let overdue = |granted: &Nanos| granted + Self::PATIENCE + shortest <= now;
        is_exempt(lane, strict)
            && (!self.lost.is_empty() || self.in_flight.granted().first().is_some_and(overdue))
    }

    /// Returns how long a stamp matters. After a 429 the rules look back two periods.
    fn retention(&self, rules: &Rules) -> Nanos {
        if self.caution.is_some() { rules.retention.max(2 * rules.longest()) } else { rules.retention }
    }

    /// True if the key has nothing left to remember at `now`.
    pub(crate) fn is_idle(&mut self, rules: &Rules, now: Nanos) -> bool {
        self.log.expire(now, self.retention(rules), rules.unit);
        self.lost.expire(now, self.retention(rules));
        if self.caution.as_ref().is_some_and(|caution| caution.is_over(rules.shortest_limit(), now)) {
            self.caution = None;
            self.changed();
        }
        self.in_flight.is_empty()
            && self.queue.is_none()
            && self.log.is_empty()
            && self.lost.is_empty()
            && self.caution.is_none()
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

    /// Returns the bytes that the key takes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        let pacer = self.pacer.as_ref().map_or(0, |pacer| size_of_val(&**pacer));
        let queue = self.queue.as_ref().map_or(0, |queue| size_of_val(&**queue));
        let caution = self.caution.as_ref().map_or(0, |caution| size_of_val(&**caution));
        self.in_flight.heap_bytes() + self.log.heap_bytes() + self.lost.heap_bytes() + pacer + queue + caution
    }

    /// Counts the long windows as spent until `until`, for the lanes that can wait.
    pub(crate) fn fill(&mut self, until: Nanos) {
        let caution = self.caution();
        caution.full_until = caution.full_until.max(until);
        self.changed();
    }

    /// Returns the end of the pause, if it is not over at `now`.
    pub(crate) fn frozen_until(&self, now: Nanos) -> Option<Nanos> {
        self.caution.as_ref().and_then(|caution| caution.freeze.until(now))
    }

    /// Returns the ladder's step: 0 is full trust.
    pub(crate) fn step(&self) -> u8 {
        self.ladder().step()
    }

    pub(crate) fn ladder(&self) -> Ladder {
        self.caution.as_ref().map(|caution| caution.ladder).unwrap_or_default()
    }

    /// Returns how the window at `place` (0 is the shortest) is counted for the next request of `lane`.
    fn counting(&self, profile: Profile, place: usize, lane: Lane) -> Counting {
        let ladder = self.ladder();
        match ladder.counting(profile, place == 0 && lane != Lane::Critical) {
            // If the gateway does not go by the log, it refuses all of these at once. Risk no more.
            Counting::Log if profile != Profile::WindowLog && self.in_flight.len() >= ladder.tries() => {
                Counting::Universal
            }
            counting => counting,
        }
    }

    /// Returns how many requests on their way hold back `lane` until answered, however long that takes.
    fn busy(&self, lane: Lane, strict: bool) -> u32 {
        if is_exempt(lane, strict) { 0 } else { self.in_flight.len() }
    }

    /// Returns the lost requests that hold back `lane`, each as the instant from which its window counts.
    fn lost_for(&self, lane: Lane, strict: bool) -> &[Nanos] {
        if is_exempt(lane, strict) { self.lost.given_up() } else { self.lost.counted() }
    }

    /// Returns the same, with the requests on their way that are not [`busy`](Self::busy). Each counts as lost and
    /// given up when its patience ends, or at `latest` if that is earlier.
    fn unanswered_for(&self, lane: Lane, strict: bool, latest: Nanos) -> Cow<'_, [Nanos]> {
        let lost = self.lost_for(lane, strict);
        if !is_exempt(lane, strict) || self.in_flight.is_empty() {
            return Cow::Borrowed(lost);
        }
        let given_up = |granted: &Nanos| (granted + Self::PATIENCE).min(latest);
        let mut all: Vec<_> =
            lost.iter().copied().chain(self.in_flight.granted().iter().map(given_up)).collect();
        // Two ascending runs, which the stable sort merges.
        all.sort();
        Cow::Owned(all)
    }

    /// Returns until when something other than its windows holds back `lane`.
    fn held_back(&self, lane: Lane) -> Nanos {
        let caution = self.caution.as_ref().filter(|_| !must_get_out(lane));
        let bulk = caution.filter(|_| lane == Lane::Bulk).map_or(0, |caution| caution.bulk_opens);
        let full = caution.map_or(0, |caution| caution.full_until).max(bulk);
        let paced = self.pacer.as_ref().filter(|_| is_paced(lane)).map_or(0, |pacer| pacer.opens());
        full.max(paced)
    }
}

/// Does the same as [`Ledger::opens`], for one window with the given limit and ceiling.
fn bound_opens(
    bound: &Bound,
    counting: Counting,
    stamps: Stamps<'_>,
    (limit, ceiling): (u32, u32),
    busy: u32,
    now: Nanos,
    scratch: &mut Vec<Nanos>,
) -> Option<Nanos> {
    // How many stamps may still be younger than the period when the request is granted.
    let room = ceiling.checked_sub(busy.checked_add(1)?)?;
    let log = stamps.kth_latest(room as usize + 1).map_or(0, |stamp| stamp + bound.period);
    match counting {
        Counting::Log => Some(log),
        // No content of the neighbouring window makes the count exceed the room.
        Counting::Universal if log + bound.period <= now => Some(log),
        Counting::Universal => {
            stamps.since(now, 2 * bound.period, scratch);
            Some(universal::earliest(scratch, bound.period, u64::from(room), log.max(now)))
        }
        Counting::Paced { burst } => {
            let burst = burst.get().min(limit / 2).max(1);
            let interval = paced::interval(bound, limit, burst);
            paced::earliest(stamps.iter(), interval, burst.into(), busy.into()).map(|paced| paced.max(log))
        }
    }
}
