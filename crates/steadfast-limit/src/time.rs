use std::time::Duration;

/// An instant of the pure core: whole nanoseconds since an origin of its owner's choice. Those of its second half are
/// all taken for the last of the first, 292 years after the origin.
///
/// Integers only: counted in floating point, a request is admitted wrongly now and then at exactly the instants
/// that matter most, where a stamp leaves its window.
pub type Nanos = u64;

/// How much faster than ours the gateway's clock may run, in parts per million.
const RATE_ERROR_PPM: u64 = 500;

/// What is added to every period besides, for timers and stamps that are rounded.
const ROUNDING: Nanos = 1_000_000;

/// The longest duration that is counted exactly: about 73 years.
pub(crate) const LONGEST: Nanos = u64::MAX / 8;

/// Where the core's clock stops, after 292 years: everything that is added to an instant fits behind it.
pub(crate) const LATEST: Nanos = u64::MAX / 2;

/// The whole nanoseconds of `duration`, or `None` above [`LONGEST`].
pub(crate) fn nanos(duration: Duration) -> Option<Nanos> {
    u64::try_from(duration.as_nanos()).ok().filter(|n| *n <= LONGEST)
}

/// How long a stamp is held for a period of the gateway's: clocks differ in rate, and an answer that is stamped a
/// little early must not count as gone a little early.
pub(crate) fn held(period: Nanos) -> Nanos {
    if steadfast_spec::Planted::NoMargin.is_on() {
        return period;
    }
    drifted(period).saturating_add(ROUNDING)
}

/// How long `period` may last by our clock while the gateway's runs through it.
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
