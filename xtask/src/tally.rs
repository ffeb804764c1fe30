use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

/// Counts tests and checks that really ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Tally {
    pub(crate) const SUCCESS: Self = Self { passed: 1, failed: 0 };
    pub(crate) const FAILURE: Self = Self { passed: 0, failed: 1 };

    pub(crate) fn total(self) -> u64 {
        self.passed + self.failed
    }
}

impl Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { passed: self.passed + other.passed, failed: self.failed + other.failed }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        tallies.fold(Self::default(), Add::add)
    }
}

/// Writes the last line of every run; `.ci/run` reads it back, so its words bind.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_has_the_words_that_scripts_read() {
        let sum: Tally = [Tally { passed: 40, failed: 0 }, Tally::SUCCESS, Tally::FAILURE].into_iter().sum();
        assert_eq!(sum.to_string(), "41 passed, 1 failed");
    }
}
