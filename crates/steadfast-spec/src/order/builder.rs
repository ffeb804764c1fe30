use std::borrow::Cow;

use rust_decimal::Decimal;

use super::{
    FIELDS, InvalidOrder, InvalidOrderReason, OrderRequest,
    fields::{NotNumbers, check_extra, check_price},
};
use crate::{OrderType, Product, Side, SymId, ToDecimal, Validity, changes_display};

/// Collects an order's fields; made by [`OrderRequest::builder`].
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct OrderRequestBuilder {
    pub(super) sym_id: Option<SymId>,
    pub(super) qty: Option<Decimal>,
    pub(super) side: Option<Side>,
    pub(super) order_type: Option<OrderType>,
    pub(super) product: Option<Product>,
    pub(super) validity: Option<Validity>,
    pub(super) limit_price: Option<Decimal>,
    pub(super) trig_price: Option<Decimal>,
    pub(super) numbers: NotNumbers,
    refuse_eos_outside_bse: bool,
    pub(super) extra: Vec<(Cow<'static, str>, String)>,
}

impl OrderRequestBuilder {
    /// Sets the instrument; required.
    pub fn sym_id(mut self, sym_id: SymId) -> Self {
        self.sym_id = Some(sym_id);
        self
    }

    /// Sets the quantity, in units; required, above zero.
    pub fn qty(mut self, qty: impl ToDecimal) -> Self {
        self.qty = self.numbers.read("qty", qty);
        self
    }

    /// Sets the direction; required.
    pub fn side(mut self, side: Side) -> Self {
        self.side = Some(side);
        self
    }

    /// Sets the price type; required.
    pub fn order_type(mut self, order_type: OrderType) -> Self {
        self.order_type = Some(order_type);
        self
    }

    /// Sets the product; required.
    pub fn product(mut self, product: Product) -> Self {
        self.product = Some(product);
        self
    }

    /// Sets the validity; required.
    pub fn validity(mut self, validity: Validity) -> Self {
        self.validity = Some(validity);
        self
    }

    /// Sets the limit price; required for `limit` and `stoplimit`.
    pub fn limit_price(mut self, price: impl ToDecimal) -> Self {
        self.limit_price = self.numbers.read("limitPrice", price);
        self
    }

    /// Sets the trigger price; required for `stoplimit` and `stopmarket`.
    pub fn trig_price(mut self, price: impl ToDecimal) -> Self {
        self.trig_price = self.numbers.read("trigPrice", price);
        self
    }

    /// Makes `eos` on an exchange other than BSE an error instead of a warning (§2).
    pub fn refuse_eos_outside_bse(mut self) -> Self {
        self.refuse_eos_outside_bse = true;
        self
    }

    /// Adds a field that the specification does not show ("other optional fields").
    pub fn extra(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<String>) -> Self {
        self.extra.push((name.into(), value.into()));
        self
    }

    /// Builds the order.
    ///
    /// # Errors
    ///
    /// [`InvalidOrder`], which names the first field that breaks a rule of §4.4, or an extra field that would override
    /// one of the order's own.
    pub fn build(self) -> Result<OrderRequest, InvalidOrder> {
        use InvalidOrderReason::{ControlCharacter, Missing, NotPositive, OutsideBse, RequiredByType};

        self.numbers.check()?;
        let sym_id = self.sym_id.ok_or_else(|| InvalidOrder::new("symId", Missing))?;
        let qty = self.qty.ok_or_else(|| InvalidOrder::new("qty", Missing))?;
        let side = self.side.ok_or_else(|| InvalidOrder::new("side", Missing))?;
        let order_type = self.order_type.ok_or_else(|| InvalidOrder::new("type", Missing))?;
        let product = self.product.ok_or_else(|| InvalidOrder::new("product", Missing))?;
        let validity = self.validity.ok_or_else(|| InvalidOrder::new("validity", Missing))?;
        if sym_id.as_str().contains(changes_display) {
            return Err(InvalidOrder::new("symId", ControlCharacter));
        }
        if qty <= Decimal::ZERO {
            return Err(InvalidOrder::new("qty", NotPositive));
        }
        for (field, price, needed) in [
            ("limitPrice", self.limit_price, order_type.needs_limit_price()),
            ("trigPrice", self.trig_price, order_type.needs_trig_price()),
        ] {
            if needed && price.is_none() {
                return Err(InvalidOrder::new(field, RequiredByType(order_type)));
            }
            check_price(field, price, needed)?;
        }
        check_extra(&self.extra, &FIELDS)?;
        let order = OrderRequest {
            sym_id,
            qty,
            side,
            order_type,
            product,
            validity,
            limit_price: self.limit_price,
            trig_price: self.trig_price,
            extra: self.extra,
        };
        if self.refuse_eos_outside_bse && order.is_eos_outside_bse() {
            return Err(InvalidOrder::new("validity", OutsideBse));
        }
        Ok(order)
    }
}
