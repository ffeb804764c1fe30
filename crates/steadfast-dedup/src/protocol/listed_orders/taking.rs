//! Takes in a list.

use std::sync::Arc;

use steadfast_spec::OrderRecord;

use crate::{
    numbers::{IntentNo, LogicalTime, Session},
    protocol::{
        key::Key,
        listed_orders::{ListedOrders, lists::Source, unowned::Relevance},
        matcher,
    },
};

/// The news in a list.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Orders seen for the first time.
    pub(crate) seen: Vec<Arc<str>>,
    /// Acknowledged orders whose record is seen for the first time.
    pub(crate) owned: Vec<(IntentNo, OrderRecord)>,
    /// True if an acknowledged order is seen for the first time.
    pub(crate) confirms: bool,
}

impl ListedOrders {
    /// True unless these records exceed the number of identifiers up to which a list is evidence.
    pub(crate) fn has_room_for(&self, records: &[OrderRecord]) -> bool {
        self.entries.has_room_for(records)
    }

    /// Takes in a list; `keep` classifies orders without an owner.
    ///
    /// A repeated identifier counts once for each leg of the order, and makes no earlier order absent.
    pub(crate) fn list(
        &mut self,
        source: Source,
        seen: LogicalTime,
        records: Vec<OrderRecord>,
        mut keep: impl FnMut(Option<&Key>, &OrderRecord) -> Relevance,
    ) -> News {
        let mut news = News::default();
        self.lists.take_in(seen);
        if source.by_poller {
            self.lists.meet(source.session).begin(seen);
        }
        for record in records {
            let (order_id, is_new) = self.identify(&record);
            if is_new {
                news.seen.push(order_id.clone());
            }
            let entry = self.entries.meet(&order_id, seen);
            entry.note_copy(&mut self.repeated, &record, seen);
            if source.by_poller {
                entry.list(self.lists.meet(source.session), source.session, seen);
            }
            let is_first = entry.show_record(&record);
            if let Some(acknowledged) = entry.acknowledged() {
                self.awaited.show(&order_id, acknowledged, source, is_first);
                news.confirms |= is_first;
            }
            self.lists.note_status(&record);
            match entry.owner() {
                Some(owner) if entry.is_to_compare(&record, source.by_poller, seen) => {
                    news.owned.push((owner, record));
                }
                Some(_) => {}
                None => {
                    self.withdrawn.end_recall(&order_id);
                    if entry.shows_another_leg(&record) {
                        self.keep(order_id, record, source.session, &mut keep);
                    }
                }
            }
        }
        news
    }

    /// Returns the identifier of a record as it is kept, and whether it is new.
    fn identify(&mut self, record: &OrderRecord) -> (Arc<str>, bool) {
        let order_id = record.order_id.as_str();
        if let Some((known, _)) = self.entries.get_key_value(order_id) {
            return (known.clone(), false);
        }
        if let Some(known) = self.entries.spelled_otherwise(order_id) {
            self.show_respelled(&known);
        }
        (order_id.into(), true)
    }

    /// Notes that a list shows an acknowledged order under another spelling.
    fn show_respelled(&mut self, order_id: &Arc<str>) {
        if let Some(entry) = self.entries.get_mut(order_id)
            && let Some(acknowledged) = entry.acknowledged()
        {
            entry.show();
            self.awaited.end_in_any_list(order_id, acknowledged);
        }
    }

    /// Keeps the record of an order without an owner, if an intent could own it.
    fn keep(
        &mut self,
        order_id: Arc<str>,
        record: OrderRecord,
        session: Session,
        classify: &mut impl FnMut(Option<&Key>, &OrderRecord) -> Relevance,
    ) {
        let Some(entry) = self.entries.get_mut(&order_id) else { return };
        let key = Key::of_record(&record);
        let keep = classify(key.as_ref(), &record);
        if keep == Relevance::No {
            return;
        }
        if !self.unowned.has_room(keep, key.as_ref()) {
            if !matcher::is_exit_leg(&record) {
                // The next list may find more room.
                entry.show_leg_again(&record);
                self.unowned.note_overflow(key, entry.first_seen(), entry.number());
            }
            return;
        }
        self.disputed.remove(&order_id);
        self.unowned.add(keep, key, entry.fresh(order_id, record, session), entry.number());
    }

    /// Takes in an order that a list had shown in an earlier run of the process.
    pub(crate) fn know(&mut self, source: Source, seen: LogicalTime, order_id: &Arc<str>) {
        let entry = self.entries.meet(order_id, seen);
        entry.show();
        if source.by_poller {
            entry.list(self.lists.meet(source.session), source.session, seen);
        }
    }
}
