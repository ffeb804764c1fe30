use std::time::Duration;

/// How long orders took to appear, counted from the base of the lateness bound.
///
/// The base is the gateway's answer or, without one, the last instant at which the gateway may still have been at
/// work. Lists are read at intervals, so every value is an upper bound of the true lag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LagHistogram {
    counts: [u64; Self::EDGES.len() + 1],
    longest: Duration,
}

impl LagHistogram {
    /// The upper edges of the buckets, inclusive; one more bucket holds longer lags.
    pub const EDGES: [Duration; 14] = [
        Duration::from_millis(250),
        Duration::from_millis(500),
        Duration::from_millis(1_000),
        Duration::from_millis(2_000),
        Duration::from_millis(3_500),
        Duration::from_millis(5_000),
        Duration::from_millis(7_500),
        Duration::from_secs(10),
        Duration::from_secs(15),
        Duration::from_secs(30),
        Duration::from_secs(60),
        Duration::from_secs(90),
        Duration::from_secs(300),
        Duration::from_secs(1_800),
    ];

    /// Returns how many orders appeared within each edge and beyond the one before; the last counts longer lags.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns how many orders were seen.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the longest lag.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// Returns the share of applied orders that, with 95 % confidence, at most appears later than `bound`.
    ///
    /// By the rule of three: if none of `n` independent orders was later, the share is at most `3/n`. `None` if there
    /// are no orders yet, or if one of them *was* later: then the bound is broken, and no rule helps. The estimate
    /// holds for days like those that were counted; a bad day counts only once it has come.
    ///
    /// Multiplied by the share of lost outcomes that were applied, it is the risk of a duplicate per resend.
    #[must_use]
    pub fn lateness_risk(&self, bound: Duration) -> Option<f64> {
        let count = self.count();
        #[expect(clippy::cast_precision_loss, reason = "a risk to more than 15 digits is none")]
        (count > 0 && self.longest <= bound).then(|| (3.0 / count as f64).min(1.0))
    }

    pub(crate) fn observe(&mut self, lag: Duration) {
        let bucket = Self::EDGES.iter().position(|edge| lag <= *edge).unwrap_or(Self::EDGES.len());
        self.counts[bucket] += 1;
        self.longest = self.longest.max(lag);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.longest = self.longest.max(other.longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_grow_and_belong_to_the_lower_bucket() {
        assert!(LagHistogram::EDGES.is_sorted_by(|a, b| a < b));
        let mut lags = LagHistogram::default();
        lags.observe(Duration::ZERO);
        lags.observe(Duration::from_millis(250));
        lags.observe(Duration::from_millis(251));
        lags.observe(Duration::from_secs(86_400));
        assert_eq!(lags.counts()[..2], [2, 1]);
        assert_eq!(lags.counts().last(), Some(&1));
        assert_eq!((lags.count(), lags.longest()), (4, Duration::from_secs(86_400)));
    }

    #[test]
    fn the_rule_of_three_needs_observations_and_none_beyond_the_bound() {
        let bound = Duration::from_secs(15);
        let mut lags = LagHistogram::default();
        assert_eq!(lags.lateness_risk(bound), None);
        lags.observe(Duration::from_secs(1));
        assert_eq!(lags.lateness_risk(bound), Some(1.0));
        for _ in 1..300 {
            lags.observe(bound);
        }
        assert_eq!(lags.lateness_risk(bound), Some(0.01));
        lags.observe(Duration::from_millis(15_001));
        assert_eq!(lags.lateness_risk(bound), None);
    }
}
