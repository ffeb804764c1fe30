use std::time::Duration;

/// How much longer than its schedule a delay may be; never shorter.
///
/// It spreads the repeats of requests that failed together. The default is up to 10 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Jitter {
    percent: u8,
}

impl Jitter {
    /// Leaves every delay as it is.
    pub const NONE: Self = Self::percent(0);

    /// Makes delays up to `percent` percent longer.
    #[must_use]
    pub const fn percent(percent: u8) -> Self {
        Self { percent }
    }

    /// Returns the maximum in percent.
    #[must_use]
    pub const fn most(self) -> u8 {
        self.percent
    }

    /// Returns `delay` made longer by the share that `draw` selects: none at 0, just below the maximum at
    /// `u64::MAX`.
    #[must_use]
    pub fn stretch(self, delay: Duration, draw: u64) -> Duration {
        let more = share(delay.as_nanos() * u128::from(self.percent) / 100, draw);
        delay.saturating_add(more)
    }
}

/// Returns the share of `nanos` that `draw` selects from its whole range.
pub(crate) fn share(nanos: u128, draw: u64) -> Duration {
    // The low bits are multiplied separately, to avoid an overflow.
    let draw = u128::from(draw >> 32);
    let part = (nanos >> 32) * draw + (((nanos & u128::from(u32::MAX)) * draw) >> 32);
    u64::try_from(part).map_or(Duration::MAX, Duration::from_nanos)
}

impl Default for Jitter {
    fn default() -> Self {
        Self::percent(10)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_ends_of_the_range() {
        let second = Duration::from_secs(1);
        assert_eq!(Jitter::NONE.stretch(second, u64::MAX), second);
        assert_eq!(Jitter::default().stretch(second, 0), second);
        // A whole-second delay has jitter too; truncation to whole seconds would remove it.
        assert_eq!(Jitter::default().stretch(second, u64::MAX / 2 + 1), Duration::from_millis(1_050));
        assert_eq!(Jitter::default().stretch(second, u64::MAX), Duration::new(1, 99_999_999));
        assert_eq!(Jitter::percent(255).stretch(Duration::MAX, u64::MAX), Duration::MAX);
    }

    proptest! {
        #[test]
        fn a_delay_is_never_shorter_and_never_longer_than_its_share(
            nanos in 0..u64::MAX / 4,
            percent in 0..=100u8,
            draw: u64,
        ) {
            let delay = Duration::from_nanos(nanos);
            let stretched = Jitter::percent(percent).stretch(delay, draw);
            prop_assert!(stretched >= delay);
            prop_assert!(stretched.as_nanos() * 100 <= delay.as_nanos() * (100 + u128::from(percent)));
        }

        #[test]
        fn a_larger_draw_never_gives_a_shorter_delay(nanos in 0..u64::MAX / 4, a: u64, b: u64) {
            let delay = |draw| Jitter::default().stretch(Duration::from_nanos(nanos), draw);
            prop_assert!(delay(a.min(b)) <= delay(a.max(b)));
        }
    }
}
