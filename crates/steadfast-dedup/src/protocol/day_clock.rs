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
    /// The time that was last believed, as the distance to the carrying clock; so are the others.
    believed: i64,
    /// The wall clock is followed within `SLACK` of this: the last confirmed time, or the start.
    anchor: i64,
    dated: Option<i64>,
    /// Whether the service has confirmed the time.
    confirmed: bool,
    /// Where the wall clock was when its step was last reported.
    reported: Option<i64>,
    /// The day in the journal of an earlier process; 0 if there is none.
    journal_day: TradingDay,
}

/// The changes by a reading or a date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// The wall clock was set, by so many milliseconds.
    pub(crate) stepped: Option<i64>,
    /// The current day is this one: its first name was wrong from the start.
    pub(crate) corrected: Option<TradingDay>,
}

impl DayClock {
    /// Starts with the wall clock's day; there is no other source yet.
    pub(crate) fn new(now: Reading) -> Self {
        let believed = now.wall - now.carried;
        let day = TradingDay(now.wall.div_euclid(DAY));
        let journal_day = TradingDay::default();
        Self { day, believed, anchor: believed, dated: None, confirmed: false, reported: None, journal_day }
    }

    pub(crate) fn day(&self) -> TradingDay {
        self.day
    }

    /// Returns the latest day that it may be: a wall clock that is ahead may be right, unless the service's clock says
    /// otherwise.
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
            self.reported = None;
            if by_date {
                self.anchor = wall;
            }
        } else if self.reported.is_none_or(|reported| !agree(reported, wall)) {
            self.reported = Some(wall);
            change.stepped = Some(wall - self.believed);
        }
        let today = TradingDay((self.time(wall) + now.carried).div_euclid(DAY));
        self.day = self.day.max(today);
        change
    }

    /// Takes in the `Date` of an answer, in local time and to the second, and how long the answer took.
    ///
    /// The service's clock showed it at some instant of that time.
    pub(crate) fn date(&mut self, now: Reading, date: i64, took: i64) -> Change {
        if !(0..=LONGEST_ANSWER).contains(&took) {
            return Change::default();
        }
        // Half a second for the fraction that a date leaves out, and half of the way.
        let dated = date + 500 + took / 2 - now.carried;
        self.dated = Some(dated);
        let wall = now.wall - now.carried;
        if !self.confirmed && !agree(dated, self.believed) {
            return self.begin_anew(now, dated);
        }
        let corrected = (!self.confirmed).then(|| self.take_back(now, dated)).flatten();
        if agree(dated, wall) {
            (self.anchor, self.confirmed) = (wall, true);
        } else if agree(dated, self.believed) {
            (self.anchor, self.confirmed) = (self.believed, true);
        }
        Change { corrected, ..self.read(now) }
    }

    /// Takes back a day of the journal that has not begun by the service's clock, and returns the right one.
    ///
    /// The machine's clock was ahead while an earlier process wrote it down.
    fn take_back(&mut self, now: Reading, dated: i64) -> Option<TradingDay> {
        let latest = TradingDay((dated + SLACK + now.carried).div_euclid(DAY));
        if self.day <= latest {
            return None;
        }
        self.day = latest;
        Some(latest)
    }

    /// Corrects the believed time, which only this machine's clock at the start supports, by the first date that
    /// contradicts it.
    ///
    /// By now the wall clock may have been set right.
    fn begin_anew(&mut self, now: Reading, dated: i64) -> Change {
        let wall = now.wall - now.carried;
        let right = if agree(dated, wall) { wall } else { dated };
        let stepped = (right != wall).then(|| wall - dated);
        (self.believed, self.anchor, self.confirmed) = (right, right, true);
        self.reported = stepped.map(|_| wall);
        let day_of = |time: i64| TradingDay((time + now.carried).div_euclid(DAY));
        // The day in the journal goes on if it may have begun.
        let today = day_of(right).max(self.journal_day.min(day_of(right + SLACK)));
        // If the clock was behind, the day with the wrong name is the one on which the process began, even if it is
        // over by now.
        let begun = TradingDay(right.div_euclid(DAY)).max(self.day);
        let corrected = (today.min(begun) != self.day).then_some(today.min(begun));
        self.day = corrected.unwrap_or(self.day);
        self.read(now);
        Change { stepped, corrected }
    }

    /// True if the wall clock says that the day has not begun.
    pub(crate) fn is_ahead_of_clock(&self, now: Reading) -> bool {
        self.day > TradingDay((now.wall + SLACK).div_euclid(DAY))
    }

    /// True while the wall clock differs from the believed time.
    pub(crate) fn is_doubted(&self) -> bool {
        self.reported.is_some()
    }

    /// True once the service has confirmed the time.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// Returns how long the day goes on at most, by the clock that gives the least.
    pub(crate) fn left(&self, now: Reading) -> Duration {
        let left = [now.wall, self.believed + now.carried].map(|time| DAY - time.rem_euclid(DAY));
        Duration::from_millis(left.into_iter().min().unwrap_or(DAY).unsigned_abs())
    }

    /// True if, by clocks that agree, it may also be the day before or the day after.
    pub(crate) fn is_midnight_near(&self, now: Reading) -> bool {
        let times = [self.believed, self.time(now.wall - now.carried)];
        times.into_iter().any(|time| {
            let passed = (time + now.carried).rem_euclid(DAY);
            !(SLACK..DAY - SLACK).contains(&passed)
        })
    }

    /// True if a day is more than one ahead of the service's clock.
    pub(crate) fn is_ahead_of_date(&self, day: TradingDay, now: Reading) -> bool {
        self.dated.is_some_and(|dated| day.0 > (dated + now.carried).div_euclid(DAY) + 1)
    }

    /// Returns the clock that the day follows: one that another agrees with, or the one that is behind.
    fn time(&self, wall: i64) -> i64 {
        let confirmed = self.dated.is_some_and(|dated| agree(dated, self.believed));
        if confirmed || agree(wall, self.believed) { self.believed } else { self.believed.min(wall) }
    }
}

/// True if two clocks differ by no more than the slack.
pub(crate) fn agree(one: i64, other: i64) -> bool {
    one.abs_diff(other) <= SLACK.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: i64 = 3_600_000;
    const NOON: i64 = 10 * DAY + 12 * HOUR;

    fn at(wall: i64, carried: i64) -> Reading {
        Reading { wall, carried }
    }

    fn noon() -> DayClock {
        DayClock::new(at(NOON, 0))
    }

    fn told(change: Change) -> Option<i64> {
        change.stepped.map(|by| by / HOUR)
    }

    #[test]
    fn clocks_that_move_together_end_the_day() {
        let mut day = noon();
        assert_eq!(day.read(at(NOON + 11 * HOUR, 11 * HOUR)), Change::default());
        assert_eq!(day.day(), TradingDay(10));
        day.read(at(NOON + 12 * HOUR, 12 * HOUR));
        assert_eq!(day.day(), TradingDay(11));
    }

    #[test]
    fn a_day_that_has_begun_is_not_ended_by_a_clock_that_is_set_back() {
        let mut day = noon();
        day.read(at(NOON + 12 * HOUR, 12 * HOUR));
        day.read(at(NOON + 12 * HOUR - 4_000, 12 * HOUR));
        assert_eq!(day.day(), TradingDay(11));
        day.read(at(NOON + 36 * HOUR, 36 * HOUR));
        assert_eq!(day.day(), TradingDay(12), "and the next one begins");
    }

    #[test]
    fn a_step_forward_that_nothing_confirms_pins_no_day_and_is_told_once() {
        let mut day = noon();
        assert_eq!(told(day.read(at(NOON + DAY, 0))), Some(24));
        assert_eq!(day.read(at(NOON + DAY + 1_000, 1_000)), Change::default());
        assert_eq!(day.day(), TradingDay(10));
        // Back again, and a night later.
        day.read(at(NOON + 2_000, 2_000));
        day.read(at(NOON + DAY, DAY));
        assert_eq!(day.day(), TradingDay(11));
    }

    #[test]
    fn a_clock_that_stays_ahead_does_not_hold_up_the_next_day() {
        let mut day = noon();
        day.read(at(NOON + DAY, 0));
        day.read(at(NOON + DAY + 12 * HOUR, 12 * HOUR));
        assert_eq!(day.day(), TradingDay(11));
    }

    #[test]
    fn a_clock_that_was_set_ahead_may_be_right_until_a_date_denies_it() {
        let mut day = noon();
        let ahead = at(NOON + DAY, 0);
        day.read(ahead);
        assert_eq!((day.day(), day.latest(ahead)), (TradingDay(10), TradingDay(11)));
        day.date(ahead, NOON, 80);
        assert_eq!((day.day(), day.latest(ahead)), (TradingDay(10), TradingDay(10)));
    }

    #[test]
    fn a_date_of_the_service_confirms_a_step() {
        let mut day = noon();
        day.read(at(NOON + DAY, 0));
        let date = NOON + DAY + 40_000;
        // The day on which it began was not confirmed.
        assert_eq!(day.date(at(NOON + DAY, 0), date, 80).corrected, Some(TradingDay(11)));
        assert_eq!(day.day(), TradingDay(11));
    }

    #[test]
    fn a_date_of_the_service_refutes_a_step() {
        let mut day = noon();
        day.date(at(NOON, 0), NOON, 80);
        day.read(at(NOON + DAY, 0));
        day.date(at(NOON + DAY + 9_000, 9_000), NOON + 9_000, 80);
        assert_eq!(day.day(), TradingDay(10));
        // Behind by a day: the day still turns at the service's midnight.
        day.date(at(NOON - 12 * HOUR, 12 * HOUR), NOON + 12 * HOUR, 80);
        assert_eq!(day.day(), TradingDay(11));
    }

    #[test]
    fn a_clock_that_was_behind_from_the_start_renames_the_day_on_which_the_process_began() {
        for (passed, renamed) in [(HOUR, 10), (13 * HOUR, 10)] {
            let mut day = DayClock::new(at(NOON - DAY, 0));
            let change = day.date(at(NOON - DAY + passed, passed), NOON + passed, 80);
            assert_eq!(change.corrected, Some(TradingDay(renamed)));
            assert_eq!(day.day(), TradingDay((NOON + passed).div_euclid(DAY)));
        }
        // Behind by less than the rest of the day.
        let mut day = DayClock::new(at(NOON - HOUR, 0));
        assert_eq!(day.date(at(NOON - HOUR, 0), NOON, 80).corrected, None);
    }

    #[test]
    fn a_clock_that_was_wrong_from_the_start_pins_no_day() {
        let mut day = DayClock::new(at(NOON + DAY, 0));
        assert_eq!(day.day(), TradingDay(11));
        let change = day.date(at(NOON + DAY, 0), NOON, 80);
        assert_eq!((change.corrected, change.stepped.is_some()), (Some(TradingDay(10)), true));
        day.read(at(NOON + DAY + 12 * HOUR, 12 * HOUR));
        assert_eq!(day.day(), TradingDay(11), "it begins at the service's midnight");
    }

    #[test]
    fn o03_a_clock_wrong_at_the_start_and_set_right_since_pins_no_day() {
        for read_between in [false, true] {
            let mut day = DayClock::new(at(NOON + DAY, 0));
            day.at_least(TradingDay(10));
            if read_between {
                day.read(at(NOON + 1_000, 1_000));
            }
            let change = day.date(at(NOON + 2_000, 2_000), NOON + 2_000, 80);
            assert_eq!(
                (change, day.day()),
                (Change { stepped: None, corrected: Some(TradingDay(10)) }, TradingDay(10))
            );
            day.read(at(NOON + 12 * HOUR, 12 * HOUR));
            assert_eq!(day.day(), TradingDay(11));
        }
    }

    #[test]
    fn o03_a_written_day_goes_on_if_the_date_is_just_before_it() {
        for (before, goes_on) in [(1_000, 11), (SLACK + 1_000, 10)] {
            let midnight = NOON + 12 * HOUR;
            let mut day = DayClock::new(at(midnight + DAY, 0));
            day.at_least(TradingDay(11));
            let date = midnight - before;
            day.date(at(date, 0), date, 0);
            assert_eq!(day.day(), TradingDay(goes_on), "{before}");
        }
    }

    #[test]
    fn a_date_alone_moves_no_day_once_clocks_have_agreed() {
        let mut day = noon();
        day.date(at(NOON, 0), NOON, 80);
        day.date(at(NOON + 1_000, 1_000), NOON + DAY, 80);
        day.read(at(NOON + 2_000, 2_000));
        assert_eq!(day.day(), TradingDay(10));
    }

    #[test]
    fn a_day_of_the_journal_that_has_not_begun_is_taken_back() {
        let mut day = noon();
        day.at_least(TradingDay(11));
        assert!(day.is_ahead_of_clock(at(NOON, 0)));
        assert_eq!(day.date(at(NOON, 0), NOON, 80).corrected, Some(TradingDay(10)));
        assert_eq!(day.day(), TradingDay(10));
        // Midnight is near: the day may have begun where it was written down.
        let late = NOON + 12 * HOUR - 1_000;
        let mut day = DayClock::new(at(late, 0));
        day.at_least(TradingDay(11));
        assert!(!day.is_ahead_of_clock(at(late, 0)));
        assert_eq!(day.date(at(late, 0), late, 80), Change::default());
        assert_eq!(day.day(), TradingDay(11));
    }

    #[test]
    fn an_answer_that_took_long_says_nothing() {
        let mut day = noon();
        day.read(at(NOON + DAY, 0));
        day.date(at(NOON + DAY, 0), NOON + DAY, LONGEST_ANSWER + 1);
        assert_eq!(day.day(), TradingDay(10));
    }

    #[test]
    fn small_steps_do_not_add_up_to_a_day() {
        let mut day = noon();
        for step in 1..=200 {
            day.read(at(NOON + step * (SLACK - 1), 0));
        }
        assert_eq!(day.day(), TradingDay(10));
    }

    #[test]
    fn midnight_is_near_on_both_of_its_sides() {
        let day = noon();
        for (passed, near) in [(11 * HOUR, false), (12 * HOUR - 1, true), (12 * HOUR + SLACK - 1, true)] {
            assert_eq!(day.is_midnight_near(at(NOON + passed, passed)), near, "{passed}");
        }
        assert!(!day.is_midnight_near(at(NOON + 12 * HOUR, 0)), "it is noon by the clock that cannot be set");
        assert_eq!(day.left(at(NOON, 0)), Duration::from_secs(12 * 3_600));
    }

    #[test]
    fn a_journal_more_than_a_day_ahead_is_told_apart() {
        let mut day = noon();
        assert!(!day.is_ahead_of_date(TradingDay(99), at(NOON, 0)), "nobody has said what day it is");
        day.date(at(NOON, 0), NOON, 80);
        assert!(!day.is_ahead_of_date(TradingDay(11), at(NOON, 0)));
        assert!(day.is_ahead_of_date(TradingDay(12), at(NOON, 0)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        /// However the wall clock is set, the day never goes back, and never runs ahead of the clock that cannot be
        /// set.
        #[test]
        fn no_setting_of_the_wall_clock_ends_a_day_twice_or_early(
            steps in proptest::collection::vec((0..8 * HOUR, -3 * DAY..3 * DAY, proptest::bool::ANY), 1..40),
        ) {
            let mut day = noon();
            let (mut carried, mut last) = (0, day.day());
            for (passed, off, honest) in steps {
                carried += passed;
                let off = if honest { 0 } else { off };
                day.read(at(NOON + carried + off, carried));
                prop_assert!(day.day() >= last);
                let latest = TradingDay((NOON + carried + SLACK).div_euclid(DAY));
                prop_assert!(day.day() <= latest);
                // The machine's clock is right again, and so is the day.
                if honest {
                    let earliest = TradingDay((NOON + carried - SLACK).div_euclid(DAY));
                    prop_assert!(day.day() >= earliest);
                }
                last = day.day();
            }
        }
    }
}
