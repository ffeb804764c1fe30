//! Listed orders without an owner for whose records there was no room.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    sync::Arc,
};

use crate::{key::Key, stamp::Seq};

/// Which they are and when they were first seen, by key; `None` holds those whose record shows no key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crowds(BTreeMap<Option<Key>, BTreeSet<(Seq, Arc<str>)>>);

impl Crowds {
    pub(crate) fn add(&mut self, key: Option<Key>, first_seen: Seq, order_id: Arc<str>) {
        self.0.entry(key).or_default().insert((first_seen, order_id));
    }

    /// There was room for the record after all.
    pub(crate) fn remove(&mut self, key: &Option<Key>, first_seen: Seq, order_id: &Arc<str>) {
        if let Some(crowd) = self.0.get_mut(key) {
            crowd.remove(&(first_seen, order_id.clone()));
            if crowd.is_empty() {
                self.0.remove(key);
            }
        }
    }

    /// The order has an owner now.
    pub(crate) fn own(&mut self, first_seen: Seq, order_id: &Arc<str>) {
        self.0.retain(|_, crowd| {
            crowd.remove(&(first_seen, order_id.clone()));
            !crowd.is_empty()
        });
    }

    /// True if one of them could be an order of this key that was sent then, and was seen before `seen`, if that is
    /// given.
    pub(crate) fn has(&self, key: &Key, sent: Seq, seen: Option<Seq>) -> bool {
        let after = (Bound::Included((Seq(sent.0 + 1), "".into())), Bound::Unbounded);
        let crowds = [self.0.get(&Some(key.clone())), self.0.get(&None)];
        let mut first = crowds.into_iter().flatten().filter_map(|crowd| crowd.range(after.clone()).next());
        first.any(|(first, _)| seen.is_none_or(|seen| *first < seen))
    }

    /// Forgets those of a key if nobody in flight or in doubt could own the latest of them.
    pub(crate) fn prune(&mut self, key: Option<&Key>, needed: impl Fn(Seq) -> bool) {
        let key = key.cloned();
        if self.0.get(&key).and_then(BTreeSet::last).is_some_and(|(last, _)| !needed(*last)) {
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
        let ids: [Arc<str>; 3] = ["a", "b", "c"].map(Into::into);
        let mut crowds = Crowds::default();
        crowds.add(Some(ours.clone()), Seq(5), ids[0].clone());
        crowds.add(Some(ours.clone()), Seq(6), ids[1].clone());
        crowds.add(None, Seq(7), ids[2].clone());
        assert!(crowds.has(&ours, Seq(4), Some(Seq(6))) && crowds.has(&other, Seq(6), None));
        // Seen before it was sent, or after what it is compared with.
        assert!(!crowds.has(&ours, Seq(7), None) && !crowds.has(&ours, Seq(4), Some(Seq(5))));
        crowds.own(Seq(5), &ids[0]);
        crowds.remove(&Some(ours.clone()), Seq(6), &ids[1]);
        assert!(!crowds.has(&ours, Seq(4), Some(Seq(7))) && crowds.has(&ours, Seq(4), None));
        crowds.prune(None, |_| false);
        assert!(!crowds.has(&ours, Seq(4), None));
    }
}
