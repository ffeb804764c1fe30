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
    since: Nanos,
}

impl Ladder {
    /// The step at which requests begin to be spread.
    const PACED: u8 = 2;
    /// The step at which half of the quota is left.
    const LAST: u8 = 7;
    /// How long a zone must stay without a refusal to be trusted one step more.
    const CLEAN: Nanos = 60_000_000_000;

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

    /// True if every step down would have been taken back by `now`, had there been answers.
    pub(crate) fn is_over(self, now: Nanos) -> bool {
        self.since + u64::from(self.step) * Self::CLEAN <= now || self.step == 0
    }

    /// A refusal that the limiter's own log does not explain; true if the zone is trusted one step less.
    pub(crate) fn mismatch(&mut self, now: Nanos) -> bool {
        // ## n => n + 1
        //
        // The gateway counts in a way that this step is not safe against, or somebody else spends the quota.
        let down = self.step < Self::LAST;
        self.step += u8::from(down);
        self.since = now;
        down
    }

    /// An answer that is no refusal; true if the zone is trusted one step more.
    pub(crate) fn clean(&mut self, now: Nanos) -> bool {
        // ## n => n - 1
        //
        // A whole minute without a refusal: the longest window of the service has been seen whole.
        let up = self.step > 0 && self.since + Self::CLEAN <= now;
        if up {
            self.step -= 1;
            self.since = now;
        }
        up
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
                ladder.mismatch(now);
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
        ladder.mismatch(0);
        assert_eq!(ladder.counting(Profile::WindowLog), Counting::Log);
        assert_eq!(ladder.counting(Profile::Universal), Counting::Universal);
    }
}
