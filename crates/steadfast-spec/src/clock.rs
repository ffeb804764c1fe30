use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

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

/// The clock that counts from the machine's start and runs on while the machine is suspended, injectable.
///
/// Monotonic clocks such as tokio's stand still in a suspended machine on Linux. So a time that must have passed *at
/// least* is measured with tokio's clock, and one that may have passed *at most* with this one.
///
/// # Clone
///
/// Clones read the same source.
#[derive(Clone)]
pub struct BootClock(Arc<dyn Fn() -> Option<Duration> + Send + Sync>);

impl BootClock {
    /// The machine's clock: `CLOCK_BOOTTIME` on Linux and Android, none elsewhere.
    #[must_use]
    pub fn system() -> Self {
        Self(Arc::new(since_boot))
    }

    /// A clock that asks `source`; `None` where there is no such clock.
    pub fn new(source: impl Fn() -> Option<Duration> + Send + Sync + 'static) -> Self {
        Self(Arc::new(source))
    }

    /// The time since the machine started, suspended time included; `None` where no clock tells it.
    #[must_use]
    pub fn now(&self) -> Option<Duration> {
        (self.0)()
    }
}

impl Default for BootClock {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Debug for BootClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BootClock").finish_non_exhaustive()
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn since_boot() -> Option<Duration> {
    rustix::time::clock_gettime(rustix::time::ClockId::Boottime).try_into().ok()
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn since_boot() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn an_injected_clock_is_the_one_that_is_read() {
        let noon = UNIX_EPOCH + Duration::from_secs(43_200);
        assert_eq!(WallClock::new(move || noon).now(), noon);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_boot_clock_runs() {
        let before = BootClock::system().now().unwrap();
        assert!(!before.is_zero() && BootClock::system().now().unwrap() >= before);
        assert_eq!(BootClock::new(|| None).now(), None);
    }

    #[test]
    fn the_system_clock_is_past_the_year_2020() {
        assert!(WallClock::system().now() > UNIX_EPOCH + Duration::from_secs(1_577_836_800));
    }
}
