use steadfast_call::Lane;

use crate::core::{
    rules::{Bound, Rules, ceilings::Ceilings},
    time::{Nanos, drifted},
};

/// The error that a gateway's clock of whole milliseconds adds to the time between two requests.
const GRID: Nanos = 1_000_000;

/// Returns when a bucket has room for one more request, with `busy` on their way; `None` until one of these is
/// answered.
///
/// The bucket holds `burst` and empties by one every `interval`. Every answer fills it at its stamp. With a burst
/// `B` and a rate `R`, `B + R·T ≤ N` keeps every window of `T` within `N`, and `B` and `R` keep it within any bucket
/// at least as large.
///
/// `stamps` reach back two periods. Earlier contents of the bucket are ignored, which admits at most `B − 1` more
/// requests in two periods, while a gateway's bucket of rate `N / T` empties by `2·B` more than `R` fills it in that
/// time.
pub(crate) fn earliest(
    stamps: impl Iterator<Item = Nanos>,
    interval: Nanos,
    burst: u64,
    busy: u64,
) -> Option<Nanos> {
    let room = burst.checked_sub(busy + 1)?;
    let empty = stamps.fold(0, |empty: Nanos, stamp| empty.max(stamp) + interval);
    Some(if empty == 0 { 0 } else { (empty + GRID).saturating_sub(room * interval) })
}

/// Returns the interval at which a bucket of `burst` keeps every window of `bound` within `limit`; `burst` is less.
///
/// The interval is no shorter than a leaky bucket as coarse as nginx's requires. That one leaks whole thousandths of
/// a request per second, rounded down, and loses up to one thousandth of a request with every request.
pub(crate) fn interval(bound: &Bound, limit: u32, burst: u32) -> Nanos {
    let spread = bound.period.div_ceil(u64::from(limit.saturating_sub(burst).max(1)));
    let leak = u64::from(limit).saturating_mul(1_000_000_000_000) / bound.nominal;
    let coarse = 1_001_000_000_000_u64.checked_div(leak).map_or(0, |interval| drifted(interval + 1));
    spread.max(coarse)
}

/// Returns the least distance between two requests of `lane` where too little of the limit is left for reserves: bulk
/// then takes at most every second slot. `learned` is the limit of the shortest window, if it is not the documented
/// one.
pub(crate) fn every_second(rules: &Rules, lane: Lane, learned: Option<u32>) -> Nanos {
    let is_shared = |bound: &Bound| bound.ceilings[lane as usize] < bound.limit;
    match (learned, rules.bounds.first()) {
        (Some(limit), Some(bound)) if lane == Lane::Bulk && is_shared(bound) && Ceilings::vanish(limit) => {
            2 * interval(bound, limit, 1)
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::held;

    #[test]
    fn requests_are_spread_after_the_burst() {
        let at = |stamps: &[Nanos], busy| earliest(stamps.iter().copied(), 100, 2, busy);
        assert_eq!(at(&[], 0), Some(0));
        assert_eq!(at(&[], 1), Some(0));
        assert_eq!(at(&[], 2), None, "the burst is on its way");
        let later = |at: Nanos| Some(at + GRID);
        assert_eq!(at(&[1_000], 0), later(1_000), "one answered leaves one of the burst");
        assert_eq!(at(&[1_000], 1), later(1_100));
        assert_eq!(at(&[1_000, 1_000], 0), later(1_100));
        assert_eq!(at(&[1_000, 1_000, 1_000], 0), later(1_200));
    }

    fn bound(limit: u32, nominal: Nanos) -> Bound {
        Bound { limit, nominal, period: held(nominal), ceilings: [limit; 5], reach: 0, at_once: limit }
    }

    #[test]
    fn burst_and_rate_together_stay_within_the_limit() {
        // 10 per second with a burst of 2: 8 per second beside it.
        assert_eq!(interval(&bound(10, 1_000_000_000), 10, 2), 1_001_500_000_u64.div_ceil(8));
        assert_eq!(interval(&bound(2, 1_000_000_000), 2, 1), 1_001_500_000);
    }

    #[test]
    fn a_large_limit_is_spread_a_little_more_than_evenly() {
        // 100,000 per minute leak 1,666,666 thousandths per second: one request in 600.0003 µs at best.
        let apart = interval(&bound(100_000, 60_000_000_000), 100_000, 1);
        assert_eq!(apart, drifted(1_001_000_000_000 / 1_666_666 + 1));
        assert!(apart > 600_600);
    }
}
