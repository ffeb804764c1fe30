use std::time::Duration;

use super::{Algorithm, Window};

/// Counts from zero in each of `[phase + k·T, phase + (k + 1)·T)`.
///
/// The count of one window is forgotten at the start of the next, so 2N may pass around the boundary.
#[derive(Clone, Debug)]
pub(super) struct FixedWindow {
    limit: u64,
    grid: Grid,
    index: u64,
    count: u64,
}

impl FixedWindow {
    pub(super) fn new(window: Window, phase: Duration) -> Self {
        Self { limit: window.requests(), grid: Grid::new(window.nanos(), phase), index: 0, count: 0 }
    }

    fn count_at(&self, now: u64) -> u64 {
        if self.grid.index(now) == self.index { self.count } else { 0 }
    }
}

impl Algorithm for FixedWindow {
    fn admits(&self, now: u64) -> bool {
        self.count_at(now) < self.limit
    }

    fn opens(&self, now: u64) -> Option<u64> {
        self.grid.instant(self.grid.index(now).checked_add(1)?, 0)
    }

    fn charge(&mut self, now: u64) {
        self.count = self.count_at(now) + 1;
        self.index = self.grid.index(now);
    }
}

/// The instants at which windows of one length begin, numbered so that instant zero lies in window 0 or 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    period: u64,
    /// How long before instant zero window 0 begins; less than a period.
    lead: u64,
}

impl Grid {
    /// Creates windows of `period` nanoseconds, one of which begins at `phase`.
    pub(super) fn new(period: u64, phase: Duration) -> Self {
        // A remainder is less than the period.
        let phase = (phase.as_nanos() % u128::from(period)) as u64;
        Self { period, lead: if phase == 0 { 0 } else { period - phase } }
    }

    /// Returns the number of the window that holds `now`.
    pub(super) fn index(self, now: u64) -> u64 {
        // A quotient beyond u64 needs a period of one nanosecond, and then the lead is zero.
        ((u128::from(now) + u128::from(self.lead)) / u128::from(self.period)) as u64
    }

    /// Returns how far `now` is into its window.
    pub(super) fn offset(self, now: u64) -> u64 {
        // A remainder is less than the period.
        ((u128::from(now) + u128::from(self.lead)) % u128::from(self.period)) as u64
    }

    /// Returns the instant `offset` into the window with this number, if the clock reaches it.
    pub(super) fn instant(self, index: u64, offset: u64) -> Option<u64> {
        let since_first = u128::from(index) * u128::from(self.period) + u128::from(offset);
        u64::try_from(since_first.saturating_sub(u128::from(self.lead))).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::trace::*, *};
    use crate::enforce::Kind;

    const ALIGNED: Kind = Kind::FixedWindow { phase: Duration::ZERO };

    #[test]
    fn twice_the_limit_passes_around_a_boundary() {
        let mut gateway = per_second(10, ALIGNED);
        assert_eq!(gateway.admitted(&[ms(999); 12]), 10);
        assert_eq!(gateway.admitted(&[ms(1_000); 12]), 10);
        // All twenty lie within one millisecond.
        assert_eq!(gateway.retry_after(ms(1_000)), ms(1_000));
    }

    #[test]
    fn window_ends_just_before_its_boundary() {
        let mut gateway = per_second(1, ALIGNED);
        assert_eq!(gateway.verdicts(&[ns(0), ns(999_999_999), ns(1_000_000_000)]), [true, false, true]);
    }

    #[test]
    fn phase_moves_the_boundary() {
        let mut gateway = per_second(1, Kind::FixedWindow { phase: ms(250) });
        let arrivals = [ms(0), ms(249), ms(250), ms(1_249), ms(1_250)];
        assert_eq!(gateway.verdicts(&arrivals), [true, false, true, false, true]);
    }

    #[test]
    fn phase_counts_modulo_the_period() {
        let mut gateway = per_second(1, Kind::FixedWindow { phase: ms(7_250) });
        assert_eq!(gateway.verdicts(&[ms(0), ms(249), ms(250)]), [true, false, true]);
    }

    #[test]
    fn grid_holds_to_the_end_of_the_clock() {
        let narrow = Grid::new(1, ns(0));
        assert_eq!(narrow.index(u64::MAX), u64::MAX);
        assert_eq!(narrow.instant(u64::MAX, 0), Some(u64::MAX));
        let wide = Grid::new(u64::MAX, ns(1));
        assert_eq!((wide.index(0), wide.index(1), wide.index(u64::MAX)), (0, 1, 1));
        assert_eq!((wide.offset(0), wide.offset(1)), (u64::MAX - 1, 0));
        assert_eq!((wide.instant(1, 0), wide.instant(1, 5), wide.instant(2, 0)), (Some(1), Some(6), None));
    }
}
