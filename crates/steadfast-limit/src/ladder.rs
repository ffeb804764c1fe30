use std::num::NonZeroU32;

use crate::{Nanos, Profile, rules::Bound};

/// How the windows of one key are counted at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counting {
    /// The plain log of answers.
    Log,
    /// The interpolated count of every phase.
    Universal,
    /// A bucket with a small burst, of `tenths` of the limit.
    Paced { burst: NonZeroU32, tenths: u32 },
}

/// Where an adaptive zone stands between trust and caution, for one key.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ladder {
    step: u8,
    /// How often the gateway has refused what only the log admits.
    strikes: u8,
    since: Nanos,
}

impl Ladder {
    /// The step at which requests begin to be spread.
    const PACED: u8 = 2;
    /// The step at which half of the quota is left.
    const LAST: u8 = 7;
    /// How long a zone must stay without a refusal to be trusted one step more.
    const CLEAN: Nanos = 60_000_000_000;
    /// How long the log is not tried again after it has failed a second time.
    const AGAIN: Nanos = 10 * Self::CLEAN;
    /// The same after every further time, and how long a failure is remembered.
    const MEMORY: Nanos = 60 * Self::CLEAN;
    /// How many requests may be unanswered when one leaves that only the log admits, that one included.
    const TRIES: u32 = 5;

    /// How `profile` counts on this step.
    pub(crate) fn counting(self, profile: Profile) -> Counting {
        match profile {
            Profile::WindowLog => Counting::Log,
            Profile::Universal => Counting::Universal,
            Profile::Paced { burst } => Counting::Paced { burst, tenths: 10 },
            Profile::Adaptive { burst } => match self.step {
                0 => Counting::Log,
                1 => Counting::Universal,
                paced => Counting::Paced { burst, tenths: 10 - u32::from(paced - Self::PACED) },
            },
        }
    }

    /// The step, 0 for full trust.
    pub(crate) fn step(self) -> u8 {
        self.step
    }

    /// How many requests may be unanswered when one leaves that the log admits and the universal rule does not.
    ///
    /// A gateway that interpolates refuses all such requests, and before the first refusal is back, they are out.
    /// None of them has been answered by then, so a wrong guess costs so many at most, and only one where the guess
    /// has been wrong before.
    pub(crate) fn tries(self) -> u32 {
        if self.strikes == 0 { Self::TRIES } else { 1 }
    }

    /// True if every step down would have been taken back by `now`, had there been answers, and no failure of the
    /// log need be remembered.
    pub(crate) fn is_over(self, now: Nanos) -> bool {
        let memory = if self.strikes > 0 { Self::MEMORY } else { u64::from(self.step) * Self::CLEAN };
        memory == 0 || self.since + memory <= now
    }

    /// A refusal that the limiter's own log does not explain; true if the zone is trusted one step less. `tried`
    /// says that requests which only the log admits were on their way.
    pub(crate) fn mismatch(&mut self, tried: bool, now: Nanos) -> bool {
        // ## n => n + 1
        //
        // The gateway counts in a way that this step is not safe against, or somebody else spends the quota.
        let down = self.step < Self::LAST;
        self.strikes = self.strikes.saturating_add(u8::from(tried && self.step == 0));
        self.step += u8::from(down);
        self.since = now;
        down
    }

    /// An answer that is no refusal; true if the zone is trusted one step more.
    pub(crate) fn clean(&mut self, now: Nanos) -> bool {
        // ## n => n - 1
        //
        // A whole minute without a refusal: the longest window of the service has been seen whole. But a gateway
        // that has refused what the log admits will do so again; whether it does is asked ever more rarely.
        let up = self.step > 0 && self.since + self.clean_time() <= now;
        if up {
            self.step -= 1;
            self.since = now;
        } else if self.step == 0 && self.since + Self::MEMORY <= now {
            self.strikes = 0;
        }
        up
    }

    fn clean_time(self) -> Nanos {
        match (self.step, self.strikes) {
            (1, 2) => Self::AGAIN,
            (1, 3..) => Self::MEMORY,
            _ => Self::CLEAN,
        }
    }
}

impl Bound {
    /// `tenths` of the limit, but never less than half of it, and enough for a burst of one and a rate.
    pub(crate) fn tightened(&self, tenths: u32) -> u32 {
        (u64::from(self.limit) * u64::from(tenths) / 10).max(2) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Nanos = 60_000_000_000;

    #[test]
    fn an_adaptive_zone_steps_down_at_once_and_up_once_a_clean_minute() {
        let burst = NonZeroU32::MIN;
        let profile = Profile::Adaptive { burst };
        let mut ladder = Ladder::default();
        assert_eq!(ladder.counting(profile), Counting::Log);
        let steps: Vec<_> = (0..9)
            .map(|now| {
                ladder.mismatch(false, now);
                ladder.counting(profile)
            })
            .collect();
        assert_eq!(steps[0], Counting::Universal);
        for (step, tenths) in steps[1..].iter().zip([10, 9, 8, 7, 6, 5, 5, 5]) {
            assert_eq!(*step, Counting::Paced { burst, tenths });
        }
        assert!(!ladder.clean(MINUTE - 1));
        assert!(ladder.clean(8 + MINUTE));
        assert!(!ladder.clean(9 + MINUTE), "one step per minute");
        assert_eq!(ladder.step(), 6);
        assert!(!ladder.is_over(8 + 7 * MINUTE - 1));
        assert!(ladder.is_over(8 + 7 * MINUTE));
    }

    #[test]
    fn other_profiles_do_not_learn() {
        let mut ladder = Ladder::default();
        ladder.mismatch(false, 0);
        assert_eq!(ladder.counting(Profile::WindowLog), Counting::Log);
        assert_eq!(ladder.counting(Profile::Universal), Counting::Universal);
    }

    #[test]
    fn a_log_that_failed_is_tried_again_with_one_request_and_ever_more_rarely() {
        let mut ladder = Ladder::default();
        assert_eq!(ladder.tries(), 5);
        let mut now = MINUTE;
        for minutes in [1, 10, 60, 60] {
            ladder.mismatch(true, now);
            assert_eq!((ladder.step(), ladder.tries()), (1, 1));
            assert!(!ladder.clean(now + minutes * MINUTE - 1));
            assert!(!ladder.is_over(now + 60 * MINUTE - 1), "it is remembered while nobody asks");
            now += minutes * MINUTE;
            assert!(ladder.clean(now));
            assert_eq!((ladder.step(), ladder.tries()), (0, 1));
        }
        assert!(!ladder.clean(now + 60 * MINUTE - 1));
        assert_eq!(ladder.tries(), 1);
        assert!(!ladder.clean(now + 60 * MINUTE), "there is no step up from the first");
        assert_eq!(ladder.tries(), 5, "an hour without a failure");
    }

    #[test]
    fn a_refusal_that_no_try_explains_is_no_strike() {
        let mut ladder = Ladder::default();
        ladder.mismatch(false, 0);
        assert_eq!((ladder.step(), ladder.tries()), (1, 5));
        ladder.mismatch(true, 1);
        assert_eq!((ladder.step(), ladder.tries()), (2, 5), "only the first step goes by the log");
    }
}
