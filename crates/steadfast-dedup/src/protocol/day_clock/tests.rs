use proptest::prelude::*;

use super::*;

const HOUR: i64 = 3_600_000;
const NOON: i64 = 10 * DAY + 12 * HOUR;

fn at(wall: i64, carried: i64) -> Reading {
    Reading { wall, carried }
}

fn noon() -> DayClock {
    DayClock::new(at(NOON, 0), false)
}

/// Returns the change by a date that only names the day of this time.
fn names(time: i64) -> Change {
    Change { dated: Some(TradingDay(time.div_euclid(DAY))), ..Change::default() }
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
        let mut day = DayClock::new(at(NOON - DAY, 0), false);
        let change = day.date(at(NOON - DAY + passed, passed), NOON + passed, 80);
        assert_eq!(change.corrected, Some(TradingDay(renamed)));
        assert_eq!(day.day(), TradingDay((NOON + passed).div_euclid(DAY)));
    }
    // Behind by less than the rest of the day.
    let mut day = DayClock::new(at(NOON - HOUR, 0), false);
    assert_eq!(day.date(at(NOON - HOUR, 0), NOON, 80).corrected, None);
}

#[test]
fn a_clock_that_was_wrong_from_the_start_pins_no_day() {
    let mut day = DayClock::new(at(NOON + DAY, 0), false);
    assert_eq!(day.day(), TradingDay(11));
    let change = day.date(at(NOON + DAY, 0), NOON, 80);
    assert_eq!((change.corrected, change.stepped.is_some()), (Some(TradingDay(10)), true));
    day.read(at(NOON + DAY + 12 * HOUR, 12 * HOUR));
    assert_eq!(day.day(), TradingDay(11), "it begins at the service's midnight");
}

#[test]
fn o03_a_clock_wrong_at_the_start_and_set_right_since_pins_no_day() {
    for read_between in [false, true] {
        let mut day = DayClock::new(at(NOON + DAY, 0), false);
        day.at_least(TradingDay(10));
        if read_between {
            day.read(at(NOON + 1_000, 1_000));
        }
        let change = day.date(at(NOON + 2_000, 2_000), NOON + 2_000, 80);
        let right = Some(TradingDay(10));
        assert_eq!(
            (change, day.day()),
            (Change { stepped: None, corrected: right, dated: right }, TradingDay(10))
        );
        day.read(at(NOON + 12 * HOUR, 12 * HOUR));
        assert_eq!(day.day(), TradingDay(11));
    }
}

#[test]
fn o03_a_written_day_goes_on_if_the_date_is_just_before_it() {
    for (before, goes_on) in [(1_000, 11), (SLACK + 1_000, 10)] {
        let midnight = NOON + 12 * HOUR;
        let mut day = DayClock::new(at(midnight + DAY, 0), false);
        day.at_least(TradingDay(11));
        let date = midnight - before;
        day.date(at(date, 0), date, 0);
        assert_eq!(day.day(), TradingDay(goes_on), "{before}");
    }
}

/// Regression: a wrong date in the next process made the names of all orders free.
#[test]
fn o03_a_date_alone_takes_back_no_day_of_the_journal() {
    for wrong in [-1, -400] {
        let mut day = noon();
        day.at_least(TradingDay(10));
        let denied = day.date(at(NOON, 0), NOON + wrong * DAY, 80);
        assert_eq!((denied.corrected, day.day(), day.is_denied()), (None, TradingDay(10), true), "{wrong}");
        assert!(day.is_doubted());
        // The next one is right.
        assert_eq!(day.date(at(NOON + 1_000, 1_000), NOON + 1_000, 80), names(NOON));
        assert_eq!((day.day(), day.is_denied(), day.is_doubted()), (TradingDay(10), false, false));
        day.read(at(NOON + 12 * HOUR, 12 * HOUR));
        assert_eq!(day.day(), TradingDay(11));
    }
    // The machine's clock says the day of the date too, at once or once it is set right.
    for set_right in [false, true] {
        let mut day = DayClock::new(at(if set_right { NOON + DAY } else { NOON }, 0), false);
        day.at_least(TradingDay(11));
        day.date(at(NOON + if set_right { DAY } else { 0 }, 0), NOON, 80);
        assert_eq!((day.day(), day.is_denied()), (TradingDay(if set_right { 11 } else { 10 }), set_right));
        day.date(at(NOON + 1_000, 1_000), NOON + 1_000, 80);
        assert_eq!((day.day(), day.is_denied()), (TradingDay(10), false));
    }
    // Nor is it taken back once an order was sent under it again.
    let mut day = noon();
    day.at_least(TradingDay(10));
    day.date(at(NOON, 0), NOON - DAY, 80);
    day.pin();
    day.date(at(NOON - DAY + 1_000, 1_000), NOON - DAY + 1_000, 80);
    assert_eq!(day.day(), TradingDay(10));
}

#[test]
fn o03_while_orders_are_withheld_a_date_alone_moves_no_day() {
    for wrong in [1, -1, 300, -300] {
        let mut day = DayClock::new(at(NOON, 0), true);
        day.at_least(TradingDay(10));
        let denied = day.date(at(NOON, 0), NOON + wrong * DAY, 80);
        assert_eq!((denied.stepped.is_some(), denied.corrected), (true, None));
        day.read(at(NOON + 1_000, 1_000));
        assert_eq!((day.day(), day.is_denied(), day.is_doubted()), (TradingDay(10), true, true), "{wrong}");
        // The date was wrong.
        let mut set_right = day.clone();
        assert_eq!(day.date(at(NOON + 2_000, 2_000), NOON + 2_000, 80), names(NOON));
        assert_eq!((day.day(), day.is_denied(), day.is_doubted()), (TradingDay(10), false, false));
        // The machine's clock was wrong.
        let now = at(NOON + wrong * DAY + 2_000, 2_000);
        set_right.read(now);
        assert_eq!(set_right.is_denied(), wrong < 0, "only a date takes a day back");
        set_right.date(now, NOON + wrong * DAY + 2_000, 80);
        assert_eq!((set_right.day(), set_right.is_denied()), (TradingDay(10 + wrong), false));
    }
    // All three differ: the day before the dispute goes on.
    let mut day = DayClock::new(at(NOON, 0), true);
    day.at_least(TradingDay(11));
    assert_eq!(day.date(at(NOON, 0), NOON - DAY, 80).corrected, None);
    assert_eq!(day.date(at(NOON + 1_000, 1_000), NOON + 1_000, 80).corrected, Some(TradingDay(10)));
}

#[test]
fn a_date_alone_moves_no_day_once_clocks_have_agreed() {
    let mut day = noon();
    day.date(at(NOON, 0), NOON, 80);
    day.date(at(NOON + 1_000, 1_000), NOON + DAY, 80);
    day.read(at(NOON + 2_000, 2_000));
    assert_eq!(day.day(), TradingDay(10));
}

/// Regression: the first date was of another day, and no later one could take that back.
#[test]
fn o03_a_day_that_only_dates_say_is_taken_back_by_one_with_which_the_wall_clock_agrees() {
    for wrong in [1, -1, 300] {
        let mut day = noon();
        for second in 1..5_i64 {
            let now = at(NOON + 1_000 * second, 1_000 * second);
            day.date(now, NOON + wrong * DAY + 1_000 * second, 80);
            assert_eq!(day.day(), TradingDay(10 + wrong));
        }
        let now = at(NOON + 60_000, 60_000);
        assert_eq!(day.date(now, NOON + 60_000, 80).corrected, Some(TradingDay(10)), "{wrong}");
        assert_eq!((day.day(), day.is_doubted()), (TradingDay(10), false));
        // Now two clocks have said so.
        day.date(at(NOON + 61_000, 61_000), NOON + wrong * DAY + 61_000, 80);
        assert_eq!(day.day(), TradingDay(10));
        day.read(at(NOON + 12 * HOUR, 12 * HOUR));
        assert_eq!(day.day(), TradingDay(11));
    }
}

/// Else its name would be free on the next day, which is the day on which it was sent.
#[test]
fn o03_a_day_under_which_an_order_was_sent_is_not_taken_back() {
    let (wall, began) = (NOON - DAY, at(NOON - DAY, 0));
    let mut day = DayClock::new(began, false);
    day.date(began, NOON, 80);
    assert_eq!(day.day(), TradingDay(10), "the machine's clock is behind");
    day.pin();
    day.date(at(wall + 1_000, 1_000), wall + 1_000, 80);
    assert_eq!(day.day(), TradingDay(10));
}

#[test]
fn o03_a_day_that_another_clock_has_confirmed_is_not_taken_back() {
    // The wall clock was set right, and then wrong again.
    let mut day = DayClock::new(at(NOON - DAY, 0), false);
    day.date(at(NOON - DAY, 0), NOON, 80);
    day.read(at(NOON + 1_000, 1_000));
    day.date(at(NOON - DAY + 2_000, 2_000), NOON - DAY + 2_000, 80);
    assert_eq!(day.day(), TradingDay(10));
    // Midnight has passed since, and its names are free.
    let mut day = noon();
    day.date(at(NOON, 0), NOON + DAY, 80);
    day.read(at(NOON + 12 * HOUR, 12 * HOUR));
    assert_eq!(day.day(), TradingDay(12));
    day.date(at(NOON + 13 * HOUR, 13 * HOUR), NOON + 13 * HOUR, 80);
    assert_eq!(day.day(), TradingDay(12));
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
    let mut day = DayClock::new(at(late, 0), false);
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

/// Regression: a machine that had stood still over midnight went on with yesterday's names, whatever the service said.
#[test]
fn o03_a_date_of_another_day_denies_a_day_of_orders_until_it_is_right() {
    for withholds in [false, true] {
        for off in [DAY, -DAY, 18 * HOUR] {
            let mut day = DayClock::new(at(NOON, 0), withholds);
            day.date(at(NOON, 0), NOON, 80);
            day.pin();
            let change = day.date(at(NOON + HOUR, HOUR), NOON + HOUR + off, 80);
            assert_eq!((day.day(), day.is_denied(), change.corrected), (TradingDay(10), withholds, None));
            // It is told once, and stays while the clocks go on.
            assert_eq!(change.stepped.is_some(), withholds, "{off}");
            let later = NOON + 2 * HOUR + off;
            assert_eq!(day.date(at(NOON + 2 * HOUR, 2 * HOUR), later, 80), names(later));
            assert_eq!(day.is_denied(), withholds);
            day.date(at(NOON + 2 * HOUR, 2 * HOUR), NOON + 2 * HOUR, 80);
            assert!(!day.is_denied() && day.day() == TradingDay(10));
        }
    }
}

#[test]
fn o03_a_wall_clock_that_is_set_right_ends_the_denial() {
    let mut day = DayClock::new(at(NOON, 0), true);
    day.date(at(NOON, 0), NOON, 80);
    day.pin();
    day.date(at(NOON + HOUR, HOUR), NOON + HOUR + DAY, 80);
    assert!(day.is_denied());
    day.read(at(NOON + HOUR + DAY, HOUR));
    assert_eq!((day.is_denied(), day.day()), (false, TradingDay(11)));
}
