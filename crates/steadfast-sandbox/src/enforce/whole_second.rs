use super::{Algorithm, Window};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Counts from zero in each whole second, minute, … of the gateway's wall clock.
///
/// This models a counter whose key is the wall time in seconds, divided by the period. Unlike
/// [`FixedWindow`](super::fixed_window::FixedWindow) it has no phase of its own and no resolution below the
/// second: a period that is not a whole number of seconds is enforced as the next longer one.
#[derive(Clone, Debug)]
pub(super) struct WholeSecond {
    limit: u64,
    seconds: u64,
    key: u64,
    count: u64,
}

impl WholeSecond {
    pub(super) fn new(window: Window) -> Self {
        let seconds = window.nanos().div_ceil(NANOS_PER_SECOND);
        Self { limit: window.requests(), seconds, key: 0, count: 0 }
    }

    fn key(&self, now: u64) -> u64 {
        now / NANOS_PER_SECOND / self.seconds
    }

    fn count_at(&self, now: u64) -> u64 {
        if self.key(now) == self.key { self.count } else { 0 }
    }
}

impl Algorithm for WholeSecond {
    fn admits(&self, now: u64) -> bool {
        self.count_at(now) < self.limit
    }

    fn opens(&self, now: u64) -> Option<u64> {
        (self.key(now) + 1).checked_mul(self.seconds)?.checked_mul(NANOS_PER_SECOND)
    }

    fn charge(&mut self, now: u64) {
        self.count = self.count_at(now) + 1;
        self.key = self.key(now);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::trace::*;
    use crate::enforce::{Enforcer, GatewayClock, Kind, Window};

    #[test]
    fn second_begins_with_the_wall_clock() {
        let mut gateway = per_second(2, Kind::WholeSecond);
        let arrivals = [ms(1_900), ms(1_950), ms(1_999), ms(2_000), ms(2_999), ms(2_999), ms(3_000)];
        assert_eq!(gateway.verdicts(&arrivals), [true, true, false, true, true, false, true]);
    }

    #[test]
    fn minute_begins_with_the_wall_clock() {
        let window = Window::new(1, Duration::from_secs(60)).unwrap();
        let mut gateway = Enforcer::new(Kind::WholeSecond, window);
        let arrivals = [ms(59_999), ms(60_000), ms(119_999), ms(120_000)];
        assert_eq!(gateway.verdicts(&arrivals), [true, true, false, true]);
    }

    #[test]
    fn run_that_starts_within_a_second_is_aligned_by_its_epoch() {
        let mut gateway =
            per_second(1, Kind::WholeSecond).clock(GatewayClock::new().epoch(ms(1_700_000_000_400)));
        assert_eq!(gateway.verdicts(&[ms(0), ms(599), ms(600)]), [true, false, true]);
        assert_eq!(gateway.retry_after(ms(600)), ms(1_000));
    }

    #[test]
    fn period_below_the_second_is_enforced_as_a_second() {
        let window = Window::new(1, ms(250)).unwrap();
        let mut gateway = Enforcer::new(Kind::WholeSecond, window);
        assert_eq!(gateway.verdicts(&[ms(0), ms(250), ms(999), ms(1_000)]), [true, false, false, true]);
    }
}
