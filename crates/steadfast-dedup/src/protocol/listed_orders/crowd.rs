//! Keeps count of listed orders without an owner for whose records there was no room.

use std::collections::BTreeMap;

use crate::{numbers::LogicalTime, protocol::key::Key};

/// When such orders were first seen, and which, in order, by key; `None` holds those whose record shows no key.
///
/// Nearly all are added at the end, and all are dropped at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crowds(BTreeMap<Option<Key>, Vec<(LogicalTime, EntryNo)>>);

/// The number of an identifier, in the order in which they became known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryNo(pub(crate) usize);

impl Crowds {
    pub(crate) fn add(&mut self, key: Option<Key>, first_seen: LogicalTime, entry: EntryNo) {
        let crowd = self.0.entry(key).or_default();
        if let Err(place) = crowd.binary_search(&(first_seen, entry)) {
            crowd.insert(place, (first_seen, entry));
        }
    }

    /// Removes an order whose record has room after all.
    pub(crate) fn remove(&mut self, key: &Option<Key>, first_seen: LogicalTime, entry: EntryNo) {
        if let Some(crowd) = self.0.get_mut(key)
            && let Ok(place) = crowd.binary_search(&(first_seen, entry))
        {
            crowd.remove(place);
        }
    }

    /// Removes an order that has an owner now.
    pub(crate) fn own(&mut self, first_seen: LogicalTime, entry: EntryNo) {
        for crowd in self.0.values_mut() {
            if let Ok(place) = crowd.binary_search(&(first_seen, entry)) {
                crowd.remove(place);
            }
        }
    }

    /// True if one of them could belong to a send of this key at `sent`; with `seen`, only those seen before it.
    pub(crate) fn has(&self, key: &Key, sent: LogicalTime, seen: Option<LogicalTime>) -> bool {
        let crowds = [self.0.get(&Some(key.clone())), self.0.get(&None)];
        crowds.into_iter().flatten().any(|crowd| {
            let first = crowd.get(crowd.partition_point(|(first_seen, _)| *first_seen <= sent));
            first.is_some_and(|(first, _)| seen.is_none_or(|seen| *first < seen))
        })
    }

    /// Drops those of a key if no intent in flight or in doubt could own the latest of them.
    pub(crate) fn prune(&mut self, key: Option<&Key>, needed: impl Fn(LogicalTime) -> bool) {
        let key = key.cloned();
        if self.0.get(&key).is_some_and(|crowd| crowd.last().is_none_or(|(last, _)| !needed(*last))) {
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
        let mut crowds = Crowds::default();
        crowds.add(Some(ours.clone()), LogicalTime(5), ids[0]);
        crowds.add(Some(ours.clone()), LogicalTime(6), ids[1]);
        crowds.add(None, LogicalTime(7), ids[2]);
        assert!(
            crowds.has(&ours, LogicalTime(4), Some(LogicalTime(6)))
                && crowds.has(&other, LogicalTime(6), None)
        );
        // Seen before the send, or after the position it is compared with.
        assert!(
            !crowds.has(&ours, LogicalTime(7), None)
                && !crowds.has(&ours, LogicalTime(4), Some(LogicalTime(5)))
        );
        crowds.own(LogicalTime(5), ids[0]);
        crowds.remove(&Some(ours.clone()), LogicalTime(6), ids[1]);
        assert!(
            !crowds.has(&ours, LogicalTime(4), Some(LogicalTime(7)))
                && crowds.has(&ours, LogicalTime(4), None)
        );
        crowds.prune(None, |_| false);
        assert!(!crowds.has(&ours, LogicalTime(4), None));
    }
}
