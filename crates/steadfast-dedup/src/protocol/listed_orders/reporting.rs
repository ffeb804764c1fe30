//! Marks listed orders as reported, so that each is reported once.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    numbers::{IntentNo, LogicalTime},
    protocol::listed_orders::{ListedOrders, entry::Entry, fresh::Fresh},
};

impl ListedOrders {
    /// Marks orders without an owner as reported candidates. Many orders in doubt may have the same ones.
    pub(crate) fn flag_all(&mut self, order_ids: &BTreeSet<Arc<str>>) {
        let unreported = self.unowned.iter_mut().filter(|fresh| !fresh.flagged);
        for fresh in unreported.filter(|fresh| order_ids.contains(&fresh.order_id)) {
            fresh.flag();
            if let Some(entry) = self.entries.get_mut(&fresh.order_id) {
                entry.flag();
            }
        }
        debug_assert!(order_ids.iter().all(|id| self.entries.get(id).is_none_or(Entry::is_flagged)));
    }

    /// Lets candidates be reported: the order that they may have been is resolved.
    ///
    /// The next list shows those again that were dropped meanwhile.
    pub(crate) fn unflag_all(&mut self, candidates: &BTreeSet<Arc<str>>) {
        let reported = |id: &Arc<str>| self.entries.get(id).is_some_and(|entry| entry.is_reported());
        let order_ids: BTreeSet<_> = candidates.iter().filter(|id| !reported(id)).cloned().collect();
        let mut dropped = order_ids.clone();
        for fresh in self.unowned.iter_mut() {
            if order_ids.contains(&fresh.order_id) && !fresh.late {
                fresh.unflag();
            }
            dropped.remove(&fresh.order_id);
        }
        for order_id in &order_ids {
            let entry = self.entries.get_mut(order_id);
            if let Some(entry) = entry.filter(|entry| entry.owner().is_none() && !entry.is_late()) {
                entry.unflag();
                if dropped.contains(order_id) {
                    entry.show_again();
                }
            }
        }
    }

    /// Marks an order as reported by an event of its own.
    pub(crate) fn flag(&mut self, order_id: &str) {
        self.mark(order_id, Fresh::flag);
        if let Some(entry) = self.entries.get_mut(order_id) {
            entry.report();
        }
    }

    /// Marks an order as reported, as that of an intent's send that was taken for dead.
    pub(crate) fn flag_late(&mut self, order_id: &str, number: IntentNo) {
        self.mark(order_id, Fresh::flag_late);
        if let Some(entry) = self.entries.get_mut(order_id) {
            entry.flag_late(number);
        }
    }

    /// Lets orders be claimed again that were reported so, where `may_be` says, by the intent of the report and by when
    /// the order was first seen, that it may be another's. Returns these intents.
    pub(crate) fn unflag_late(&mut self, may_be: impl Fn(IntentNo, LogicalTime) -> bool) -> Vec<IntentNo> {
        let mut freed = BTreeMap::new();
        for (order_id, entry) in self.entries.iter_mut() {
            if let Some(number) = entry.unflag_late(&may_be) {
                freed.insert(order_id.clone(), number);
            }
        }
        let kept = self.unowned.iter_mut().filter(|fresh| freed.contains_key(&fresh.order_id));
        kept.for_each(Fresh::unflag_late);
        freed.into_values().collect()
    }

    fn mark(&mut self, order_id: &str, set: impl Fn(&mut Fresh)) {
        self.unowned.iter_mut().filter(|fresh| &*fresh.order_id == order_id).for_each(set);
    }

    /// Lets the next list show dropped records without an owner again: an intent needs them now.
    pub(crate) fn show_again(&mut self) {
        let held = self.unowned.order_ids();
        for (order_id, entry) in self.entries.iter_mut() {
            if entry.owner().is_none() && !held.contains(order_id) {
                entry.show_again();
            }
        }
    }
}
