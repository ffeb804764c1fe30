//! Schedules the reads of the order list.

use std::time::Duration;

/// Offsets from the moment at which an outcome was lost.
const FIRST: [Duration; 5] = [
    Duration::from_millis(500),
    Duration::from_millis(1_500),
    Duration::from_millis(3_500),
    Duration::from_secs(7),
    Duration::from_secs(15),
];

/// Offsets from the moment at which an order's resolution ended without certainty.
const WATCH: [Duration; 5] = [
    Duration::from_secs(30),
    Duration::from_secs(60),
    Duration::from_secs(120),
    Duration::from_secs(300),
    Duration::from_secs(900),
];

const WATCH_EVERY: Duration = Duration::from_secs(1_800);

/// How long after a read that brought no list it is repeated.
const WATCH_AGAIN: Duration = Duration::from_secs(30);

/// How long after a list that lacks an acknowledged order the second one is read.
pub(crate) const AUDIT_AGAIN: Duration = Duration::from_secs(2);

/// How long after a read that proved nothing about an acknowledged order, such as one of another session, it is
/// repeated.
const AUDIT_EVERY: Duration = Duration::from_secs(30);

/// How long after the lateness bound the list is first read: a read at the bound itself proves nothing.
const AUDIT_AFTER: Duration = Duration::from_secs(1);

/// How long after the lateness bound an acknowledged order that no list shows has been reported.
pub(crate) const ACK_TOLD_WITHIN: Duration = Duration::from_secs(5);

/// How long before the trading day ends the list is read for the last time.
pub(crate) const BEFORE_DAY_END: Duration = Duration::from_secs(60);

/// Returns when an order in doubt since `since` next needs a read, if the last one was at `last`.
pub(crate) fn next_verification(since: Duration, last: Option<Duration>, lateness: Duration) -> Duration {
    let every = Duration::from_secs(if lateness > Duration::from_secs(15) { 15 } else { 5 });
    next(since, last, &FIRST, every)
}

/// Returns when an order watched since `since` next needs a read, if the last was at `last`; `failed`: without a
/// list.
pub(crate) fn next_watch(since: Duration, last: Option<Duration>, failed: bool) -> Duration {
    let next = next(since, last, &WATCH, WATCH_EVERY);
    let again = last.filter(|&last| failed && last >= since);
    again.map_or(next, |last| next.min(last.saturating_add(WATCH_AGAIN)))
}

/// Returns when to read the list for acknowledged orders that no list has shown, if the last read was at `last`.
///
/// `overdue`: that read should have shown some of them; `young`: when the first of the others was acknowledged.
pub(crate) fn next_audit(
    overdue: bool,
    young: Option<Duration>,
    last: Option<Duration>,
    lateness: Duration,
) -> Option<Duration> {
    let again = last.filter(|_| overdue).map(|last| last.saturating_add(AUDIT_EVERY));
    let first = young.map(|young| young.saturating_add(lateness).saturating_add(AUDIT_AFTER));
    again.into_iter().chain(first).min()
}

/// Returns when to read the list for an acknowledged order that it shows in another form, if its own may be listed until
/// `until` and the last read was at `last`.
pub(crate) fn open_audit(until: Duration, last: Option<Duration>) -> Duration {
    let again = last.filter(|&last| last > until).map(|last| last.saturating_add(AUDIT_EVERY));
    again.unwrap_or(until.saturating_add(AUDIT_AFTER))
}

/// Returns when to read the list again for orders that lists of these times lack, if the last read was at `last`.
pub(crate) fn second_audit(
    missed: impl Iterator<Item = Duration>,
    last: Option<Duration>,
) -> Option<Duration> {
    let due = missed.map(|missed| missed.saturating_add(AUDIT_AGAIN));
    // A read at that time that decided nothing is followed by the regular ones.
    due.filter(|&due| last.is_none_or(|last| last < due)).min()
}

/// Returns when a shutdown that began at `since` reads the list again for acknowledged orders, if the last read ended at
/// `now`: soon at first, because lists seldom lag by more than a second, and soon after a read that brought no list.
pub(crate) fn next_last_look(since: Duration, now: Duration, listed: bool) -> Duration {
    let longest = Duration::from_secs(if listed { 5 } else { 2 });
    now.saturating_add(now.saturating_sub(since).clamp(Duration::from_secs(1), longest))
}

/// How long after the lateness bound the list is read for orders whose outcome was told before it, so that one read serves
/// several.
const LATE_LOOK_AFTER: Duration = Duration::from_secs(2);

/// Returns when to read the list for an order that may be late until `late`.
pub(crate) fn late_look(late: Duration) -> Duration {
    late.saturating_add(LATE_LOOK_AFTER)
}

/// Returns when to repeat a read, if that at `last` brought no list.
pub(crate) fn next_try(last: Duration) -> Duration {
    last.saturating_add(WATCH_AGAIN)
}

/// Returns the first instant of the schedule that no read has served yet.
fn next(since: Duration, last: Option<Duration>, first: &[Duration], every: Duration) -> Duration {
    let Some(elapsed) = last.and_then(|last| last.checked_sub(since)) else {
        return since.saturating_add(first.first().copied().unwrap_or(every));
    };
    if let Some(offset) = first.iter().find(|&&offset| offset > elapsed) {
        return since.saturating_add(*offset);
    }
    let end = first.last().copied().unwrap_or_default();
    let periods = (elapsed - end).as_nanos() / every.as_nanos().max(1) + 1;
    since.saturating_add(end).saturating_add(every.saturating_mul(u32::try_from(periods).unwrap_or(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(count: usize, next: impl Fn(Option<Duration>) -> Duration) -> Vec<f64> {
        let mut last = None;
        (0..count)
            .map(|_| {
                let at = next(last);
                last = Some(at);
                at.as_secs_f64() - 100.0
            })
            .collect()
    }

    #[test]
    fn an_order_in_doubt_is_looked_for_at_growing_then_even_intervals() {
        let since = Duration::from_secs(100);
        let reads = offsets(8, |last| next_verification(since, last, Duration::from_secs(15)));
        assert_eq!(reads, [0.5, 1.5, 3.5, 7.0, 15.0, 20.0, 25.0, 30.0]);
        let reads = offsets(7, |last| next_verification(since, last, Duration::from_secs(90)));
        assert_eq!(reads, [0.5, 1.5, 3.5, 7.0, 15.0, 30.0, 45.0]);
    }

    #[test]
    fn the_watch_goes_on_every_half_hour() {
        let reads = offsets(7, |last| next_watch(Duration::from_secs(100), last, false));
        assert_eq!(reads, [30.0, 60.0, 120.0, 300.0, 900.0, 2_700.0, 4_500.0]);
    }

    #[test]
    fn a_look_that_failed_serves_nobody() {
        let next = |last: u64, failed| {
            next_watch(Duration::from_secs(100), Some(Duration::from_secs(last)), failed).as_secs()
        };
        assert_eq!((next(1_000, false), next(1_000, true)), (2_800, 1_030));
        assert_eq!(next(110, true), 130, "the first is due anyway");
        assert_eq!(next(99, true), 130, "it failed before");
        assert_eq!(next(2_790, true), 2_800);
    }

    #[test]
    fn an_order_that_a_list_lacks_is_looked_at_again_once() {
        let at = Duration::from_secs;
        let next = |last| second_audit([at(16), at(20)].into_iter(), last);
        assert_eq!((next(Some(at(16))), next(Some(at(17)))), (Some(at(18)), Some(at(18))));
        assert_eq!((next(Some(at(18))), next(Some(at(21)))), (Some(at(22)), Some(at(22))));
        assert_eq!(next(Some(at(22))), None, "both looks were made");
    }

    #[test]
    fn a_read_by_somebody_else_serves_too() {
        let since = Duration::from_secs(100);
        let after = next_verification(since, Some(Duration::from_millis(103_000)), Duration::from_secs(15));
        assert_eq!(after, Duration::from_millis(103_500));
        let earlier = next_verification(since, Some(Duration::from_secs(99)), Duration::from_secs(15));
        assert_eq!(earlier, Duration::from_millis(100_500));
    }
}
