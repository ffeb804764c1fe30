//! Events that a campaign must have met: a fault that never strikes and a state that is never reached prove nothing.

use crate::sim::{
    axes::{Axes, Axis},
    console::complain,
    orders::{crash::WRITTEN, ours::Medium, outcome::Outcome},
    wire::{FATES, FORMS, Kind, OUTAGE, drawn},
};

/// How often each fault must have struck.
const LEAST: u64 = 100;

/// A fault, outcome or state that a campaign must have met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) name: &'static str,
    pub(crate) times: u64,
    pub(crate) least: u64,
}

impl Item {
    pub(crate) const fn is_met(self) -> bool {
        self.times >= self.least
    }
}

/// Returns every fault, every outcome and every state of the journal; over a pipe, every fate of connections.
pub(crate) fn items(outcome: &Outcome, medium: Medium, axes: Axes) -> Vec<Item> {
    if medium == Medium::Pipe {
        let orphans = axes.has(Axis::Orphans);
        let fates = FATES.into_iter().filter(|name| !name.is_empty() && (orphans || *name != OUTAGE));
        return fates.map(|name| Item { name, times: outcome.faults.of(name), least: LEAST }).collect();
    }
    let kinds = [Kind::Place, Kind::List, Kind::Cancel];
    let faults = kinds.into_iter().flat_map(|kind| drawn(kind, axes)).filter(|fault| axes.admit(fault.axis));
    let faults = faults.chain(&FORMS).map(|fault| fault.name);
    let mut names: Vec<_> = faults.filter(|name| !name.is_empty()).collect();
    names.sort_unstable();
    names.dedup();
    let faults = names.into_iter().map(|name| Item { name, times: outcome.faults.of(name), least: LEAST });
    // No person checks orders in a simulation, so there are no rulings. No order is invalid, so none is rejected.
    // Only a wrong clock gives a day a wrong name, or a name two days.
    let is_drawn = |name: &&str| match *name {
        "journal.ruled" | "journal.closed-rejected" => false,
        "journal.renamed" | "journal.named-until" => axes.has(Axis::WallClock),
        _ => true,
    };
    let written = WRITTEN.into_iter().filter(is_drawn);
    let written = written.map(|name| Item { name, times: outcome.written.of(name), least: 1 });
    let ours = &outcome.ours;
    let told = [
        ("told.placed", ours.placed),
        ("told.rejected", ours.rejected),
        ("told.not-observed", ours.not_observed),
        ("told.unresolved", ours.unresolved),
        ("told.gone", ours.gone),
        ("crash", ours.crashes),
    ];
    let told = told.into_iter().map(|(name, times)| Item { name, times, least: 1 });
    faults.chain(written).chain(told).collect()
}

/// Prints the items on standard error. True if there was enough of each.
pub(crate) fn demand(outcome: &Outcome, medium: Medium, axes: Axes) -> bool {
    let items = items(outcome, medium, axes);
    for item in &items {
        let mark = if item.is_met() { "" } else { "  too few" };
        complain(format_args!("{:<40}{:>12}  of {}{mark}", item.name, item.times, item.least));
    }
    let met = items.iter().filter(|item| item.is_met()).count();
    complain(format_args!("figures: items={} fired={met}", items.len()));
    met == items.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::orders::counts::Counts;

    #[test]
    fn only_events_that_were_too_rare_are_missing() {
        for medium in [Medium::Direct, Medium::Pipe] {
            assert!(items(&Outcome::default(), medium, Axes::ALL).iter().all(|item| !item.is_met()));
            assert!(!demand(&Outcome::default(), medium, Axes::ALL));
        }
        let faults: Counts = [("wire.slow", LEAST), ("list.504", LEAST - 1)].into_iter().collect();
        let written: Counts = [("journal.found", 1)].into_iter().collect();
        let outcome = Outcome { faults, written, ..Outcome::default() };
        let met: Vec<_> = items(&outcome, Medium::Direct, Axes::ALL)
            .into_iter()
            .filter(|item| item.is_met())
            .map(|item| item.name)
            .collect();
        assert_eq!(met, ["wire.slow", "journal.found"]);
    }
}
