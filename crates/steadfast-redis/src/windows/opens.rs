use crate::rule::Micros;

/// The stamps that fill one window, ascending, and how full the window may be.
///
/// A request on its way counts as one stamped at `now`. So there is one question for all: when would the next
/// request fit, if all of these were answered now?
#[derive(Clone, Copy, Debug)]
pub(super) struct Filled<'a> {
    pub(super) stamps: &'a [Micros],
    /// How many the next request makes at most, itself included.
    pub(super) most: usize,
    pub(super) period: Micros,
    /// True if the gateway may interpolate between two windows.
    pub(super) interpolates: bool,
}

impl Filled<'_> {
    /// Returns the first instant from `now` on at which the next request fits.
    ///
    /// Whole microseconds: the products stay below 2^53, where the doubles of a script are exact.
    pub(super) fn opens(self, now: Micros) -> Micros {
        let Self { stamps, most, period, interpolates } = self;
        let Some(latest) = stamps.len().checked_sub(most).and_then(|nth| stamps.get(nth)) else { return now };
        let by_log = now.max(latest + period);
        if interpolates { self.interpolated(by_log) } else { by_log }
    }

    /// Raises `at` until no window that began before it leaves too little room.
    ///
    /// The count of a gateway that interpolates is greatest for a window that begins at a stamp, or a period after
    /// one.
    fn interpolated(self, mut at: Micros) -> Micros {
        let Self { stamps, period, .. } = self;
        loop {
            let assumed = at;
            for shift in [0, period] {
                let first = stamps.partition_point(|stamp| stamp + shift <= at - period);
                for begins in stamps[first..].iter().map(|stamp| stamp + shift) {
                    if begins > at - period && begins <= at {
                        at = self.fits_in_window_from(begins, at);
                    }
                }
            }
            if at == assumed {
                return at;
            }
        }
    }

    /// Returns the first instant from `at` on that a gateway allows of which the window begins at `begins`.
    fn fits_in_window_from(self, begins: Micros, at: Micros) -> Micros {
        let Self { stamps, most, period, .. } = self;
        let before = stamps.partition_point(|stamp| *stamp < begins);
        let gone = stamps.partition_point(|stamp| *stamp + period < begins);
        let (earlier, since) = (before - gone, stamps.len() - before);
        // The log leaves at least this much of the window itself.
        let [earlier, spare] = [earlier, (most - 1).saturating_sub(since)].map(|count| count as Micros);
        if earlier * (begins + period - at) <= spare * period {
            return at;
        }
        let excess = (earlier - spare) * period;
        begins + (excess + earlier - 1) / earlier
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Filled<'_> = Filled { stamps: &[], most: 10, period: 1_000, interpolates: true };

    #[test]
    fn ten_at_once_keep_the_eleventh_away_for_longer_than_a_window() {
        let full = Filled { stamps: &[5_000; 10], ..WINDOW };
        assert_eq!(full.opens(5_000), 6_100, "a tenth of the window before has to slide out");
        assert_eq!(Filled { interpolates: false, ..full }.opens(5_000), 6_000);
        assert_eq!(Filled { stamps: &[5_000; 9], ..WINDOW }.opens(5_000), 5_000);
    }
}
