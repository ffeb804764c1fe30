//! Marks listed orders as reported, so that each is reported once.

use std::{collections::BTreeSet, sync::Arc};

use crate::protocol::listed_orders::{ListedOrders, fresh::Fresh};

impl ListedOrders {
    /// Marks orders as reported candidates.
    pub(crate) fn flag_all(&mut self, order_ids: &BTreeSet<Arc<str>>) {
        self.unowned.iter_mut().filter(|fresh| order_ids.contains(&fresh.order_id)).for_each(Fresh::flag);
        for order_id in order_ids {
            if let Some(entry) = self.entries.get_mut(order_id) {
                entry.flag();
            }
        }
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

    /// Marks an order as reported, as that of a send taken for dead.
    pub(crate) fn flag_late(&mut self, order_id: &str) {
        self.mark(order_id, Fresh::flag_late);
        if let Some(entry) = self.entries.get_mut(order_id) {
            entry.flag_late();
        }
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
