//! A trading day in the middle of which it is now.
//!
//! Near midnight a lost order is not sent again. A test that waits for a resend must not depend on the hour at which it runs.

use std::time::UNIX_EPOCH;

use steadfast_call::WallClock;
use steadfast_dedup::{OrderTracker, Settings};

const DAY: u64 = 86_400;

/// Shifts the trading day so that it is noon now, by the machine's clock.
pub fn at_noon(settings: Settings) -> Settings {
    let clock = WallClock::system();
    let since_midnight = clock.now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs() % DAY);
    let offset = (DAY / 2).cast_signed() - since_midnight.cast_signed();
    settings.trading_day(clock, i32::try_from(offset).unwrap_or_default())
}

/// Returns a tracker with the default settings on such a day.
pub fn tracker() -> OrderTracker {
    OrderTracker::new(at_noon(Settings::default()))
}
