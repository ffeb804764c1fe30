use super::{Algorithm, Window};

/// Counts in `[t, t + T)`, where `t` is the first counted request after the previous such window ended.
///
/// This models a key whose time to live is set by the first increment. The request that opens a window is
/// the earliest in it, so at most 2N − 1 pass within one period: N − 1 at the end of a window, N in the
/// next.
#[derive(Clone, Debug)]
pub(super) struct FirstHit {
    limit: u64,
    period: u64,
    /// Start and count of the last window.
    window: Option<(u64, u64)>,
}

impl FirstHit {
    pub(super) fn new(window: Window) -> Self {
        Self { limit: window.requests(), period: window.nanos(), window: None }
    }

    /// Returns the window that is open at `now`.
    fn open(&self, now: u64) -> Option<(u64, u64)> {
        self.window.filter(|(start, _)| now.saturating_sub(*start) < self.period)
    }
}

impl Algorithm for FirstHit {
    fn admits(&self, now: u64) -> bool {
        self.open(now).is_none_or(|(_, count)| count < self.limit)
    }

    fn opens(&self, now: u64) -> Option<u64> {
        self.open(now).and_then(|(start, _)| start.checked_add(self.period))
    }

    fn charge(&mut self, now: u64) {
        let (start, count) = self.open(now).unwrap_or((now, 0));
        self.window = Some((start, count + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::super::trace::*;
    use crate::enforce::Kind;

    #[test]
    fn window_starts_at_the_first_request() {
        let mut gateway = per_second(2, Kind::FirstHit);
        let arrivals = [ms(700), ms(1_100), ms(1_699), ms(1_700), ms(2_600), ms(2_699), ms(2_700)];
        assert_eq!(gateway.verdicts(&arrivals), [true, true, false, true, true, false, true]);
    }

    #[test]
    fn window_waits_for_a_request_after_the_former_ended() {
        let mut gateway = per_second(1, Kind::FirstHit);
        // A fixed window of phase zero would end at 2,000 and 3,000, not at 2,400 and 3,500.
        let arrivals = [ms(0), ms(1_400), ms(2_300), ms(2_500), ms(3_499), ms(3_500)];
        assert_eq!(gateway.verdicts(&arrivals), [true, true, false, true, false, true]);
    }

    #[test]
    fn all_but_the_opening_request_may_come_late_and_the_next_window_at_once() {
        let mut gateway = per_second(10, Kind::FirstHit);
        assert_eq!(gateway.admitted(&[ms(0)]), 1);
        assert_eq!(gateway.admitted(&[ms(999); 12]), 9);
        assert_eq!(gateway.admitted(&[ms(1_000); 12]), 10);
    }

    #[test]
    fn rejected_request_opens_no_window() {
        let mut gateway = per_second(1, Kind::FirstHit);
        gateway.reject(ms(0));
        assert_eq!(gateway.verdicts(&[ms(500), ms(1_499), ms(1_500)]), [true, false, true]);
    }
}
