use crate::Nanos;

/// The first instant at which a bucket that empties by one every `interval` and holds `burst` has room for one
/// more, with `busy` requests on their way; `None` until one of them is back.
///
/// Every answer fills the bucket at its stamp. With a burst `B` and a rate `R`, `B + R·T ≤ N` keeps every window
/// of `T` within `N`, and `B` and `R` keep it within any bucket at least as large.
///
/// `stamps` reach back two periods. What the bucket held before is forgotten, which lets at most `B − 1` more pass
/// in two periods, while a gateway's bucket of rate `N / T` empties by `2·B` more than `R` fills it in that time.
pub(crate) fn earliest(
    stamps: impl Iterator<Item = Nanos>,
    interval: Nanos,
    burst: u64,
    busy: u64,
) -> Option<Nanos> {
    let room = burst.checked_sub(busy + 1)?;
    let empty = stamps.fold(0, |empty: Nanos, stamp| empty.max(stamp) + interval);
    Some(empty.saturating_sub(room * interval))
}

/// The interval at which a bucket of `burst` keeps every window of `period` within `limit`; `burst` is less.
pub(crate) fn interval(period: Nanos, limit: u64, burst: u64) -> Nanos {
    period.div_ceil((limit - burst).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_spread_after_the_burst() {
        let at = |stamps: &[Nanos], busy| earliest(stamps.iter().copied(), 100, 2, busy);
        assert_eq!(at(&[], 0), Some(0));
        assert_eq!(at(&[], 1), Some(0));
        assert_eq!(at(&[], 2), None, "the burst is on its way");
        assert_eq!(at(&[1_000], 0), Some(1_000), "one answered leaves one of the burst");
        assert_eq!(at(&[1_000], 1), Some(1_100));
        assert_eq!(at(&[1_000, 1_000], 0), Some(1_100));
        assert_eq!(at(&[1_000, 1_000, 1_000], 0), Some(1_200));
    }

    #[test]
    fn burst_and_rate_together_stay_within_the_limit() {
        // 10 per 1000 with a burst of 2: 8 per 1000 beside it.
        assert_eq!(interval(1_000, 10, 2), 125);
        assert_eq!(interval(1_000, 2, 1), 1_000);
    }
}
