use steadfast_spec::{Decimal, Product, Side, SymId};

/// Some of an instrument that is bought or sold, or, below zero, no more is because it was converted.
pub(super) struct Lot<'a> {
    pub(super) sym_id: &'a SymId,
    pub(super) product: Product,
    pub(super) side: Side,
    pub(super) qty: Decimal,
    pub(super) price: Decimal,
    pub(super) day: u64,
}

/// All that was bought and sold of one instrument.
#[derive(Clone, Copy, Default)]
pub(super) struct Traded {
    pub(super) buy_qty: Decimal,
    pub(super) buy_value: Decimal,
    pub(super) sell_qty: Decimal,
    pub(super) sell_value: Decimal,
}

impl Traded {
    // Numbers near the largest decimal saturate.
    pub(super) fn add(&mut self, lot: &Lot<'_>) {
        let (qty, value) = match lot.side {
            Side::Buy => (&mut self.buy_qty, &mut self.buy_value),
            Side::Sell => (&mut self.sell_qty, &mut self.sell_value),
        };
        *qty = qty.saturating_add(lot.qty);
        *value = value.saturating_add(lot.qty.saturating_mul(lot.price));
    }

    pub(super) fn net(&self) -> Decimal {
        self.buy_qty.saturating_sub(self.sell_qty)
    }

    pub(super) fn net_value(&self) -> Decimal {
        self.net().saturating_mul(self.net_price())
    }

    pub(super) fn buy_price(&self) -> Decimal {
        average(self.buy_value, self.buy_qty)
    }

    pub(super) fn sell_price(&self) -> Decimal {
        average(self.sell_value, self.sell_qty)
    }

    /// Returns the average price of what is held or owed.
    pub(super) fn net_price(&self) -> Decimal {
        match self.net() {
            net if net.is_zero() => Decimal::ZERO,
            net if net.is_sign_negative() => self.sell_price(),
            _ => self.buy_price(),
        }
    }

    pub(super) fn realized(&self) -> Decimal {
        let closed = self.buy_qty.min(self.sell_qty);
        closed.saturating_mul(self.sell_price().saturating_sub(self.buy_price())).normalize()
    }
}

fn average(value: Decimal, qty: Decimal) -> Decimal {
    value.checked_div(qty).unwrap_or_default().round_dp(4).normalize()
}
