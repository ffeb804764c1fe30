use std::collections::VecDeque;

use super::{Algorithm, Window};

/// Counts in `(now − T, now]`, so that never more than N pass in any `[t, t + T)`.
///
/// Only the N latest stamps are kept. That loses nothing: there is room if and only if the N-th last one
/// has expired, even if more than N were counted (late accounting, counted rejections).
#[derive(Clone, Debug)]
pub(super) struct SlidingLog {
    limit: usize,
    period: u64,
    stamps: VecDeque<u64>,
}

impl SlidingLog {
    pub(super) fn new(window: Window) -> Self {
        Self { limit: window.limit() as usize, period: window.nanos(), stamps: VecDeque::new() }
    }

    fn expired(&self, stamp: u64, now: u64) -> bool {
        now.saturating_sub(stamp) >= self.period
    }
}

impl Algorithm for SlidingLog {
    fn admits(&self, now: u64) -> bool {
        self.stamps.len() < self.limit || self.stamps.front().is_some_and(|stamp| self.expired(*stamp, now))
    }

    fn opens(&self, _now: u64) -> Option<u64> {
        self.stamps.front().and_then(|stamp| stamp.checked_add(self.period))
    }

    fn charge(&mut self, now: u64) {
        while self.stamps.front().is_some_and(|stamp| self.expired(*stamp, now)) {
            self.stamps.pop_front();
        }
        if self.stamps.len() >= self.limit {
            self.stamps.pop_front();
        }
        self.stamps.push_back(now);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{super::trace::*, *};
    use crate::enforce::Kind;

    #[test]
    fn boundary_that_a_fixed_window_forgets_at_is_none_here() {
        let mut gateway = per_second(10, Kind::SlidingLog);
        assert_eq!(gateway.admitted(&[ms(999); 12]), 10);
        assert_eq!(gateway.admitted(&[ms(1_000); 12]), 0);
        assert_eq!(gateway.admitted(&[ns(1_998_999_999); 12]), 0);
        assert_eq!(gateway.admitted(&[ms(1_999); 12]), 10);
    }

    #[test]
    fn each_stamp_frees_its_own_place() {
        let mut gateway = per_second(2, Kind::SlidingLog);
        let arrivals = [ms(0), ms(300), ms(999), ms(1_000), ms(1_299), ms(1_300), ms(1_301)];
        assert_eq!(gateway.verdicts(&arrivals), [true, true, false, true, false, true, false]);
        assert_eq!(gateway.retry_after(ms(1_301)), ms(699));
    }

    #[test]
    fn log_holds_no_more_stamps_than_the_limit() {
        let mut log = SlidingLog::new(Window::new(3, Duration::from_secs(1)).unwrap());
        for now in 0..1_000 {
            log.charge(now);
            assert!(log.stamps.len() <= 3);
        }
        assert_eq!(log.stamps, [997, 998, 999]);
        assert_eq!(log.opens(999), Some(1_000_000_997));
        log.charge(10_000_000_000);
        assert_eq!(log.stamps, [10_000_000_000], "expired stamps go with the next request");
    }
}
