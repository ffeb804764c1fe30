use std::time::Duration;

use super::{Algorithm, Window, fixed_window::Grid};

/// Two counts of fixed windows, the previous one weighted by the part of it that the last `T` still cover.
///
/// At `e` into a window, a request is admitted if `previous·(T − e)/T + current + 1 ≤ N`: including itself,
/// it may reach the limit but not exceed it. All of it in integers. At most 2N − 1 pass within one period,
/// if the previous window's requests came at its end. Public description: Cloudflare's edge.
#[derive(Clone, Debug)]
pub(super) struct SlidingCounter {
    limit: u64,
    period: u64,
    grid: Grid,
    index: u64,
    previous: u64,
    current: u64,
}

impl SlidingCounter {
    pub(super) fn new(window: Window, phase: Duration) -> Self {
        let period = window.nanos();
        Self {
            limit: window.requests(),
            period,
            grid: Grid::new(period, phase),
            index: 0,
            previous: 0,
            current: 0,
        }
    }

    /// Returns the counts of the window before that of `now`, and of that window itself.
    fn counts_at(&self, now: u64) -> (u64, u64) {
        match self.grid.index(now).saturating_sub(self.index) {
            0 => (self.previous, self.current),
            1 => (self.current, 0),
            _ => (0, 0),
        }
    }

    /// Returns how far into a window one more request fits, with `previous` in the window before and
    /// `current` in it.
    fn fits_from(&self, previous: u64, current: u64) -> Option<u64> {
        let room = self.limit.checked_sub(current)?.checked_sub(1)?;
        let Some(covered) = (u128::from(room) * u128::from(self.period)).checked_div(u128::from(previous))
        else {
            return Some(0);
        };
        Some(self.period.saturating_sub(u64::try_from(covered).unwrap_or(u64::MAX)))
    }
}

impl Algorithm for SlidingCounter {
    fn admits(&self, now: u64) -> bool {
        let (previous, current) = self.counts_at(now);
        let covered = u128::from(self.period - self.grid.offset(now));
        let period = u128::from(self.period);
        u128::from(previous) * covered + (u128::from(current) + 1) * period <= u128::from(self.limit) * period
    }

    fn opens(&self, now: u64) -> Option<u64> {
        let index = self.grid.index(now);
        let (previous, current) = self.counts_at(now);
        // If the limit is reached in the window of `now`, it has no room left for this request, and the next
        // one begins with `current` weighing in full.
        let (index, offset) = match self.fits_from(previous, current) {
            Some(offset) => (index, offset),
            None => (index.checked_add(1)?, self.fits_from(current, 0)?),
        };
        self.grid.instant(index, offset)
    }

    fn charge(&mut self, now: u64) {
        let (previous, current) = self.counts_at(now);
        self.index = self.grid.index(now);
        self.previous = previous;
        self.current = current + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Enforcer, Kind, Window, trace::*};

    const PLAIN: Kind = Kind::SlidingCounter { phase: std::time::Duration::ZERO };
    const COUNTING: Kind = Kind::CountingRejects { phase: std::time::Duration::ZERO };

    #[test]
    fn former_window_weighs_less_as_time_goes_by() {
        let mut gateway = per_second(10, PLAIN);
        assert_eq!(gateway.admitted(&[ms(999); 12]), 10);
        assert_eq!(gateway.admitted(&[ms(1_000); 12]), 0);
        // Ten requests of the previous window weigh 10·(1 − e): a slot becomes free every 100 ms.
        let arrivals = [ns(1_099_999_999), ms(1_100), ms(1_199), ms(1_200), ms(1_200)];
        assert_eq!(gateway.verdicts(&arrivals), [false, true, false, true, false]);
        // 10·0.3 + 2 leaves five slots.
        assert_eq!(gateway.admitted(&[ms(1_700); 12]), 5);
    }

    #[test]
    fn request_may_use_the_limit_up_and_not_pass_it() {
        // Cloudflare's own example: 42 in the previous minute, 18 in the first 15 s of this one, make 49.5.
        let window = Window::new(50, ms(60_000)).unwrap();
        let mut gateway = Enforcer::new(PLAIN, window);
        assert_eq!(gateway.admitted(&[ms(59_999); 42]), 42);
        // 42·0.75 is 31.5, to which 18 fit into 50 and 19 do not.
        assert_eq!(gateway.admitted(&[ms(75_000); 30]), 18);
        // 42·(60 − e)/60 must come down to 31, which it does at e = 15 5/7 s.
        assert_eq!(gateway.retry_after(ms(75_000)), ns(714_285_715));
    }

    #[test]
    fn exhausted_window_carries_over_in_full() {
        let mut gateway = per_second(2, PLAIN);
        assert_eq!(gateway.admitted(&[ms(200), ms(200)]), 2);
        assert_eq!(gateway.retry_after(ms(200)), ms(1_300));
        assert_eq!(gateway.verdicts(&[ms(1_000), ns(1_499_999_999), ms(1_500)]), [false, false, true]);
        // With a limit of one, the previous window must have left the last second completely.
        let mut strict = per_second(1, PLAIN);
        assert_eq!(strict.verdicts(&[ms(200), ns(1_999_999_999), ms(2_000)]), [true, false, true]);
    }

    #[test]
    fn phase_moves_the_buckets() {
        let mut gateway = per_second(2, Kind::SlidingCounter { phase: ms(250) });
        assert_eq!(gateway.admitted(&[ms(100), ms(100)]), 2);
        assert_eq!(gateway.verdicts(&[ms(749), ms(750), ms(1_249)]), [false, true, false]);
        assert_eq!(gateway.verdicts(&[ms(1_250)]), [true]);
    }

    #[test]
    fn rejected_requests_count_where_the_gateway_says_so() {
        let arrivals = [ms(0), ms(0), ms(500)];
        let (mut plain, mut counting) = (per_second(2, PLAIN), per_second(2, COUNTING));
        assert_eq!(plain.verdicts(&arrivals), [true, true, false]);
        assert_eq!(counting.verdicts(&arrivals), [true, true, false]);
        // The two of the previous second must weigh one or less, or three.
        assert_eq!(plain.retry_after(ms(500)), ms(1_000));
        assert_eq!(counting.retry_after(ms(500)), ns(1_166_666_667));
    }

    #[test]
    fn counting_gateway_shuts_out_whoever_keeps_knocking() {
        let knocking = (0..10_000).step_by(20).map(ms).collect::<Vec<_>>();
        let mut counting = per_second(10, COUNTING);
        assert_eq!(counting.admitted(&knocking), 10);
        assert!(per_second(10, PLAIN).admitted(&knocking) > 90);
        // It admits again after two windows of silence at the latest.
        assert!(!counting.admits(ms(10_500)));
        assert_eq!(counting.admitted(&[ms(11_000); 12]), 10);
    }

    #[test]
    fn one_strict_window_admits_twice_the_limit_less_one() {
        let mut gateway = per_second(10, PLAIN);
        let window = (999..1_999).flat_map(|at| [ms(at); 10]).collect::<Vec<_>>();
        assert_eq!(gateway.admitted(&window), 19);
    }
}
