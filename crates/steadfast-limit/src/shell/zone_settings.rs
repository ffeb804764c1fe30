use std::{fmt, time::Duration};

use steadfast_call::Lane;
use steadfast_spec::{Scope, Zone};

use crate::core::rules::{Bound, Rules, ceilings::LANES, profile::Profile};

/// The settings of one zone, as a limiter applies them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ZoneSettings {
    /// The zone.
    pub zone: Zone,
    /// Its scope.
    pub scope: Scope,
    /// Which ways of counting it is safe against.
    pub profile: Profile,
    /// Its windows, the shortest first.
    pub windows: Vec<WindowSettings>,
    /// How long after its answer the gateway may still count a request.
    pub settle: Duration,
}

/// The settings of one window, as a limiter applies them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WindowSettings {
    /// How many requests it allows, after headroom.
    pub limit: u32,
    /// The length of the window.
    pub period: Duration,
    /// How many slots each lane may fill, in the order of [`Lane::ALL`].
    pub ceilings: [u32; LANES],
    /// How many requests it lets through in [`sustained_in`](Self::sustained_in) in the long run, if they are answered
    /// at once. An answer after `r` makes that time longer by `r`.
    pub sustained: u32,
    /// The period; twice that for a limit of one where the phase of the gateway's window matters, because a request
    /// may then count in either of two windows.
    pub sustained_in: Duration,
}

impl ZoneSettings {
    pub(super) fn of(rules: &Rules) -> Self {
        Self {
            zone: rules.zone,
            scope: rules.scope,
            profile: rules.profile,
            windows: rules.bounds.iter().map(|bound| WindowSettings::of(bound, rules.profile)).collect(),
            settle: Duration::from_nanos(rules.settle),
        }
    }
}

impl WindowSettings {
    fn of(bound: &Bound, profile: Profile) -> Self {
        let period = Duration::from_nanos(bound.nominal);
        let sustained = match profile {
            Profile::WindowLog | Profile::Adaptive { .. } => bound.limit,
            // One slot is lost to the phase of the gateway's window, which is not known.
            Profile::Universal => bound.limit - 1,
            // The slots of a burst are kept free. All but one of them can be used every two periods, because the bucket
            // looks back no further.
            Profile::Paced { burst } => bound.limit - burst.get() / 2 - 1,
        };
        let sustained_in = if sustained == 0 { 2 * period } else { period };
        Self {
            limit: bound.limit,
            period,
            ceilings: bound.ceilings,
            sustained: sustained.max(1),
            sustained_in,
        }
    }

    /// `9`, or `1 in 2s` where it is not that many in a period.
    fn rate(&self) -> String {
        if self.sustained_in == self.period {
            self.sustained.to_string()
        } else {
            format!("{} in {:?}", self.sustained, self.sustained_in)
        }
    }
}

impl fmt::Display for ZoneSettings {
    /// `10 in 1s, 400 in 60s per auth_token; universal; sustains 9/399; critical 10/400, …`, lanes only where they
    /// differ.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let windows: Vec<_> = self.windows.iter().map(|w| format!("{} in {:?}", w.limit, w.period)).collect();
        write!(f, "{} per {}; {}", windows.join(", "), self.scope, self.profile)?;
        let sustained: Vec<_> = self.windows.iter().map(WindowSettings::rate).collect();
        write!(f, "; sustains {}", sustained.join("/"))?;
        if !self.settle.is_zero() {
            write!(f, "; counted up to {:?} late", self.settle)?;
        }
        if self.windows.iter().all(|window| window.ceilings == [window.limit; LANES]) {
            return Ok(());
        }
        let lanes = Lane::ALL.into_iter().enumerate().map(|(at, lane)| {
            let ceilings: Vec<_> =
                self.windows.iter().map(|window| window.ceilings[at].to_string()).collect();
            format!("{lane} {}", ceilings.join("/"))
        });
        write!(f, "; {}", lanes.collect::<Vec<_>>().join(", "))
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Universal => f.write_str("universal"),
            Self::WindowLog => f.write_str("window log"),
            Self::Paced { burst } => write!(f, "paced, bursts of {burst}"),
            Self::Adaptive { burst } => write!(f, "adaptive, bursts of {burst} at worst"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Quota, SECOND, ZoneLimiter};

    fn preset(zone: Zone) -> ZoneSettings {
        ZoneLimiter::preset().settings().into_iter().find(|settings| settings.zone == zone).unwrap()
    }

    #[test]
    fn the_preset_leaves_cancels_a_reserve_in_shared_zones_and_none_in_those_of_orders_alone() {
        let ceilings = |zone| -> Vec<_> {
            preset(zone).windows.iter().map(|window| (window.limit, window.ceilings)).collect()
        };
        // Cancels, verification, orders, reads, polls.
        assert_eq!(ceilings(Zone::GENERAL), [(10, [10, 9, 9, 8, 8]), (400, [400, 390, 390, 380, 380])]);
        assert_eq!(ceilings(Zone::PLACE_ORDER), [(10, [10; LANES])]);
    }

    #[test]
    fn a_zone_says_its_windows_whom_it_counts_and_its_lanes_where_they_differ() {
        let place = preset(Zone::PLACE_ORDER);
        assert_eq!(place.to_string(), "10 in 1s per auth_token; adaptive, bursts of 1 at worst; sustains 10");
        let one = ZoneLimiter::builder().zone(Quota::new(Zone::new("one"), Scope::Shared).limit(1, SECOND));
        let one = one.build().unwrap().settings().remove(0).to_string();
        assert_eq!(one, "1 in 1s per shared; universal; sustains 1 in 2s");
        let late = ZoneSettings { settle: Duration::from_millis(50), ..place };
        assert!(late.to_string().ends_with("; counted up to 50ms late"), "{late}");
        let general = preset(Zone::GENERAL).to_string();
        assert!(
            general.starts_with(
                "10 in 1s, 400 in 60s per auth_token; universal; sustains 9/399; critical 10/400, "
            ),
            "{general}"
        );
        assert!(general.ends_with("bulk 8/380"), "{general}");
        assert_eq!(Profile::Paced { burst: std::num::NonZero::<u32>::MIN }.to_string(), "paced, bursts of 1");
        assert_eq!(Profile::WindowLog.to_string(), "window log");
    }
}
