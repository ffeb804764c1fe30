use std::time::Duration;

/// The instant of an event: monotonic time since some start, and the service's wall clock in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub(crate) elapsed: Duration,
    pub(crate) wall: i64,
    /// The clock that tokens age by, in milliseconds since some start. It is never set and runs on in a suspended
    /// machine. It is the wall clock on machines without such a clock.
    pub(crate) aging: i64,
}

impl Now {
    /// Returns the monotonic instant of a time of the service's wall clock; a future time counts as now.
    pub(crate) fn elapsed_at(self, ms: i64) -> Duration {
        let ago = u64::try_from(self.wall.saturating_sub(ms)).unwrap_or_default();
        self.elapsed.saturating_sub(Duration::from_millis(ago))
    }

    /// Returns the time of the service's wall clock at a monotonic instant.
    pub(crate) fn wall_at(self, elapsed: Duration) -> i64 {
        let ago = self.elapsed.saturating_sub(elapsed).as_millis();
        self.wall.saturating_sub(i64::try_from(ago).unwrap_or(i64::MAX))
    }
}
