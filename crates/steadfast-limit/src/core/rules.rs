pub(crate) mod ceilings;
pub(crate) mod profile;
pub(crate) mod quota;

use std::num::NonZeroU32;

use steadfast_call::Lane;
use steadfast_spec::{Scope, Zone};

use crate::{
    core::{
        rules::{
            ceilings::{Ceilings, LANES},
            profile::Profile,
            quota::Quota,
        },
        time::{LONGEST, Nanos, held, nanos},
    },
    error::InvalidLimiter,
};

/// The most windows of one zone.
pub(crate) const MOST_WINDOWS: usize = 8;

/// The shortest window over which the lanes that can wait are smoothed.
const SMOOTHED_FROM: Nanos = 10_000_000_000;

/// A checked quota, in the form that the admission rule uses.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) zone: Zone,
    pub(crate) scope: Scope,
    /// The zone's windows, the shortest first.
    pub(crate) bounds: Box<[Bound]>,
    pub(crate) profile: Profile,
    /// A request may still be counted for this long after its answer.
    pub(crate) settle: Nanos,
    /// How long a stamp matters.
    pub(crate) retention: Nanos,
    /// The resolution of a stamp.
    pub(crate) unit: Nanos,
    /// The most stamps that a key holds while the rule is kept.
    pub(crate) usual: usize,
    /// The slots withheld from each lane.
    pub(crate) ceilings: Ceilings,
    /// How the lanes that can wait are smoothed, if they are.
    pub(crate) smoothing: Option<Smoothing>,
}

/// One window of a zone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    pub(crate) limit: u32,
    /// The period as configured.
    pub(crate) nominal: Nanos,
    /// The period as held, margins included.
    pub(crate) period: Nanos,
    /// How many slots each lane may fill.
    pub(crate) ceilings: [u32; LANES],
    /// Older stamps do not matter to the next request.
    pub(crate) reach: Nanos,
    /// How many requests may go at once after a pause.
    pub(crate) at_once: u32,
}

/// How much of one window a lane may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allowance {
    /// The limit of the window, reserves included.
    pub(crate) limit: u32,
    /// The part of it that the lane may fill.
    pub(crate) ceiling: u32,
}

/// A rate and a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Smoothing {
    pub(crate) burst: NonZeroU32,
    pub(crate) interval: Nanos,
}

impl Rules {
    /// Checks `quota`.
    pub(crate) fn new(quota: &Quota) -> Result<Self, InvalidLimiter> {
        let zone = quota.zone;
        if quota.limits.is_empty() {
            return Err(InvalidLimiter::NoWindows(zone));
        }
        if quota.limits.len() > MOST_WINDOWS {
            return Err(InvalidLimiter::TooManyWindows { zone, most: MOST_WINDOWS });
        }
        let mut bounds = quota.limits.iter().map(|_| Bound::UNSET).collect::<Box<[Bound]>>();
        for (bound, (limit, period)) in bounds.iter_mut().zip(&quota.limits) {
            *bound = Bound::new(quota, *limit, nanos(*period).ok_or(InvalidLimiter::TooLarge(zone))?)?;
        }
        bounds.sort_by_key(|bound| bound.period);
        if let Some(pair) = bounds.windows(2).find(|pair| pair[0].nominal == pair[1].nominal) {
            let period = std::time::Duration::from_nanos(pair[0].nominal);
            return Err(InvalidLimiter::DuplicatePeriod { zone, period });
        }
        let settle = nanos(quota.settle).ok_or(InvalidLimiter::CountedTooLate(zone))?;
        let longest = bounds.last().map_or(0, |bound| bound.period);
        let most = bounds.iter().map(|bound| bound.limit).max().unwrap_or(0);
        Ok(Self {
            zone,
            scope: quota.scope,
            profile: quota.profile,
            settle,
            retention: looks_back(quota.profile) * longest,
            // The range of a stamp is four times the longest period, and never finer than a microsecond.
            unit: (4 * longest).saturating_add(settle).div_ceil(u64::from(u32::MAX)).max(1_000),
            usual: looks_back(quota.profile) as usize * most as usize,
            ceilings: quota.ceilings,
            smoothing: bounds.last().and_then(|bound| bound.smoothing(bounds[0])),
            bounds,
        })
    }

    /// Returns the documented limit of the shortest window.
    pub(crate) fn shortest_limit(&self) -> u32 {
        self.bounds.first().map_or(0, |bound| bound.limit)
    }

    /// Returns the distance of requests that are spread evenly over the shortest window.
    pub(crate) fn apart(&self) -> Nanos {
        self.bounds.first().map_or(0, |bound| bound.period / u64::from(bound.limit.max(1)))
    }

    /// Returns how much `lane` may use of the window at `place` (0 is the shortest). The limit of the shortest window is
    /// the `learned` one, if there is one.
    pub(crate) fn allows(&self, place: usize, lane: Lane, learned: Option<u32>) -> Allowance {
        let bound = &self.bounds[place];
        match learned.filter(|_| place == 0) {
            Some(limit) => Allowance { limit, ceiling: self.ceilings.ceiling(lane, limit).max(1) },
            None => Allowance { limit: bound.limit, ceiling: bound.ceilings[lane as usize] },
        }
    }

    /// Returns the length of the longest window.
    pub(crate) fn longest(&self) -> Nanos {
        self.bounds.last().map_or(0, |bound| bound.period)
    }
}

impl Bound {
    const UNSET: Self = Self { limit: 0, nominal: 0, period: 0, ceilings: [0; LANES], reach: 0, at_once: 0 };

    fn new(quota: &Quota, limit: u32, nominal: Nanos) -> Result<Self, InvalidLimiter> {
        let zone = quota.zone;
        if limit == 0 {
            return Err(InvalidLimiter::ZeroLimit(zone));
        }
        if nominal == 0 {
            return Err(InvalidLimiter::ZeroPeriod(zone));
        }
        let limit = limit.saturating_sub(quota.headroom);
        if limit == 0 {
            return Err(InvalidLimiter::HeadroomTakesAll(zone));
        }
        let period = held(nominal);
        // The interpolated count multiplies twice a limit by a period.
        if u64::from(limit).saturating_mul(2).checked_mul(period).is_none_or(|product| product > LONGEST) {
            return Err(InvalidLimiter::TooLarge(zone));
        }
        if let Profile::Paced { burst } | Profile::Adaptive { burst } = quota.profile
            && burst.get() > limit / 2
        {
            return Err(InvalidLimiter::BurstTooLarge(zone));
        }
        let ceilings = Lane::ALL.map(|lane| quota.ceilings.ceiling(lane, limit));
        for (index, lane) in Lane::ALL.into_iter().enumerate() {
            if ceilings[index] == 0 {
                return Err(InvalidLimiter::StarvedLane { zone, lane });
            }
            if index > 0 && ceilings[index] > ceilings[index - 1] {
                return Err(InvalidLimiter::InvertedCeilings { zone, lane });
            }
        }
        // A bucket's level depends on all earlier requests.
        let (reach, at_once) = match quota.profile {
            Profile::Paced { burst } => (Nanos::MAX / 2, burst.get()),
            profile => (looks_back(profile) * period, limit),
        };
        Ok(Self { limit, nominal, period, ceilings, reach, at_once })
    }

    /// Returns how the lanes that can wait are smoothed over this window: at the rate of its ceiling, in bursts no
    /// longer than the `shortest` window's ceiling.
    fn smoothing(self, shortest: Self) -> Option<Smoothing> {
        let lane = Lane::Bulk as usize;
        if self.nominal < SMOOTHED_FROM || self.ceilings[lane] == self.limit {
            return None;
        }
        let burst = if shortest.nominal < self.nominal { shortest.ceilings[lane] } else { 1 };
        Some(Smoothing {
            burst: NonZeroU32::new(burst)?,
            interval: self.period.div_ceil(u64::from(self.ceilings[lane])),
        })
    }
}

/// Returns how many periods back the rule of `profile` looks, if the zone has met no refusal.
fn looks_back(profile: Profile) -> Nanos {
    if profile == Profile::WindowLog { 1 } else { 2 }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::core::rules::{
        ceilings::{Ceilings, Reserve},
        quota::{MINUTE, SECOND},
    };

    fn quota() -> Quota {
        Quota::new(Zone::GENERAL, Scope::AuthToken)
    }

    fn error(quota: &Quota) -> InvalidLimiter {
        Rules::new(quota).unwrap_err()
    }

    #[test]
    fn every_quota_that_cannot_be_kept_is_refused_by_name() {
        use InvalidLimiter as E;
        const Z: Zone = Zone::GENERAL;
        assert_eq!(error(&quota()), E::NoWindows(Z));
        assert_eq!(error(&quota().limit(0, SECOND)), E::ZeroLimit(Z));
        assert_eq!(error(&quota().limit(1, Duration::ZERO)), E::ZeroPeriod(Z));
        assert_eq!(error(&quota().limit(1, Duration::MAX)), E::TooLarge(Z));
        assert_eq!(error(&quota().limit(u32::MAX, Duration::from_secs(86_400))), E::TooLarge(Z));
        assert_eq!(error(&quota().limit(1, SECOND).settle(Duration::MAX)), E::CountedTooLate(Z));
        assert_eq!(error(&quota().limit(10, SECOND).headroom(10)), E::HeadroomTakesAll(Z));
        assert_eq!(
            error(&quota().limit(10, SECOND).limit(9, SECOND)),
            E::DuplicatePeriod { zone: Z, period: SECOND }
        );
        let nine = (1..=9).fold(quota(), |quota, s| quota.limit(s, Duration::from_secs(s.into())));
        assert_eq!(error(&nine), E::TooManyWindows { zone: Z, most: 8 });
    }

    #[test]
    fn ceilings_may_neither_starve_a_lane_nor_put_it_above_a_higher_one() {
        let with = |ceilings| error(&quota().limit(10, SECOND).ceilings(ceilings));
        assert_eq!(
            with(Ceilings::standard().withhold(Lane::Bulk, Reserve::slots(10))),
            InvalidLimiter::StarvedLane { zone: Zone::GENERAL, lane: Lane::Bulk }
        );
        assert_eq!(
            with(Ceilings::standard().withhold(Lane::Trading, Reserve::slots(3))),
            InvalidLimiter::InvertedCeilings { zone: Zone::GENERAL, lane: Lane::Normal }
        );
    }

    #[test]
    fn a_burst_is_at_most_half_of_a_window() {
        let with = |n, burst| {
            let burst = NonZeroU32::new(burst).unwrap();
            Rules::new(&quota().limit(n, SECOND).profile(Profile::Paced { burst })).map(|_| ())
        };
        assert_eq!(with(10, 5), Ok(()));
        assert_eq!(with(10, 6), Err(InvalidLimiter::BurstTooLarge(Zone::GENERAL)));
        assert_eq!(with(1, 1), Err(InvalidLimiter::BurstTooLarge(Zone::GENERAL)));
    }

    #[test]
    fn polls_are_smoothed_only_over_long_windows_that_other_lanes_share() {
        let shared = quota().limit(10, SECOND).limit(400, MINUTE).ceilings(Ceilings::standard());
        let smoothing = Rules::new(&shared).unwrap().smoothing.unwrap();
        assert_eq!(smoothing.burst.get(), 8);
        assert_eq!(smoothing.interval, 60_031_000_000_u64.div_ceil(380));
        assert_eq!(
            Rules::new(&quota().limit(100, SECOND).ceilings(Ceilings::standard())).unwrap().smoothing,
            None
        );
        assert_eq!(Rules::new(&quota().limit(400, MINUTE)).unwrap().smoothing, None);
    }
}
