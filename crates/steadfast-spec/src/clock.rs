use std::{fmt, sync::Arc, time::SystemTime};

/// The wall clock, injectable.
///
/// Token expiry and the trading day follow the wall clock; every other duration in steadfast is monotonic.
///
/// # Clone
///
/// Clones read the same source.
#[derive(Clone)]
pub struct WallClock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl WallClock {
    /// The machine's clock.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the machine's wall clock"
    )]
    pub fn system() -> Self {
        Self(Arc::new(SystemTime::now))
    }

    /// A clock that asks `source`.
    pub fn new(source: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(source))
    }

    /// The current wall-clock time.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        (self.0)()
    }
}

impl Default for WallClock {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Debug for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WallClock").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn an_injected_clock_is_the_one_that_is_read() {
        let noon = UNIX_EPOCH + Duration::from_secs(43_200);
        assert_eq!(WallClock::new(move || noon).now(), noon);
    }

    #[test]
    fn the_system_clock_is_past_the_year_2020() {
        assert!(WallClock::system().now() > UNIX_EPOCH + Duration::from_secs(1_577_836_800));
    }
}
