use std::time::Duration;

use crate::numbers::{LogicalTime, TradingDay};

/// The protocol's time: its position in its own history, the clock readings that it was given, and the trading day.
///
/// Positions decide what may be concluded; readings only decide how long to wait.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    latest: LogicalTime,
    now: Duration,
    /// For how long the machine has been suspended in total.
    slept: Duration,
    day: TradingDay,
    /// The day that the service's last date named.
    dated: TradingDay,
    /// Whether midnight is so near that the service's clock may be on the other side of it.
    midnight_near: bool,
    /// When the day began, if an earlier day ended in this process.
    day_began: Option<Duration>,
    /// When the trading day ends, by the wall clock's current reading.
    day_ends: Option<Duration>,
}

impl Timeline {
    pub(crate) fn new(day: TradingDay) -> Self {
        Self {
            latest: LogicalTime::default(),
            now: Duration::ZERO,
            slept: Duration::ZERO,
            day,
            dated: day,
            midnight_near: false,
            day_began: None,
            day_ends: None,
        }
    }

    /// Moves on by one position and returns it.
    pub(crate) fn tick(&mut self) -> LogicalTime {
        self.latest.0 += 1;
        self.latest
    }

    pub(crate) fn latest(&self) -> LogicalTime {
        self.latest
    }

    /// Takes in a reading of the clock, which never goes back.
    pub(crate) fn advance(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    pub(crate) fn now(&self) -> Duration {
        self.now
    }

    pub(crate) fn sleep(&mut self, slept: Duration) {
        self.slept = self.slept.max(slept);
    }

    pub(crate) fn slept(&self) -> Duration {
        self.slept
    }

    /// Returns the time that ages are measured on: it includes the time that the machine was suspended.
    pub(crate) fn aging(&self) -> Duration {
        self.now.saturating_add(self.slept)
    }

    pub(crate) fn day(&self) -> TradingDay {
        self.day
    }

    /// Takes in the day that the service's date names.
    pub(crate) fn hear_day(&mut self, day: TradingDay) {
        self.dated = day;
    }

    /// True if the service's last date, of those since the day began, named another day.
    pub(crate) fn is_another_by_date(&self) -> bool {
        self.dated != self.day
    }

    /// Returns the day that the service's last date named, if that is later than the day.
    pub(crate) fn later_by_date(&self) -> Option<TradingDay> {
        Some(self.dated).filter(|&dated| dated > self.day)
    }

    /// Begins a day and returns the one that ended; `None` if it is not a later one. Days never go back: each ends once.
    pub(crate) fn begin_day(&mut self, day: TradingDay) -> Option<TradingDay> {
        if day <= self.day {
            return None;
        }
        self.day_began = Some(self.now);
        self.day_ends = None;
        self.dated = day;
        Some(std::mem::replace(&mut self.day, day))
    }

    /// Renames the current day and returns its wrong name.
    pub(crate) fn rename_day(&mut self, day: TradingDay) -> TradingDay {
        self.dated = day;
        std::mem::replace(&mut self.day, day)
    }

    /// Returns when the day began, if an earlier day ended in this process.
    pub(crate) fn day_began(&self) -> Option<Duration> {
        self.day_began
    }

    /// Returns when the day ends, as far as that is known.
    pub(crate) fn day_ends(&self) -> Option<Duration> {
        self.day_ends
    }

    pub(crate) fn end_day_at(&mut self, at: Duration) {
        self.day_ends = Some(at);
    }

    pub(crate) fn set_midnight_near(&mut self, near: bool) {
        self.midnight_near = near;
    }

    pub(crate) fn is_midnight_near(&self) -> bool {
        self.midnight_near
    }
}
