use crate::core::time::Nanos;

/// Returns the first instant from `from` on at which every gateway that interpolates between two windows of
/// `period`, in any phase, finds at most `room` requests spent besides those on their way.
///
/// At `t`, with a window that began at `b`, such a gateway counts the requests since `b` in full. Those of the
/// window before it count by the share that a window ending at `t` still covers:
///
/// ```text
///   (1 − (t − b) / T) · #[b − T, b)  +  #[b, t]
/// ```
///
/// The phase is unknown, so the greatest count over all `b` in `(t − T, t]` decides. Between two stamps the count
/// grows with `b`, so only the `b` at which a stamp enters or leaves matter: every stamp, and every stamp plus `T`.
/// For a fixed `b` the count only falls with `t`. So the answer is the latest instant that any of them requires, and
/// one pass with two pointers over each kind finds it.
///
/// `stamps` ascend and include everything within the last two periods. `from` is the instant that the plain log
/// requires, which is the case `b = t`.
///
/// All products are whole nanoseconds. In floating point a request is now and then admitted wrongly, at exactly the
/// instants that decide.
pub(crate) fn earliest(stamps: &[Nanos], period: Nanos, room: u64, from: Nanos) -> Nanos {
    let phases = Phases { stamps, period, room };
    // A boundary a whole period ago requires nothing any more.
    let mut seen = from.saturating_sub(period);
    let mut at = from;
    if stamps.len() > 2 * COARSE {
        // With evenly spread requests, each boundary requires a little more than the one before. A first pass over a
        // few of them comes close to the answer and leaves few divisions to the second.
        at = phases.after_boundaries_at_stamps(seen, at, COARSE);
        at = phases.after_boundaries_a_period_later(seen, at, COARSE);
    }
    loop {
        let horizon = at;
        at = phases.after_boundaries_at_stamps(seen, at, 1);
        at = phases.after_boundaries_a_period_later(seen, at, 1);
        if at == horizon {
            return at;
        }
        // The answer is later than assumed, so more boundaries lie before it.
        seen = horizon;
    }
}

/// The first pass examines one boundary in this many.
const COARSE: usize = 16;

/// Holds the stamps that a gateway of unknown phase may have counted.
#[derive(Clone, Copy)]
struct Phases<'a> {
    stamps: &'a [Nanos],
    period: Nanos,
    room: u64,
}

impl Phases<'_> {
    /// Raises `at` as required by every `stride`th boundary after `seen` at which a stamp enters the current window.
    fn after_boundaries_at_stamps(self, seen: Nanos, mut at: Nanos, stride: usize) -> Nanos {
        let Self { stamps, period, .. } = self;
        let first = stamps.partition_point(|stamp| *stamp <= seen);
        let mut gone = stamps.get(first).map_or(0, |b| stamps.partition_point(|stamp| stamp + period < *b));
        let mut before = first;
        while let Some(b) = stamps.get(before).filter(|b| **b <= at) {
            while stamps.get(gone).is_some_and(|stamp| stamp + period < *b) {
                gone += 1;
            }
            at = self.asked(*b, gone, before, at);
            before += stride;
        }
        at
    }

    /// Raises `at` as required by every `stride`th boundary after `seen` at which a stamp leaves the previous window.
    fn after_boundaries_a_period_later(self, seen: Nanos, mut at: Nanos, stride: usize) -> Nanos {
        let Self { stamps, period, .. } = self;
        let mut gone = stamps.partition_point(|stamp| stamp + period <= seen);
        let mut before =
            stamps.get(gone).map_or(0, |first| stamps.partition_point(|stamp| *stamp < first + period));
        while let Some(b) = stamps.get(gone).map(|stamp| stamp + period).filter(|b| *b <= at) {
            while stamps.get(before).is_some_and(|stamp| *stamp < b) {
                before += 1;
            }
            at = self.asked(b, gone, before, at);
            gone += stride;
        }
        at
    }

    /// Returns the first instant from `at` on at which the boundary `b` has room. The stamps from `gone` to `before`
    /// lie in the window before it, the later ones in its own. The plain log ensures that at most `room` of them are
    /// younger than a period.
    fn asked(self, b: Nanos, gone: usize, before: usize, at: Nanos) -> Nanos {
        let earlier = (before - gone) as u64;
        let spare = self.room.saturating_sub((self.stamps.len() - before) as u64);
        let covered = (b + self.period).saturating_sub(at);
        if earlier * covered > spare * self.period {
            b + ((earlier - spare) * self.period).div_ceil(earlier)
        } else {
            at
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Checks the definition at every integer boundary.
    fn counts_at_most(stamps: &[Nanos], period: Nanos, room: u64, t: Nanos) -> bool {
        (t.saturating_sub(period) + 1..=t).all(|b| {
            let earlier = stamps.iter().filter(|x| **x + period >= b && **x < b).count() as u64;
            let since = stamps.iter().filter(|x| **x >= b).count() as u64;
            earlier * (period - (t - b)) + since * period <= room * period
        })
    }

    /// Returns the instant that the plain log requires.
    fn plain(stamps: &[Nanos], period: Nanos, room: u64, now: Nanos) -> Nanos {
        let kth = stamps.len().checked_sub(room as usize + 1).map_or(0, |i| stamps[i] + period);
        kth.max(now)
    }

    #[test]
    fn ten_at_once_keep_the_eleventh_away_for_longer_than_a_window() {
        // The whole quota is spent at 1000. A gateway whose window ended just after has all ten in the earlier
        // window. The eleventh fits when a tenth of that window has slid out.
        assert_eq!(earliest(&[1_000; 10], 1_000, 9, plain(&[1_000; 10], 1_000, 9, 1_000)), 2_100);
        assert_eq!(earliest(&[1_000; 9], 1_000, 9, 1_000), 1_000, "nine leave room for one in every phase");
    }

    /// Checks the definition at the boundaries that matter, in whole nanoseconds.
    fn is_counted_exactly(stamps: &[Nanos], period: Nanos, room: u64, t: Nanos) -> bool {
        let boundaries = stamps.iter().flat_map(|stamp| [*stamp, stamp + period]).chain([t]);
        boundaries.filter(|b| (t - period + 1..=t).contains(b)).all(|b| {
            let earlier = stamps.iter().filter(|x| **x + period >= b && **x < b).count() as u64;
            let since = stamps.iter().filter(|x| **x >= b).count() as u64;
            earlier * (period - (t - b)) + since * period <= room * period
        })
    }

    /// Does the same in seconds and floating point, the usual first attempt.
    fn is_counted_in_floating_point(stamps: &[Nanos], period: Nanos, room: u64, t: Nanos) -> bool {
        let seconds = |nanos: Nanos| nanos as f64 / 1e9;
        let (at, period) = (seconds(t), seconds(period));
        let stamps: Vec<_> = stamps.iter().map(|stamp| seconds(*stamp)).collect();
        let boundaries = stamps.iter().flat_map(|stamp| [*stamp, stamp + period]).chain([at]);
        boundaries.filter(|b| *b > at - period && *b <= at).all(|b| {
            let earlier = stamps.iter().filter(|x| b - **x <= period && **x < b).count() as f64;
            let since = stamps.iter().filter(|x| **x >= b).count() as f64;
            earlier * (1.0 - (at - b) / period) + since <= room as f64
        })
    }

    #[test]
    fn floating_point_admits_what_a_gateway_refuses_and_whole_nanoseconds_do_not() {
        let period = 1_001_500_000;
        let mut state = 1_u64;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let (mut wrong, mut tried) = (0, 0);
        for _ in 0..20_000 {
            // Seconds since 1970, as most programs keep them.
            let now = 1_700_000_000_000_000_000 + below(1_000_000_000);
            let mut stamps: Vec<_> = (0..12).map(|_| now - below(2 * period)).collect();
            stamps.sort_unstable();
            let opens = earliest(&stamps, period, 9, plain(&stamps, period, 9, now));
            if opens == now {
                continue;
            }
            // A nanosecond before the decisive instant, a gateway of some phase still has no room.
            tried += 1;
            assert!(is_counted_exactly(&stamps, period, 9, opens));
            assert!(!is_counted_exactly(&stamps, period, 9, opens - 1));
            wrong += u32::from(is_counted_in_floating_point(&stamps, period, 9, opens - 1));
        }
        assert!(tried > 1_000, "{tried}");
        assert!(wrong > 0, "of {tried}");
        println!("floating point admits {wrong} of {tried} wrongly");
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
