use std::time::Duration;

use steadfast_spec::{Decimal, Product, Side, SymId};

use crate::gateway::directory::UserIndex;

/// A part of a position that moves to another product.
#[derive(Clone, Debug)]
pub(crate) struct Conversion {
    pub(super) user: UserIndex,
    pub(super) at: Duration,
    pub(super) sym_id: SymId,
    pub(super) from: Product,
    pub(super) to: Product,
    pub(super) side: Side,
    pub(super) qty: Decimal,
    pub(super) price: Decimal,
}
