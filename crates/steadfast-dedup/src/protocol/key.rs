use steadfast_spec::{Code, OrderRecord, OrderRequest, Side, SymId};

/// Instrument and side: within an account, orders that share both could be taken for each other.
///
/// Quantity, price and type are not part of it: users, slicing and conversions change them later. Nor is the spelling
/// of the instrument: services list an expiry in capitals that was ordered without.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    sym_id: SymId,
    side: Side,
}

impl Key {
    pub(crate) fn of_order(order: &OrderRequest) -> Self {
        Self { sym_id: order.sym_id().folded(), side: order.side() }
    }

    /// Returns the key of the other side of the same instrument.
    pub(crate) fn opposite(&self) -> Self {
        let side = match self.side {
            Side::Buy => Side::Sell,
            Side::Sell => Side::Buy,
        };
        Self { sym_id: self.sym_id.clone(), side }
    }

    /// Returns the key of a record, or `None` if the record does not show it and could belong to any.
    pub(crate) fn of_record(record: &OrderRecord) -> Option<Self> {
        let Some(Code::Known(side)) = record.side else { return None };
        let sym_id: SymId = record.sym_id.as_deref()?.parse().ok()?;
        Some(Self { sym_id: sym_id.folded(), side })
    }
}
