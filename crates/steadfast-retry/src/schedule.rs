use std::{sync::Arc, time::Duration};

use backon::BackoffBuilder;

/// More repeats than any schedule needs. It bounds endless iterators.
const MAX_REPEATS: usize = 64;

/// The delays before the repeats of one request, in order. There are as many repeats as delays.
///
/// The default is the service's own: exactly 1, 2, 4 and 8 s (§7), so five sends at most.
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// use backon::ConstantBuilder;
/// use steadfast_retry::Schedule;
///
/// let standard: Vec<_> = Schedule::default().delays().iter().map(Duration::as_secs).collect();
/// assert_eq!(standard, [1, 2, 4, 8]);
///
/// let own = Schedule::new([Duration::from_millis(50), Duration::from_secs(1)]);
/// assert_eq!(own.delays().len(), 2);
///
/// let built = Schedule::from_builder(ConstantBuilder::default().with_max_times(2));
/// assert_eq!(built.delays(), [Duration::from_secs(1); 2]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Schedule(Arc<[Duration]>);

impl Schedule {
    /// Makes a schedule of these delays, at most 64 of them.
    #[must_use]
    pub fn new(delays: impl IntoIterator<Item = Duration>) -> Self {
        Self(delays.into_iter().take(MAX_REPEATS).collect())
    }

    /// Makes a schedule of the delays that a `backon` builder yields, at most 64 of them.
    ///
    /// The builder is used once, so leave its own jitter off: [`Jitter`](crate::Jitter) is drawn for each repeat.
    #[must_use]
    pub fn from_builder(builder: impl BackoffBuilder) -> Self {
        Self::new(builder.build())
    }

    /// Makes a schedule without repeats.
    #[must_use]
    pub fn never() -> Self {
        Self::new([])
    }

    /// Returns the delays.
    #[must_use]
    pub fn delays(&self) -> &[Duration] {
        &self.0
    }
}

impl Default for Schedule {
    fn default() -> Self {
        Self::new([1, 2, 4, 8].map(Duration::from_secs))
    }
}

impl FromIterator<Duration> for Schedule {
    fn from_iter<I: IntoIterator<Item = Duration>>(delays: I) -> Self {
        Self::new(delays)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_one_two_four_eight() {
        assert_eq!(Schedule::default().delays(), [1, 2, 4, 8].map(Duration::from_secs));
    }

    #[test]
    fn a_schedule_without_end_is_ended() {
        assert_eq!(Schedule::new(std::iter::repeat(Duration::ZERO)).delays().len(), MAX_REPEATS);
        let endless = backon::ConstantBuilder::default().without_max_times();
        assert_eq!(Schedule::from_builder(endless).delays().len(), MAX_REPEATS);
    }

    #[test]
    fn a_backon_builder_gives_the_same_schedule() {
        let doubling = backon::ExponentialBuilder::default()
            .with_min_delay(Duration::from_secs(1))
            .with_factor(2.0)
            .with_max_times(4);
        assert_eq!(Schedule::from_builder(doubling), Schedule::default());
    }
}
