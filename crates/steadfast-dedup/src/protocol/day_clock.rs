//! Finds out the trading day from clocks that may be set.
//!
//! A wall clock that is stepped back over midnight must not end a day twice, and one that is stepped forward by
//! mistake must not end it at all. So there are three clocks: the wall clock; the time that was last believed,
//! carried on by a clock that cannot be set; and the service's own, by the `Date` of its answers. The day follows two
//! of them that agree.

use std::time::Duration;

use crate::numbers::TradingDay;

/// How far two clocks may differ and still agree. That near midnight, either day may be meant.
const SLACK: i64 = 10 * 60 * 1_000;

/// An answer that took longer says too little about the service's clock.
const LONGEST_ANSWER: i64 = 60 * 1_000;

const DAY: i64 = 86_400 * 1_000;

/// The clocks at one time, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// The wall clock, in local time since 1970.
    pub(crate) wall: i64,
    /// The time since the start, on the clock that cannot be set.
    pub(crate) carried: i64,
}

/// The rule for the day: readings and dates in, the day out.
#[derive(Clone, Debug)]
pub(crate) struct DayClock {
    day: TradingDay,
    /// The time that was last believed, less the reading of the clock that cannot be set. `anchor`, `dated` and `reported`
    /// are such differences, too.
    believed: i64,
    /// The last confirmed time, or that of the start. The wall clock is followed while it is within `SLACK` of it.
    anchor: i64,
    /// The service's time, by its last date.
    dated: Option<i64>,
    /// Whether the service has confirmed the time.
    confirmed: bool,
    /// The day, if it rests on dates alone: the wall clock shows another one, and no order was sent under this one yet.
    dates_alone: Option<TradingDay>,
    /// Where the wall clock was when its step was last reported.
    reported: Option<i64>,
    /// The day in the journal of an earlier process; 0 if there is none.
    journal_day: TradingDay,
    /// Whether the service's date shows another day. The day stays as the wall clock or the journal has it.
    denied: bool,
    /// Whether no order leaves while the day is denied. If so, a date alone never moves the day.
    withholds: bool,
    /// Whether the last date names another day than that of orders which were sent. No date takes that day back.
    contradicted: bool,
}

/// The changes by a reading or a date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// The wall clock was set, by so many milliseconds.
    pub(crate) stepped: Option<i64>,
    /// It has been this day all the time: the one that was taken at first was wrong.
    pub(crate) corrected: Option<TradingDay>,
    /// A date names this day, and midnight is not near by it.
    pub(crate) dated: Option<TradingDay>,
}

impl DayClock {
    /// Starts with the wall clock's day; there is no other source yet.
    ///
    /// `withholds` says whether orders are withheld while clocks disagree about the day.
    pub(crate) fn new(now: Reading, withholds: bool) -> Self {
        let believed = now.wall - now.carried;
        let day = TradingDay(now.wall.div_euclid(DAY));
        let journal_day = TradingDay::default();
        let (dated, reported, dates_alone) = (None, None, None);
        let (confirmed, denied, contradicted) = (false, false, false);
        Self {
            day,
            believed,
            anchor: believed,
            dated,
            confirmed,
            dates_alone,
            reported,
            journal_day,
            denied,
            withholds,
            contradicted,
        }
    }

    pub(crate) fn day(&self) -> TradingDay {
        self.day
    }

    /// Returns the latest day that it may be. As long as no date has come, a wall clock that is ahead may be right.
    pub(crate) fn latest(&self, now: Reading) -> TradingDay {
        match self.dated {
            Some(_) => self.day,
            None => self.day.max(TradingDay(now.wall.div_euclid(DAY))),
        }
    }

    /// Sets a lower bound for the day: an earlier process has written it down.
    pub(crate) fn at_least(&mut self, day: TradingDay) {
        self.journal_day = day;
        self.day = self.day.max(day);
    }

    /// Takes in a reading.
    pub(crate) fn read(&mut self, now: Reading) -> Change {
        let wall = now.wall - now.carried;
        let mut change = Change::default();
        let by_date = self.dated.is_some_and(|dated| agree(dated, wall));
        if agree(wall, self.anchor) || by_date {
            self.believed = wall;
            (self.reported, self.dates_alone) = (None, None);
            if by_date {
                self.anchor = wall;
            }
        } else if self.reported.is_none_or(|reported| !agree(reported, wall)) {
            self.reported = Some(wall);
            change.stepped = Some(wall - self.believed);
        }
        let today = TradingDay((self.time(wall) + now.carried).div_euclid(DAY));
        self.day = self.day.max(today);
        // The wall clock is right, and has reached the day. While the day is ahead of it, `denied` stays: the next date takes
        // the day back.
        if by_date && !self.is_ahead_of_clock(now) {
            self.denied = false;
        }
        self.contradicted = self.withholds && self.is_another_by_date(now);
        change
    }

    /// True if the last date names another day, and midnight is not near by it.
    fn is_another_by_date(&self, now: Reading) -> bool {
        self.day_by_date(now).is_some_and(|day| day != self.day)
    }

    /// Returns the day that the last date names; `None` if midnight is near by it.
    fn day_by_date(&self, now: Reading) -> Option<TradingDay> {
        day_of(self.dated? + now.carried)
    }

    /// True if a date is where the last one, carried on, says that it is, and names no other day.
    pub(crate) fn expects(&self, now: Reading, date: i64) -> bool {
        self.dated.is_some_and(|dated| agree(dated + now.carried, date)) && !self.is_another_by_date(now)
    }

    /// Takes in the `Date` of an answer, in local time and to the second, and how long the answer took.
    ///
    /// The service's clock showed it at some instant of that time.
    pub(crate) fn date(&mut self, now: Reading, date: i64, took: i64) -> Change {
        if !(0..=LONGEST_ANSWER).contains(&took) {
            return Change { dated: day_of(date), ..Change::default() };
        }
        // Half a second for the fraction that a date leaves out, and half of `took` for the answer's way.
        let dated = date + 500 + took / 2 - now.carried;
        self.dated = Some(dated);
        Change { dated: self.day_by_date(now), ..self.compare(now, dated) }
    }

    /// Compares a date with the other clocks.
    fn compare(&mut self, now: Reading, dated: i64) -> Change {
        let wall = now.wall - now.carried;
        // The date and the wall clock agree, and the day rests on earlier dates or on the journal alone.
        let is_outvoted = self.is_by_one_alone() && agree(dated, wall);
        if (!self.confirmed || is_outvoted) && !agree(dated, self.believed) {
            return self.begin_anew(now, dated);
        }
        let corrected = (!self.confirmed || is_outvoted).then(|| self.take_back(now, dated)).flatten();
        if agree(dated, wall) {
            (self.anchor, self.confirmed, self.denied) = (wall, true, false);
        } else if agree(dated, self.believed) {
            (self.anchor, self.confirmed) = (self.believed, true);
        }
        let was_contradicted = self.contradicted;
        let change = self.read(now);
        let stepped = (self.contradicted && !was_contradicted).then_some(wall - dated).or(change.stepped);
        Change { stepped, corrected, dated: None }
    }

    /// Takes the day back if it has not begun by the service's clock, and returns the right one.
    ///
    /// Such a day is the journal's: this machine's clock was ahead when an earlier process wrote it.
    fn take_back(&mut self, now: Reading, dated: i64) -> Option<TradingDay> {
        let latest = TradingDay((dated + SLACK + now.carried).div_euclid(DAY));
        if self.day <= latest {
            return None;
        }
        self.day = latest;
        Some(latest)
    }

    /// True if the day rests on dates alone, or dates deny it. A date with which the wall clock agrees may take it back.
    fn is_by_one_alone(&self) -> bool {
        self.dates_alone == Some(self.day) || self.denied
    }

    /// True if the service's date denies the day, and the wall clock, the journal or orders that were sent do not.
    pub(crate) fn is_denied(&self) -> bool {
        self.denied || self.contradicted
    }

    /// Notes that an order is sent under the day: no later date takes it back.
    pub(crate) fn pin(&mut self) {
        (self.dates_alone, self.denied) = (None, false);
    }

    /// Corrects the believed time after a date that contradicts it. Only one clock supports that time:
    ///
    /// - this machine's, as it was at the start: the first date corrects it;
    /// - the service's: a date corrects it with which the wall clock, set right meanwhile, agrees.
    fn begin_anew(&mut self, now: Reading, dated: i64) -> Change {
        let wall = now.wall - now.carried;
        let right = if agree(dated, wall) { wall } else { dated };
        if self.withholds && right != wall {
            return self.deny(wall, dated);
        }
        let stepped = (right != wall).then(|| wall - dated);
        (self.believed, self.anchor, self.confirmed) = (right, right, true);
        self.reported = stepped.map(|_| wall);
        let day_at = |time: i64| TradingDay((time + now.carried).div_euclid(DAY));
        // The journal's day holds if it may have begun, by the date or by this machine's clock: an earlier process has sent
        // orders under it, and a wrong date must not free their names.
        let latest = day_at(right + SLACK);
        let journal_day = self.journal_day.min(latest.max(day_at(wall + SLACK)));
        self.denied = journal_day > latest;
        let today = day_at(right).max(journal_day);
        // If this machine's clock was behind, the wrong day is the one on which the process began, even if that day is
        // over by now.
        let begun = TradingDay(right.div_euclid(DAY)).max(self.day);
        let corrected = (today.min(begun) != self.day).then_some(today.min(begun));
        self.day = corrected.unwrap_or(self.day);
        self.read(now);
        self.dates_alone = corrected.filter(|_| right != wall);
        Change { stepped, corrected, dated: None }
    }

    /// Keeps the day against a date with which no other clock agrees.
    ///
    /// Nothing leaves meanwhile, so no order is sent under a wrong day. If this date moved the day, the journal's names would
    /// be taken for that day's, and another wrong date could free them.
    fn deny(&mut self, wall: i64, dated: i64) -> Change {
        (self.believed, self.anchor, self.confirmed, self.denied) = (wall, wall, true, true);
        Change { stepped: Some(wall - dated), ..Change::default() }
    }

    /// True if the wall clock says that the day has not begun.
    pub(crate) fn is_ahead_of_clock(&self, now: Reading) -> bool {
        self.day > TradingDay((now.wall + SLACK).div_euclid(DAY))
    }

    /// True while the wall clock differs from the believed time, or the service's date from the day.
    pub(crate) fn is_doubted(&self) -> bool {
        self.reported.is_some() || self.is_denied()
    }

    /// True once the service has confirmed the time.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// Returns how long the day lasts at most: the wall clock and the believed time each say it, and the shorter holds.
    pub(crate) fn left(&self, now: Reading) -> Duration {
        let left = [now.wall, self.believed + now.carried].map(|time| DAY - time.rem_euclid(DAY));
        Duration::from_millis(left.into_iter().min().unwrap_or(DAY).unsigned_abs())
    }

    /// True if midnight is nearer than the slack, by the believed time or by the clock that the day follows.
    pub(crate) fn is_midnight_near(&self, now: Reading) -> bool {
        let times = [self.believed, self.time(now.wall - now.carried)];
        times.into_iter().any(|time| is_near_midnight(time + now.carried))
    }

    /// True if `day` is later than the day after the service's.
    pub(crate) fn is_ahead_of_date(&self, day: TradingDay, now: Reading) -> bool {
        self.dated.is_some_and(|dated| day.0 > (dated + now.carried).div_euclid(DAY) + 1)
    }

    /// Returns the clock that the day follows: one that another agrees with, or the one that is behind.
    fn time(&self, wall: i64) -> i64 {
        let confirmed = self.dated.is_some_and(|dated| agree(dated, self.believed));
        if confirmed || agree(wall, self.believed) { self.believed } else { self.believed.min(wall) }
    }
}

/// Returns the day of a time; `None` if midnight is near.
fn day_of(time: i64) -> Option<TradingDay> {
    (!is_near_midnight(time)).then(|| TradingDay(time.div_euclid(DAY)))
}

/// True if midnight is nearer than the slack.
fn is_near_midnight(time: i64) -> bool {
    !(SLACK..DAY - SLACK).contains(&time.rem_euclid(DAY))
}

/// True if two clocks differ by no more than the slack.
pub(crate) fn agree(one: i64, other: i64) -> bool {
    one.abs_diff(other) <= SLACK.unsigned_abs()
}

#[cfg(test)]
mod tests;
