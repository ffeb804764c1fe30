//! The invariants of orders in doubt, over the histories that the ledgers of a session keep of themselves.
//!
//! The books show what came of it. That a rule was broken and nothing came of it, because no order was late just then,
//! only a history shows. What is too many (I3) the books know better, callers do cancel (I12), and no other traffic is
//! kept (I19).

use std::collections::BTreeSet;

use steadfast::dedup::Settings;
use steadfast_testkit::invariants::{ALL, Run};

use crate::{
    orders::{ours::Ours, session::Session},
    wire::{Call, Ended, Seen, intent_name},
};

/// An invariant that a ledger has broken, and what broke it.
pub(crate) type Violation = (&'static str, String);

/// The history of one process, which ends here.
pub(crate) fn history(ours: &Ours, settings: &Settings, in_doubt: usize) -> Run {
    let mut run = Run::new(settings, vec![ours.ledger().trace(None)], in_doubt);
    run.answers = ours.answers();
    run
}

/// What the histories of a session break. Every order that left must stand in that of the only process, if it was one.
pub(crate) fn violations(mut runs: Vec<Run>, seen: &Seen) -> Vec<Violation> {
    if let [only] = &mut *runs {
        // Of one that was dropped on its way nobody knows whether it would have left.
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
