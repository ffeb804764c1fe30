//! Acknowledged orders that lists show with other fields than were ordered: another intent's, or changed.

use crate::{
    numbers::LogicalTime,
    protocol::listed_orders::{fresh::Fresh, latest::Latest},
};

/// How many are kept. Where lists show all orders so, more of them do not matter.
const DISPUTED: usize = 1_000;

/// The latest acknowledged orders that lists show with other fields than were ordered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disputed(Latest<DISPUTED>);

impl Disputed {
    /// Returns those first seen after `sent`, and whether dropped ones were, too.
    pub(crate) fn since(&self, sent: LogicalTime) -> (impl Iterator<Item = &Fresh>, bool) {
        self.0.since(sent)
    }

    /// Returns all that are kept.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Fresh> {
        self.0.iter()
    }

    /// Returns those that were not reported as another intent's.
    pub(crate) fn unreported(&self) -> impl Iterator<Item = &Fresh> {
        self.iter().filter(|fresh| !fresh.flagged)
    }

    pub(crate) fn report(&mut self, order_id: &str) {
        self.0.iter_mut().filter(|fresh| &*fresh.order_id == order_id).for_each(Fresh::flag);
    }

    pub(super) fn holds(&self, order_id: &str) -> bool {
        self.iter().any(|fresh| &*fresh.order_id == order_id)
    }

    pub(super) fn add(&mut self, fresh: Fresh) {
        self.0.push(fresh);
    }

    /// Drops an order: without an owner, it is kept with the others once a list shows it.
    pub(super) fn remove(&mut self, order_id: &str) {
        self.0.remove(order_id);
    }
}
