//! The definition of each kind, applied to the whole history each time: slow, but without state.

use super::{Kind, Window};

/// Returns whether one more request at `now` is within the window, after requests counted at the instants
/// `counted` (nanoseconds in ascending order, none after `now`).
pub(super) fn admits(kind: Kind, window: Window, counted: &[u64], now: u64) -> bool {
    let limit = i128::from(window.limit());
    let period = i128::try_from(window.period().as_nanos()).unwrap();
    let counted = counted.iter().copied().map(i128::from).collect::<Vec<_>>();
    let now = i128::from(now);
    let count = |counts: &dyn Fn(i128) -> bool| counted.iter().filter(|at| counts(**at)).count() as i128;
    match kind {
        Kind::FixedWindow { phase } => {
            let index = |at: i128| (at - i128::try_from(phase.as_nanos()).unwrap()).div_euclid(period);
            count(&|at| index(at) == index(now)) < limit
        }
        Kind::WholeSecond => {
            let second = 1_000_000_000;
            let period = (period + second - 1) / second * second;
            count(&|at| at / period == now / period) < limit
        }
        Kind::FirstHit => {
            let mut start = counted.first().copied().unwrap_or(now);
            for at in counted.iter().copied().chain([now]) {
                if at >= start + period {
                    start = at;
                }
            }
            count(&|at| at >= start) < limit
        }
        Kind::SlidingLog => count(&|at| now - period < at) < limit,
        Kind::SlidingCounter { phase } | Kind::CountingRejects { phase } => {
            let phase = i128::try_from(phase.as_nanos()).unwrap();
            let start = now - (now - phase).rem_euclid(period);
            let previous = count(&|at| start - period <= at && at < start);
            let current = count(&|at| start <= at);
            // previous·(start + T − now)/T + current + 1 ≤ N
            previous * (start + period - now) <= (limit - current - 1) * period
        }
        Kind::TokenBucket => conforms(&counted, now, |requests, elapsed| {
            // At most N + elapsed·N/T in any closed interval.
            (requests - limit) * period <= elapsed * limit
        }),
        Kind::LeakyBucket { burst } if (limit * 1_000_000_000) % period == 0 => {
            // No remainder is lost at such a rate, so here too the closed intervals decide.
            let per_second = limit * 1_000_000_000 / period;
            let millis = counted.iter().map(|at| at / 1_000_000).collect::<Vec<_>>();
            conforms(&millis, now / 1_000_000, |requests, elapsed| {
                (requests - 1 - i128::from(burst)) * 1_000 <= elapsed * per_second
            })
        }
        Kind::LeakyBucket { burst } => {
            let rate = limit * 1_000_000_000_000 / period;
            let after = |level: Option<(i128, i128)>, at: i128| match level {
                None => 0,
                Some((last, excess)) => (excess - rate * (at / 1_000_000 - last) / 1_000 + 1_000).max(0),
            };
            let level = counted.iter().fold(None, |level, at| Some((at / 1_000_000, after(level, *at))));
            after(level, now) <= i128::from(burst) * 1_000
        }
    }
}

/// Returns whether every interval that ends with a request at `now` holds no more requests than its length
/// allows.
fn conforms(counted: &[i128], now: i128, allowed: impl Fn(i128, i128) -> bool) -> bool {
    let starts = counted.iter().copied().chain([now]);
    starts.enumerate().all(|(before, start)| allowed((counted.len() + 1 - before) as i128, now - start))
}

/// Returns the most requests of `admitted` that any half-open interval of this length holds.
pub(super) fn most_in_any(length: u64, admitted: &[u64]) -> usize {
    // An interval with the most requests can be moved until it begins with one.
    let held = |start: u64| admitted.iter().filter(|at| (start..start + length).contains(*at)).count();
    admitted.iter().map(|start| held(*start)).max().unwrap_or(0)
}
