//! Notes listed orders without an owner whose records are not kept, because there are too many.

use std::collections::BTreeMap;

use crate::{numbers::LogicalTime, protocol::key::Key};

/// These orders by key, sorted by when they were first seen; `None` holds those whose record shows no key.
///
/// Nearly all are added at the end, and all are dropped at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overflow(BTreeMap<Option<Key>, Vec<(LogicalTime, EntryNo)>>);

/// The number of an identifier, in the order in which they became known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryNo(pub(crate) usize);

impl Overflow {
    pub(crate) fn add(&mut self, key: Option<Key>, first_seen: LogicalTime, entry: EntryNo) {
        let orders = self.0.entry(key).or_default();
        if let Err(place) = orders.binary_search(&(first_seen, entry)) {
            orders.insert(place, (first_seen, entry));
        }
    }

    /// Removes an order whose record has room after all.
    pub(crate) fn remove(&mut self, key: &Option<Key>, first_seen: LogicalTime, entry: EntryNo) {
        if let Some(orders) = self.0.get_mut(key)
            && let Ok(place) = orders.binary_search(&(first_seen, entry))
        {
            orders.remove(place);
        }
    }

    /// Removes an order that has an owner now.
    pub(crate) fn own(&mut self, first_seen: LogicalTime, entry: EntryNo) {
        for orders in self.0.values_mut() {
            if let Ok(place) = orders.binary_search(&(first_seen, entry)) {
                orders.remove(place);
            }
        }
    }

    /// True if one of them could belong to a send of this key at `sent`; with `seen`, only those seen before it.
    pub(crate) fn has(&self, key: &Key, sent: LogicalTime, seen: Option<LogicalTime>) -> bool {
        let overflow = [self.0.get(&Some(key.clone())), self.0.get(&None)];
        overflow.into_iter().flatten().any(|orders| {
            let first = orders.get(orders.partition_point(|(first_seen, _)| *first_seen <= sent));
            first.is_some_and(|(first, _)| seen.is_none_or(|seen| *first < seen))
        })
    }

    /// Drops those of a key if no intent in flight or in doubt could own the latest of them.
    pub(crate) fn prune(&mut self, key: Option<&Key>, needed: impl Fn(LogicalTime) -> bool) {
        let key = key.cloned();
        if self.0.get(&key).is_some_and(|orders| orders.last().is_none_or(|(last, _)| !needed(*last))) {
            self.0.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(symbol: &str) -> Key {
        let fields = [
            ("symId", symbol),
            ("qty", "1"),
            ("side", "buy"),
            ("type", "market"),
            ("product", "delivery"),
            ("validity", "day"),
        ];
        Key::of_order(&steadfast_spec::OrderRequest::from_fields(fields).unwrap())
    }

    #[test]
    fn o08_a_crowd_bars_until_each_of_it_has_room_or_an_owner() {
        let (ours, other) = (key("EQT_INFY_EQ_NSE"), key("EQT_TCS_EQ_NSE"));
        let ids = [0, 1, 2].map(EntryNo);
        let mut overflow = Overflow::default();
        overflow.add(Some(ours.clone()), LogicalTime(5), ids[0]);
        overflow.add(Some(ours.clone()), LogicalTime(6), ids[1]);
        overflow.add(None, LogicalTime(7), ids[2]);
        assert!(
            overflow.has(&ours, LogicalTime(4), Some(LogicalTime(6)))
                && overflow.has(&other, LogicalTime(6), None)
        );
        // Seen before the send, or after the position it is compared with.
        assert!(
            !overflow.has(&ours, LogicalTime(7), None)
                && !overflow.has(&ours, LogicalTime(4), Some(LogicalTime(5)))
        );
        overflow.own(LogicalTime(5), ids[0]);
        overflow.remove(&Some(ours.clone()), LogicalTime(6), ids[1]);
        assert!(
            !overflow.has(&ours, LogicalTime(4), Some(LogicalTime(7)))
                && overflow.has(&ours, LogicalTime(4), None)
        );
        overflow.prune(None, |_| false);
        assert!(!overflow.has(&ours, LogicalTime(4), None));
    }
}
