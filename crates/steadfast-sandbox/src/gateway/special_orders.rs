use steadfast_spec::{Form, OrderStatus};

use crate::gateway::directory::UserIndex;

/// An order of a special kind. It stays open until it is cancelled or left.
#[derive(Clone, Debug)]
pub(super) struct SpecialOrder {
    pub(super) id: String,
    user: UserIndex,
    kind: &'static str,
    pub(super) fields: Form,
    pub(super) status: OrderStatus,
}

/// The special orders of all users.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpecialOrders(Vec<SpecialOrder>);

impl SpecialOrders {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn place(&mut self, user: UserIndex, kind: &'static str, fields: Form) -> String {
        let id = format!("27{:010}", self.0.len() + 1);
        self.0.push(SpecialOrder { id: id.clone(), user, kind, fields, status: OrderStatus::Open });
        id
    }

    /// Returns an open order of the user's, of one of `kinds`.
    pub(super) fn open(&mut self, user: UserIndex, kinds: &[&str], id: &str) -> Option<&mut SpecialOrder> {
        let is_it = |order: &&mut SpecialOrder| {
            order.id == id
                && order.user == user
                && kinds.contains(&order.kind)
                && order.status == OrderStatus::Open
        };
        self.0.iter_mut().find(is_it)
    }
    /// Returns the user's orders of a kind, in the order of their placing.
    pub(super) fn of_kind(&self, user: UserIndex, kind: &str) -> impl Iterator<Item = &SpecialOrder> {
        self.0.iter().filter(move |order| order.user == user && order.kind == kind)
    }
}
