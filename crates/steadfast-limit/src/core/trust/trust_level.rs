use std::num::NonZeroU32;

use crate::core::{rules::profile::Profile, time::Nanos, trust::trust_step::TrustStep};

/// How the windows of one key are counted at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counting {
    /// The plain log of answers.
    Log,
    /// The interpolated count of every phase.
    Universal,
    /// A bucket with a small burst.
    Paced { burst: NonZeroU32 },
    /// Such a bucket, and a slot for each request without an answer.
    Spread { burst: NonZeroU32 },
}

/// The position of one key's zone between trust and penalty.
///
/// Every 429 that the limiter's own log does not explain gets the same reaction, whatever its cause: another way of
/// counting, a lowered limit, or another user of the same token. The first one spreads the requests, which is safe
/// against every way of counting. A further one then means that the limit is lower than documented.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TrustLevel {
    step: TrustStep,
    /// How often the gateway has refused requests that only the log admits.
    strikes: u8,
    /// The learned limit of the shortest window; 0 means the documented one.
    learned: u32,
    /// The instant of the last refusal.
    struck: Nanos,
    /// The instant of the last change or refusal.
    since: Nanos,
}

/// The changes made by a refusal or an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// The zone is on another step.
    pub(crate) step: bool,
    /// The zone applies another limit.
    pub(crate) limit: bool,
}

impl TrustLevel {
    /// The time without a refusal after which a zone moves one step up.
    const CLEAN: Nanos = 60_000_000_000;
    /// The time without a refusal after which the learned limit grows by one request.
    const CLEAN_FOR_ONE: Nanos = 15_000_000_000;
    /// The wait before the log is trusted again after its second failure.
    const AGAIN: Nanos = 10 * Self::CLEAN;
    /// The same after every further failure, and how long a failure is remembered.
    const MEMORY: Nanos = 60 * Self::CLEAN;
    /// How many requests may be unanswered when one leaves that only the log admits, including that one.
    const MOST_OPTIMISTIC: u32 = 3;

    /// Returns how a window of a zone with `profile` is counted on this step. `spreads` is true if the step's
    /// spreading applies to the window and the request.
    ///
    /// It applies to the shortest window only. Requests spread over a second are also spread over a minute;
    /// otherwise a minute well used before would have to be paid for now. It does not apply to cancels: in a spread
    /// zone each request waits for the one before.
    pub(crate) fn counting(self, profile: Profile, spreads: bool) -> Counting {
        match (self.step, profile) {
            (_, Profile::Paced { burst }) => Counting::Paced { burst },
            (TrustStep::Spread, Profile::Adaptive { burst }) if spreads => Counting::Spread { burst },
            (TrustStep::Spread, _) if spreads => Counting::Spread { burst: NonZeroU32::MIN },
            (TrustStep::OwnProfile, Profile::WindowLog | Profile::Adaptive { .. }) => Counting::Log,
            _ => Counting::Universal,
        }
    }

    /// True if requests are spread because of a refusal.
    pub(crate) fn spreads(self) -> bool {
        self.step == TrustStep::Spread
    }

    /// Returns the step.
    pub(crate) fn step(self) -> TrustStep {
        self.step
    }

    /// Returns the limit of the shortest window, if it differs from the documented one.
    pub(crate) fn learned(self) -> Option<u32> {
        (self.learned > 0).then_some(self.learned)
    }

    /// Returns how many requests may be unanswered when one leaves that the log admits and the universal rule does
    /// not.
    ///
    /// An interpolating gateway refuses all such requests, and all of them leave before the first refusal is back.
    /// So a wrong guess costs at most this many: one, if the guess has been wrong before.
    pub(crate) fn most_optimistic(self) -> u32 {
        if self.strikes == 0 { Self::MOST_OPTIMISTIC } else { 1 }
    }

    /// True if enough time has passed by `now` to take back everything learned, in a zone that allows `limit`, and
    /// no failure of the log need be remembered.
    pub(crate) fn is_over(self, limit: u32, now: Nanos) -> bool {
        let raises = self.learned().map_or(0, |learned| limit.saturating_sub(learned));
        let steps = self.step.distance() * Self::CLEAN + u64::from(raises) * Self::CLEAN_FOR_ONE;
        let memory = if self.strikes > 0 { steps.max(Self::MEMORY) } else { steps };
        memory == 0 || self.since + memory <= now
    }

    /// Records a refusal that the limiter's own log does not explain, in a zone with the documented limit `limit`.
    /// `optimistic` is true if requests that only the log admits were on their way.
    pub(crate) fn mismatch(&mut self, optimistic: bool, limit: u32, now: Nanos) -> Change {
        let before = *self;
        if self.step != TrustStep::Spread {
            // ## OwnProfile, Universal => Spread
            //
            // The gateway counts in a way that this step is not safe against, or allows less than documented. A step
            // that is safe against every way of counting shows which.
            self.strikes =
                self.strikes.saturating_add(u8::from(optimistic && self.step == TrustStep::OwnProfile));
            self.step = TrustStep::Spread;
        } else if self.struck + Self::CLEAN > now {
            // ## Spread, N => Spread, N / 2
            //
            // Requests were spread, and the gateway refused one all the same.
            self.learned = (self.learned().unwrap_or(limit) / 2).max(1);
        }
        (self.struck, self.since) = (now, now);
        self.change_from(before)
    }

    /// Records an answer that is no refusal, in a zone with `profile` and the documented limit `limit`.
    pub(crate) fn clean(&mut self, profile: Profile, limit: u32, now: Nanos) -> Change {
        let before = *self;
        let clean = now.saturating_sub(self.since);
        if self.learned > 0 {
            // ## N => N + 1
            //
            // One request more tests whether the gateway allows more. The first answers after a refusal say little,
            // and a limit that is still lowered refuses only twice a minute.
            if clean >= Self::CLEAN_FOR_ONE {
                self.learned = if self.learned + 1 < limit { self.learned + 1 } else { 0 };
                self.since = now;
            }
        } else if self.step != TrustStep::OwnProfile {
            // ## Spread => Universal => OwnProfile, and past Universal where that is not on the way
            //
            // A minute without a refusal covers the service's longest window. But a gateway that has refused a
            // request admitted only by the log will do so again, so the log is tested ever more rarely.
            if clean >= self.clean_time() {
                let goes_by_log = matches!(profile, Profile::WindowLog | Profile::Adaptive { .. });
                self.step = if goes_by_log { self.step.towards_profile() } else { TrustStep::OwnProfile };
                self.since = now;
            }
        } else if clean >= Self::MEMORY {
            self.strikes = 0;
        }
        self.change_from(before)
    }

    fn change_from(self, before: Self) -> Change {
        Change { step: self.step != before.step, limit: self.learned != before.learned }
    }

    fn clean_time(self) -> Nanos {
        match (self.step, self.strikes) {
            (TrustStep::Universal, 2) => Self::AGAIN,
            (TrustStep::Universal, 3..) => Self::MEMORY,
            _ => Self::CLEAN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        TrustStep::{OwnProfile, Spread, Universal},
        *,
    };

    const SECOND: Nanos = 1_000_000_000;
    const MINUTE: Nanos = 60 * SECOND;
    const BURST: NonZeroU32 = NonZeroU32::MIN;
    const ADAPTIVE: Profile = Profile::Adaptive { burst: BURST };

    #[test]
    fn o11_the_first_refusal_spreads_and_each_further_one_within_a_minute_halves() {
        let mut trust = TrustLevel::default();
        assert_eq!(trust.counting(ADAPTIVE, true), Counting::Log);
        let learned: Vec<_> = (0..6)
            .map(|n| {
                trust.mismatch(false, 10, n * SECOND);
                assert_eq!(trust.counting(ADAPTIVE, true), Counting::Spread { burst: BURST });
                trust.learned()
            })
            .collect();
        assert_eq!(learned, [None, Some(5), Some(2), Some(1), Some(1), Some(1)]);
    }

    #[test]
    fn o11_a_refusal_after_a_minute_without_one_halves_nothing() {
        let mut trust = TrustLevel::default();
        trust.mismatch(false, 10, 0);
        assert_eq!(trust.mismatch(false, 10, MINUTE), Change::default());
        assert_eq!((trust.learned(), trust.step()), (None, Spread));
        assert_eq!(trust.mismatch(false, 10, 2 * MINUTE - 1), Change { limit: true, step: false });
    }

    #[test]
    fn o11_trust_returns_by_one_request_in_15_seconds_and_then_a_step_a_minute() {
        let mut trust = TrustLevel::default();
        trust.mismatch(false, 4, 0);
        trust.mismatch(false, 4, 0);
        assert_eq!(trust.learned(), Some(2));
        assert!(!trust.is_over(4, 150 * SECOND - 1) && trust.is_over(4, 150 * SECOND));
        assert_eq!(trust.clean(ADAPTIVE, 4, 15 * SECOND - 1), Change::default());
        for (at, learned) in [(15, Some(3)), (29, Some(3)), (30, None)] {
            trust.clean(ADAPTIVE, 4, at * SECOND);
            assert_eq!(trust.learned(), learned, "after {at} s");
        }
        for (at, step) in [(89, Spread), (90, Universal), (149, Universal), (150, OwnProfile)] {
            trust.clean(ADAPTIVE, 4, at * SECOND);
            assert_eq!(trust.step(), step, "after {at} s");
        }
    }

    #[test]
    fn o11_every_profile_is_spread_and_goes_back_to_itself() {
        let (paced, spread) = (Counting::Paced { burst: BURST }, Counting::Spread { burst: BURST });
        for (profile, own, refused, between) in [
            (Profile::WindowLog, Counting::Log, spread, Counting::Universal),
            (ADAPTIVE, Counting::Log, spread, Counting::Universal),
            (Profile::Universal, Counting::Universal, spread, Counting::Universal),
            (Profile::Paced { burst: BURST }, paced, paced, paced),
        ] {
            let mut trust = TrustLevel::default();
            assert_eq!(trust.counting(profile, true), own);
            trust.mismatch(false, 10, 0);
            assert_eq!(trust.counting(profile, true), refused);
            assert_ne!(trust.counting(profile, false), Counting::Log);
            trust.clean(profile, 10, MINUTE);
            assert_eq!(trust.counting(profile, true), between);
            trust.clean(profile, 10, 2 * MINUTE);
            assert_eq!((trust.counting(profile, true), trust.step()), (own, OwnProfile));
        }
    }

    #[test]
    fn a_log_that_failed_is_tried_again_with_one_request_and_ever_more_rarely() {
        let mut trust = TrustLevel::default();
        assert_eq!(trust.most_optimistic(), 3);
        let mut now = MINUTE;
        for minutes in [1, 10, 60, 60] {
            trust.mismatch(true, 10, now);
            assert_eq!((trust.step(), trust.most_optimistic()), (Spread, 1));
            now += MINUTE;
            assert!(trust.clean(ADAPTIVE, 10, now).step);
            assert!(!trust.clean(ADAPTIVE, 10, now + minutes * MINUTE - 1).step);
            assert!(!trust.is_over(10, now + 59 * MINUTE - 1), "it is remembered while no request comes");
            now += minutes * MINUTE;
            assert!(trust.clean(ADAPTIVE, 10, now).step);
            assert_eq!((trust.step(), trust.most_optimistic()), (OwnProfile, 1));
        }
        trust.clean(ADAPTIVE, 10, now + 60 * MINUTE - 1);
        assert_eq!(trust.most_optimistic(), 1);
        assert!(!trust.clean(ADAPTIVE, 10, now + 60 * MINUTE).step, "there is no step up from the first");
        assert_eq!(trust.most_optimistic(), 3, "an hour without a failure");
    }

    #[test]
    fn a_refusal_that_no_optimistic_grant_explains_is_no_strike() {
        let mut trust = TrustLevel::default();
        trust.mismatch(false, 10, 0);
        assert_eq!((trust.step(), trust.most_optimistic()), (Spread, 3));
        trust.mismatch(true, 10, 1);
        assert_eq!(
            (trust.step(), trust.most_optimistic()),
            (Spread, 3),
            "only the first step goes by the log"
        );
    }
}
