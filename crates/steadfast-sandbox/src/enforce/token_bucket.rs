use super::{Algorithm, Window};

/// A bucket of N tokens, full at first, that gains N evenly in each period and loses one for each request.
///
/// That is GCRA with burst N and emission interval T/N. The interval need not be whole nanoseconds, so the
/// bucket is kept in units of 1/N ns: a request takes T of them, a nanosecond gives N back, and nothing is
/// ever rounded. At most 2N − 1 pass within one period.
#[derive(Clone, Debug)]
pub(super) struct TokenBucket {
    limit: u128,
    period: u128,
    /// The part that was missing from the full bucket at `last`; more than the bucket holds if requests beyond the
    /// limit were counted.
    missing: u128,
    last: u64,
}

impl TokenBucket {
    pub(super) fn new(window: Window) -> Self {
        Self { limit: u128::from(window.requests()), period: u128::from(window.nanos()), missing: 0, last: 0 }
    }

    fn missing_at(&self, now: u64) -> u128 {
        self.missing.saturating_sub(self.limit * u128::from(now.saturating_sub(self.last)))
    }
}

impl Algorithm for TokenBucket {
    fn admits(&self, now: u64) -> bool {
        self.missing_at(now) + self.period <= self.limit * self.period
    }

    fn opens(&self, now: u64) -> Option<u64> {
        let excess = (self.missing_at(now) + self.period).saturating_sub(self.limit * self.period);
        now.checked_add(u64::try_from(excess.div_ceil(self.limit)).ok()?)
    }

    fn charge(&mut self, now: u64) {
        self.missing = self.missing_at(now) + self.period;
        self.last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::super::trace::*;
    use crate::enforce::Kind;

    #[test]
    fn full_bucket_passes_at_once_and_then_one_request_every_interval() {
        let mut gateway = per_second(10, Kind::TokenBucket);
        assert_eq!(gateway.admitted(&[ms(0); 12]), 10);
        assert_eq!(gateway.retry_after(ms(0)), ms(100));
        let arrivals = [ns(99_999_999), ms(100), ms(101), ms(200), ms(200)];
        assert_eq!(gateway.verdicts(&arrivals), [false, true, false, true, false]);
    }

    #[test]
    fn one_strict_window_admits_twice_the_limit_less_one() {
        let mut gateway = per_second(10, Kind::TokenBucket);
        let period = (0..1_000).flat_map(|at| [ms(at); 10]).collect::<Vec<_>>();
        assert_eq!(gateway.admitted(&period), 19);
    }

    #[test]
    fn interval_that_is_no_whole_nanoseconds_is_not_rounded() {
        let mut gateway = per_second(3, Kind::TokenBucket);
        assert_eq!(gateway.admitted(&[ms(0); 4]), 3);
        // 1/3 s is 333,333,333.3 ns: rounded down each time, the third would come 1 ns early.
        let arrivals = [333_333_333, 333_333_334, 666_666_666, 666_666_667, 999_999_999, 1_000_000_000];
        assert_eq!(gateway.verdicts(&arrivals.map(ns)), [false, true, false, true, false, true]);
    }

    #[test]
    fn bucket_overflows_when_idle() {
        let mut gateway = per_second(10, Kind::TokenBucket);
        assert_eq!(gateway.admitted(&[ms(0); 10]), 10);
        assert_eq!(gateway.admitted(&[ms(3_600_000); 30]), 10);
    }
}
