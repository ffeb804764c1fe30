use std::time::SystemTime;

use http::{HeaderMap, header::DATE};

/// A sample beyond a year is a broken `Date`, not a clock. A clock that is wrong by a day or a month is possible, and
/// must count: codes made without the correction would all be refused.
const LARGEST_MS: i64 = 366 * 86_400_000;
/// How fast two clocks may run apart: 100 parts per million.
const DRIFT_PER_MS: i64 = 10_000;

/// Estimates how far the service's clock is ahead of this machine's.
///
/// A `Date` header names the second in which the service answered, and the answer was made between the instants at
/// which the request left and the answer came. Each exchange therefore bounds the offset on both sides. The bounds of
/// several exchanges are intersected, and the estimate is the middle of the intersection. With one exchange that is the
/// midpoint rule. Pure: milliseconds in, milliseconds out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkewEstimator {
    bounds: Option<Bounds>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounds {
    low: i64,
    high: i64,
    // This machine's time of the last sample; drift widens the bounds from there.
    at: i64,
}

impl SkewEstimator {
    /// Creates an estimator without samples.
    #[must_use]
    pub const fn new() -> Self {
        Self { bounds: None }
    }

    /// Estimates from a single answer to a request that left at `sent` and was answered at `answered`.
    #[must_use]
    pub fn of_answer(headers: &HeaderMap, sent: SystemTime, answered: SystemTime) -> Self {
        let mut estimator = Self::new();
        if let Some(date) = date_ms(headers) {
            estimator.observe(date, unix_ms(sent), unix_ms(answered));
        }
        estimator
    }

    /// Learns from one exchange: the answer's `Date`, and when the request left and the answer came by this
    /// machine's clock; all in milliseconds since the Unix epoch.
    pub fn observe(&mut self, date: i64, sent: i64, answered: i64) {
        // The clock was set back during the exchange: the sample is useless.
        if answered < sent {
            return;
        }
        // The service wrote `date` at some instant of [date, date + 1 s).
        let (low, high) = (date - answered, date + 1_000 - sent);
        if low.abs() > LARGEST_MS || high.abs() > LARGEST_MS {
            return;
        }
        let sample = Bounds { low, high, at: answered };
        self.bounds = Some(match self.bounds {
            None => sample,
            Some(old) => {
                let drift = (answered - old.at).abs() / DRIFT_PER_MS;
                let (low, high) = (low.max(old.low - drift), high.min(old.high + drift));
                // An empty intersection means that one of the clocks was set: keep only the newest sample.
                if low <= high { Bounds { low, high, at: answered } } else { sample }
            }
        });
    }

    /// Returns how far the service is ahead, in milliseconds; `None` before the first sample.
    #[must_use]
    pub fn offset(&self) -> Option<i64> {
        self.bounds.map(|b| (b.low + b.high).div_euclid(2))
    }

    /// Returns the largest error of the offset at `now` of this machine's clock, in milliseconds. It grows with the age
    /// of the last sample. `None` before the first.
    #[must_use]
    pub fn uncertainty(&self, now: i64) -> Option<i64> {
        self.bounds.map(|b| (b.high - b.low + 1) / 2 + (now - b.at).abs() / DRIFT_PER_MS)
    }
}

/// Returns milliseconds since the Unix epoch; negative before it.
pub(crate) fn unix_ms(time: SystemTime) -> i64 {
    let ms = |d: std::time::Duration| i64::try_from(d.as_millis()).unwrap_or(i64::MAX);
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => ms(since),
        Err(before) => -ms(before.duration()),
    }
}

/// Returns the `Date` of an answer, in milliseconds since the Unix epoch.
pub(crate) fn date_ms(headers: &HeaderMap) -> Option<i64> {
    let text = headers.get(DATE)?.to_str().ok()?;
    httpdate::parse_http_date(text).ok().map(unix_ms)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the `Date` of a service that is `offset` ahead, at this machine's time `at`.
    fn date_at(at: i64, offset: i64) -> i64 {
        (at + offset).div_euclid(1_000) * 1_000
    }

    #[test]
    fn one_exchange_gives_its_midpoint() {
        let mut skew = SkewEstimator::new();
        assert_eq!(skew.offset(), None);
        skew.observe(10_000, 4_900, 5_100);
        assert_eq!(skew.offset(), Some(5_500));
        assert_eq!(skew.uncertainty(5_100), Some(600));
        assert_eq!(skew.uncertainty(5_100 + 3_600_000), Some(960), "an hour of drift");
    }

    #[test]
    fn what_is_known_widens_while_clocks_drift() {
        let mut skew = SkewEstimator::new();
        skew.observe(0, 0, 0);
        assert_eq!(skew.offset(), Some(500));
        // A slow exchange much later allows six seconds. The first one's second is widened by two of drift.
        let later = 2_000 * DRIFT_PER_MS;
        skew.observe(later, later - 5_000, later);
        assert_eq!((skew.offset(), skew.uncertainty(later)), (Some(1_500), Some(1_500)));
        let mut odd = SkewEstimator::new();
        odd.observe(10_000, 4_899, 5_100);
        assert_eq!(odd.uncertainty(5_100), Some(601), "rounded up");
    }

    #[test]
    fn more_than_a_year_is_no_offset_but_a_mistake() {
        for (date, believed) in
            [(LARGEST_MS - 1_000, true), (LARGEST_MS - 999, false), (-LARGEST_MS - 1, false)]
        {
            let mut skew = SkewEstimator::new();
            skew.observe(date, 0, 0);
            assert_eq!(skew.offset().is_some(), believed, "{date}");
        }
    }

    #[test]
    fn one_answer_is_an_estimate_if_it_has_a_date() {
        let mut headers = HeaderMap::new();
        let (sent, answered) = (SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH);
        assert_eq!(SkewEstimator::of_answer(&headers, sent, answered).offset(), None);
        headers.insert(DATE, http::HeaderValue::from_static("Thu, 01 Jan 1970 00:01:00 GMT"));
        assert_eq!(SkewEstimator::of_answer(&headers, sent, answered).offset(), Some(60_500));
    }

    #[test]
    fn a_clock_that_was_set_is_believed_at_once() {
        let mut skew = SkewEstimator::new();
        skew.observe(date_at(1_000_000, 0), 1_000_000, 1_000_010);
        skew.observe(date_at(1_010_000, 60_000), 1_010_000, 1_010_010);
        let offset = skew.offset().unwrap();
        assert!((offset - 60_000).abs() <= 510, "{offset}");
    }

    #[test]
    fn a_broken_date_and_a_clock_set_back_during_the_exchange_say_nothing() {
        let mut skew = SkewEstimator::new();
        skew.observe(0, 1_700_000_000_000, 1_700_000_000_010);
        skew.observe(5_000, 5_000, 4_000);
        assert_eq!(skew, SkewEstimator::new());
    }

    proptest! {
        /// T20: the true offset lies within the bounds of every estimate.
        #[test]
        fn t20_the_true_offset_is_never_outside_the_uncertainty(
            offset in -40_000_i64..40_000,
            exchanges in prop::collection::vec((0_i64..600_000, 0_i64..3_000, 0_i64..3_000), 1..20),
        ) {
            let mut skew = SkewEstimator::new();
            let mut now = 1_700_000_000_000;
            for (pause, out, back) in exchanges {
                now += pause;
                let (sent, answered) = (now, now + out + back);
                skew.observe(date_at(now + out, offset), sent, answered);
                now = answered;
                let (estimate, off) = (skew.offset().unwrap(), skew.uncertainty(now).unwrap());
                prop_assert!((estimate - offset).abs() <= off + 1, "{estimate} +- {off}, true {offset}");
            }
        }
    }

    #[test]
    fn many_exchanges_estimate_better_than_one() {
        let mut skew = SkewEstimator::new();
        for n in 0..50 {
            let at = 1_000_000 + n * 1_037;
            skew.observe(date_at(at + 20, 7_300), at, at + 40);
        }
        let offset = skew.offset().unwrap();
        assert!((offset - 7_300).abs() <= 50, "{offset}");
    }
}
