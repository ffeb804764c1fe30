//! The day before, as far as today's lists may still hold its orders.

use std::collections::BTreeSet;

use steadfast_spec::OrderRecord;

use crate::{numbers::IntentNo, protocol::listed_orders::spelling::folded};

/// Our orders of the day before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Yesterday {
    /// Their folded identifiers.
    owned: BTreeSet<Box<str>>,
    /// Orders that were acknowledged, on that day or since, and that no list of that day has shown or contradicted.
    unshown: Vec<IntentNo>,
    /// Folded identifiers that today's answers gave to orders sent before the day began. Today's lists may hold those
    /// orders, or others with the same identifiers.
    overnight: BTreeSet<Box<str>>,
}

impl Yesterday {
    /// Notes an order of ours; `is_unshown`: it was acknowledged, and no list has shown or contradicted it.
    pub(super) fn add(&mut self, order_id: &str, owner: IntentNo, is_unshown: bool) {
        self.owned.insert(folded(order_id).into());
        if is_unshown {
            self.unshown.push(owner);
        }
    }

    /// Returns the orders that were acknowledged, on that day or since, and that no list of that day has shown or contradicted.
    pub(crate) fn unshown(&self) -> impl Iterator<Item = IntentNo> {
        self.unshown.iter().copied()
    }

    /// True if an identifier belonged to one of our orders.
    pub(crate) fn owned(&self, order_id: &str) -> bool {
        self.owned.contains(&*folded(order_id))
    }

    /// Notes its orders of ours in a list that may still be of that day.
    pub(crate) fn list(&mut self, records: &[OrderRecord]) {
        let listed = records.iter().map(|record| folded(&record.order_id));
        let ours = listed.filter(|id| self.owned.contains(&**id)).map(|id| id.into());
        self.overnight.extend(ours);
    }

    /// Notes that an answer of today gave an order to one of its intents.
    pub(crate) fn acknowledge(&mut self, order_id: &str, owner: IntentNo) {
        self.overnight.insert(folded(order_id).into());
        self.unshown.push(owner);
    }

    /// True if an order of today's list may be one of that day.
    pub(super) fn may_be_listed_as(&self, order_id: &str) -> bool {
        self.overnight.contains(&*folded(order_id))
    }
}
