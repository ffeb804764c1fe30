//! Compares a list with what it should hold.

use std::{sync::Arc, time::Duration};

use crate::{
    numbers::{LogicalTime, Session},
    protocol::listed_orders::ListedOrders,
};

/// The result of comparing a list with what it should hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListCheck {
    Intact,
    /// An order acknowledged long enough ago is not there yet: this list is stale.
    Stale,
    /// An order that was there is gone: no list of this session proves an absence.
    Gone(Arc<str>),
}

impl ListedOrders {
    /// Compares the list that was just taken in with what it should hold.
    pub(crate) fn check(
        &self,
        session: Session,
        started: LogicalTime,
        started_at: Duration,
        seen: LogicalTime,
        lateness: Duration,
    ) -> ListCheck {
        // A list with every order that its session has shown lacks nothing. Only search the others.
        let whole = self.lists.session(session).is_some_and(|its| its.is_whole(seen));
        for (order_id, entry) in (!whole).then(|| self.entries.iter()).into_iter().flatten() {
            let listed = entry.listed_in(session);
            if listed.is_some_and(|listed| listed.last >= seen) {
                continue;
            }
            // Only lists that were complete before this read left are a lower bound for it.
            if listed.is_some_and(|listed| listed.first < started) {
                return ListCheck::Gone(order_id.clone());
            }
        }
        // Younger acknowledgements prove nothing: lists lag. Withdrawn identifiers count too: a list that hides an order
        // looks the same. They do until the order is found under another one.
        let oldest = self.awaited.oldest_of(session);
        let lacks_some = oldest.is_some_and(|at| at.saturating_add(lateness) < started_at);
        if lacks_some { ListCheck::Stale } else { ListCheck::Intact }
    }
}
