//! One order of a journal, until an entry says how it ended.

use std::collections::BTreeSet;

use steadfast_call::Outcome;

use crate::{
    numbers::{AttemptNo, TradingDay},
    protocol::event::Event,
    tracker::recovery::RecoveredOrder,
};

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
