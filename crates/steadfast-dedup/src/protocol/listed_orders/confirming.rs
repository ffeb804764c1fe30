//! Decides whether lists have shown what answers named.

use std::{sync::Arc, time::Duration};

use crate::{numbers::Session, protocol::listed_orders::ListedOrders};

/// How an order stands that was acknowledged, and that no list has shown or contradicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unconfirmed {
    /// Lists are read until one does.
    Awaited,
    /// No list can: its session's lists are gone or lose orders, or they may not show an order that has ended, or they
    /// show only legs under its identifier, which may be another order's.
    GivenUp,
}

impl ListedOrders {
    /// Ends the audit of an acknowledged order. A list that lacks it still proves no absence.
    pub(crate) fn stop_awaiting(&mut self, order_id: &str) {
        if let Some((order_id, entry)) = self.entries.get_key_value(order_id)
            && let Some(acknowledged) = entry.acknowledged()
        {
            self.awaited.end_in_any_list(order_id, acknowledged);
        }
    }

    /// True if lists of a session have shown an order that was acknowledged in another one.
    pub(crate) fn shows_some_of(&self, told_in: Session, session: Session) -> bool {
        self.entries.iter().any(|(_, entry)| {
            entry.acknowledged().is_some_and(|its| its.session == told_in)
                && entry.listed_in(session).is_some()
        })
    }

    /// Returns when an answer first named an order.
    pub(crate) fn acknowledged_at(&self, order_id: &str) -> Option<Duration> {
        self.entries.get(order_id)?.acknowledged().map(|acknowledged| acknowledged.at)
    }

    /// Takes back that a caller's list has shown an acknowledged order: it shows another one, as it seems. Lists of ours
    /// decide that.
    pub(crate) fn await_ours(&mut self, order_id: &str) {
        let known = self.entries.get_key_value(order_id).map(|(order_id, _)| order_id.clone());
        if let Some(order_id) = known
            && let Some(entry) = self.entries.get_mut(&order_id)
            && let Some(acknowledged) = entry.acknowledged()
        {
            entry.hide();
            self.awaited.await_in_any_list(&order_id, acknowledged);
        }
    }

    /// Returns how an order stands that was acknowledged, if no list has shown or contradicted it.
    pub(crate) fn unconfirmed(&self, order_id: &str) -> Option<Unconfirmed> {
        let (order_id, entry) = self.entries.get_key_value(order_id)?;
        let is_shown = entry.is_shown() && !entry.is_shown_by_legs();
        let acknowledged = entry.acknowledged().filter(|_| !is_shown && !entry.is_contested())?;
        let is_awaited = self.awaited.awaits_in_any_list(order_id, acknowledged);
        Some(if is_awaited { Unconfirmed::Awaited } else { Unconfirmed::GivenUp })
    }

    /// Notes that the list asked for at `at` lacks an order; returns when the first such list was asked for.
    pub(crate) fn miss(&mut self, order_id: &str, at: Duration) -> Duration {
        self.entries.get_mut(order_id).map_or(at, |entry| entry.miss(at))
    }

    /// Returns when such lists were asked for, for orders acknowledged before `end`.
    pub(crate) fn missed_before(&self, end: Duration) -> impl Iterator<Item = Duration> {
        let old = self.awaited.order_ids_before(end);
        old.filter_map(|order_id: &Arc<str>| self.entries.get(order_id)?.missed())
    }

    /// Notes that a list has shown the acknowledged order: other records under its identifier are its legs.
    pub(crate) fn end_comparison(&mut self, order_id: &str) {
        if let Some(entry) = self.entries.get_mut(order_id) {
            entry.end_comparison();
        }
    }

    pub(crate) fn has_compared(&self, order_id: &str) -> bool {
        self.entries.get(order_id).is_some_and(|entry| entry.has_compared())
    }
}
