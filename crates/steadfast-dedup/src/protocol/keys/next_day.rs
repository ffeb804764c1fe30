//! Carries the intents of each key over to the next trading day.

use std::collections::BTreeSet;

use steadfast_spec::Decimal;

use crate::{
    numbers::IntentNo,
    protocol::keys::{Finished, KeyIntents, Keys},
};

/// The intents of a day that is over whose orders may be listed on the next one.
#[derive(Debug, Default)]
pub(crate) struct Overnight {
    /// Lost so shortly before midnight that they block their keys until lists show nothing of them.
    pub(crate) blockers: BTreeSet<IntentNo>,
    /// Refused or found absent.
    pub(crate) told: BTreeSet<IntentNo>,
}

impl Keys {
    /// Carries over to the next day: what may be listed today, and orders in flight or in line.
    pub(crate) fn begin_day(
        &mut self,
        may_appear: impl Fn(IntentNo) -> bool,
        may_be_listed: impl Fn(IntentNo) -> bool,
        may_be_late: impl Fn(IntentNo) -> bool,
        qty_of: impl Fn(IntentNo) -> Option<Decimal>,
    ) -> Overnight {
        let mut overnight = Overnight::default();
        for its in self.all.values_mut() {
            let (live, line) = (std::mem::take(&mut its.live), std::mem::take(&mut its.line));
            // An order lost so shortly before midnight may be listed today, whatever its caller was told.
            let mut blockers = std::mem::take(&mut its.blockers);
            blockers.append(&mut its.dead);
            blockers.retain(|&number| may_appear(number));
            overnight.blockers.extend(&blockers);
            let mut refused = std::mem::take(&mut its.refused);
            refused.retain(|&number| may_be_listed(number));
            let absent = its.finished.iter().filter(|&number| may_be_late(number));
            let told: BTreeSet<_> = refused.iter().copied().chain(absent).collect();
            overnight.told.extend(&told);
            let mut finished = Finished::default();
            for &number in blockers.union(&told) {
                if let Some(qty) = qty_of(number) {
                    finished.insert(number, qty);
                }
            }
            let kept = self.unsettled.iter().filter(|(_, attempt)| blockers.contains(&attempt.intent));
            let unsettled = kept.count();
            // Orders in flight may differ from those still to come.
            let (mixed, blocked_since) = (!live.is_empty(), its.blocked_since);
            *its = KeyIntents {
                live,
                line,
                mixed,
                finished,
                refused,
                unsettled,
                blockers,
                blocked_since,
                ..KeyIntents::default()
            };
        }
        // Only the unsettled attempts of blockers still bar others.
        self.unsettled.retain(|(_, attempt)| overnight.blockers.contains(&attempt.intent));
        self.all.retain(|_, its| !its.live.is_empty() || !its.line.is_empty() || !its.finished.is_empty());
        overnight
    }
}
