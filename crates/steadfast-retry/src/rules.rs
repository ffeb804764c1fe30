use std::{fmt, ops::RangeInclusive, time::Duration};

use http::StatusCode;
use steadfast_call::Class;

use crate::{
    ending::{Ending, may_repeat},
    jitter::{Jitter, share},
    schedule::Schedule,
    trail::Attempt,
};

/// When a request is sent again, as plain data.
///
/// It knows no clock, random number generator or service: it takes what was seen and returns a [`Decision`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rules {
    /// The delays, and thereby the number of repeats.
    pub schedule: Schedule,
    /// The random addition to each delay.
    pub jitter: Jitter,
    /// The longest delay that a `Retry-After` may ask for.
    pub retry_after_cap: Duration,
    /// The least delay after the first 503 of a call: the service says "after delay" (§7).
    pub unavailable_delay: Duration,
    /// The delay from the second 502 in a row on, drawn from the range. `None` means by the schedule.
    pub persistent_bad_gateway: Option<RangeInclusive<Duration>>,
}

impl Default for Rules {
    /// 1, 2, 4, 8 s; up to 10 % jitter; `Retry-After` up to 60 s; 5 s after a 503; no rule for repeated 502s.
    fn default() -> Self {
        Self {
            schedule: Schedule::default(),
            jitter: Jitter::default(),
            retry_after_cap: Duration::from_secs(60),
            unavailable_delay: Duration::from_secs(5),
            persistent_bad_gateway: None,
        }
    }
}

/// How the last send ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The row of the table.
    pub ending: Ending,
    /// The status of the answer; `None` if there was none.
    pub status: Option<StatusCode>,
    /// The delay that the answer asks for.
    pub retry_after: Option<Duration>,
}

/// The time left on the call's clocks, counted from now. Zero means over, `None` no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remaining {
    /// Until the caller's deadline for an answer.
    pub deadline: Option<Duration>,
    /// Until the request must have left.
    pub send_by: Option<Duration>,
    /// Until the limiter is expected to admit the repeat, which goes to the head of its lane.
    pub permit: Option<Duration>,
}

impl Remaining {
    /// Decides for a repeat after a delay, unless it would come too late.
    pub(crate) fn allow(&self, after: Duration) -> Decision {
        // The wait for the permit runs during the delay, so the later of the two counts.
        let sent = self.permit.map_or(after, |permit| permit.max(after));
        if self.deadline.is_some_and(|deadline| sent >= deadline) {
            return Decision::Stop(StopReason::Deadline);
        }
        if self.send_by.is_some_and(|send_by| sent > send_by) {
            return Decision::Stop(StopReason::SendBy);
        }
        Decision::Repeat { after }
    }
}

/// The decision after a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Return the result: it is final, or another layer repeats it.
    Return,
    /// Send again after the delay.
    Repeat {
        /// The delay, jitter included.
        after: Duration,
    },
    /// A repeat is due but must not be made: return the result, marked.
    Stop(StopReason),
}

/// Why a repeat that was due was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// The schedule is spent.
    Spent,
    /// The repeat could not be answered before the call's deadline.
    Deadline,
    /// The repeat could not leave in time.
    SendBy,
    /// The retry budget is empty.
    Budget,
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spent => "schedule is spent",
            Self::Deadline => "deadline would pass before the repeat",
            Self::SendBy => "repeat could not leave in time",
            Self::Budget => "retry budget is empty",
        })
    }
}

impl Rules {
    /// Decides what follows a send that ended as `observation`, after the `earlier` sends of the same call.
    ///
    /// `draw` is a uniformly random number. It affects only the jitter.
    #[must_use]
    pub fn decide(
        &self,
        class: Class,
        earlier: &[Attempt],
        observation: &Observation,
        remaining: &Remaining,
        draw: u64,
    ) -> Decision {
        if !may_repeat(class, observation.ending) {
            return Decision::Return;
        }
        let Some(&scheduled) = self.schedule.delays().get(earlier.len()) else {
            return Decision::Stop(StopReason::Spent);
        };
        let after = self.delay(scheduled, earlier, observation, draw);
        remaining.allow(after)
    }

    fn delay(
        &self,
        scheduled: Duration,
        earlier: &[Attempt],
        observation: &Observation,
        draw: u64,
    ) -> Duration {
        let had = |status| move |attempt: &Attempt| attempt.status == Some(status);
        let asked = observation.retry_after.unwrap_or_default().min(self.retry_after_cap);
        let mut least = scheduled.max(asked);
        match observation.status {
            Some(StatusCode::SERVICE_UNAVAILABLE)
                if !earlier.iter().any(had(StatusCode::SERVICE_UNAVAILABLE)) =>
            {
                least = least.max(self.unavailable_delay);
            }
            Some(StatusCode::BAD_GATEWAY) if earlier.last().is_some_and(had(StatusCode::BAD_GATEWAY)) => {
                if let Some(range) = &self.persistent_bad_gateway {
                    // The range serves as jitter here, so the usual jitter is not added.
                    let span = range.end().saturating_sub(*range.start());
                    return least.max(range.start().saturating_add(share(span.as_nanos(), draw)));
                }
            }
            _ => {}
        }
        self.jitter.stretch(least, draw)
    }
}

#[cfg(test)]
mod tests {
    use steadfast_call::{Outcome, Resend};

    use super::*;

    const DOUBT: Outcome = Outcome::Unknown { resend: Resend::AfterAbsence };

    fn exact() -> Rules {
        Rules { jitter: Jitter::NONE, ..Rules::default() }
    }

    fn observation(status: u16) -> Observation {
        let ending = if status == 429 { Ending::Throttled } else { Ending::InDoubt };
        Observation { ending, status: StatusCode::from_u16(status).ok(), retry_after: None }
    }

    fn after(status: u16) -> Attempt {
        Attempt::new(DOUBT, StatusCode::from_u16(status).ok())
    }

    fn repeat(secs: u64) -> Decision {
        Decision::Repeat { after: Duration::from_secs(secs) }
    }

    fn decide(rules: &Rules, earlier: &[Attempt], observation: &Observation) -> Decision {
        rules.decide(Class::Safe, earlier, observation, &Remaining::default(), 0)
    }

    #[test]
    fn five_sends_and_no_sixth() {
        let earlier = vec![after(500); 5];
        let delays: Vec<_> = (0..5).map(|n| decide(&exact(), &earlier[..n], &observation(500))).collect();
        assert_eq!(delays, [repeat(1), repeat(2), repeat(4), repeat(8), Decision::Stop(StopReason::Spent)]);
    }

    #[test]
    fn what_may_not_be_repeated_is_returned_and_never_called_stopped() {
        let earlier = vec![after(500); 9];
        let remaining = Remaining { deadline: Some(Duration::ZERO), ..Remaining::default() };
        for n in 0..=9 {
            let decision =
                exact().decide(Class::VerifyFirst, &earlier[..n], &observation(504), &remaining, 0);
            assert_eq!(decision, Decision::Return);
        }
    }

    #[test]
    fn the_longer_of_schedule_and_retry_after_counts_up_to_the_cap() {
        for (asked, expected) in [(0, 2), (1, 2), (3, 3), (60, 60), (61, 60), (u64::MAX, 60)] {
            let observation =
                Observation { retry_after: Some(Duration::from_secs(asked)), ..observation(429) };
            assert_eq!(decide(&exact(), &[after(429)], &observation), repeat(expected), "{asked}");
        }
    }

    #[test]
    fn only_the_first_503_of_a_call_waits_longer() {
        assert_eq!(decide(&exact(), &[], &observation(503)), repeat(5));
        assert_eq!(decide(&exact(), &[after(503)], &observation(503)), repeat(2));
        assert_eq!(decide(&exact(), &[after(500)], &observation(503)), repeat(5));
        assert_eq!(decide(&exact(), &[after(500), after(500), after(500)], &observation(503)), repeat(8));
    }

    #[test]
    fn repeated_502s_wait_longer_only_if_asked_to() {
        assert_eq!(decide(&exact(), &[after(502)], &observation(502)), repeat(2));
        let range = Duration::from_secs(30)..=Duration::from_secs(60);
        let patient = Rules { persistent_bad_gateway: Some(range.clone()), ..exact() };
        assert_eq!(decide(&patient, &[], &observation(502)), repeat(1));
        assert_eq!(decide(&patient, &[after(502), after(500)], &observation(502)), repeat(4));
        assert_eq!(decide(&patient, &[after(502)], &observation(502)), repeat(30));
        let drawn =
            patient.decide(Class::Safe, &[after(502)], &observation(502), &Remaining::default(), u64::MAX);
        assert!(
            matches!(drawn, Decision::Repeat { after } if range.contains(&after) && after.as_secs() == 59)
        );
    }

    #[test]
    fn a_repeat_that_would_come_too_late_is_not_waited_for() {
        let secs = |n| Some(Duration::from_secs(n));
        let at = |remaining| exact().decide(Class::Safe, &[after(500)], &observation(500), &remaining, 0);
        let stop = Decision::Stop;
        for (remaining, expected) in [
            (Remaining { deadline: secs(3), ..Remaining::default() }, repeat(2)),
            (Remaining { deadline: secs(2), ..Remaining::default() }, stop(StopReason::Deadline)),
            (Remaining { deadline: secs(0), ..Remaining::default() }, stop(StopReason::Deadline)),
            (Remaining { send_by: secs(2), ..Remaining::default() }, repeat(2)),
            (Remaining { send_by: secs(1), ..Remaining::default() }, stop(StopReason::SendBy)),
            (Remaining { deadline: secs(9), permit: secs(8), ..Remaining::default() }, repeat(2)),
            (
                Remaining { deadline: secs(9), permit: secs(9), ..Remaining::default() },
                stop(StopReason::Deadline),
            ),
            (
                Remaining { send_by: secs(8), permit: secs(9), ..Remaining::default() },
                stop(StopReason::SendBy),
            ),
            (Remaining { permit: secs(9_999), ..Remaining::default() }, repeat(2)),
        ] {
            assert_eq!(at(remaining), expected, "{remaining:?}");
        }
    }
}
