//! The only source of chance in a simulation.

mod scripts;
mod shrink;
mod site;
mod tape;

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

pub use self::{
    scripts::Scripts,
    shrink::shrink,
    site::Site,
    tape::{Tape, UnreadableTape},
};

/// Makes every choice that a simulation leaves to chance.
///
/// A choice depends only on the seed and on the [`Site`] that asks. So the choices of one client never shift those of
/// another, and a tape without some of its choices still answers the rest as before.
///
/// Choice 0 is the plain one everywhere: no fault, no delay, no order. A tape therefore holds only the other choices,
/// and everything that is not on it is 0.
///
/// # Example
///
/// ```
/// use steadfast_verify::sim::chooser::{Chooser, Site};
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
    fixed: Vec<Fixed>,
    record: Option<Mutex<BTreeMap<Site, u32>>>,
    /// Sites with these names are recorded when they are asked, with their number of choices.
    heard: &'static [&'static str],
    asked: Mutex<Vec<(Site, u32)>>,
}

/// A fixed choice: at every site of this name, or only for this thing.
pub type Fixed = (&'static str, Option<u64>, u32);

#[derive(Debug)]
enum Source {
    Rng(u64),
    Tape(Tape),
}

impl Chooser {
    /// Creates a chooser that draws from `seed`.
    #[must_use]
    pub const fn rng(seed: u64) -> Self {
        Self::from(Source::Rng(seed))
    }

    /// Creates a chooser that reads `tape`, and answers 0 elsewhere.
    #[must_use]
    pub const fn tape(tape: Tape) -> Self {
        Self::from(Source::Tape(tape))
    }

    const fn from(source: Source) -> Self {
        Self {
            source,
            without: Vec::new(),
            fixed: Vec::new(),
            record: None,
            heard: &[],
            asked: Mutex::new(Vec::new()),
        }
    }

    /// Makes it answer 0 at every site with one of these names.
    #[must_use]
    pub fn without(self, names: &[String]) -> Self {
        Self { without: names.to_vec(), ..self }
    }

    /// Makes it give these answers; of two that fit, the first counts.
    #[must_use]
    pub fn fixing(self, fixed: &[Fixed]) -> Self {
        Self { fixed: fixed.to_vec(), ..self }
    }

    /// Makes it record the asked sites with these names.
    #[must_use]
    pub const fn hearing(mut self, names: &'static [&'static str]) -> Self {
        self.heard = names;
        self
    }

    /// Makes it record its answers from now on.
    #[must_use]
    pub fn recording(self) -> Self {
        Self { record: Some(Mutex::default()), ..self }
    }

    /// Returns one of `n` equally likely choices, from 0.
    pub fn choose(&self, site: Site, n: u32) -> u32 {
        // The high half of the product: evenly distributed to within 2^-32.
        self.answer(site, n, |bits| u32::try_from(((bits >> 32) * u64::from(n)) >> 32).unwrap_or_default())
    }

    /// Returns one of as many choices as there are weights, each with a probability proportional to its weight.
    ///
    /// A tape may hold a choice that no seed would draw.
    pub fn weigh(&self, site: Site, weights: &[u32]) -> u32 {
        let n = u32::try_from(weights.len()).unwrap_or(u32::MAX);
        self.answer(site, n, |bits| {
            let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
            let mut left = ((u128::from(bits) * u128::from(total)) >> 64) as u64;
            let heavier = weights.iter().position(|&weight| {
                let hit = left < u64::from(weight);
                left = left.saturating_sub(u64::from(weight));
                hit
            });
            heavier.map_or(0, |index| u32::try_from(index).unwrap_or_default())
        })
    }

    fn answer(&self, site: Site, n: u32, draw: impl FnOnce(u64) -> u32) -> u32 {
        if self.leaves_out(site) {
            return 0;
        }
        self.hear(site, n);
        let fits = |(what, of, _): &&Fixed| *what == site.what() && of.is_none_or(|of| of == site.thing());
        let choice = match (self.fixed.iter().find(fits), &self.source) {
            (Some((_, _, choice)), _) => (*choice).min(n.saturating_sub(1)),
            (None, Source::Rng(seed)) => draw(site.mixed(*seed)),
            (None, Source::Tape(tape)) => tape.get(site).min(n.saturating_sub(1)),
        };
        self.write_down(site, choice);
        choice
    }

    /// Returns every recorded site, in the order in which they were first asked, with its number of choices.
    fn asked(&self) -> Vec<(Site, u32)> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn hear(&self, site: Site, n: u32) {
        if self.heard.contains(&site.what()) {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            if !asked.iter().any(|(earlier, _)| *earlier == site) {
                asked.push((site, n));
            }
        }
    }

    /// Returns the tape that it reads, if any.
    #[must_use]
    pub const fn on_tape(&self) -> Option<&Tape> {
        match &self.source {
            Source::Rng(_) => None,
            Source::Tape(tape) => Some(tape),
        }
    }

    /// Returns the answers since [`recording`](Self::recording); an empty tape without it.
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
    fn a_tape_answers_its_record_and_the_plain_choice_elsewhere() {
        let chooser = Chooser::rng(3).recording();
        let sites: Vec<Site> = (0..50).map(|of| Site::new("x").of(of)).collect();
        let answers: Vec<u32> = sites.iter().map(|&site| chooser.choose(site, 7)).collect();
        let replay = Chooser::tape(chooser.recorded());
        assert_eq!(sites.iter().map(|&site| replay.choose(site, 7)).collect::<Vec<_>>(), answers);
        assert_eq!(replay.weigh(Site::new("elsewhere"), &[0, 5]), 0);
    }
}
