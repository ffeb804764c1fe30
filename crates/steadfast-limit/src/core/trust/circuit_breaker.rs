use std::time::Duration;

use crate::core::time::Nanos;

/// The reaction of a zone to the 429s of one key: it pauses, then lets one probe through, then goes on.
///
/// The pauses grow from one second to eight while the probes fail. A `Retry-After` replaces them, up to a minute.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CircuitBreaker {
    state: State,
    /// When the last pause began. A refusal of a request granted earlier has the same cause.
    since: Nanos,
    /// The end of the pause, or of the time reserved for a probe.
    until: Nanos,
    step: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Requests pass.
    #[default]
    Closed,
    /// The zone pauses, or nothing has been granted since its pause.
    Open,
    /// A probe is on its way.
    HalfOpen,
}

/// The meaning of a 429 for its zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It was on its way when the zone stopped, and says nothing new.
    Straggler,
    /// The zone stops for `pause`; `again` is true if the probe after a pause failed.
    Opened { pause: Nanos, again: bool },
}

impl CircuitBreaker {
    const FIRST_PAUSE: Nanos = 1_000_000_000;
    const LONGEST_STEP: u8 = 3;
    const LONGEST_PAUSE: Nanos = 60_000_000_000;

    /// Returns when the zone admits the next request.
    pub(crate) fn admits_at(&self) -> Nanos {
        match self.state {
            State::Closed => 0,
            State::Open | State::HalfOpen => self.until,
        }
    }

    /// Returns the end of the pause, if it is not over at `now`.
    pub(crate) fn paused_until(&self, now: Nanos) -> Option<Nanos> {
        (self.state == State::Open && self.until > now).then_some(self.until)
    }

    /// True if nothing of a pause is left to remember at `now`.
    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        match self.state {
            // Requests granted before the last pause may still be refused.
            State::Closed => self.since == 0 || self.since + Self::LONGEST_PAUSE <= now,
            // No probe was sent for as long as the longest pause, so the count of pauses is out of date.
            State::Open => self.until + Self::LONGEST_PAUSE <= now,
            State::HalfOpen => false,
        }
    }

    /// Records a grant at `now`. True if it is a probe.
    pub(crate) fn granted(&mut self, now: Nanos) -> bool {
        if self.state == State::Closed {
            return false;
        }
        // ## Open => HalfOpen, HalfOpen => HalfOpen
        //
        // The pause is over, but whether the quota is back is unknown: one request tests it for all. If it is not
        // answered for as long as the pause was, the next one probes: a lost answer is noticed only half a minute
        // later, and cancels wait.
        self.state = State::HalfOpen;
        self.until = now + (Self::FIRST_PAUSE << self.step);
        true
    }

    /// Records an answer other than 429.
    pub(crate) fn answered(&mut self, probe: bool) {
        // ## HalfOpen => Closed
        if probe && self.state == State::HalfOpen {
            *self = Self { since: self.since, ..Self::default() };
        }
    }

    /// Records that the probe brought no answer: it never left, or its answer was lost.
    pub(crate) fn unanswered(&mut self, probe: bool, now: Nanos) {
        // ## HalfOpen => Open
        //
        // Nothing was learned. The pause is over all the same, so the next request probes at once.
        if probe && self.state == State::HalfOpen {
            self.state = State::Open;
            self.until = now;
        }
    }

    /// Records a 429 for a request granted at `granted`.
    pub(crate) fn refused(
        &mut self,
        granted: Nanos,
        probe: bool,
        retry_after: Option<Duration>,
        now: Nanos,
    ) -> Verdict {
        // A `Retry-After` of zero right after a refusal is meaningless.
        let asked = retry_after
            .and_then(|after| u64::try_from(after.as_nanos()).ok().or(Some(Nanos::MAX)))
            .filter(|after| *after > 0)
            .map(|after| after.min(Self::LONGEST_PAUSE));
        if self.since > 0 && granted <= self.since {
            if let (Some(asked), State::Open) = (asked, self.state) {
                self.until = self.until.max(now + asked);
            }
            return Verdict::Straggler;
        }
        // ## Closed => Open, HalfOpen => Open
        let again = probe && self.state == State::HalfOpen;
        self.step = if again { (self.step + 1).min(Self::LONGEST_STEP) } else { 0 };
        let pause = asked.unwrap_or(Self::FIRST_PAUSE << self.step);
        self.state = State::Open;
        self.since = now.max(1);
        self.until = now + pause;
        Verdict::Opened { pause, again }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Nanos = 1_000_000_000;

    fn stopped(seconds: u64, again: bool) -> Verdict {
        Verdict::Opened { pause: seconds * S, again }
    }

    #[test]
    fn pauses_double_up_to_eight_seconds_while_the_probes_fail() {
        let mut breaker = CircuitBreaker::default();
        let mut now = 10 * S;
        assert_eq!(breaker.refused(9 * S, false, None, now), stopped(1, false));
        for (last, pause) in [(1, 2), (2, 4), (4, 8), (8, 8)] {
            now = breaker.admits_at();
            assert!(breaker.granted(now));
            assert_eq!(
                breaker.admits_at(),
                now + last * S,
                "one probe at a time, for as long as the pause was"
            );
            assert_eq!(breaker.refused(now, true, None, now), stopped(pause, true));
        }
        now = breaker.admits_at();
        assert!(breaker.granted(now));
        breaker.answered(true);
        assert_eq!(breaker.admits_at(), 0);
        assert_eq!(
            breaker.refused(now, false, None, now + 1),
            stopped(1, false),
            "a good probe forgets the count"
        );
    }

    #[test]
    fn refusals_of_one_burst_are_one_cause() {
        let mut breaker = CircuitBreaker::default();
        assert_eq!(breaker.refused(9 * S, false, None, 10 * S), stopped(1, false));
        for _ in 0..9 {
            assert_eq!(breaker.refused(9 * S, false, None, 10 * S + 5), Verdict::Straggler);
        }
        assert_eq!(breaker.admits_at(), 11 * S);
        let after = Some(Duration::from_secs(3));
        assert_eq!(breaker.refused(9 * S, false, after, 10 * S), Verdict::Straggler);
        assert_eq!(breaker.admits_at(), 13 * S, "but a longer pause asked for is kept");
    }

    #[test]
    fn retry_after_wins_up_to_a_minute_and_zero_says_nothing() {
        let pause = |after| CircuitBreaker::default().refused(0, false, Some(Duration::from_secs(after)), S);
        assert_eq!(pause(7), stopped(7, false));
        assert_eq!(pause(3_600), stopped(60, false));
        assert_eq!(pause(u64::MAX), stopped(60, false));
        assert_eq!(pause(0), stopped(1, false));
    }

    #[test]
    fn a_probe_without_an_answer_is_followed_by_the_next() {
        let mut breaker = CircuitBreaker::default();
        breaker.refused(0, false, None, S);
        assert!(breaker.granted(2 * S));
        breaker.unanswered(true, 2 * S + 5);
        assert_eq!(breaker.admits_at(), 2 * S + 5);
        assert!(breaker.granted(2 * S + 5));
    }

    #[test]
    fn a_probe_whose_answer_is_late_has_a_pause_for_itself() {
        let mut breaker = CircuitBreaker::default();
        breaker.refused(0, false, None, S);
        assert!(breaker.granted(2 * S));
        assert_eq!(breaker.admits_at(), 3 * S);
        assert!(breaker.granted(3 * S), "and then the next one probes");
        assert_eq!(breaker.admits_at(), 4 * S);
        assert_eq!(breaker.refused(2 * S, true, None, 3 * S + 5), stopped(2, true));
        assert_eq!(breaker.refused(3 * S, true, None, 3 * S + 9), Verdict::Straggler, "probes of one pause");
        assert!(breaker.granted(5 * S + 5));
        breaker.answered(true);
        assert_eq!(breaker.admits_at(), 0);
    }

    #[test]
    fn a_refusal_from_before_the_pause_stops_nothing_once_it_is_over() {
        let mut breaker = CircuitBreaker::default();
        breaker.refused(0, false, None, S);
        assert!(breaker.granted(2 * S));
        breaker.answered(true);
        assert_eq!(breaker.refused(S, false, None, 3 * S), Verdict::Straggler);
        assert_eq!(breaker.admits_at(), 0);
    }

    #[test]
    fn a_pause_is_forgotten_a_minute_after_its_end() {
        let mut breaker = CircuitBreaker::default();
        breaker.refused(0, false, None, S);
        assert!(!breaker.is_over(61 * S));
        assert!(breaker.is_over(62 * S));
    }
}
