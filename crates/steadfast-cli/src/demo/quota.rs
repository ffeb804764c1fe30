use std::{collections::VecDeque, time::Duration};

use serde::Serialize;
use steadfast_spec::{Zone, zones};

use super::session::Session;

/// How much of the two relevant zones a client used, in per cent.
///
/// For a window of a second it is the mean over the busiest ten seconds, for a window of a minute the busiest
/// minute; for a zone with both, the larger. Only admitted requests count, because a refused one uses nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Share {
    pub(crate) general: f64,
    pub(crate) place_order: f64,
}

/// When a client's requests counted for each zone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) zones: Vec<ZoneUsage>,
}

/// One zone's requests, from the time of the first order on.
#[derive(Clone, Debug)]
pub(crate) struct ZoneUsage {
    pub(crate) zone: Zone,
    pub(crate) limit_per_second: u32,
    pub(crate) admitted: Vec<Duration>,
    pub(crate) refused: Vec<Duration>,
    share: f64,
}

/// The stretch over which a window of a second is averaged.
const BUSY: Duration = Duration::from_secs(10);

impl Usage {
    pub(crate) fn of(session: &Session) -> Self {
        let since = |ns: u64| Duration::from_nanos(ns).saturating_sub(session.start);
        let zones = zones().into_iter().map(|spec| {
            let name = spec.zone.as_str();
            let under = session.truth.arrivals.iter().filter(|a| a.zones.contains(&name));
            let (mut admitted, mut refused) = (Vec::new(), Vec::new());
            for arrival in under {
                let into = if arrival.status == 429 { &mut refused } else { &mut admitted };
                into.push(since(arrival.accounted_ns));
            }
            let share = spec.windows.iter().map(|window| {
                let over = window.period().max(BUSY);
                let allowed = f64::from(window.limit().get()) * over.div_duration_f64(window.period());
                busiest(&admitted, over) as f64 / allowed * 100.0
            });
            ZoneUsage {
                zone: spec.zone,
                limit_per_second: spec.windows.first().map_or(0, |window| window.limit().get()),
                share: share.fold(0.0, f64::max),
                admitted,
                refused,
            }
        });
        Self { zones: zones.collect() }
    }

    pub(crate) fn of_zone(&self, zone: Zone) -> Option<&ZoneUsage> {
        self.zones.iter().find(|usage| usage.zone == zone)
    }

    pub(crate) fn share(&self) -> Share {
        let of = |zone| self.of_zone(zone).map_or(0.0, |usage| (usage.share * 10.0).round() / 10.0);
        Share { general: of(Zone::GENERAL), place_order: of(Zone::PLACE_ORDER) }
    }
}

/// Returns the largest number of `instants` (sorted) in any stretch of `length`.
fn busiest(instants: &[Duration], length: Duration) -> usize {
    let mut stretch: VecDeque<Duration> = VecDeque::new();
    let mut most = 0;
    for &at in instants {
        while stretch.front().is_some_and(|&first| first + length <= at) {
            stretch.pop_front();
        }
        stretch.push_back(at);
        most = most.max(stretch.len());
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_stretch_is_half_open() {
        let at = |ms: u64| Duration::from_millis(ms);
        let instants = [at(0), at(500), at(999), at(1_000), at(1_500)];
        assert_eq!(busiest(&instants, at(1_000)), 3);
        assert_eq!(busiest(&instants, at(1_001)), 4);
        assert_eq!(busiest(&[], at(1_000)), 0);
    }
}
