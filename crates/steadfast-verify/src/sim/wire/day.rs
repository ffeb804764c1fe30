use std::time::Duration;

use crate::sim::{
    chooser::{Chooser, Site},
    wire::fault::{Fault, Kind, catalogue},
};

/// The course of a seed's day beside single faults: some bugs show only if a whole stretch of the day is wrong in one
/// way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Day {
    /// The first order after the pause; 0 for a day without one.
    noon: u64,
    /// How long no order is wanted before noon, so that the morning's orders are old.
    pause: Duration,
    /// The fault of every list that can have it.
    siege: Option<Fault>,
    /// The first list with it.
    siege_from: u64,
}

/// Lists that fail or cannot be read.
const FAILING: [&str; 4] = ["list.504", "list.truncated", "list.500", "list.truncated"];
/// Lists that lack orders.
const HIDING: [&str; 4] = ["list.empty", "list.partial", "list.open-only", "list.empty"];

/// The shortest pause, and how much longer it may be, in milliseconds.
const PAUSE: u32 = 21_000;
const LONGER: u32 = 20_000;

impl Day {
    /// Returns the day of a seed; most are ordinary.
    pub(crate) fn of(chooser: &Chooser) -> Self {
        let choose = |what, n| chooser.choose(Site::new(what), n);
        let siege = |faults: [&str; 4]| {
            let name = faults[choose("day.siege", 4) as usize];
            catalogue(Kind::List).iter().copied().find(|fault| fault.name == name)
        };
        let afternoon = || {
            let pause = Duration::from_millis(u64::from(PAUSE + choose("day.pause", LONGER)));
            Self { noon: 2 + u64::from(choose("day.noon", 8)), pause, ..Self::default() }
        };
        match chooser.weigh(Site::new("day"), &[50, 20, 22, 8]) {
            1 => {
                let siege_from = 1 + u64::from(chooser.weigh(Site::new("day.siege-from"), &[80, 20]));
                Self { siege: siege(FAILING), siege_from, ..Self::default() }
            }
            2 => Self { siege: siege(HIDING), ..afternoon() },
            3 => afternoon(),
            _ => Self::default(),
        }
    }

    /// True if no fault meets this order: without doubt in the morning the client reads no lists before the afternoon.
    pub(super) fn spares(self, order: u64) -> bool {
        order < self.noon
    }

    /// Returns the fault of list number `of` during a siege.
    pub(super) fn siege(self, of: u64) -> Option<Fault> {
        self.siege.filter(|_| of >= self.siege_from)
    }

    /// Returns how much later this order is wanted.
    pub(crate) fn delay(self, order: u64) -> Duration {
        if self.spares(order) { Duration::ZERO } else { self.pause }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_siege_is_drawn_and_an_empty_tape_has_none() {
        for name in FAILING.into_iter().chain(HIDING) {
            let met = |seed| Day::of(&Chooser::rng(seed)).siege(9).is_some_and(|fault| fault.name == name);
            assert!((0..400).any(met), "{name}");
        }
        let day = Day::of(&Chooser::tape(crate::sim::chooser::Tape::default()));
        assert!(day.siege(9).is_none() && !day.spares(0));
        assert_eq!(day.delay(9), Duration::ZERO);
    }

    #[test]
    fn what_comes_after_the_pause_is_not_spared() {
        let days = (0..400).map(|seed| Day::of(&Chooser::rng(seed)));
        for day in days.filter(|day| day.noon > 0) {
            assert!(day.spares(0) && day.delay(0).is_zero());
            assert!(!day.spares(day.noon) && day.delay(day.noon) >= Duration::from_secs(21));
        }
    }
}
