use std::time::Duration;

use crate::numbers::LogicalTime;

/// The facts about the lists of one session.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionList {
    /// Whether the poller has asked for a list.
    asked: bool,
    /// Whether a complete list was seen.
    has_baseline: bool,
    /// When the latest complete list was asked for.
    complete_at: Option<Duration>,
    /// A list lacked an order that an earlier one had shown.
    not_monotone: bool,
    /// How many orders its lists have shown in total, how many of them the latest list did, and when that was
    /// complete.
    listed: usize,
    held: usize,
    latest: LogicalTime,
}

impl SessionList {
    /// Notes that a list is asked for.
    pub(crate) fn ask(&mut self) {
        self.asked = true;
    }

    /// True if a list was asked for or is known.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked || self.has_baseline
    }

    pub(crate) fn has_baseline(&self) -> bool {
        self.has_baseline
    }

    /// Returns when the latest complete list was asked for, on the clock of ages.
    pub(crate) fn complete_at(&self) -> Option<Duration> {
        self.complete_at
    }

    /// Notes that a list asked for at this time is complete.
    pub(crate) fn complete(&mut self, aging: Duration) {
        self.has_baseline = true;
        self.complete_at = self.complete_at.max(Some(aging));
    }

    /// Takes in that an earlier process has read a complete list; its age counts from now.
    pub(crate) fn restore(&mut self, aging: Duration) {
        (self.asked, self.has_baseline) = (true, true);
        self.complete_at = Some(aging);
    }

    /// True if every list held what earlier ones had shown.
    pub(crate) fn is_monotone(&self) -> bool {
        !self.not_monotone
    }

    /// Notes that a list lacks an order which an earlier one had shown; true if that is news.
    pub(crate) fn lose_order(&mut self) -> bool {
        !std::mem::replace(&mut self.not_monotone, true)
    }

    /// Begins to count the orders of the list that was complete at this position.
    pub(crate) fn begin(&mut self, seen: LogicalTime) {
        if self.latest != seen {
            (self.latest, self.held) = (seen, 0);
        }
    }

    /// Counts an order that is listed for the first time.
    pub(crate) fn count_first(&mut self) {
        self.listed += 1;
    }

    /// Counts an order of the latest list.
    pub(crate) fn count_held(&mut self) {
        self.held += 1;
    }

    /// True if the list that was complete at this position holds every order that the session's lists have shown.
    pub(crate) fn is_whole(&self, seen: LogicalTime) -> bool {
        self.latest == seen && self.held == self.listed
    }
}
