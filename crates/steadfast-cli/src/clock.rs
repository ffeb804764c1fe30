//! The machine's wall clock, for display.

use std::time::SystemTime;

use steadfast::call::WallClock;

/// Returns the machine's wall clock.
pub(crate) fn wall() -> SystemTime {
    WallClock::system().now()
}

/// Returns seconds since the Unix epoch.
pub(crate) fn seconds(at: SystemTime) -> u64 {
    at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
