//! Listed orders that no intent owns.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use steadfast_spec::{Decimal, OrderRequest};

use crate::{
    numbers::LogicalTime,
    protocol::{
        key::Key,
        listed_orders::{
            fresh::Fresh,
            latest::Latest,
            overflow::{EntryNo, Overflow},
            shelf::Shelf,
        },
        matcher,
    },
};

/// How many orders of other instruments are kept: they only have to exist, and to be reported.
const STRANGE: usize = 100;

/// How many orders are kept that can only veto an absence, for each key and without one.
const NEAR: usize = 100;

/// How many are kept for each key in total.
const KEPT: usize = 256;

/// How a listed order without an owner relates to our orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relevance {
    /// It could be one of ours, as it is.
    Ours,
    /// It could be one of ours after a change.
    Near,
    /// It could be one of ours if the list spells instruments in a way of its own.
    Strange,
    /// It is a stranger's.
    No,
}

/// Orders without an owner that an intent could still own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unowned {
    fresh: BTreeMap<Key, Shelf>,
    /// Those whose records do not show their key.
    vague: Vec<Fresh>,
    /// Those for which neither had room.
    overflow: Overflow,
    /// The latest on an instrument that none of ours has. It may be ours under another name.
    strange: Latest<STRANGE>,
}

impl Unowned {
    /// Returns those that could be of this key.
    pub(crate) fn of(&self, key: &Key) -> impl Iterator<Item = &Fresh> {
        self.fresh.get(key).into_iter().flat_map(Shelf::iter).chain(&self.vague)
    }

    /// Returns those that match this order in all fields they show.
    pub(crate) fn strict<'a>(
        &'a self,
        key: &Key,
        order: &'a OrderRequest,
    ) -> impl Iterator<Item = &'a Fresh> + 'a {
        self.fresh.get(key).into_iter().flat_map(move |shelf| shelf.strict(order))
    }

    /// True if one of those that show this key has this quantity.
    pub(crate) fn has_qty(&self, key: &Key, qty: Decimal) -> bool {
        self.fresh.get(key).is_some_and(|shelf| shelf.has_qty(qty))
    }

    /// Returns the records of the order with this identifier, while it can still be claimed.
    pub(crate) fn with_id(&self, order_id: &str) -> impl Iterator<Item = &Fresh> {
        self.fresh
            .values()
            .flat_map(Shelf::iter)
            .chain(&self.vague)
            .filter(move |fresh| *fresh.order_id == *order_id)
    }

    /// Returns those whose records do not show their key.
    pub(crate) fn vague(&self) -> impl Iterator<Item = &Fresh> {
        self.vague.iter()
    }

    pub(crate) fn has_vague(&self) -> bool {
        !self.vague.is_empty()
    }

    /// Returns those on instruments that none of ours has, and whether dropped ones were seen after `sent`.
    pub(crate) fn strange(&self, sent: LogicalTime) -> (impl Iterator<Item = &Fresh>, bool) {
        self.strange.since(sent)
    }

    /// True if more orders than are kept could belong to a send at `sent`; with `seen`, only those seen before it.
    pub(crate) fn has_overflow(&self, key: &Key, sent: LogicalTime, seen: Option<LogicalTime>) -> bool {
        self.overflow.has(key, sent, seen)
    }

    pub(crate) fn keys(&self) -> Vec<Key> {
        self.fresh.keys().cloned().collect()
    }

    /// Drops the records of a key that no intent in flight or in doubt can own any more.
    pub(crate) fn prune(&mut self, key: &Key, needed: impl Fn(&Fresh) -> bool) {
        if let Some(fresh) = self.fresh.get_mut(key) {
            fresh.retain(&needed);
            if fresh.is_empty() {
                self.fresh.remove(key);
            }
        }
    }

    /// Drops the note of orders that are too many where no intent in flight or in doubt can own one of them.
    pub(crate) fn prune_overflow(&mut self, key: Option<&Key>, needed: impl Fn(LogicalTime) -> bool) {
        self.overflow.prune(key, needed);
    }

    /// Drops the records without a key that no intent in flight or in doubt can own any more.
    pub(crate) fn prune_vague(&mut self, needed: impl Fn(&Fresh) -> bool) {
        self.vague.retain(needed);
    }

    pub(super) fn has_room(&self, keep: Relevance, key: Option<&Key>) -> bool {
        let on_shelf = key.map_or(self.vague.len(), |key| self.fresh.get(key).map_or(0, Shelf::len));
        match keep {
            Relevance::Ours if key.is_some() => on_shelf < KEPT,
            Relevance::Ours | Relevance::Near => on_shelf < NEAR,
            Relevance::Strange | Relevance::No => true,
        }
    }

    /// Counts an order for which there is no room.
    pub(super) fn note_overflow(&mut self, key: Option<Key>, first_seen: LogicalTime, number: EntryNo) {
        self.overflow.add(key, first_seen, number);
    }

    /// Keeps an order for which there is room.
    pub(super) fn add(&mut self, keep: Relevance, key: Option<Key>, fresh: Fresh, number: EntryNo) {
        match (keep, key) {
            (Relevance::No, _) => {}
            (Relevance::Strange, _) => {
                if !matcher::is_exit_leg(&fresh.record) {
                    self.strange.push(fresh);
                }
            }
            (Relevance::Ours | Relevance::Near, key) => {
                self.overflow.remove(&key, fresh.first_seen, number);
                match key {
                    Some(key) => self.fresh.entry(key).or_default().push(fresh),
                    None => self.vague.push(fresh),
                }
            }
        }
    }

    /// Notes that an order has an owner now that was counted where there was no room.
    pub(super) fn own(&mut self, first_seen: LogicalTime, number: EntryNo) {
        self.overflow.own(first_seen, number);
    }

    /// Takes out an order with all of its legs, for an owner.
    pub(super) fn take(&mut self, order_id: &str) -> Option<Fresh> {
        let mut taken = None;
        let mut is_other = |fresh: &Fresh| {
            let other = &*fresh.order_id != order_id;
            if !other {
                taken.get_or_insert_with(|| fresh.clone());
            }
            other
        };
        self.fresh.values_mut().for_each(|shelf| shelf.retain(&mut is_other));
        self.vague.retain(&mut is_other);
        self.fresh.retain(|_, shelf| !shelf.is_empty());
        self.strange.remove(order_id);
        taken
    }

    /// Returns the orders whose key may be one of ours, for marks.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Fresh> {
        self.fresh.values_mut().flat_map(Shelf::iter_mut).chain(&mut self.vague)
    }

    /// Returns the identifiers of all orders whose records are kept.
    pub(super) fn order_ids(&self) -> BTreeSet<Arc<str>> {
        let kept = self.fresh.values().flat_map(Shelf::iter).chain(&self.vague).chain(self.strange.iter());
        kept.map(|fresh| fresh.order_id.clone()).collect()
    }

    /// Returns the order with this identifier, while it can still be claimed.
    #[cfg(test)]
    pub(super) fn get(&self, order_id: &str) -> Option<&Fresh> {
        self.fresh.values().flat_map(Shelf::iter).find(|fresh| &*fresh.order_id == order_id)
    }
}
