use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

/// The scenario's random numbers. The same seed gives the same numbers on every machine.
pub(crate) struct Dice(ChaCha8Rng);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Returns a number below `n`; zero if `n` is zero.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        let thrown = self.0.next_u64();
        let bound = n as u64;
        // The highest bits of the product: uniform to within 2^-64.
        ((u128::from(thrown) * u128::from(bound)) >> 64) as usize
    }

    /// Returns a number from `least` to `most`, both included.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below((most - least + 1) as usize) as u64
    }

    /// Returns true in `percent` of 100 throws.
    pub(crate) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}
