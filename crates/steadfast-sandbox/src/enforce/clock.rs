use std::time::Duration;

/// The advance of a clock without drift in one second, in millionths.
const TRUE_RATE: i64 = 1_000_000;

/// The clock that a gateway counts by, as a function of true time.
///
/// It reads `epoch` at true time zero and runs `1 + ppm / 1,000,000` seconds in each true second, rounded
/// down to whole nanoseconds. It never goes back, and stops at 2⁶⁴ − 1 ns (584 years).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GatewayClock {
    epoch: u64,
    ppm: i16,
}

impl GatewayClock {
    /// Creates a clock that reads the true time.
    #[must_use]
    pub const fn new() -> Self {
        Self { epoch: 0, ppm: 0 }
    }

    /// Sets the reading at true time zero.
    ///
    /// A caller that counts time from the start of a run gives the wall time of that start (since 1970)
    /// here. That aligns [`Kind::WholeSecond`](super::Kind::WholeSecond) to real seconds and minutes. For
    /// the other kinds it only moves the phase.
    #[must_use]
    pub fn epoch(mut self, epoch: Duration) -> Self {
        self.epoch = nanos(epoch);
        self
    }

    /// Sets how much faster than true time the clock runs, in parts per million; slower if negative.
    ///
    /// Real clocks stay within ±500.
    #[must_use]
    pub const fn drift_ppm(mut self, ppm: i16) -> Self {
        self.ppm = ppm;
        self
    }

    /// Returns the clock's reading at the true time `now`, in nanoseconds.
    pub(super) fn read(&self, now: Duration) -> u64 {
        let elapsed = u128::from(nanos(now)) * self.rate() / u128::from(TRUE_RATE.unsigned_abs());
        u64::try_from(u128::from(self.epoch) + elapsed).unwrap_or(u64::MAX)
    }

    /// Returns the first true time at which the clock reads `reading` or more, if there is one.
    pub(super) fn when(&self, reading: u64) -> Option<Duration> {
        let elapsed = u128::from(reading.saturating_sub(self.epoch));
        let truth = (elapsed * u128::from(TRUE_RATE.unsigned_abs())).div_ceil(self.rate());
        u64::try_from(truth).ok().map(Duration::from_nanos)
    }

    /// Returns how many millionths of a second the clock runs in a true second. An `i16` cannot bring that
    /// to zero.
    fn rate(&self) -> u128 {
        u128::from((TRUE_RATE + i64::from(self.ppm)).unsigned_abs())
    }
}

/// Returns a duration in whole nanoseconds, capped at 584 years.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fast_clock_is_ahead_and_slow_clock_behind() {
        let hour = Duration::from_secs(3_600);
        let reads = |ppm| GatewayClock::new().drift_ppm(ppm).read(hour);
        assert_eq!(reads(0), 3_600_000_000_000);
        assert_eq!(reads(500), 3_601_800_000_000);
        assert_eq!(reads(-500), 3_598_200_000_000);
    }

    #[test]
    fn epoch_is_what_the_clock_reads_at_zero() {
        let clock = GatewayClock::new().epoch(Duration::from_secs(7)).drift_ppm(-100);
        assert_eq!(clock.read(Duration::ZERO), 7_000_000_000);
        assert_eq!(clock.read(Duration::from_secs(1)), 7_999_900_000);
        assert_eq!(clock.when(6_999_999_999), Some(Duration::ZERO));
    }

    #[test]
    fn end_of_the_clock_is_a_reading_and_no_overflow() {
        let fast = GatewayClock::new().epoch(Duration::from_secs(1)).drift_ppm(i16::MAX);
        assert_eq!(fast.read(Duration::MAX), u64::MAX);
        let slow = GatewayClock::new().drift_ppm(i16::MIN);
        assert_eq!(slow.when(u64::MAX), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn when_is_the_first_instant_of_its_reading(
            epoch in 0..u64::MAX / 4,
            ppm: i16,
            ahead in 1..u64::MAX / 4,
        ) {
            let clock = GatewayClock::new().epoch(Duration::from_nanos(epoch)).drift_ppm(ppm);
            let truth = clock.when(epoch + ahead).unwrap();
            prop_assert!(clock.read(truth) >= epoch + ahead);
            prop_assert!(clock.read(truth - Duration::from_nanos(1)) < epoch + ahead);
        }
    }
}
