use std::time::Duration;

use crate::core::time::Nanos;

/// The reaction of a zone to the 429s of one key: it stops, then lets one request try, then goes on.
///
/// The pauses grow from one second to eight while the tries fail. A `Retry-After` replaces them, up to a minute.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Freeze {
    state: State,
    /// When the last pause began. A refusal of a request granted earlier has the same cause.
    since: Nanos,
    /// The end of the pause, or of the time reserved for a try.
    until: Nanos,
    step: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    Frozen,
    Probing,
}

/// The meaning of a 429 for its zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It was on its way when the zone stopped, and says nothing new.
    Straggler,
    /// The zone stops for `pause`; `again` is true if the try after a pause failed.
    Stopped { pause: Nanos, again: bool },
}

impl Freeze {
    const FIRST_PAUSE: Nanos = 1_000_000_000;
    const LONGEST_STEP: u8 = 3;
    const LONGEST_PAUSE: Nanos = 60_000_000_000;

    /// Returns when the zone admits the next request.
    pub(crate) fn opens(&self) -> Nanos {
        match self.state {
            State::Open => 0,
            State::Frozen | State::Probing => self.until,
        }
    }

    /// Returns the end of the pause, if it is not over at `now`.
    pub(crate) fn until(&self, now: Nanos) -> Option<Nanos> {
        (self.state == State::Frozen && self.until > now).then_some(self.until)
    }

    /// True if nothing of a pause is left to remember at `now`.
    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        match self.state {
            // Requests granted before the last pause may still be refused.
            State::Open => self.since == 0 || self.since + Self::LONGEST_PAUSE <= now,
            // No request has tried for as long as the longest pause, so the count of pauses is out of date.
            State::Frozen => self.until + Self::LONGEST_PAUSE <= now,
            State::Probing => false,
        }
    }

    /// Records a grant at `now`. True if it is a try.
    pub(crate) fn granted(&mut self, now: Nanos) -> bool {
        if self.state == State::Open {
            return false;
        }
        // ## Frozen => Probing, Probing => Probing
        //
        // The pause is over, but whether the quota is back is unknown: one request tests it for all. If it is not
        // answered for as long as the pause was, the next one tries: a lost answer is noticed only half a minute
        // later, and cancels wait.
        self.state = State::Probing;
        self.until = now + (Self::FIRST_PAUSE << self.step);
        true
    }

    /// Records an answer other than 429.
    pub(crate) fn answered(&mut self, probe: bool) {
        // ## Probing => Open
        if probe && self.state == State::Probing {
            *self = Self { since: self.since, ..Self::default() };
        }
    }

    /// Records that the try brought no answer: it never left, or its answer was lost.
    pub(crate) fn unanswered(&mut self, probe: bool, now: Nanos) {
        // ## Probing => Frozen
        //
        // Nothing was learned. The pause is over all the same, so the next request tries at once.
        if probe && self.state == State::Probing {
            self.state = State::Frozen;
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
            if let (Some(asked), State::Frozen) = (asked, self.state) {
                self.until = self.until.max(now + asked);
            }
            return Verdict::Straggler;
        }
        // ## Open => Frozen, Probing => Frozen
        let again = probe && self.state == State::Probing;
        self.step = if again { (self.step + 1).min(Self::LONGEST_STEP) } else { 0 };
        let pause = asked.unwrap_or(Self::FIRST_PAUSE << self.step);
        self.state = State::Frozen;
        self.since = now.max(1);
        self.until = now + pause;
        Verdict::Stopped { pause, again }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Nanos = 1_000_000_000;

    fn stopped(seconds: u64, again: bool) -> Verdict {
        Verdict::Stopped { pause: seconds * S, again }
    }

    #[test]
    fn pauses_double_up_to_eight_seconds_while_the_tries_fail() {
        let mut freeze = Freeze::default();
        let mut now = 10 * S;
        assert_eq!(freeze.refused(9 * S, false, None, now), stopped(1, false));
        for (last, pause) in [(1, 2), (2, 4), (4, 8), (8, 8)] {
            now = freeze.opens();
            assert!(freeze.granted(now));
            assert_eq!(freeze.opens(), now + last * S, "one try at a time, for as long as the pause was");
            assert_eq!(freeze.refused(now, true, None, now), stopped(pause, true));
        }
        now = freeze.opens();
        assert!(freeze.granted(now));
        freeze.answered(true);
        assert_eq!(freeze.opens(), 0);
        assert_eq!(
            freeze.refused(now, false, None, now + 1),
            stopped(1, false),
            "a good try forgets the count"
        );
    }

    #[test]
    fn refusals_of_one_burst_are_one_cause() {
        let mut freeze = Freeze::default();
        assert_eq!(freeze.refused(9 * S, false, None, 10 * S), stopped(1, false));
        for _ in 0..9 {
            assert_eq!(freeze.refused(9 * S, false, None, 10 * S + 5), Verdict::Straggler);
        }
        assert_eq!(freeze.opens(), 11 * S);
        let after = Some(Duration::from_secs(3));
        assert_eq!(freeze.refused(9 * S, false, after, 10 * S), Verdict::Straggler);
        assert_eq!(freeze.opens(), 13 * S, "but a longer pause asked for is kept");
    }

    #[test]
    fn retry_after_wins_up_to_a_minute_and_zero_says_nothing() {
        let pause = |after| Freeze::default().refused(0, false, Some(Duration::from_secs(after)), S);
        assert_eq!(pause(7), stopped(7, false));
        assert_eq!(pause(3_600), stopped(60, false));
        assert_eq!(pause(u64::MAX), stopped(60, false));
        assert_eq!(pause(0), stopped(1, false));
    }

    #[test]
    fn a_try_without_an_answer_is_followed_by_the_next() {
        let mut freeze = Freeze::default();
        freeze.refused(0, false, None, S);
        assert!(freeze.granted(2 * S));
        freeze.unanswered(true, 2 * S + 5);
        assert_eq!(freeze.opens(), 2 * S + 5);
        assert!(freeze.granted(2 * S + 5));
    }

    #[test]
    fn a_try_whose_answer_is_late_has_a_pause_for_itself() {
        let mut freeze = Freeze::default();
        freeze.refused(0, false, None, S);
        assert!(freeze.granted(2 * S));
        assert_eq!(freeze.opens(), 3 * S);
        assert!(freeze.granted(3 * S), "and then the next one tries");
        assert_eq!(freeze.opens(), 4 * S);
        assert_eq!(freeze.refused(2 * S, true, None, 3 * S + 5), stopped(2, true));
        assert_eq!(freeze.refused(3 * S, true, None, 3 * S + 9), Verdict::Straggler, "tries of one pause");
        assert!(freeze.granted(5 * S + 5));
        freeze.answered(true);
        assert_eq!(freeze.opens(), 0);
    }

    #[test]
    fn a_refusal_from_before_the_pause_stops_nothing_once_it_is_over() {
        let mut freeze = Freeze::default();
        freeze.refused(0, false, None, S);
        assert!(freeze.granted(2 * S));
        freeze.answered(true);
        assert_eq!(freeze.refused(S, false, None, 3 * S), Verdict::Straggler);
        assert_eq!(freeze.opens(), 0);
    }

    #[test]
    fn a_pause_is_forgotten_a_minute_after_its_end() {
        let mut freeze = Freeze::default();
        freeze.refused(0, false, None, S);
        assert!(!freeze.is_over(61 * S));
        assert!(freeze.is_over(62 * S));
    }
}
