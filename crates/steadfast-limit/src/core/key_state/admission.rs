use std::borrow::Cow;

use steadfast_call::Lane;

use super::KeyState;
use crate::core::{
    count::{paced, universal},
    lanes::{is_exempt, is_smoothed, must_get_out},
    rules::{Allowance, Bound, Rules, profile::Profile},
    spent::stamps::Stamps,
    time::{LATEST, Nanos},
    trust::trust_level::Counting,
};

/// The question that [`KeyState::opens`] answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// When can a request be granted, after this many others, if nothing happens until then?
    Next { ahead: u32 },
    /// When would the windows have room if every request on its way were gone and none waited?
    Alone,
    /// When would a gateway that interpolates between windows have room, without reserves?
    Interpolated,
}

/// The requests without an answer, as far as they hold back one lane.
pub(super) struct Unanswered<'a> {
    /// Each of these counts as answered at its instant.
    pub(super) stamps: Cow<'a, [Nanos]>,
    /// This many more count until they are answered.
    pub(super) busy: u32,
}

/// The admission rule. It reads the state and changes nothing.
impl KeyState {
    /// True if a request of `lane` can be granted at `now` without counting. If not, ask [`opens`](Self::opens).
    ///
    /// A window has room if every stamp that could fill it is older than its rule looks back.
    pub(crate) fn is_clear(&self, rules: &Rules, lane: Lane, now: Nanos) -> bool {
        self.penalty.is_none()
            && self.lost.is_empty()
            && self.queue.is_none()
            && (!is_smoothed(lane) || self.smoother.as_ref().is_none_or(|smoother| smoother.opens() <= now))
            && rules.bounds.iter().all(|bound| {
                let most = bound.ceilings[lane as usize].min(bound.at_once);
                most.checked_sub(self.in_flight.len() + 1).is_some_and(|room| {
                    let kth = self.log.kth_latest(room as usize + 1, rules.unit);
                    kth.is_none_or(|stamp| stamp + bound.reach <= now)
                })
            })
    }

    /// Returns the first instant for a request of `lane`, as `question` asks. `None` if something must happen first: an
    /// answer, or a request given up.
    ///
    /// An instant not after `now` means that there is room now.
    pub(crate) fn opens(
        &self,
        rules: &Rules,
        lane: Lane,
        question: Question,
        strict: bool,
        now: Nanos,
        scratch: &mut Vec<Nanos>,
    ) -> Option<Nanos> {
        let mut windows =
            |unanswered: Unanswered<'_>| self.windows_open(rules, lane, question, &unanswered, now, scratch);
        let lost = |busy| Unanswered { stamps: self.lost_for(lane, strict).into(), busy };
        match question {
            Question::Alone => {
                let spread = self.spread_opens(rules, lane, &lost(0), &[], 0, now)?;
                windows(lost(0)).map(|opens| opens.max(spread))
            }
            Question::Interpolated => windows(self.unanswered(lane, strict, Nanos::MAX)),
            Question::Next { ahead } => {
                let mut unanswered = self.unanswered(lane, strict, Nanos::MAX);
                let on_their_way = self.in_flight.granted();
                let spread = self.spread_opens(rules, lane, &unanswered, on_their_way, ahead, now)?;
                unanswered.busy = unanswered.busy.saturating_add(ahead);
                let if_given_up = windows(unanswered);
                // For an exempt lane each request on its way is a stamp of the future, when patience with it ends, and a
                // paced bucket is full until its last stamp. If all are answered before that, the bucket opens earlier.
                let is_paced = matches!(self.counting(rules.profile, 0, lane), Counting::Paced { .. });
                let if_answered = (is_paced && is_exempt(lane, strict))
                    .then(|| windows(lost(self.in_flight.len().saturating_add(ahead))))
                    .flatten();
                let paused = self.penalty.as_ref().map_or(0, |penalty| penalty.breaker().admits_at(lane));
                let opens = if_given_up.into_iter().chain(if_answered).min()?;
                Some(opens.max(spread).max(paused).max(self.held_back(lane)))
            }
        }
    }

    /// Returns when all windows have room for a request of `lane`, with those without an answer held as `unanswered`.
    fn windows_open(
        &self,
        rules: &Rules,
        lane: Lane,
        question: Question,
        unanswered: &Unanswered<'_>,
        now: Nanos,
        scratch: &mut Vec<Nanos>,
    ) -> Option<Nanos> {
        let stamps = Stamps::new(&self.log, rules.unit, &unanswered.stamps);
        rules.bounds.iter().enumerate().try_fold(0, |opens: Nanos, (place, bound)| {
            let (counting, allowance) = self.counting_for(question, rules, place, lane);
            bound_opens(bound, counting, stamps, allowance, unanswered.busy, now, scratch)
                .map(|at| opens.max(at))
        })
    }

    /// True if the log admits a request of `lane` at `now` and an interpolating gateway might refuse it. Such a
    /// request tests the log for all requests behind it.
    pub(crate) fn is_optimistic(
        &self,
        rules: &Rules,
        lane: Lane,
        strict: bool,
        now: Nanos,
        scratch: &mut Vec<Nanos>,
    ) -> bool {
        matches!(rules.profile, Profile::Adaptive { .. })
            && self.counting(rules.profile, 0, lane) == Counting::Log
            && self
                .opens(rules, lane, Question::Interpolated, strict, now, scratch)
                .is_none_or(|opens| opens > now)
    }

    /// Returns the earliest instant at which the log would admit a request of `lane`, if all requests on their way
    /// were answered now and none of the `ahead` before it gave up.
    pub(crate) fn estimate(&self, rules: &Rules, lane: Lane, ahead: u32, strict: bool, now: Nanos) -> Nanos {
        let unanswered = self.unanswered(lane, strict, now);
        let stamps = Stamps::new(&self.log, rules.unit, &unanswered.stamps);
        let busy = unanswered.busy as usize;
        let learned = self.learned(lane);
        let windows = rules.bounds.iter().enumerate().map(|(place, bound)| {
            let ceiling = rules.allows(place, lane, learned).ceiling;
            let held = stamps.held(now, bound.period);
            // Requests ahead do not wait for the slots of lost requests as long as others free themselves.
            if stamps.kth_latest(1).is_some_and(|latest| latest > now) {
                let slots = slots(&stamps, held, busy, ceiling, bound.period, now);
                return nth_turn(&slots, bound.period, u64::from(ahead));
            }
            // A whole window's worth of requests ahead adds a whole window of waiting.
            let (rounds, ahead) = (ahead / ceiling, (ahead % ceiling) as usize);
            let spent = held + busy + ahead;
            let frees = match (spent + 1).checked_sub(ceiling as usize) {
                None | Some(0) => now,
                Some(nth) if nth <= held => {
                    stamps.kth_latest(held + 1 - nth).map_or(now, |stamp| stamp + bound.period)
                }
                Some(_) => now + bound.period,
            };
            frees.saturating_add(u64::from(rounds).saturating_mul(bound.period)).min(LATEST)
        });
        let paused = self.paused_until(lane, now).unwrap_or(0);
        windows.fold(now, Nanos::max).max(paused).max(self.held_back(lane))
    }

    /// True if a 429 for a request of `lane` that is granted at `now` would say nothing of the others: it passes requests
    /// without an answer that would hold it back in a lower lane.
    pub(crate) fn passes_unanswered(
        &self,
        rules: &Rules,
        lane: Lane,
        strict: bool,
        now: Nanos,
        scratch: &mut Vec<Nanos>,
    ) -> bool {
        if !is_exempt(lane, strict) || self.lost.is_empty() && self.in_flight.is_empty() {
            return false;
        }
        let (all, question) = (self.unanswered(lane, true, Nanos::MAX), Question::Next { ahead: 0 });
        let spread = self.spread_opens(rules, lane, &all, self.in_flight.granted(), 0, now);
        let windows = self.windows_open(rules, lane, question, &all, now, scratch);
        let is_later = |opens: Option<Nanos>| opens.is_none_or(|opens| opens > now);
        is_later(spread) || is_later(windows)
    }

    /// Returns how the window at `place` is counted for the answer to `question`, and how much of it `lane` may use.
    fn counting_for(
        &self,
        question: Question,
        rules: &Rules,
        place: usize,
        lane: Lane,
    ) -> (Counting, Allowance) {
        let allowed = || rules.allows(place, lane, self.learned(lane));
        match question {
            Question::Next { .. } => (self.counting(rules.profile, place, lane), allowed()),
            Question::Alone => (self.trusted(rules.profile, place, lane), allowed()),
            Question::Interpolated => {
                let limit = rules.bounds[place].limit;
                (Counting::Universal, Allowance { limit, ceiling: limit })
            }
        }
    }

    /// Returns how the window at `place` (0 is the shortest) is counted for the next request of `lane`.
    fn counting(&self, profile: Profile, place: usize, lane: Lane) -> Counting {
        match self.trusted(profile, place, lane) {
            // If the gateway does not go by the log, it refuses all of these at once. Risk no more.
            Counting::Log
                if profile != Profile::WindowLog
                    && self.in_flight.len() >= self.trust().most_optimistic() =>
            {
                Counting::Universal
            }
            counting => counting,
        }
    }

    /// Returns the same, whatever is on its way.
    pub(super) fn trusted(&self, profile: Profile, place: usize, lane: Lane) -> Counting {
        let is_critical = lane == Lane::Critical;
        match self.trust().counting(profile, place == 0 && !is_critical) {
            // A limit that the critical lane has learned is small, and the universal rule would use half of it.
            Counting::Universal if is_critical && place == 0 && self.learned(lane).is_some() => Counting::Log,
            counting => counting,
        }
    }

    /// Returns the lost requests that hold back `lane`, each as the instant from which its window counts.
    fn lost_for(&self, lane: Lane, strict: bool) -> &[Nanos] {
        if is_exempt(lane, strict) { self.lost.given_up() } else { self.lost.counted() }
    }

    /// Returns the requests without an answer that hold back `lane`. For an exempt lane, each on its way counts as
    /// given up when its patience ends, or at `latest` if that is earlier. For all others they are busy.
    fn unanswered(&self, lane: Lane, strict: bool, latest: Nanos) -> Unanswered<'_> {
        let lost = self.lost_for(lane, strict);
        if !is_exempt(lane, strict) || self.in_flight.is_empty() {
            return Unanswered { stamps: lost.into(), busy: self.in_flight.len() };
        }
        let given_up = |granted: &Nanos| (granted + Self::PATIENCE).min(latest);
        let mut all: Vec<_> =
            lost.iter().copied().chain(self.in_flight.granted().iter().map(given_up)).collect();
        // Two ascending runs, which the stable sort merges.
        all.sort();
        Unanswered { stamps: all.into(), busy: 0 }
    }

    /// Returns until when something other than its windows and a pause holds back `lane`.
    fn held_back(&self, lane: Lane) -> Nanos {
        let penalty = self.penalty.as_ref().filter(|_| !must_get_out(lane));
        let full = penalty.map_or(0, |penalty| penalty.holds_back(lane));
        full.max(self.smoothed_until(lane))
    }
}

/// Returns the same as [`KeyState::opens`], for one window.
fn bound_opens(
    bound: &Bound,
    counting: Counting,
    stamps: Stamps<'_>,
    Allowance { limit, ceiling }: Allowance,
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
        // A gateway that has lowered its limit to one allows one in any second, and the universal rule one in two.
        Counting::Spread { .. } if limit == 1 && bound.limit > 1 => Some(log),
        Counting::Spread { .. } => {
            let whole = Allowance { limit, ceiling: limit };
            let universal = bound_opens(bound, Counting::Universal, stamps, whole, busy, now, scratch)?;
            Some(universal.max(log))
        }
        Counting::Paced { burst } => {
            let burst = burst.get().min(limit / 2).max(1);
            let interval = paced::interval(bound, limit, burst);
            paced::earliest(stamps.iter(), interval, burst.into(), busy.into()).map(|paced| paced.max(log))
        }
    }
}

/// Returns when each of the `ceiling` slots of a window is free: the spent ones a period after their stamps, those of
/// `busy` requests a period from now.
fn slots(
    stamps: &Stamps<'_>,
    held: usize,
    busy: usize,
    ceiling: u32,
    period: Nanos,
    now: Nanos,
) -> Vec<Nanos> {
    let all = ceiling as usize;
    let lost = (1..=held.min(all)).filter_map(|k| stamps.kth_latest(k)).map(|stamp| stamp + period);
    let mut free: Vec<Nanos> = lost.chain(std::iter::repeat_n(now + period, busy.min(all))).collect();
    free.resize(free.len().max(all), now);
    // If more is spent than fits, the latest ones stand in the way.
    free.sort_unstable_by(|a, b| b.cmp(a));
    free.truncate(all);
    free
}

/// Returns when the request after `ahead` others has its turn, if each takes the first free slot and is answered at
/// once: a slot is free again after a `period`.
fn nth_turn(slots: &[Nanos], period: Nanos, ahead: u64) -> Nanos {
    let turns_by = |at: Nanos| -> u64 {
        slots.iter().filter_map(|free| at.checked_sub(*free)).map(|since| since / period + 1).sum()
    };
    let last = slots.iter().copied().max().unwrap_or(0);
    let (mut before, mut by) = (0, last.saturating_add(ahead.saturating_mul(period)).min(LATEST));
    while before < by {
        let middle = before + (by - before) / 2;
        if turns_by(middle) > ahead { by = middle } else { before = middle + 1 }
    }
    by
}
