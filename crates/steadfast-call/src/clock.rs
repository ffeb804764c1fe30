#![expect(
    clippy::disallowed_types,
    reason = "instants are handed in by services, out of tokio's clock; nothing here reads a monotonic clock"
)]

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

/// An injectable wall clock.
///
/// Token expiry and the trading day follow the wall clock. All other durations in steadfast are monotonic.
///
/// # Clone
///
/// Clones read the same source.
#[derive(Clone)]
pub struct WallClock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl WallClock {
    /// Returns the machine's clock.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the machine's wall clock"
    )]
    pub fn system() -> Self {
        Self(Arc::new(SystemTime::now))
    }

    /// Returns a clock that reads `source`.
    pub fn new(source: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(source))
    }

    /// Returns the current wall-clock time.
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

/// An injectable clock that counts from the machine's start, suspension included.
///
/// On Linux, monotonic clocks such as tokio's stand still in a suspended machine. So a time that must have passed *at
/// least* is measured with tokio's clock, and one that may have passed *at most* with this one.
///
/// # Clone
///
/// Clones read the same source.
#[derive(Clone)]
pub struct BootClock(Arc<dyn Fn() -> Option<Duration> + Send + Sync>);

impl BootClock {
    /// Returns the machine's clock: `CLOCK_BOOTTIME` on Linux and Android, none elsewhere.
    #[must_use]
    pub fn system() -> Self {
        Self(Arc::new(since_boot))
    }

    /// Returns a clock that reads `source`; `None` where there is no such clock.
    pub fn new(source: impl Fn() -> Option<Duration> + Send + Sync + 'static) -> Self {
        Self(Arc::new(source))
    }

    /// Returns the time since the machine started, suspension included; `None` if it is unknown.
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

/// The clocks that count suspension, read together with the monotonic one.
///
/// A time that must have lasted *at least* so long (a lateness bound, a pause) is measured with the monotonic clock,
/// which may stand still. A time that may have lasted *at most* so long (the age of an order that is sent again, a
/// deadline) is measured with the clock that shows more.
///
/// # Clone
///
/// Clones read the same sources.
///
/// # Example
///
/// ```
/// use std::time::{Duration, Instant};
/// use steadfast_call::{BootClock, Clocks, WallClock};
///
/// let clocks = Clocks::new(BootClock::system(), WallClock::system());
/// let now = Instant::now(); // a service passes tokio's instant, as `into_std`
/// let began = clocks.at(now);
/// let later = clocks.at(now + Duration::from_secs(2));
/// assert_eq!(began.elapsed_at_least(&later), Duration::from_secs(2));
/// assert!(began.elapsed_at_most(&later) >= Duration::from_secs(2));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    boot: BootClock,
    wall: WallClock,
}

impl Clocks {
    /// Combines these two.
    #[must_use]
    pub fn new(boot: BootClock, wall: WallClock) -> Self {
        Self { boot, wall }
    }

    /// Replaces the wall clock.
    #[must_use]
    pub fn with_wall(mut self, wall: WallClock) -> Self {
        self.wall = wall;
        self
    }

    /// Replaces the boot clock.
    #[must_use]
    pub fn with_boot(mut self, boot: BootClock) -> Self {
        self.boot = boot;
        self
    }

    /// Returns the wall clock.
    #[must_use]
    pub fn wall(&self) -> &WallClock {
        &self.wall
    }

    /// Reads all clocks; `now` is the monotonic reading.
    #[must_use]
    pub fn at(&self, now: Instant) -> Moment {
        Moment { monotonic: now, boot: self.boot.now(), wall: self.wall.now() }
    }
}

/// The readings of all clocks at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    monotonic: Instant,
    boot: Option<Duration>,
    wall: SystemTime,
}

impl Moment {
    /// Returns the monotonic clock's reading.
    #[must_use]
    pub fn monotonic(&self) -> Instant {
        self.monotonic
    }

    /// Returns the wall clock's reading.
    #[must_use]
    pub fn wall(&self) -> SystemTime {
        self.wall
    }

    /// Returns the least time from this moment to `now`: suspension does not count.
    #[must_use]
    pub fn elapsed_at_least(&self, now: &Self) -> Duration {
        now.monotonic.saturating_duration_since(self.monotonic)
    }

    /// Returns the most time from this moment to `now`: suspension counts, as far as there is a boot clock.
    ///
    /// It is never less than [`elapsed_at_least`](Self::elapsed_at_least), and never uses the wall clock, which may be
    /// set.
    #[must_use]
    pub fn elapsed_at_most(&self, now: &Self) -> Duration {
        let least = self.elapsed_at_least(now);
        self.elapsed_by_boot(now).map_or(least, |elapsed| least.max(elapsed))
    }

    /// The same, or the wall clock's time if that is more: after a virtual machine was paused, no other clock shows it. For
    /// the age of an order: a clock set forward makes it older, never younger.
    #[must_use]
    pub fn aged_at_most(&self, now: &Self) -> Duration {
        // A clock that was set back is ignored.
        self.elapsed_at_most(now).max(now.wall.duration_since(self.wall).unwrap_or_default())
    }

    /// Returns the time from this moment to `now` by the boot clock; `None` without one.
    #[must_use]
    pub fn elapsed_by_boot(&self, now: &Self) -> Option<Duration> {
        Some(now.boot?.saturating_sub(self.boot?))
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

    /// Returns two moments with these readings in seconds; `monotonic` is the time between them.
    fn moments(boot: [Option<u64>; 2], wall: [u64; 2], monotonic: u64) -> [Moment; 2] {
        let start = Instant::now();
        [0, 1].map(|n| {
            let boot = BootClock::new(move || boot[n].map(Duration::from_secs));
            let wall = WallClock::new(move || UNIX_EPOCH + Duration::from_secs(wall[n]));
            let passed = Duration::from_secs(if n == 0 { 0 } else { monotonic });
            Clocks::new(boot, wall).at(start + passed)
        })
    }

    #[test]
    fn a_suspended_machine_counts_at_most_and_not_at_least() {
        let [began, now] = moments([Some(50), Some(10_860)], [0, 10_810], 5);
        assert_eq!(began.elapsed_at_least(&now).as_secs(), 5);
        assert_eq!(began.elapsed_at_most(&now).as_secs(), 10_810);
        assert_eq!(began.aged_at_most(&now).as_secs(), 10_810);
    }

    #[test]
    fn a_wall_clock_that_is_set_forward_ages_an_order_and_ends_no_call() {
        let [began, now] = moments([Some(50), Some(55)], [0, 3_600], 5);
        assert_eq!(began.elapsed_at_most(&now).as_secs(), 5);
        assert_eq!(began.aged_at_most(&now).as_secs(), 3_600);
        let [began, now] = moments([Some(50), Some(55)], [3_600, 0], 5);
        assert_eq!(began.aged_at_most(&now).as_secs(), 5, "set back, it says nothing");
    }

    #[test]
    fn without_a_boot_clock_only_an_age_goes_by_the_wall_clock() {
        let [began, now] = moments([None, None], [100, 3_700], 5);
        assert_eq!((began.elapsed_at_most(&now).as_secs(), began.aged_at_most(&now).as_secs()), (5, 3_600));
        let [began, now] = moments([None, None], [3_700, 100], 5);
        assert_eq!(began.aged_at_most(&now).as_secs(), 5, "set back, it says nothing");
    }

    #[test]
    fn paused_time_that_runs_ahead_of_the_boot_clock_is_the_upper_bound() {
        let [began, now] = moments([Some(50), Some(50)], [0, 0], 500);
        assert_eq!(began.elapsed_at_most(&now).as_secs(), 500);
    }

    #[test]
    fn the_system_clock_is_past_the_year_2020() {
        assert!(WallClock::system().now() > UNIX_EPOCH + Duration::from_secs(1_577_836_800));
    }
}
