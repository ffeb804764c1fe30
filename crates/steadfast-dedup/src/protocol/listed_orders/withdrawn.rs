//! Identifiers of answers that were withdrawn, and that a list may still bear out.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use crate::{
    numbers::{IntentNo, LogicalTime},
    protocol::key::Key,
};

/// Identifiers that were taken from the intents whose answers named them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Withdrawn {
    /// Those that were taken only because no list shows them, by the intent that got them.
    unshown: BTreeMap<IntentNo, Arc<str>>,
    /// Those that were just taken. The next list shows these orders as new; they may have been there before others of
    /// the key.
    recalled: Vec<Recalled>,
}

/// An order that lost its owner, until a list shows what it is.
#[derive(Clone, Debug)]
pub(super) struct Recalled {
    pub(super) order_id: Arc<str>,
    pub(super) key: Key,
    pub(super) first_seen: LogicalTime,
    /// When it was taken back, as a position.
    pub(super) since: LogicalTime,
    /// From when on a list that lacks it counts.
    pub(super) until: Duration,
}

impl Withdrawn {
    /// Returns the identifier that an answer gave to an intent and that is believed again once a list shows it.
    pub(crate) fn unshown(&self, owner: IntentNo) -> Option<&Arc<str>> {
        self.unshown.get(&owner)
    }

    pub(crate) fn has_unshown(&self) -> bool {
        !self.unshown.is_empty()
    }

    /// Ends the wait for recalled orders after a list that started here and should have shown them.
    pub(crate) fn end_recalls(&mut self, started: LogicalTime, started_at: Duration) {
        self.recalled.retain(|recalled| started <= recalled.since || started_at < recalled.until);
    }

    /// True if a send at `sent` may own an order that was taken back and was there before `seen`.
    pub(crate) fn awaits_recalled(&self, key: &Key, sent: LogicalTime, seen: LogicalTime) -> bool {
        let mut its = self.recalled.iter().filter(|recalled| recalled.key == *key);
        its.any(|recalled| sent < recalled.first_seen && recalled.first_seen < seen)
    }

    /// Lets an identifier be believed again once a list shows it.
    pub(super) fn await_unshown(&mut self, owner: IntentNo, order_id: Arc<str>) {
        self.unshown.insert(owner, order_id);
    }

    /// Believes no answer any more that gave an intent an identifier.
    pub(super) fn forget_answer(&mut self, number: IntentNo) {
        self.unshown.remove(&number);
    }

    /// Believes no answer any more that named an order.
    pub(super) fn forget_order(&mut self, order_id: &str) {
        self.unshown.retain(|_, id| **id != *order_id);
    }

    /// Waits for a list to show an order again.
    pub(super) fn recall(&mut self, recalled: Recalled) {
        self.recalled.push(recalled);
    }

    /// Ends that wait: a list shows the order.
    pub(super) fn end_recall(&mut self, order_id: &str) {
        self.recalled.retain(|recalled| &*recalled.order_id != order_id);
    }
}
