use std::time::Duration;

/// An instant of the pure core: whole nanoseconds since an origin that its owner chooses. Instants in the second
/// half of the range, more than 292 years after the origin, count as the last one of the first half.
///
/// Integers only: in floating point a request is now and then admitted wrongly, at exactly the instants that matter
/// most, where a stamp leaves its window.
pub type Nanos = u64;

/// How much slower than ours the gateway's clock may run, in parts per million.
const RATE_ERROR_PPM: u64 = 500;

/// An extra margin for every period, for rounded timers and stamps.
const ROUNDING: Nanos = 1_000_000;

/// The longest duration that is counted exactly: about 73 years.
pub(crate) const LONGEST: Nanos = u64::MAX / 8;

/// Where the core's clock stops, after 292 years. Any duration added to an instant still fits.
pub(crate) const LATEST: Nanos = u64::MAX / 2;

/// Returns the whole nanoseconds of `duration`, or `None` above [`LONGEST`].
pub(crate) fn nanos(duration: Duration) -> Option<Nanos> {
    u64::try_from(duration.as_nanos()).ok().filter(|n| *n <= LONGEST)
}

/// Returns how long a stamp is held for a period of the gateway's. Clocks differ in rate, and a stamp taken slightly
/// early must not expire early.
pub(crate) fn held(period: Nanos) -> Nanos {
    drifted(period).saturating_add(ROUNDING)
}

/// Returns how long `period` of the gateway's clock may last by ours.
pub(crate) fn drifted(period: Nanos) -> Nanos {
    period.saturating_add(period.div_ceil(1_000_000).saturating_mul(RATE_ERROR_PPM))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_held_for_500_ppm_and_a_millisecond_longer() {
        assert_eq!(held(1_000_000_000), 1_000_000_000 + 500_000 + 1_000_000);
        assert_eq!(held(60_000_000_000), 60_000_000_000 + 30_000_000 + 1_000_000);
    }

    #[test]
    fn durations_beyond_exact_counting_are_refused() {
        assert_eq!(nanos(Duration::from_secs(1)), Some(1_000_000_000));
        assert_eq!(nanos(Duration::MAX), None);
    }
}
