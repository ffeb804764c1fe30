use crate::Nanos;

/// The first instant from `now` on at which a gateway that interpolates between two windows of `period`, whatever
/// their phase, would find at most `room` requests spent besides those still on their way.
///
/// Such a gateway counts, at `t` and with a window that began at `b`, the requests since `b` in full and those of
/// the window before it by the share of it that a window ending at `t` still covers:
///
/// ```text
///   (1 − (t − b) / T) · #[b − T, b)  +  #[b, t]
/// ```
///
/// The phase is not known, so the greatest count over every `b` in `(t − T, t]` decides. Between two stamps the
/// count grows with `b`, so only the `b` at which a stamp enters or leaves need be looked at: every stamp, and
/// every stamp plus `T`. The count of a fixed `b` only falls with `t`, so the answer is the latest instant that
/// any of them asks for, and one pass over either kind with two pointers finds it.
///
/// `stamps` are in ascending order and hold everything not older than two periods; `from` is the instant that the
/// plain log asks for, which is the case `b = t`.
pub(crate) fn earliest(stamps: &[Nanos], period: Nanos, room: u64, from: Nanos) -> Nanos {
    let mut at = from;
    // A boundary a whole period ago asks for nothing any more.
    let mut seen = from.saturating_sub(period);
    loop {
        let horizon = at;
        at = after_boundaries_at_stamps(stamps, period, room, seen, at);
        at = after_boundaries_a_period_later(stamps, period, room, seen, at);
        if at == horizon {
            return at;
        }
        // The answer is later than thought, so boundaries count that were still to come.
        seen = horizon;
    }
}

/// What the boundaries later than `seen` ask for at which a stamp enters the current window.
fn after_boundaries_at_stamps(
    stamps: &[Nanos],
    period: Nanos,
    room: u64,
    seen: Nanos,
    mut at: Nanos,
) -> Nanos {
    let all = stamps.len();
    let first = stamps.partition_point(|stamp| *stamp <= seen);
    let mut gone = stamps.get(first).map_or(0, |b| stamps.partition_point(|stamp| stamp + period < *b));
    for (before, b) in stamps.iter().enumerate().skip(first) {
        if *b > at {
            break;
        }
        while stamps[gone] + period < *b {
            gone += 1;
        }
        at = asked(*b, period, (before - gone) as u64, room.saturating_sub((all - before) as u64), at);
    }
    at
}

/// What the boundaries later than `seen` ask for at which a stamp leaves the window before.
fn after_boundaries_a_period_later(
    stamps: &[Nanos],
    period: Nanos,
    room: u64,
    seen: Nanos,
    mut at: Nanos,
) -> Nanos {
    let all = stamps.len();
    let first = stamps.partition_point(|stamp| stamp + period <= seen);
    let mut before = stamps.get(first).map_or(0, |b| stamps.partition_point(|stamp| *stamp < b + period));
    for (gone, stamp) in stamps.iter().enumerate().skip(first) {
        let b = stamp + period;
        if b > at {
            break;
        }
        while before < all && stamps[before] < b {
            before += 1;
        }
        at = asked(b, period, (before - gone) as u64, room.saturating_sub((all - before) as u64), at);
    }
    at
}

/// The first instant from `at` on at which the boundary `b` allows what `earlier` requests before it leave of
/// `spare` slots. The plain log has made sure that no more than the room are younger than a period.
fn asked(b: Nanos, period: Nanos, earlier: u64, spare: u64, at: Nanos) -> Nanos {
    let covered = (b + period).saturating_sub(at);
    if earlier * covered > spare * period { b + ((earlier - spare) * period).div_ceil(earlier) } else { at }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition, for every integer boundary.
    fn counts_at_most(stamps: &[Nanos], period: Nanos, room: u64, t: Nanos) -> bool {
        (t.saturating_sub(period) + 1..=t).all(|b| {
            let earlier = stamps.iter().filter(|x| **x + period >= b && **x < b).count() as u64;
            let since = stamps.iter().filter(|x| **x >= b).count() as u64;
            earlier * (period - (t - b)) + since * period <= room * period
        })
    }

    /// The same for the plain log.
    fn plain(stamps: &[Nanos], period: Nanos, room: u64, now: Nanos) -> Nanos {
        let kth = stamps.len().checked_sub(room as usize + 1).map_or(0, |i| stamps[i] + period);
        kth.max(now)
    }

    #[test]
    fn ten_at_once_keep_the_eleventh_away_for_longer_than_a_window() {
        // With all of the quota spent at 1000, an interpolating gateway whose window ended just after has all ten
        // in the earlier window: the eleventh fits when a tenth of that window has slid out.
        assert_eq!(earliest(&[1_000; 10], 1_000, 9, plain(&[1_000; 10], 1_000, 9, 1_000)), 2_100);
        assert_eq!(earliest(&[1_000; 9], 1_000, 9, 1_000), 1_000, "nine leave room for one in every phase");
    }

    proptest! {
        #[test]
        fn the_answer_is_the_first_instant_that_the_definition_allows(
            mut stamps in prop::collection::vec(200_u64..400, 0..14),
            room in 0_u64..8,
            period in 20_u64..100,
            now in 400_u64..450,
        ) {
            stamps.sort_unstable();
            stamps.retain(|x| x + 2 * period > now);
            let from = plain(&stamps, period, room, now);
            let found = earliest(&stamps, period, room, from);
            let expected = (now..).find(|t| counts_at_most(&stamps, period, room, *t)).unwrap();
            prop_assert_eq!(found, expected);
        }
    }
}
