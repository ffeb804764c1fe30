use std::{borrow::Cow, error::Error, fmt};

use rust_decimal::Decimal;

use crate::{Form, OrderType, Product, Side, SymId, ToDecimal, Validity, is_obeyed};

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
                None if others.contains(&name) => true,
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
                "qty" => builder.qty = builder.exact("qty", value),
                "side" => builder.side = Some(code("side", value)?),
                "type" => builder.order_type = Some(code("type", value)?),
                "product" => builder.product = Some(code("product", value)?),
                "validity" => builder.validity = Some(code("validity", value)?),
                "limitPrice" => builder.limit_price = builder.exact("limitPrice", value),
                "trigPrice" => builder.trig_price = builder.exact("trigPrice", value),
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
        let found = self.extra.iter().find(|(other, _)| other.trim().eq_ignore_ascii_case(name));
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

pub(crate) fn code<T: std::str::FromStr<Err = crate::UnknownCode>>(
    field: &'static str,
    text: &str,
) -> Result<T, InvalidOrder> {
    text.parse()
        .map_err(|error: crate::UnknownCode| InvalidOrder::new(field, InvalidOrderReason::UnknownCode(error)))
}

/// Collects an order's fields; made by [`OrderRequest::builder`].
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct OrderRequestBuilder {
    sym_id: Option<SymId>,
    qty: Option<Decimal>,
    side: Option<Side>,
    order_type: Option<OrderType>,
    product: Option<Product>,
    validity: Option<Validity>,
    limit_price: Option<Decimal>,
    trig_price: Option<Decimal>,
    /// The first number that cannot be held exactly.
    not_a_number: Option<&'static str>,
    refuse_eos_outside_bse: bool,
    extra: Vec<(Cow<'static, str>, String)>,
}

impl OrderRequestBuilder {
    /// Sets the instrument; required.
    pub fn sym_id(mut self, sym_id: SymId) -> Self {
        self.sym_id = Some(sym_id);
        self
    }

    /// Sets the quantity, in units; required, above zero.
    pub fn qty(mut self, qty: impl ToDecimal) -> Self {
        self.qty = self.exact("qty", qty);
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
        self.limit_price = self.exact("limitPrice", price);
        self
    }

    /// Sets the trigger price; required for `stoplimit` and `stopmarket`.
    pub fn trig_price(mut self, price: impl ToDecimal) -> Self {
        self.trig_price = self.exact("trigPrice", price);
        self
    }

    fn exact(&mut self, field: &'static str, number: impl ToDecimal) -> Option<Decimal> {
        let number = number.to_decimal().ok();
        if number.is_none() {
            self.not_a_number.get_or_insert(field);
        }
        number
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
        use InvalidOrderReason::{
            ControlCharacter, Missing, NotANumber, NotPositive, OutsideBse, RequiredByType,
        };

        if let Some(field) = self.not_a_number {
            return Err(InvalidOrder::new(field, NotANumber));
        }
        let sym_id = self.sym_id.ok_or_else(|| InvalidOrder::new("symId", Missing))?;
        let qty = self.qty.ok_or_else(|| InvalidOrder::new("qty", Missing))?;
        let side = self.side.ok_or_else(|| InvalidOrder::new("side", Missing))?;
        let order_type = self.order_type.ok_or_else(|| InvalidOrder::new("type", Missing))?;
        let product = self.product.ok_or_else(|| InvalidOrder::new("product", Missing))?;
        let validity = self.validity.ok_or_else(|| InvalidOrder::new("validity", Missing))?;
        if sym_id.as_str().contains(is_obeyed) {
            return Err(InvalidOrder::new("symId", ControlCharacter));
        }
        if qty <= Decimal::ZERO {
            return Err(InvalidOrder::new("qty", NotPositive));
        }
        for (field, price, needed) in [
            ("limitPrice", self.limit_price, order_type.needs_limit_price()),
            ("trigPrice", self.trig_price, order_type.needs_trig_price()),
        ] {
            match price {
                None if needed => return Err(InvalidOrder::new(field, RequiredByType(order_type))),
                Some(price) if needed && price <= Decimal::ZERO => {
                    return Err(InvalidOrder::new(field, NotPositive));
                }
                Some(price) if price.is_sign_negative() && !price.is_zero() => {
                    return Err(InvalidOrder::new(field, NotPositive));
                }
                _ => {}
            }
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

/// Checks that extra fields can stand beside the `own` ones. Names that differ only in case count as equal, because a
/// service might take `Qty` for `qty`.
pub(crate) fn check_extra(extra: &[(Cow<'static, str>, String)], own: &[&str]) -> Result<(), InvalidOrder> {
    use InvalidOrderReason::{ControlCharacter, Missing, OwnField, Repeated};

    for (position, (name, _)) in extra.iter().enumerate() {
        let reason = if name.is_empty() {
            return Err(InvalidOrder::new("extra", Missing));
        } else if name.contains(is_obeyed) {
            return Err(InvalidOrder::new("extra", ControlCharacter));
        } else if own.iter().any(|field| field.eq_ignore_ascii_case(name.trim())) {
            OwnField
        } else if extra.iter().take(position).any(|(earlier, _)| earlier == name) {
            Repeated
        } else {
            continue;
        };
        return Err(InvalidOrder::new(name.clone(), reason));
    }
    Ok(())
}

/// An order that breaks a rule of §4.4, or a change that no order allows, found before anything was sent.
#[derive(Clone, PartialEq, Eq)]
pub struct InvalidOrder {
    field: Cow<'static, str>,
    reason: InvalidOrderReason,
}

/// The mistake in the field that an [`InvalidOrder`] names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidOrderReason {
    /// It is required and absent or empty.
    Missing,
    /// It is required by the order's type and absent.
    RequiredByType(OrderType),
    /// It is not a decimal number that can be held exactly.
    NotANumber,
    /// It must be above zero.
    NotPositive,
    /// It is not one of the field's codes.
    UnknownCode(crate::UnknownCode),
    /// It is given twice.
    Repeated,
    /// It is one of the order's own fields, in any case, so it cannot be an extra one.
    OwnField,
    /// It holds a control character, such as a line feed, or a character that changes the direction of writing.
    ControlCharacter,
    /// `eos` is for BSE only.
    OutsideBse,
}

impl InvalidOrder {
    pub(crate) fn new(field: impl Into<Cow<'static, str>>, reason: InvalidOrderReason) -> Self {
        Self { field: field.into(), reason }
    }

    /// Returns the field's name, as in forms and CSV headers.
    #[must_use]
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Returns the mistake.
    #[must_use]
    pub fn reason(&self) -> &InvalidOrderReason {
        &self.reason
    }
}

impl fmt::Display for InvalidOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = &self.field;
        match &self.reason {
            InvalidOrderReason::Missing => write!(f, "{field} is required"),
            InvalidOrderReason::RequiredByType(order_type) => {
                write!(f, "{field} is required when type is {order_type}")
            }
            InvalidOrderReason::NotANumber => {
                write!(f, "{field} is not a decimal number that can be held exactly")
            }
            InvalidOrderReason::NotPositive => write!(f, "{field} must be above zero"),
            InvalidOrderReason::UnknownCode(error) => error.fmt(f),
            InvalidOrderReason::Repeated => write!(f, "{field} is given twice"),
            InvalidOrderReason::OwnField => write!(f, "{field} cannot be given as an extra field"),
            InvalidOrderReason::ControlCharacter => write!(f, "{field} holds a control character"),
            InvalidOrderReason::OutsideBse => write!(f, "{field} eos is for BSE only"),
        }
    }
}

impl fmt::Debug for InvalidOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for InvalidOrder {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GOOD: [(&str, &str); 8] = [
        ("symId", "EQT_INFY_EQ_NSE"),
        ("qty", "10"),
        ("side", "buy"),
        ("type", "stoplimit"),
        ("product", "delivery"),
        ("validity", "day"),
        ("limitPrice", "1500.05"),
        ("trigPrice", "1499"),
    ];

    fn with(field: &str, value: &'static str) -> Result<OrderRequest, InvalidOrder> {
        OrderRequest::from_fields(GOOD.map(|(name, good)| (name, if name == field { value } else { good })))
    }

    #[test]
    fn a_good_order_round_trips_through_its_form() {
        let order = OrderRequest::from_fields(GOOD).unwrap();
        assert_eq!(OrderRequest::from_fields(order.form().iter()), Ok(order));
    }

    #[test]
    fn each_wrong_field_is_named() {
        for (field, value, message) in [
            ("symId", "", "symId is required"),
            ("symId", " ", "symId is required"),
            ("qty", "ten", "qty is not a decimal number that can be held exactly"),
            ("qty", "0", "qty must be above zero"),
            ("qty", "-5", "qty must be above zero"),
            ("side", "BUY", "side is not one of buy, sell"),
            ("type", "LIMIT", "type is not one of limit, market, stoplimit, stopmarket"),
            ("product", "cnc", "product is not one of delivery, intraday, normal, cover, bracket"),
            ("validity", "DAY", "validity is not one of day, ioc, eos, gtc"),
            ("limitPrice", "", "limitPrice is required when type is stoplimit"),
            ("limitPrice", "0", "limitPrice must be above zero"),
            ("trigPrice", "", "trigPrice is required when type is stoplimit"),
            ("trigPrice", "1,499", "trigPrice is not a decimal number that can be held exactly"),
        ] {
            let error = with(field, value).unwrap_err();
            assert_eq!((error.field(), error.to_string().as_str()), (field, message), "{field}={value:?}");
        }
    }

    #[test]
    fn each_type_asks_for_its_own_prices() {
        for (order_type, limit, trig) in [
            ("limit", true, false),
            ("market", false, false),
            ("stoplimit", true, true),
            ("stopmarket", false, true),
        ] {
            for (field, needed) in [("limitPrice", limit), ("trigPrice", trig)] {
                let fields = GOOD.map(|(name, good)| match name {
                    "type" => (name, order_type),
                    _ if name == field => (name, ""),
                    _ => (name, good),
                });
                assert_eq!(
                    OrderRequest::from_fields(fields).is_err(),
                    needed,
                    "{order_type} without {field}"
                );
            }
        }
    }

    #[test]
    fn an_extra_field_never_overrides_the_orders_own() {
        let builder = || {
            OrderRequest::builder()
                .sym_id("EQT_INFY_EQ_NSE".parse().unwrap())
                .qty(1)
                .side(Side::Sell)
                .order_type(OrderType::Market)
                .product(Product::Intraday)
                .validity(Validity::Ioc)
        };
        let remarked = builder().extra("remarks", "a").build().unwrap();
        assert!(remarked.form().encode().ends_with("&remarks=a"));
        assert_eq!((remarked.extra("Remarks"), remarked.extra("other")), (Some("a"), None));
        assert_eq!(
            builder().extra("qty", "9").build().unwrap_err().to_string(),
            "qty cannot be given as an extra field"
        );
        let twice = builder().extra("a", "1").extra("a", "2").build();
        assert_eq!(twice.unwrap_err().to_string(), "a is given twice");
    }

    #[test]
    fn eos_outside_bse_warns_and_is_refused_on_request() {
        let order = with("validity", "eos").unwrap();
        assert!(order.is_eos_outside_bse());
        let refused = OrderRequest::builder()
            .sym_id(order.sym_id().clone())
            .qty(1)
            .side(Side::Buy)
            .order_type(OrderType::Market)
            .product(Product::Delivery)
            .validity(Validity::Eos)
            .refuse_eos_outside_bse()
            .build();
        assert_eq!(refused.unwrap_err().to_string(), "validity eos is for BSE only");
    }

    proptest! {
        #[test]
        fn every_order_survives_form_encoding(
            symbol in "[A-Z&]{1,8}", qty in 1_u32.., cents in 1_i64..10_000_000, side in 0_usize..2, kind in 0_usize..4,
            product in 0_usize..5, validity in 0_usize..4, extra in prop::option::of(".{1,10}"),
        ) {
            let mut builder = OrderRequest::builder()
                .sym_id(format!("EQT_{symbol}_EQ_BSE").parse().unwrap())
                .qty(qty)
                .side(Side::ALL[side])
                .order_type(OrderType::ALL[kind])
                .product(Product::ALL[product])
                .validity(Validity::ALL[validity])
                .limit_price(Decimal::new(cents, 2))
                .trig_price(Decimal::new(cents, 2));
            if let Some(extra) = extra { builder = builder.extra("remarks", extra); }
            let order = builder.build().unwrap();
            let read = Form::parse(order.form().encode().as_bytes()).unwrap();
            prop_assert_eq!(OrderRequest::from_fields(read.iter()), Ok(order));
        }

        #[test]
        fn no_fields_panic(fields in prop::collection::vec(("(symId|qty|side|type|limitPrice|x)", "\\PC{0,12}"), 0..8)) {
            let _ = OrderRequest::from_fields(fields.iter().map(|(k, v)| (k.as_str(), v.as_str())));
        }
    }
}
