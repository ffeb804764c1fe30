//! Notices identifiers that one list shows for more than one order.
//!
//! The legs of a bracket or cover order may share its identifier. Other records do not: if one list shows an
//! identifier twice, one of the two may be an order of ours whose own identifier is lost, and nothing tells which. So
//! no order that was sent before is absent. An order that is sent later is not among them.

use steadfast_spec::{Code, OrderRecord, OrderRequest, Product};

use crate::{numbers::LogicalTime, protocol::matcher};

/// How many records lists show under one identifier.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Copies {
    /// The latest list that holds it, and in how many records.
    list: LogicalTime,
    held: u8,
    /// The most that one list held.
    most: u8,
}

/// When a list last showed one identifier for more orders than any list before did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RepeatedIds {
    any: LogicalTime,
    /// The same for records of bracket and cover orders, which may be legs.
    legs: LogicalTime,
}

impl Copies {
    /// Notes a record in the list that was complete at `seen`; true if no list held as many.
    fn is_more(&mut self, seen: LogicalTime) -> bool {
        if self.list != seen {
            (self.list, self.held) = (seen, 0);
        }
        self.held = self.held.saturating_add(1);
        let more = self.held > self.most;
        self.most = self.most.max(self.held);
        more && self.held > 1
    }
}

impl RepeatedIds {
    /// Takes in a record of a list that was complete at `seen`.
    pub(crate) fn note(&mut self, copies: &mut Copies, record: &OrderRecord, seen: LogicalTime) {
        let has_legs = matches!(record.product, Some(Code::Known(Product::Bracket | Product::Cover)));
        let is_leg = matcher::is_exit_leg(record) && (has_legs || record.product.is_none());
        if !is_leg && copies.is_more(seen) {
            let latest = if has_legs { &mut self.legs } else { &mut self.any };
            *latest = seen.max(*latest);
        }
    }

    /// True if this order, sent at `sent`, may be one of two records under one identifier.
    pub(crate) fn may_hide(&self, order: &OrderRequest, sent: LogicalTime) -> bool {
        let has_legs = matches!(order.product(), Product::Bracket | Product::Cover);
        sent < self.any || has_legs && sent < self.legs
    }
}
