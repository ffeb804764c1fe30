//! The clocks, and the trading day that follows from them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use steadfast_call::{BootClock, WallClock};

use crate::{numbers::TradingDay, settings::Settings};

impl Settings {
    /// Sets whether orders are withheld while the machine's clock and the service's `Date` disagree about the trading
    /// day.
    ///
    /// The error is [`OrderWithheld::DayDisputed`](crate::OrderWithheld::DayDisputed); not set by default. A process
    /// that goes on follows the service's day, and its orders are safe. But its journal then belongs to another day
    /// for every program that goes by the machine's clock, and so do the orders of earlier processes in it. Set it for
    /// short runs that are repeated: the day then stays that of the machine's clock and of the journal until the two
    /// agree. Each answer's `Date` is compared, also after orders were sent: a machine may stand still over midnight. Within
    /// ten minutes of midnight a clock that has another day than the one before is no dispute.
    #[must_use]
    pub fn refuse_disputed_day(mut self, refuse: bool) -> Self {
        self.refuse_disputed_day = refuse;
        self
    }

    /// Sets the clock and the UTC offset in seconds for the trading day; the machine's clock at +05:30 by default.
    ///
    /// Days never go back. One ends only when the wall clock has moved as the boot clock has, or when the `Date` of
    /// an answer to an order or to a read of the order list confirms it. A clock that is set by more than ten minutes
    /// is reported ([`OrderEvent::ClockStepped`](crate::OrderEvent::ClockStepped)) and otherwise ignored until then.
    /// Within ten minutes of midnight a lost order is not sent again; for ten minutes after midnight the names of the
    /// day before still stand for the orders of that day.
    ///
    /// A new process has only the wall clock. If by that clock alone a name stands for an order of another day, its
    /// call waits until an answer's `Date` says the day, or a list has come without one. At the call's deadline, or
    /// after 30 s if it has none, the call returns as in doubt
    /// ([`Reason::EpochChanged`](crate::Reason::EpochChanged)) with nothing sent. Calling again is safe.
    #[must_use]
    pub fn trading_day(mut self, clock: WallClock, utc_offset: i32) -> Self {
        self.clocks = self.clocks.with_wall(clock);
        self.utc_offset = utc_offset;
        self
    }

    /// Sets the clock that runs on while the machine is suspended; the machine's by default.
    ///
    /// It bounds the age of an order that is sent again and the time until which an order may leave, and it carries
    /// the trading day on when the wall clock is set. Linux and Android have one. Elsewhere those two bounds go by
    /// the wall clock as well, so a clock set forward ages orders; and after a suspension of more than ten minutes
    /// the trading day does not change until an answer's `Date` confirms the wall clock.
    #[must_use]
    pub fn boot_clock(mut self, clock: BootClock) -> Self {
        self.clocks = self.clocks.with_boot(clock);
        self
    }

    /// Returns the trading day that it is now by the wall clock alone.
    ///
    /// A tracker's own day follows more clocks: see [`trading_day`](Self::trading_day).
    #[must_use]
    pub fn today(&self) -> TradingDay {
        self.day_of(self.clocks.wall().now())
    }

    /// Returns the trading day at `time`.
    #[must_use]
    pub fn day_of(&self, time: SystemTime) -> TradingDay {
        TradingDay(self.local_millis(time).div_euclid(86_400_000))
    }

    /// Returns local time since 1970, in milliseconds.
    pub(crate) fn local_millis(&self, time: SystemTime) -> i64 {
        let millis = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX / 4);
        let unix = match time.duration_since(UNIX_EPOCH) {
            Ok(after) => millis(after),
            Err(before) => -millis(before.duration()),
        };
        unix.clamp(-i64::MAX / 4, i64::MAX / 4) + i64::from(self.utc_offset) * 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trading_day_turns_at_local_midnight() {
        let at = |secs: u64| {
            let clock = WallClock::new(move || UNIX_EPOCH + Duration::from_secs(secs));
            Settings::new().trading_day(clock, 19_800).today()
        };
        assert_eq!(at(0), TradingDay(0));
        assert_eq!(at(86_400 - 19_800 - 1), TradingDay(0));
        assert_eq!(at(86_400 - 19_800), TradingDay(1));
    }
}
