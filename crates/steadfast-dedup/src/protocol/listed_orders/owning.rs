//! Decides which intent owns a listed or acknowledged order.

use std::{sync::Arc, time::Duration};

use steadfast_spec::OrderRecord;

use crate::{
    numbers::{IntentNo, LogicalTime, Session},
    protocol::{
        key::Key,
        listed_orders::{
            ListedOrders, disputed::Disputed, entry::Entry, fresh::Fresh, unowned::Unowned,
            withdrawn::Recalled,
        },
    },
};

/// The result of taking in an identifier that the service gave to an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GivenId {
    Clean,
    /// Another intent owns it, it was there before the send, or answers that name it are not believed.
    Conflict,
}

impl ListedOrders {
    /// Returns the intent that owns an order.
    pub(crate) fn owner(&self, order_id: &str) -> Option<IntentNo> {
        self.entries.owner(order_id)
    }

    /// Gives an order to an intent that found it in the list; returns it unless only its tag had shown whose it is.
    pub(crate) fn claim(&mut self, order_id: &str, owner: IntentNo) -> Option<Fresh> {
        let entry = self.entries.get_mut(order_id)?;
        debug_assert!(entry.owner().is_none(), "a claim is never revoked");
        entry.own(owner);
        let fresh = take_fresh(order_id, entry, &mut self.disputed, &mut self.unowned);
        self.excuse(owner);
        self.withdrawn.forget_order(order_id);
        let order_id = self.entries.get_key_value(order_id).map(|(order_id, _)| order_id.clone())?;
        self.entries.name(&order_id);
        fresh
    }

    /// Gives an order to the intent whose answer named it.
    pub(crate) fn acknowledge(
        &mut self,
        order_id: &Arc<str>,
        owner: IntentNo,
        sent: LogicalTime,
        session: Session,
        seen: LogicalTime,
        at: Duration,
    ) -> GivenId {
        let is_conflict = |entry: &Entry| {
            let others = entry.owner().is_some_and(|other| other != owner);
            others || entry.is_contested() || entry.first_seen() < sent
        };
        self.give(order_id, owner, session, seen, at, is_conflict)
    }

    /// Gives an order to an intent until lists show or contradict it.
    pub(crate) fn await_lists(
        &mut self,
        order_id: &Arc<str>,
        owner: IntentNo,
        session: Session,
        seen: LogicalTime,
        at: Duration,
    ) {
        self.give(order_id, owner, session, seen, at, |_| false);
    }

    fn give(
        &mut self,
        order_id: &Arc<str>,
        owner: IntentNo,
        session: Session,
        seen: LogicalTime,
        at: Duration,
        is_conflict: impl FnOnce(&Entry) -> bool,
    ) -> GivenId {
        let entry = self.entries.meet(order_id, seen);
        if is_conflict(entry) {
            return GivenId::Conflict;
        }
        let acknowledged = entry.acknowledge(owner, session, at);
        if !entry.is_shown() {
            self.awaited.await_in_any_list(order_id, acknowledged);
        }
        if entry.listed_in(acknowledged.session).is_none() {
            self.awaited.await_in_its_session(order_id, acknowledged);
        }
        take_fresh(order_id, entry, &mut self.disputed, &mut self.unowned);
        self.entries.name(order_id);
        GivenId::Clean
    }

    /// Gives an order to an intent on a user's word or that of the journal.
    pub(crate) fn adopt(&mut self, order_id: &Arc<str>, owner: IntentNo, seen: LogicalTime) {
        let entry = self.entries.meet(order_id, seen);
        entry.adopt(owner);
        take_fresh(order_id, entry, &mut self.disputed, &mut self.unowned);
        self.entries.name(order_id);
    }

    /// Notes that a list shows an acknowledged order with other fields than were ordered.
    pub(crate) fn dispute(&mut self, record: &OrderRecord, session: Session) {
        let Some((order_id, entry)) = self.entries.get_key_value(record.order_id.as_str()) else { return };
        if self.disputed.holds(order_id) {
            return;
        }
        self.disputed.add(Fresh {
            order_id: order_id.clone(),
            first_seen: entry.first_seen(),
            record: Arc::new(record.clone()),
            session,
            // It may have been reported before an answer gave it to an intent.
            flagged: entry.is_flagged(),
            late: false,
        });
    }

    /// Withdraws all answers that name this order; returns the intent that owned it by one.
    ///
    /// The next list that shows the order shows it as new. An intent that has claimed it from a list since keeps it.
    pub(crate) fn contest(&mut self, order_id: &str) -> Option<IntentNo> {
        let entry = self.entries.get_mut(order_id)?;
        if entry.is_contested() {
            self.withdrawn.forget_order(order_id);
            return None;
        }
        let owner = entry.contest();
        self.stop_awaiting(order_id);
        owner
    }

    /// Does the same where nothing contradicts the answer but that no list shows the order: if one does after all, its
    /// owner gets it back.
    pub(crate) fn contest_unshown(&mut self, order_id: &Arc<str>) {
        if let Some(owner) = self.contest(order_id) {
            self.withdrawn.await_unshown(owner, order_id.clone());
        }
    }

    /// Waits for a list to show the order again. A list that lacks it counts if it starts after `since` and past the bound.
    pub(crate) fn recall(&mut self, order_id: &Arc<str>, key: &Key, since: LogicalTime, lateness: Duration) {
        let Some(entry) = self.entries.get(order_id).filter(|entry| entry.owner().is_none()) else { return };
        let until = entry.acknowledged().map_or(Duration::ZERO, |its| its.at.saturating_add(lateness));
        let (order_id, key, first_seen) = (order_id.clone(), key.clone(), entry.first_seen());
        self.withdrawn.recall(Recalled { order_id, key, first_seen, since, until });
    }

    /// Waits for a list to show reported orders again whose records were dropped: an intent of this key may own one.
    pub(crate) fn recall_reported(&mut self, key: &Key, since: LogicalTime) {
        let kept = self.unowned.order_ids();
        let dropped = self.entries.iter().filter(|(order_id, entry)| {
            // A contested one is another's: a list or an answer says so.
            entry.owner().is_none()
                && entry.is_reported()
                && !entry.is_contested()
                && !kept.contains(*order_id)
        });
        for (order_id, entry) in dropped {
            let (order_id, key, first_seen) = (order_id.clone(), key.clone(), entry.first_seen());
            self.withdrawn.recall(Recalled { order_id, key, first_seen, since, until: Duration::ZERO });
        }
    }

    /// Notes that an intent's order is not the one its answer named, by a list or a user's word: no list has to show that
    /// one.
    pub(crate) fn excuse(&mut self, number: IntentNo) {
        self.withdrawn.forget_answer(number);
        let entries = &self.entries;
        self.awaited.excuse(|id| {
            let is_its = |entry: &&Entry| entry.was_withdrawn_from(number) && entry.owner() != Some(number);
            entries.get(id).filter(is_its).is_some()
        });
    }
}

/// Takes an order that has an owner now out of those that have none.
fn take_fresh(
    order_id: &str,
    entry: &Entry,
    disputed: &mut Disputed,
    unowned: &mut Unowned,
) -> Option<Fresh> {
    disputed.remove(order_id);
    unowned.own(entry.first_seen(), entry.number());
    // An order that no list has shown is not among them.
    if entry.has_legs() { unowned.take(order_id) } else { None }
}
