mod builder;
mod fields;
mod invalid;

use std::borrow::Cow;

use rust_decimal::Decimal;

pub(crate) use self::fields::{NotNumbers, check_extra, check_price, code, is_same};
pub use self::{
    builder::OrderRequestBuilder,
    invalid::{InvalidOrder, InvalidOrderReason},
};
use crate::{Form, OrderType, Product, Side, SymId, Validity};

/// The fields of §4.4, in their order on the wire.
const FIELDS: [&str; 8] = ["symId", "qty", "side", "type", "product", "validity", "limitPrice", "trigPrice"];

/// An order that satisfies every rule of §4.4.
///
/// An invalid one cannot exist: [`OrderRequestBuilder::build`] and [`OrderRequest::from_fields`] are the only sources,
/// and both name the wrong field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderRequest {
    sym_id: SymId,
    qty: Decimal,
    side: Side,
    order_type: OrderType,
    product: Product,
    validity: Validity,
    limit_price: Option<Decimal>,
    trig_price: Option<Decimal>,
    extra: Vec<(Cow<'static, str>, String)>,
}

impl OrderRequest {
    /// Starts an order.
    pub fn builder() -> OrderRequestBuilder {
        OrderRequestBuilder::default()
    }

    /// Reads an order from named texts, such as the cells of a CSV row or the fields of a form.
    ///
    /// An empty text counts as absent. Names other than those of §4.4 become extra fields.
    ///
    /// # Errors
    ///
    /// [`InvalidOrder`], which names the first field that is missing or wrong.
    pub fn from_fields<'a>(
        fields: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, InvalidOrder> {
        let mut builder = Self::builder();
        let mut own = [false; FIELDS.len()];
        let mut others: Vec<&str> = Vec::new();
        for (name, value) in fields {
            let repeated = match FIELDS.iter().position(|field| *field == name) {
                Some(field) => std::mem::replace(&mut own[field], true),
                None if others.iter().any(|other| is_same(other, name)) => true,
                None => {
                    others.push(name);
                    false
                }
            };
            if repeated {
                return Err(InvalidOrder::new(name.to_owned(), InvalidOrderReason::Repeated));
            }
            if value.is_empty() {
                continue;
            }
            match name {
                "symId" => {
                    let sym_id = value.parse();
                    let missing = |_| InvalidOrder::new("symId", InvalidOrderReason::Missing);
                    builder.sym_id = Some(sym_id.map_err(missing)?);
                }
                "qty" => builder.qty = builder.numbers.read("qty", value),
                "side" => builder.side = Some(code("side", value)?),
                "type" => builder.order_type = Some(code("type", value)?),
                "product" => builder.product = Some(code("product", value)?),
                "validity" => builder.validity = Some(code("validity", value)?),
                "limitPrice" => builder.limit_price = builder.numbers.read("limitPrice", value),
                "trigPrice" => builder.trig_price = builder.numbers.read("trigPrice", value),
                other => builder.extra.push((other.to_owned().into(), value.to_owned())),
            }
        }
        builder.build()
    }

    /// Returns the instrument.
    #[must_use]
    pub fn sym_id(&self) -> &SymId {
        &self.sym_id
    }

    /// Returns the quantity, in units; above zero.
    #[must_use]
    pub fn qty(&self) -> Decimal {
        self.qty
    }

    /// Returns the direction.
    #[must_use]
    pub fn side(&self) -> Side {
        self.side
    }

    /// Returns the price type.
    #[must_use]
    pub fn order_type(&self) -> OrderType {
        self.order_type
    }

    /// Returns the product.
    #[must_use]
    pub fn product(&self) -> Product {
        self.product
    }

    /// Returns the validity.
    #[must_use]
    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// Returns the limit price; always present for `limit` and `stoplimit`.
    #[must_use]
    pub fn limit_price(&self) -> Option<Decimal> {
        self.limit_price
    }

    /// Returns the trigger price; always present for `stoplimit` and `stopmarket`.
    #[must_use]
    pub fn trig_price(&self) -> Option<Decimal> {
        self.trig_price
    }

    /// True for `eos` on an exchange other than BSE: §2 restricts that validity to BSE, so the service may refuse the
    /// order. False for an identifier of unknown shape.
    #[must_use]
    pub fn is_eos_outside_bse(&self) -> bool {
        self.validity == Validity::Eos
            && self.sym_id.exchange().is_some_and(|exchange| !exchange.starts_with("BSE"))
    }

    /// Returns the text of an extra field; names in another case count as the same.
    #[must_use]
    pub fn extra(&self, name: &str) -> Option<&str> {
        let found = self.extra.iter().find(|(other, _)| is_same(other, name));
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the order as the form of `POST /api/oms/place-order`.
    #[must_use]
    pub fn form(&self) -> Form {
        let mut form = Form::new()
            .with("symId", self.sym_id.as_str())
            .with("qty", self.qty.to_string())
            .with("side", self.side.as_str())
            .with("type", self.order_type.as_str())
            .with("product", self.product.as_str())
            .with("validity", self.validity.as_str());
        if let Some(price) = self.limit_price {
            form = form.with("limitPrice", price.to_string());
        }
        if let Some(price) = self.trig_price {
            form = form.with("trigPrice", price.to_string());
        }
        self.extra.iter().fold(form, |form, (name, value)| form.with(name.clone(), value.clone()))
    }
}

#[cfg(test)]
mod tests;
