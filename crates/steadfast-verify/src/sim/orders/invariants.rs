//! The invariants of orders in doubt, checked over the histories of a session's trackers.
//!
//! The books show only the results. Only a history shows a rule that was broken without a result, because no order was
//! late just then. Three invariants are left out: the books know excess orders better (I3), callers do cancel (I12),
//! and other traffic is not recorded (I19).

use std::collections::BTreeSet;

use steadfast::dedup::Settings;

use crate::invariants::{ALL, Run};
use crate::sim::{
    orders::{
        ours::Ours,
        session::{Session, Violation},
    },
    wire::{Call, Ended, Seen, intent_name},
};

/// Returns the history of one process, which ends here.
pub(crate) fn history(ours: &Ours, settings: &Settings, in_doubt: usize) -> Run {
    let mut run = Run::new(settings, vec![ours.tracker().trace(None)], in_doubt);
    run.answers = ours.answers();
    run
}

/// Returns the violations in a session's histories. If there was only one process, its history must contain every order
/// that left.
pub(crate) fn violations(mut runs: Vec<Run>, seen: &Seen) -> Vec<Violation> {
    if let [only] = &mut *runs {
        // A send that was dropped on its way might not have left.
        let left = |ended: &Option<_>| matches!(ended, Some((_, ended)) if *ended != Ended::NotSent);
        let left = seen.exchanges.iter().filter(|send| left(&send.ended));
        only.posts = left
            .filter_map(|send| match send.of {
                Call::Order(number) => Some(intent_name(number)),
                _ => None,
            })
            .collect();
    }
    let broken = |run| ALL.iter().filter_map(move |(name, check)| Some((*name, check(run).err()?)));
    runs.iter().flat_map(broken).collect()
}

/// The same, counted.
pub(crate) fn broken(session: &Session) -> Vec<(&'static str, u64)> {
    let names: BTreeSet<_> = session.violations.iter().map(|(name, _)| *name).collect();
    let count = |name| session.violations.iter().filter(|(other, _)| *other == name).count() as u64;
    names.into_iter().map(|name| (name, count(name))).collect()
}
