//! The latest orders of a kind, up to a limit.

use std::collections::VecDeque;

use crate::{numbers::LogicalTime, protocol::listed_orders::fresh::Fresh};

/// The latest `LIMIT` orders, and when the latest of those without room was seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Latest<const LIMIT: usize> {
    orders: VecDeque<Fresh>,
    dropped: LogicalTime,
}

impl<const LIMIT: usize> Latest<LIMIT> {
    pub(super) fn push(&mut self, fresh: Fresh) {
        if self.orders.len() >= LIMIT
            && let Some(oldest) = self.orders.pop_front()
        {
            self.dropped = self.dropped.max(oldest.first_seen);
        }
        self.orders.push_back(fresh);
    }

    pub(super) fn remove(&mut self, order_id: &str) {
        self.orders.retain(|fresh| &*fresh.order_id != order_id);
    }

    /// Returns those first seen after `sent`, and whether dropped ones were, too.
    pub(super) fn since(&self, sent: LogicalTime) -> (impl Iterator<Item = &Fresh>, bool) {
        (self.orders.iter().filter(move |fresh| fresh.first_seen > sent), self.dropped > sent)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Fresh> {
        self.orders.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Fresh> {
        self.orders.iter_mut()
    }
}
