//! Every order that was listed or acknowledged on the day.
//!
//! Each file below owns one part of what is known: the orders ([`entries`], one of them in [`entry`]), the lists
//! ([`lists`]), orders that no intent owns ([`unowned`]), and acknowledged orders that lists do not bear out
//! ([`awaited`], [`disputed`], [`withdrawn`]). [`taking`], [`owning`], [`confirming`], [`reporting`] and [`list_check`]
//! change or ask several of them at once.

pub(crate) mod awaited;
pub(crate) mod confirming;
mod copies;
pub(crate) mod disputed;
pub(crate) mod entries;
mod entry;
pub(crate) mod fresh;
mod latest;
pub(crate) mod list_check;
pub(crate) mod lists;
mod overflow;
pub(crate) mod owning;
mod reporting;
pub(crate) mod session_list;
mod shelf;
mod spelling;
pub(crate) mod taking;
pub(crate) mod unowned;
pub(crate) mod withdrawn;
pub(crate) mod yesterday;

use std::collections::BTreeSet;

use steadfast_spec::{OrderRecord, OrderRequest, SymId};

use crate::{
    numbers::{LogicalTime, Session},
    protocol::listed_orders::{
        awaited::Awaited, copies::RepeatedIds, disputed::Disputed, entries::Entries, fresh::Fresh,
        lists::Lists, unowned::Unowned, withdrawn::Withdrawn, yesterday::Yesterday,
    },
};

/// Every order that was listed or acknowledged on the day.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListedOrders {
    entries: Entries,
    /// One identifier was listed for two orders.
    repeated: RepeatedIds,
    /// Folded instruments under whose names lists have shown orders of ours.
    recognised: BTreeSet<SymId>,
    pub(super) lists: Lists,
    pub(super) unowned: Unowned,
    pub(super) disputed: Disputed,
    pub(super) awaited: Awaited,
    pub(super) withdrawn: Withdrawn,
    pub(super) yesterday: Yesterday,
}

impl ListedOrders {
    /// Forgets the day that is over, except the identifiers of our orders.
    pub(crate) fn begin_day(&mut self) {
        let mut yesterday = Yesterday::default();
        for (order_id, entry) in self.entries.iter() {
            if let Some(owner) = entry.owner() {
                yesterday.add(order_id, owner, self.unconfirmed(order_id).is_some());
            }
        }
        *self = Self { yesterday, ..Self::default() };
    }

    /// Returns when a list or an answer first named an order.
    pub(crate) fn first_seen(&self, order_id: &str) -> Option<LogicalTime> {
        Some(self.entries.get(order_id)?.first_seen())
    }

    /// True if a list has shown an order.
    pub(crate) fn is_shown(&self, order_id: &str) -> bool {
        self.entries.get(order_id).is_some_and(|entry| entry.is_shown())
    }

    /// True if an order may be one that an intent owns already, under another spelling of its identifier.
    pub(crate) fn is_respelled(&self, order_id: &str) -> bool {
        self.entries.is_respelled(order_id)
    }

    /// True if a listed order without an owner may be one that an answer gave to one of our orders.
    pub(crate) fn is_ambiguous(&self, order_id: &str) -> bool {
        self.is_respelled(order_id) || self.yesterday.may_be_listed_as(order_id)
    }

    /// True if an order sent at `sent` may be listed under the identifier of another one, beside that one.
    pub(crate) fn may_be_under_a_repeated_id(&self, order: &OrderRequest, sent: LogicalTime) -> bool {
        self.repeated.may_hide(order, sent)
    }

    /// Returns a listed order as its record shows it, if it has no owner.
    pub(crate) fn fresh_of(&self, record: OrderRecord, session: Session) -> Option<Fresh> {
        let (order_id, entry) = self.entries.get_key_value(record.order_id.as_str())?;
        entry.owner().is_none().then(|| entry.fresh(order_id.clone(), record, session))
    }

    /// True if an order was reported as that of a send taken for dead.
    pub(crate) fn is_late(&self, order_id: &str) -> bool {
        self.entries.get(order_id).is_some_and(|entry| entry.is_late())
    }

    /// Notes that a list has shown an order of ours under its instrument's name.
    pub(crate) fn recognise(&mut self, instrument: SymId) {
        self.recognised.insert(instrument);
    }

    /// True if lists use our name for this instrument.
    pub(crate) fn recognises(&self, instrument: &SymId) -> bool {
        self.recognised.contains(instrument)
    }

    /// Returns when an order was first seen, its owner, and whether it can still be claimed.
    #[cfg(test)]
    pub(crate) fn known(&self, order_id: &str) -> (LogicalTime, Option<crate::numbers::IntentNo>, bool) {
        let fresh = self.unowned.get(order_id).is_some();
        self.entries
            .get(order_id)
            .map_or((LogicalTime(0), None, false), |e| (e.first_seen(), e.owner(), fresh))
    }

    /// Returns the session whose list showed an order first, while it can still be claimed.
    #[cfg(test)]
    pub(crate) fn shown_by(&self, order_id: &str) -> Option<crate::numbers::Session> {
        self.unowned.get(order_id).map(|fresh| fresh.session)
    }
}
