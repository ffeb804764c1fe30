use super::{Algorithm, Window};

const NANOS_PER_MILLI: u64 = 1_000_000;
/// One request, in the unit of the bucket.
const REQUEST: u128 = 1_000;
const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// nginx's `limit_req … burst=b nodelay`: a bucket that leaks at N/T, and rejects requests more than `b` ahead.
///
/// It is as coarse as nginx: the clock has milliseconds, the rate is whole milli-requests per second, each leak is
/// rounded down to whole milli-requests, and the remainder is lost with each counted request. So 400 in 60 s leak
/// 6.666 a second, and a steady 400 a minute are too many in the end. The level is cut off at zero after the
/// request was added, so the first request, and one after a long silence, adds nothing: b + 1 pass at once, and at
/// most N + b + 1 within a period of whole milliseconds.
#[derive(Clone, Debug)]
pub(super) struct LeakyBucket {
    /// Milli-requests per second. A rate below one rounds to zero, and such a bucket never leaks.
    rate: u128,
    /// How much may be in the bucket, in milli-requests.
    burst: u128,
    /// The milliseconds and the level after the last counted request.
    level: Option<(u64, u128)>,
}

impl LeakyBucket {
    pub(super) fn new(window: Window, burst: u32) -> Self {
        let rate = u128::from(window.requests()) * REQUEST * NANOS_PER_SECOND / u128::from(window.nanos());
        Self { rate, burst: u128::from(burst) * REQUEST, level: None }
    }

    /// Returns the content of the bucket after one more request at `now`.
    fn excess_at(&self, now: u64) -> u128 {
        self.level.map_or(0, |(last, excess)| {
            let elapsed = (now / NANOS_PER_MILLI).saturating_sub(last);
            // The sum is cut off at zero after the request was added, not before.
            (excess + REQUEST).saturating_sub(self.rate * u128::from(elapsed) / 1_000)
        })
    }
}

impl Algorithm for LeakyBucket {
    fn admits(&self, now: u64) -> bool {
        self.excess_at(now) <= self.burst
    }

    fn opens(&self, _now: u64) -> Option<u64> {
        let (last, excess) = self.level?;
        let must_leak = (excess + REQUEST).saturating_sub(self.burst);
        if self.rate == 0 {
            return None;
        }
        let millis = u64::try_from((must_leak * 1_000).div_ceil(self.rate)).ok()?;
        last.checked_add(millis)?.checked_mul(NANOS_PER_MILLI)
    }

    fn charge(&mut self, now: u64) {
        self.level = Some((now / NANOS_PER_MILLI, self.excess_at(now)));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::trace::*;
    use crate::enforce::{Enforcer, Kind, Window};

    #[test]
    fn without_burst_requests_keep_their_distance() {
        let mut gateway = per_second(10, Kind::LeakyBucket { burst: 0 });
        let arrivals = [ms(0), ms(0), ms(99), ms(100), ms(150), ms(199), ms(200), ms(5_000), ms(5_099)];
        let admitted = [true, false, false, true, false, false, true, true, false];
        assert_eq!(gateway.verdicts(&arrivals), admitted);
    }

    #[test]
    fn burst_and_one_more_pass_at_once() {
        let mut gateway = per_second(10, Kind::LeakyBucket { burst: 5 });
        assert_eq!(gateway.admitted(&[ms(0); 20]), 6);
        // Excess 5,000 leaks 10 a millisecond: half a request after 50 ms, a whole one after 100 ms.
        assert_eq!(gateway.verdicts(&[ms(50), ms(99), ms(100), ms(100)]), [false, false, true, false]);
        // At 600 ms the level is zero, and five fit. One more interval passes before the next slot is free.
        assert_eq!(gateway.admitted(&[ms(600); 20]), 5);
        assert_eq!(gateway.admitted(&[ms(1_200); 20]), 6);
    }

    #[test]
    fn time_within_a_millisecond_does_not_count() {
        let mut gateway = per_second(10, Kind::LeakyBucket { burst: 0 });
        let arrivals = [ns(999_999), ns(99_999_999), ns(100_000_000)];
        // 99 ms and 1 ns are enough, since they hold 100 boundaries of milliseconds.
        assert_eq!(gateway.verdicts(&arrivals), [true, false, true]);
        assert_eq!(gateway.retry_after(ns(100_000_001)), ns(99_999_999));
    }

    #[test]
    fn one_period_holds_the_limit_the_burst_and_one() {
        let mut gateway = per_second(10, Kind::LeakyBucket { burst: 5 });
        assert_eq!(gateway.admitted(&[ns(999_999_999); 20]), 6);
        let paced = (1_000..=1_999).map(ms).collect::<Vec<_>>();
        // From 999,999,999 ns to 1,999,000,000 ns is less than a second, and holds 1,000 boundaries.
        assert_eq!(gateway.admitted(&paced), 10);
    }

    #[test]
    fn rate_is_cut_to_whole_milli_requests_a_second() {
        let window = Window::new(400, Duration::from_secs(60)).unwrap();
        let mut gateway = Enforcer::new(Kind::LeakyBucket { burst: 0 }, window);
        assert_eq!(gateway.admitted(&[ms(0)]), 1);
        // 150 ms × 6.6667/s is one request; 150 ms × 6.666/s is 999 milli-requests.
        assert_eq!(gateway.verdicts(&[ms(150), ms(151)]), [false, true]);
    }

    #[test]
    fn steady_traffic_at_the_very_rate_falls_behind() {
        let window = Window::new(400, Duration::from_secs(60)).unwrap();
        let mut gateway = Enforcer::new(Kind::LeakyBucket { burst: 1 }, window);
        let steady = (0..=1_001).map(|k| ms(150 * k)).collect::<Vec<_>>();
        // Each interval lacks one milli-request; after a thousand of them a whole request is missing.
        assert_eq!(gateway.admitted(&steady[..=1_000]), 1_001);
        assert_eq!(gateway.admitted(&steady[1_001..]), 0);
    }

    #[test]
    fn rate_that_rounds_to_nothing_never_leaks() {
        let window = Window::new(1, Duration::from_secs(1_001)).unwrap();
        let mut gateway = Enforcer::new(Kind::LeakyBucket { burst: 2 }, window);
        assert_eq!(gateway.admitted(&[ms(0); 5]), 3);
        assert_eq!(gateway.admitted(&[Duration::from_nanos(u64::MAX)]), 0);
        assert_eq!(gateway.retry_after(ms(0)), Duration::MAX);
    }
}
