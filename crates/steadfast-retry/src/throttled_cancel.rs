use std::time::Duration;

use http::StatusCode;

use crate::{
    rules::{Decision, Observation, Remaining, Rules, StopReason},
    trail::Attempt,
};

/// One part of so many by which the limiter may fall short of the least delay: refusals of one burst arrive one after the other,
/// and the pause counts from the first.
const TOLERANCE: u32 = 10;

/// The repeat of a cancel after a 429.
impl Rules {
    /// Decides what follows a 429 to a request that must get out, at a limiter that has paused its zone.
    ///
    /// The limiter itself pauses the zone for 1, 2, 4 and 8 s, or as long as the answer asks, and lets one request
    /// through after each pause. A request that slept here meanwhile would come after the polls. So this one goes back
    /// to the limiter at once and waits there before all others. Where the limiter would admit it earlier than after
    /// the first delay of the schedule, it waits here as usual. Its 429s do not use up the schedule, because a cancel
    /// is given up only when its deadline comes; without a deadline they do.
    ///
    /// A `Retry-After` beyond the last delay of the schedule is not followed, here as at the limiter: §7 gives a client
    /// the schedule for a 429 and knows no `Retry-After`, and one that is wrong must not keep a trader in a position.
    pub(crate) fn throttled_cancel(
        &self,
        earlier: &[Attempt],
        observation: &Observation,
        remaining: &Remaining,
        draw: u64,
    ) -> Decision {
        let delays = self.schedule.delays();
        let was_refused = |attempt: &&Attempt| attempt.status == Some(StatusCode::TOO_MANY_REQUESTS);
        let refused = earlier.iter().filter(was_refused).count();
        let used = if remaining.deadline.is_some() { earlier.len() - refused } else { earlier.len() };
        let (Some(first), Some(last)) = (delays.first(), delays.last().filter(|_| used < delays.len()))
        else {
            return Decision::Stop(StopReason::Spent);
        };
        let asked = observation.retry_after.filter(|asked| asked <= last).unwrap_or_default();
        let asked = asked.min(self.retry_after_cap);
        let least = asked.max(*first);
        let held = remaining.permit.unwrap_or_default();
        if held >= least - least / TOLERANCE {
            return remaining.allow(Duration::ZERO);
        }
        let scheduled = delays.get(earlier.len()).unwrap_or(last);
        remaining.allow(self.jitter.stretch(asked.max(*scheduled), draw))
    }
}

#[cfg(test)]
mod tests {
    use steadfast_call::Outcome;

    use super::*;
    use crate::{ending::Ending, jitter::Jitter, schedule::Schedule};

    const AT_ONCE: Decision = Decision::Repeat { after: Duration::ZERO };

    fn refused() -> Attempt {
        Attempt::new(Outcome::NotExecuted, Some(StatusCode::TOO_MANY_REQUESTS))
    }

    fn decide(
        earlier: &[Attempt],
        retry_after: Option<u64>,
        permit: Option<u64>,
        deadline: Option<u64>,
    ) -> Decision {
        let rules = Rules { jitter: Jitter::NONE, ..Rules::default() };
        let observation = Observation {
            ending: Ending::Throttled,
            status: Some(StatusCode::TOO_MANY_REQUESTS),
            retry_after: retry_after.map(Duration::from_secs),
        };
        let remaining = Remaining {
            permit: permit.map(Duration::from_millis),
            deadline: deadline.map(Duration::from_millis),
            send_by: None,
        };
        rules.throttled_cancel(earlier, &observation, &remaining, 0)
    }

    #[test]
    fn it_waits_at_the_limiter_if_that_holds_it_for_as_long() {
        for (retry_after, held, after) in [
            (None, 1_000, 0),
            (None, 8_000, 0),
            (None, 900, 0),
            (None, 899, 1_000),
            (None, 0, 1_000),
            (Some(5), 5_000, 0),
            (Some(5), 1_000, 5_000),
            (Some(8), 1_000, 8_000),
            (Some(9), 1_000, 0),
            (Some(3_600), 0, 1_000),
        ] {
            let expected = Decision::Repeat { after: Duration::from_millis(after) };
            assert_eq!(decide(&[], retry_after, Some(held), None), expected, "{retry_after:?} {held}");
        }
    }

    #[test]
    fn a_limiter_that_does_not_pause_leaves_the_schedule_as_it_is() {
        let earlier = vec![refused(); 6];
        let delays: Vec<_> = (0..6).map(|n| decide(&earlier[..n], None, Some(0), Some(60_000))).collect();
        let expected = [1, 2, 4, 8, 8, 8].map(|s| Decision::Repeat { after: Duration::from_secs(s) });
        assert_eq!(delays, expected);
    }

    #[test]
    fn only_its_deadline_ends_a_cancel_that_is_throttled() {
        let earlier = vec![refused(); 30];
        assert_eq!(decide(&earlier, None, Some(8_000), Some(8_001)), AT_ONCE);
        assert_eq!(decide(&earlier, None, Some(8_000), Some(8_000)), Decision::Stop(StopReason::Deadline));
        assert_eq!(decide(&earlier[..3], None, Some(8_000), None), AT_ONCE);
        assert_eq!(decide(&earlier[..4], None, Some(8_000), None), Decision::Stop(StopReason::Spent));
    }

    #[test]
    fn other_failures_use_up_the_schedule() {
        let unavailable = Attempt::new(Outcome::NotSent, None);
        let earlier = [vec![refused(); 9], vec![unavailable; 4]].concat();
        assert_eq!(decide(&earlier[..12], None, Some(1_000), Some(60_000)), AT_ONCE);
        assert_eq!(decide(&earlier, None, Some(1_000), Some(60_000)), Decision::Stop(StopReason::Spent));
        let never = Rules { schedule: Schedule::never(), ..Rules::default() };
        let observation = Observation { ending: Ending::Throttled, status: None, retry_after: None };
        let stopped = never.throttled_cancel(&[], &observation, &Remaining::default(), 0);
        assert_eq!(stopped, Decision::Stop(StopReason::Spent));
    }
}
