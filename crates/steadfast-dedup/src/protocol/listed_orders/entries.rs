//! All orders of the day by their identifiers, in any spelling.

use std::{collections::BTreeMap, sync::Arc};

use steadfast_spec::OrderRecord;

use crate::{
    numbers::{IntentNo, LogicalTime},
    protocol::listed_orders::{entry::Entry, overflow::EntryNo, spelling::folded},
};

/// How many identifiers are kept in a day. A longer list is no evidence; real accounts place less than half as many
/// orders.
pub(crate) const IDS: usize = 200_000;

/// The orders of the day, by identifier.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries {
    by_id: BTreeMap<Arc<str>, Entry>,
    /// Identifiers that were named to an intent, by their folded spelling; without those that are folded already.
    named: BTreeMap<Box<str>, Arc<str>>,
}

impl Entries {
    pub(super) fn get(&self, order_id: &str) -> Option<&Entry> {
        self.by_id.get(order_id)
    }

    pub(super) fn get_mut(&mut self, order_id: &str) -> Option<&mut Entry> {
        self.by_id.get_mut(order_id)
    }

    /// Returns an order with its identifier as it is kept.
    pub(super) fn get_key_value(&self, order_id: &str) -> Option<(&Arc<str>, &Entry)> {
        self.by_id.get_key_value(order_id)
    }

    /// Returns an order that is known from now on.
    pub(super) fn meet(&mut self, order_id: &Arc<str>, seen: LogicalTime) -> &mut Entry {
        let number = EntryNo(self.by_id.len());
        self.by_id.entry(order_id.clone()).or_insert_with(|| Entry::new(number, seen))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Entry)> {
        self.by_id.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&Arc<str>, &mut Entry)> {
        self.by_id.iter_mut()
    }

    /// True unless these records exceed the number of identifiers up to which a list is evidence.
    pub(super) fn has_room_for(&self, records: &[OrderRecord]) -> bool {
        let known = self.by_id.len();
        known + records.len() <= IDS || {
            let new = |record: &&OrderRecord| !self.by_id.contains_key(record.order_id.as_str());
            known + records.iter().filter(new).count() <= IDS
        }
    }

    pub(super) fn owner(&self, order_id: &str) -> Option<IntentNo> {
        self.get(order_id)?.owner()
    }

    /// Notes that an identifier was named to an intent: lists may spell it otherwise.
    pub(super) fn name(&mut self, order_id: &Arc<str>) {
        let folded = folded(order_id);
        if *folded != **order_id {
            self.named.entry(folded.into()).or_insert_with(|| order_id.clone());
        }
    }

    /// Returns the order that an answer named with another spelling of this identifier.
    pub(super) fn spelled_otherwise(&self, order_id: &str) -> Option<Arc<str>> {
        let folded = folded(order_id);
        let same = self.by_id.get_key_value(&*folded).map(|(known, _)| known);
        same.filter(|known| &***known != order_id).or_else(|| self.named.get(&*folded)).cloned()
    }

    /// True if an order may be one that an intent owns already, under another spelling of its identifier.
    pub(super) fn is_respelled(&self, order_id: &str) -> bool {
        let folded = folded(order_id);
        let is_owned = |id: &str| id != order_id && self.owner(id).is_some();
        is_owned(&folded) || self.named.get(&*folded).is_some_and(|named| is_owned(named))
    }
}
