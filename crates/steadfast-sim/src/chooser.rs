//! The only source of chance in a simulation.

mod shrink;
mod site;
mod tape;

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

pub use self::{
    shrink::shrink,
    site::Site,
    tape::{Tape, UnreadableTape},
};

/// Answers every question that a simulation leaves to chance.
///
/// A choice is a function of the seed and of the [`Site`] that asks, and of nothing else: what one client asks never
/// shifts what another one meets, and a tape from which choices are taken out still answers the rest as before.
///
/// Choice 0 is the plain one everywhere: no fault, no delay, no order. A tape therefore holds the other choices only,
/// and whatever is not on it is 0.
///
/// # Example
///
/// ```
/// use steadfast_sim::chooser::{Chooser, Site};
///
/// let chooser = Chooser::rng(7).recording();
/// let fault = chooser.choose(Site::new("fault").of(3), 10);
/// let replayed = Chooser::tape(chooser.recorded());
/// assert_eq!(replayed.choose(Site::new("fault").of(3), 10), fault);
/// assert_eq!(replayed.choose(Site::new("fault").of(4), 10), 0);
/// ```
#[derive(Debug)]
pub struct Chooser {
    source: Source,
    without: Vec<String>,
    record: Option<Mutex<BTreeMap<Site, u32>>>,
}

#[derive(Debug)]
enum Source {
    Rng(u64),
    Tape(Tape),
}

impl Chooser {
    /// Draws from `seed`.
    #[must_use]
    pub const fn rng(seed: u64) -> Self {
        Self { source: Source::Rng(seed), without: Vec::new(), record: None }
    }

    /// Answers what stands on `tape`, and 0 where nothing does.
    #[must_use]
    pub const fn tape(tape: Tape) -> Self {
        Self { source: Source::Tape(tape), without: Vec::new(), record: None }
    }

    /// Answers 0 at every site of one of these names.
    #[must_use]
    pub fn without(self, names: &[String]) -> Self {
        Self { without: names.to_vec(), ..self }
    }

    /// Writes down what it answers from now on.
    #[must_use]
    pub fn recording(self) -> Self {
        Self { record: Some(Mutex::default()), ..self }
    }

    /// One of `n` equally likely choices, from 0.
    pub fn choose(&self, site: Site, n: u32) -> u32 {
        if self.leaves_out(site) {
            return 0;
        }
        let choice = match &self.source {
            // The high half of the product: evenly spread to within 2^-32 of each other.
            Source::Rng(seed) => ((site.mixed(*seed) >> 32) * u64::from(n)) >> 32,
            Source::Tape(tape) => u64::from(tape.get(site).min(n.saturating_sub(1))),
        };
        let choice = u32::try_from(choice).unwrap_or_default();
        self.write_down(site, choice);
        choice
    }

    /// One of as many choices as there are weights, each as likely as its weight is heavy.
    ///
    /// A tape may hold a choice that its seed would never have drawn.
    pub fn weigh(&self, site: Site, weights: &[u32]) -> u32 {
        if self.leaves_out(site) {
            return 0;
        }
        let last = u32::try_from(weights.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let choice = match &self.source {
            Source::Rng(seed) => {
                let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
                let mut left = ((u128::from(site.mixed(*seed)) * u128::from(total)) >> 64) as u64;
                let heavier = weights.iter().position(|&weight| {
                    let hit = left < u64::from(weight);
                    left = left.saturating_sub(u64::from(weight));
                    hit
                });
                heavier.map_or(0, |index| u32::try_from(index).unwrap_or_default())
            }
            Source::Tape(tape) => tape.get(site).min(last),
        };
        self.write_down(site, choice);
        choice
    }

    /// What was answered since [`recording`](Self::recording); an empty tape without it.
    #[must_use]
    pub fn recorded(&self) -> Tape {
        let Some(record) = &self.record else { return Tape::default() };
        record
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .map(|(&site, &choice)| (site, choice))
            .collect()
    }

    fn leaves_out(&self, site: Site) -> bool {
        !self.without.is_empty() && self.without.iter().any(|name| name == site.what())
    }

    fn write_down(&self, site: Site, choice: u32) {
        if let Some(record) = &self.record
            && choice > 0
        {
            record.lock().unwrap_or_else(PoisonError::into_inner).insert(site, choice);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_depends_on_seed_and_site_and_on_nothing_else() {
        let (one, other) = (Chooser::rng(1), Chooser::rng(1));
        for of in 0..100 {
            other.choose(Site::new("noise").of(of), 9);
        }
        let site = Site::new("fault").of(17).nth(2);
        assert_eq!(one.choose(site, 1_000_000), other.choose(site, 1_000_000));
        assert_ne!(one.choose(site, 1_000_000), Chooser::rng(2).choose(site, 1_000_000));
        assert_ne!(one.choose(site, 1_000_000), one.choose(site.nth(3), 1_000_000));
    }

    #[test]
    fn choices_are_as_likely_as_they_are_heavy() {
        let chooser = Chooser::rng(5);
        let mut counts = [0_u32; 3];
        for of in 0..10_000 {
            counts[chooser.weigh(Site::new("x").of(of), &[700, 0, 300]) as usize] += 1;
        }
        assert!((6_800..7_200).contains(&counts[0]) && counts[1] == 0, "{counts:?}");
        let mean = (0..10_000).map(|of| u64::from(chooser.choose(Site::new("y").of(of), 101))).sum::<u64>();
        assert!((480_000..520_000).contains(&mean), "{mean}");
    }

    #[test]
    fn a_tape_answers_what_was_recorded_and_the_plain_choice_elsewhere() {
        let chooser = Chooser::rng(3).recording();
        let sites: Vec<Site> = (0..50).map(|of| Site::new("x").of(of)).collect();
        let answers: Vec<u32> = sites.iter().map(|&site| chooser.choose(site, 7)).collect();
        let replay = Chooser::tape(chooser.recorded());
        assert_eq!(sites.iter().map(|&site| replay.choose(site, 7)).collect::<Vec<_>>(), answers);
        assert_eq!(replay.weigh(Site::new("elsewhere"), &[0, 5]), 0);
    }
}
