//! The orders of which a journal does not say how they ended.

use std::collections::{BTreeMap, BTreeSet};

use steadfast_call::{Outcome, ext};

use crate::{
    journal::{Entry, Record},
    numbers::{AttemptNo, IntentNo, TradingDay},
    protocol::{
        event::Event,
        resolution::{Reason, Unresolved, Verdict},
    },
    tracker::recovery::RecoveredOrder,
};

/// Returns the orders without an end in a journal: in doubt, or unresolved for the last written reason.
///
/// Asks no service. For programs that [read](crate::journal::FileJournal::read) a journal without opening it.
#[must_use]
pub fn unresolved(entries: &[Entry]) -> Vec<RecoveredOrder> {
    let mut open: BTreeMap<(ext::Account, IntentNo), Undecided> = BTreeMap::new();
    // Ended by an answer or a list that may be contradicted later.
    let mut ended: BTreeMap<(ext::Account, IntentNo), Undecided> = BTreeMap::new();
    for Entry { account, record } in entries {
        let of = |intent: IntentNo| (account.clone(), intent);
        match record {
            Record::Begun { attempt, name, order, .. } => {
                let (account, intent, verdict) = (account.clone(), attempt.intent, Verdict::Pending);
                let (name, order) = (name.clone(), order.clone());
                let order = RecoveredOrder { account, intent, name, order, verdict };
                open.extend(ended.remove_entry(&of(intent)));
                let undecided = open.entry(of(intent)).or_insert_with(|| Undecided::new(order.clone()));
                undecided.order = order;
                undecided.begin(attempt.index);
            }
            Record::Closed { attempt, outcome, .. } => {
                let key = of(attempt.intent);
                if open.get_mut(&key).is_some_and(|undecided| undecided.is_over(*attempt, outcome)) {
                    ended.extend(open.remove_entry(&key));
                }
            }
            Record::Found { intent, .. } => ended.extend(open.remove_entry(&of(*intent))),
            Record::Confirmed { intent } => {
                let key = of(*intent);
                if open.get_mut(&key).is_some_and(Undecided::is_confirmed) {
                    ended.extend(open.remove_entry(&key));
                }
            }
            Record::Ruled { intent, .. } => {
                open.remove(&of(*intent));
            }
            Record::Unresolved { intent, reason, candidates } => {
                open.extend(ended.remove_entry(&of(*intent)));
                let reason = Reason::ALL.into_iter().find(|known| known.as_str() == reason);
                if let (Some(undecided), Some(reason)) = (open.get_mut(&of(*intent)), reason) {
                    undecided.order.verdict =
                        Verdict::Unresolved(Unresolved::new(reason, candidates.clone()));
                }
            }
            Record::Seen { .. }
            | Record::Renamed { .. }
            | Record::Heard { .. }
            | Record::NamedUntil { .. }
            | Record::Changed => {}
        }
    }
    open.into_values().map(|undecided| undecided.order).collect()
}

/// An order whose end the journal does not hold, as far as it was read.
pub(super) struct Undecided {
    pub(super) order: RecoveredOrder,
    /// The trading day of its last send.
    pub(super) day: TradingDay,
    /// Sends that may have placed it.
    standing: BTreeSet<usize>,
    /// Sends that the service says it did not execute (401, 429), and that no list has confirmed.
    refused: BTreeSet<usize>,
}

impl Undecided {
    pub(super) fn new(order: RecoveredOrder) -> Self {
        let day = TradingDay::default();
        Self { order, day, standing: BTreeSet::new(), refused: BTreeSet::new() }
    }

    /// Keeps the name that it has.
    pub(super) fn kept_name(&self) -> Option<Event> {
        let RecoveredOrder { intent, name, order, .. } = &self.order;
        let (intent, day, order) = (*intent, self.day, order.clone());
        name.clone().map(|name| Event::NameKept { intent, day, order, name })
    }

    /// Notes a send. It was begun once a list agreed with the refusals before it.
    pub(super) fn begin(&mut self, index: usize) {
        self.refused.clear();
        self.standing.insert(index);
    }

    /// True if this answer ends the order. A refusal says nothing about earlier sends, and one that a list may refute
    /// ends nothing by itself.
    pub(super) fn is_over(&mut self, attempt: AttemptNo, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Accepted { order_id } => order_id.is_some(),
            outcome if outcome.is_not_executed() => {
                let stood = self.standing.remove(&attempt.index);
                if stood && *outcome == Outcome::NotExecuted {
                    self.refused.insert(attempt.index);
                }
                self.standing.is_empty() && self.refused.is_empty()
            }
            _ => false,
        }
    }

    /// Notes that a list agrees with the refusals so far; true if that ends the order.
    pub(super) fn is_confirmed(&mut self) -> bool {
        self.refused.clear();
        self.standing.is_empty()
    }
}
