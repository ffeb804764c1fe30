use std::borrow::Cow;

use rust_decimal::Decimal;

use crate::{
    Form, InvalidOrder, InvalidOrderReason, OrderRecord, OrderType, ToDecimal, Validity,
    order::{NotNumbers, check_extra, check_price, code, is_same},
};

/// A change of an open order.
///
/// The service's request for it is "not shown" (§4.5). The fields have the names of §4.4, and only those that are set
/// are sent.
///
/// # Example
///
/// ```
/// use steadfast_spec::OrderChange;
///
/// let change = OrderChange::new().qty(5).limit_price("99.95");
/// assert_eq!(change.form("17").encode(), "orderId=17&qty=5&limitPrice=99.95");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct OrderChange {
    qty: Option<Decimal>,
    order_type: Option<OrderType>,
    validity: Option<Validity>,
    limit_price: Option<Decimal>,
    trig_price: Option<Decimal>,
    numbers: NotNumbers,
    extra: Vec<(Cow<'static, str>, String)>,
}

impl OrderChange {
    /// Creates an empty change.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a change from the fields of a form, as [`form`](Self::form) writes it, with the id of its order.
    ///
    /// An empty text counts as absent, and other names become extra fields.
    ///
    /// # Errors
    ///
    /// [`InvalidOrder`], which names the first field that is missing, repeated or wrong.
    pub fn from_fields<'a>(
        fields: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<(String, Self), InvalidOrder> {
        let (order_id, change) = Self::read(fields)?;
        let order_id = order_id.ok_or_else(|| InvalidOrder::new("orderId", InvalidOrderReason::Missing))?;
        change.check(&order_id)?;
        Ok((order_id, change))
    }

    /// Reads the fields of a change, unchecked, and the id of its order if it is among them.
    pub(crate) fn read<'a>(
        fields: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<(Option<String>, Self), InvalidOrder> {
        let (mut order_id, mut change) = (None, Self::new());
        let mut seen: Vec<&str> = Vec::new();
        for (name, value) in fields {
            if seen.iter().any(|earlier| is_same(earlier, name)) {
                return Err(InvalidOrder::new(name.to_owned(), InvalidOrderReason::Repeated));
            }
            seen.push(name);
            if value.is_empty() {
                continue;
            }
            change = match name {
                "orderId" => {
                    order_id = Some(value.to_owned());
                    change
                }
                "qty" => change.qty(value),
                "type" => change.order_type(code("type", value)?),
                "validity" => change.validity(code("validity", value)?),
                "limitPrice" => change.limit_price(value),
                "trigPrice" => change.trig_price(value),
                other => change.extra(other.to_owned(), value),
            };
        }
        Ok((order_id, change))
    }

    /// Sets the new quantity, in units.
    pub fn qty(mut self, qty: impl ToDecimal) -> Self {
        self.qty = self.numbers.read("qty", qty);
        self
    }

    /// Sets the new price type.
    pub fn order_type(mut self, order_type: OrderType) -> Self {
        self.order_type = Some(order_type);
        self
    }

    /// Sets the new validity.
    pub fn validity(mut self, validity: Validity) -> Self {
        self.validity = Some(validity);
        self
    }

    /// Sets the new limit price.
    pub fn limit_price(mut self, price: impl ToDecimal) -> Self {
        self.limit_price = self.numbers.read("limitPrice", price);
        self
    }

    /// Sets the new trigger price.
    pub fn trig_price(mut self, price: impl ToDecimal) -> Self {
        self.trig_price = self.numbers.read("trigPrice", price);
        self
    }

    /// Sets another field that the service understands. A record cannot show whether it was changed.
    pub fn extra(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<String>) -> Self {
        self.extra.push((name.into(), value.into()));
        self
    }

    /// True if there is nothing to change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Checks the change of the order `order_id`: the id is given, every number can be held exactly, the quantity is
    /// above zero, no price is below zero or is zero for a type that needs it, and no extra field has the name of
    /// another field.
    ///
    /// # Errors
    ///
    /// [`InvalidOrder`], which names the first wrong field.
    pub fn check(&self, order_id: &str) -> Result<(), InvalidOrder> {
        use InvalidOrderReason::{Missing, NotPositive};

        self.numbers.check()?;
        if order_id.trim().is_empty() {
            return Err(InvalidOrder::new("orderId", Missing));
        }
        if self.qty.is_some_and(|qty| qty <= Decimal::ZERO) {
            return Err(InvalidOrder::new("qty", NotPositive));
        }
        for (field, price, needed) in [
            ("limitPrice", self.limit_price, self.order_type.is_none_or(OrderType::needs_limit_price)),
            ("trigPrice", self.trig_price, self.order_type.is_none_or(OrderType::needs_trig_price)),
        ] {
            check_price(field, price, needed)?;
        }
        check_extra(&self.extra, &["orderId", "qty", "type", "validity", "limitPrice", "trigPrice"])
    }

    /// Returns the form that changes the order.
    #[must_use]
    pub fn form(&self, order_id: &str) -> Form {
        let fields = [
            ("qty", self.qty.map(|qty| qty.to_string())),
            ("type", self.order_type.map(|code| code.as_str().to_owned())),
            ("validity", self.validity.map(|code| code.as_str().to_owned())),
            ("limitPrice", self.limit_price.map(|price| price.to_string())),
            ("trigPrice", self.trig_price.map(|price| price.to_string())),
        ];
        let set = fields.into_iter().filter_map(|(name, value)| Some((Cow::Borrowed(name), value?)));
        let all = set.chain(self.extra.iter().cloned());
        all.fold(Form::new().with("orderId", order_id), |form, (name, value)| form.with(name, value))
    }

    /// Returns whether a record shows the changed order; `None` if it does not carry every changed field.
    #[must_use]
    pub fn is_shown_by(&self, record: &OrderRecord) -> Option<bool> {
        if !self.extra.is_empty() {
            return None;
        }
        fn field<W: Copy>(wanted: Option<W>, shows: impl Fn(W) -> Option<bool>) -> Option<bool> {
            wanted.map_or(Some(true), shows)
        }
        let shown = [
            field(self.qty, |qty| record.qty.map(|shown| shown == qty)),
            field(self.limit_price, |price| record.limit_price.map(|shown| shown == price)),
            field(self.trig_price, |price| record.trig_price.map(|shown| shown == price)),
            field(self.order_type, |code| record.order_type.as_ref().map(|shown| shown.is(code))),
            field(self.validity, |code| record.validity.as_ref().map(|shown| shown.is(code))),
        ];
        // One field that certainly differs proves that the order was not changed.
        if shown.contains(&Some(false)) {
            Some(false)
        } else if shown.contains(&None) {
            None
        } else {
            Some(true)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FieldNames, parse_order_list};

    fn record(fields: &str) -> OrderRecord {
        let list = format!(r#"{{"s":"ok","d":[{{"orderId":"1"{fields}}}]}}"#);
        parse_order_list(list.as_bytes(), &FieldNames::default()).unwrap().remove(0)
    }

    #[test]
    fn only_what_is_set_is_sent() {
        let change =
            OrderChange::new().order_type(OrderType::Market).validity(Validity::Ioc).extra("remarks", "x");
        assert_eq!(change.form("a b").encode(), "orderId=a+b&type=market&validity=ioc&remarks=x");
        assert!(OrderChange::new().is_empty() && !change.is_empty());
    }

    #[test]
    fn a_change_that_cannot_be_made_names_its_field() {
        let one = || "-1".parse::<Decimal>().unwrap();
        let new = OrderChange::new;
        for (change, id, field) in [
            (new().qty(1), " ", "orderId"),
            (new().qty(0), "1", "qty"),
            (new().qty(one()), "1", "qty"),
            (new().limit_price(one()), "1", "limitPrice"),
            (new().limit_price(Decimal::ZERO), "1", "limitPrice"),
            (new().order_type(OrderType::StopMarket).trig_price(Decimal::ZERO), "1", "trigPrice"),
            (new().extra("qty", "7"), "1", "qty"),
            (new().extra("orderId", "7"), "1", "orderId"),
            (new().extra("a", "7").extra("a", "8"), "1", "a"),
            (new().extra("", "7"), "1", "extra"),
        ] {
            assert_eq!(change.check(id).unwrap_err().field(), field, "{change:?}");
        }
        let market = new().order_type(OrderType::Market).limit_price(Decimal::ZERO).extra("side", "buy");
        assert_eq!(market.check("1"), Ok(()));
    }

    #[test]
    fn a_change_round_trips_through_its_form() {
        let change =
            OrderChange::new().qty(5).order_type(OrderType::Limit).limit_price("9.5").extra("remarks", "x");
        let form = change.form("a b");
        assert_eq!(OrderChange::from_fields(form.iter()), Ok(("a b".to_owned(), change)));
        for (form, field) in [
            (&[("qty", "5")][..], "orderId"),
            (&[("orderId", ""), ("qty", "5")], "orderId"),
            (&[("orderId", "1"), ("qty", "5"), ("qty", "5")], "qty"),
            (&[("orderId", "1"), ("type", "LIMIT")], "type"),
            (&[("orderId", "1"), ("qty", "0")], "qty"),
        ] {
            assert_eq!(
                OrderChange::from_fields(form.iter().copied()).unwrap_err().field(),
                field,
                "{form:?}"
            );
        }
    }

    #[test]
    fn a_record_shows_a_change_only_if_it_carries_all_of_it() {
        let change = OrderChange::new().qty(5).order_type(OrderType::Limit);
        assert_eq!(change.is_shown_by(&record(r#","qty":"5.0","type":"limit""#)), Some(true));
        assert_eq!(change.is_shown_by(&record(r#","qty":5"#)), None);
        assert_eq!(change.is_shown_by(&record(r#","qty":6"#)), Some(false), "one difference is enough");
        assert_eq!(change.is_shown_by(&record(r#","qty":5,"type":"new type""#)), Some(false));
        let unseen = OrderChange::new().extra("remarks", "x");
        assert_eq!(unseen.is_shown_by(&record("")), None);
    }
}
