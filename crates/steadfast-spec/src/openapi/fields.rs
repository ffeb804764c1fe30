use serde_json::{Value, json};

use crate::{Endpoint, OrderType, Product, Side, Validity};

/// One parameter of a request: a field of its form, or of its query.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) needed: bool,
    /// False if the specification does not show it.
    shown: bool,
    kind: Kind,
    example: &'static str,
}

#[derive(Clone, Debug)]
enum Kind {
    Text,
    Number,
    Codes(Vec<&'static str>),
}

const fn field(name: &'static str, kind: Kind, example: &'static str) -> Field {
    Field { name, needed: true, shown: true, kind, example }
}

const fn text(name: &'static str, example: &'static str) -> Field {
    field(name, Kind::Text, example)
}

const fn number(name: &'static str, example: &'static str) -> Field {
    field(name, Kind::Number, example)
}

impl Field {
    fn optional(self) -> Self {
        Self { needed: false, ..self }
    }

    fn not_shown(self) -> Self {
        Self { shown: false, ..self }
    }

    /// Returns the field's schema.
    pub(super) fn schema(&self) -> Value {
        let mut schema = match &self.kind {
            Kind::Text => json!({"type": "string"}),
            Kind::Number => json!({"type": "number"}),
            Kind::Codes(codes) => json!({"type": "string", "enum": codes}),
        };
        let number = matches!(self.kind, Kind::Number).then(|| serde_json::from_str(self.example).ok());
        schema["examples"] = json!([number.flatten().unwrap_or_else(|| json!(self.example))]);
        if !self.shown {
            schema["description"] = NOT_SHOWN.into();
        }
        schema
    }
}

const NOT_SHOWN: &str = "Not shown in the specification; so used by a published client, or by the sandbox.";

fn side() -> Field {
    field(Side::FIELD, Kind::Codes(Side::ALL.iter().map(|code| code.as_str()).collect()), "buy")
}

fn order_type() -> Field {
    field(OrderType::FIELD, Kind::Codes(OrderType::ALL.iter().map(|code| code.as_str()).collect()), "limit")
}

fn product() -> Field {
    product_called(Product::FIELD, "delivery")
}

fn product_called(name: &'static str, example: &'static str) -> Field {
    field(name, Kind::Codes(Product::ALL.iter().map(|code| code.as_str()).collect()), example)
}

fn validity() -> Field {
    field(Validity::FIELD, Kind::Codes(Validity::ALL.iter().map(|code| code.as_str()).collect()), "day")
}

fn sym_id() -> Field {
    text("symId", "EQT_INFY_EQ_NSE")
}

fn order_id() -> Field {
    text("orderId", "260000000001")
}

/// The id of an order of a special kind.
fn special_id(name: &'static str) -> Field {
    text(name, "270000000001").not_shown()
}

fn limit_price() -> Field {
    number("limitPrice", "1500.05").optional()
}

fn trig_price() -> Field {
    number("trigPrice", "1495").optional()
}

/// The fields of §4.4, and those that a published client sends beside them.
fn order() -> Vec<Field> {
    let mut fields = vec![sym_id(), number("qty", "10"), side(), order_type(), product(), validity()];
    fields.extend([limit_price(), trig_price()]);
    fields.extend(order_extras());
    fields
}

fn order_extras() -> Vec<Field> {
    [number("discQty", "0"), text("amo", "false"), number("mktProt", "0"), text("remarks", "my-tag")]
        .map(|field| field.optional().not_shown())
        .into()
}

/// The fields of the special kinds of orders, of which each kind takes some.
fn special() -> Vec<Field> {
    let numbers = [
        ("qty", "10"),
        ("limitPrice", "1500.05"),
        ("trigPrice", "1495"),
        ("trigPricePer", "1"),
        ("mktProt", "0"),
        ("stopTrigPrice", "1490"),
        ("stopTrigQty", "10"),
        ("stopPrice", "1489"),
        ("targetPrice", "1520"),
        ("targetTrigPrice", "1519"),
        ("targetQty", "10"),
        ("trailingStopPrice", "1"),
    ];
    let codes = [order_type(), product(), validity()].map(Field::optional);
    let others = ["stopLossType", "stopLossProduct", "targetType", "targetProduct", "remarks"];
    let numbers = numbers.map(|(name, example)| number(name, example).optional());
    let others = others.map(|name| text(name, "").optional());
    [sym_id(), side()].into_iter().chain(codes).chain(numbers).chain(others).map(Field::not_shown).collect()
}

/// Returns the parameters in the query of a request.
pub(super) fn query(endpoint: Endpoint) -> Vec<Field> {
    let detailed = || vec![text("symDetails", "true").optional().not_shown()];
    match endpoint {
        Endpoint::Authorize => vec![
            text("client_id", "").not_shown(),
            text("redirect_uri", "").optional().not_shown(),
            text("response_type", "code").optional().not_shown(),
            text("scope", "general").optional().not_shown(),
            text("state", "").optional().not_shown(),
        ],
        Endpoint::CancelOrder => vec![order_id()],
        Endpoint::CancelSpecial => vec![special_id("orderNo")],
        Endpoint::Orders
        | Endpoint::SpecialOrders
        | Endpoint::Trades
        | Endpoint::Positions
        | Endpoint::Holdings => detailed(),
        Endpoint::History => vec![order_id().optional().not_shown()],
        Endpoint::Quotes => vec![sym_id().not_shown()],
        Endpoint::SymbolGroups => vec![text("version", "0").optional().not_shown()],
        Endpoint::IntervalData => vec![
            text("from", "1790000000").not_shown(),
            text("to", "1790003600").not_shown(),
            text("interval", "1").not_shown(),
            text("id", "EQT_INFY_EQ_NSE").not_shown(),
        ],
        _ => Vec::new(),
    }
}

/// Returns the fields of a request's form.
pub(super) fn form(endpoint: Endpoint) -> Vec<Field> {
    match endpoint {
        Endpoint::Token => vec![
            text("code", ""),
            text("client_id", ""),
            text("client_secret", ""),
            text("redirect_uri", ""),
            field("grant_type", Kind::Codes(vec!["authorization_code"]), "authorization_code"),
        ],
        Endpoint::IndividualToken => vec![
            // A published client sends none.
            text("client_id", "").optional(),
            text("password", ""),
            text("twoFa", "123456"),
            field("twoFaTyp", Kind::Codes(vec!["otp", "totp"]), "totp"),
        ],
        Endpoint::PlaceOrder => order(),
        // A published client asks for a margin without a validity.
        Endpoint::OrderMargin => order()
            .into_iter()
            .map(|field| if field.name == Validity::FIELD { field.optional() } else { field })
            .collect(),
        Endpoint::BasketMargin => vec![text("orders", "[]").optional().not_shown()],
        Endpoint::ModifyOrder => {
            let fields =
                [sym_id(), number("qty", "10"), order_type(), validity(), limit_price(), trig_price()];
            let extras = [side(), number("discQty", "0"), number("mktProt", "0")];
            let optional = fields.into_iter().chain(extras).map(Field::optional);
            std::iter::once(order_id()).chain(optional).map(Field::not_shown).collect()
        }
        Endpoint::PlaceSpecial => special(),
        Endpoint::ModifySpecial => {
            let optional = special().into_iter().map(Field::optional);
            std::iter::once(special_id("orderId")).chain(optional).collect()
        }
        Endpoint::ExitOrder => vec![special_id("orderId"), product().optional().not_shown()],
        Endpoint::ConvertPosition => vec![
            sym_id().not_shown(),
            number("qty", "10").not_shown(),
            product_called("fromProduct", "intraday").not_shown(),
            product_called("toProduct", "delivery").not_shown(),
            side().not_shown(),
        ],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OrderChange, OrderRequest};

    fn names(endpoint: Endpoint) -> Vec<&'static str> {
        form(endpoint).iter().map(|field| field.name).collect()
    }

    #[test]
    fn the_forms_that_this_crate_writes_have_no_other_field() {
        let order = OrderRequest::from_fields([
            ("symId", "EQT_INFY_EQ_NSE"),
            ("qty", "1"),
            ("side", "buy"),
            ("type", "stoplimit"),
            ("product", "delivery"),
            ("validity", "day"),
            ("limitPrice", "1"),
            ("trigPrice", "1"),
        ])
        .unwrap();
        let written = order.form();
        let shown: Vec<_> = form(Endpoint::PlaceOrder).into_iter().filter(|field| field.shown).collect();
        assert!(written.iter().map(|(name, _)| name).eq(shown.iter().map(|field| field.name)));

        let change = OrderChange::new().qty(1).order_type(OrderType::StopLimit).validity(Validity::Day);
        let change = change.limit_price("1").trig_price("1").form("7");
        assert!(change.iter().all(|(name, _)| names(Endpoint::ModifyOrder).contains(&name)));
    }

    #[test]
    fn a_request_has_the_form_or_the_query_that_its_method_allows() {
        for endpoint in Endpoint::all() {
            let writes = matches!(endpoint.method(), http::Method::POST | http::Method::PUT);
            assert!(
                if writes { query(endpoint).is_empty() } else { form(endpoint).is_empty() },
                "{endpoint:?}"
            );
            let mut names: Vec<_> =
                query(endpoint).into_iter().chain(form(endpoint)).map(|field| field.name).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{endpoint:?} has a field twice");
        }
    }

    #[test]
    fn an_order_without_one_of_the_fields_that_are_needed_is_refused() {
        let all = [
            ("symId", "EQT_INFY_EQ_NSE"),
            ("qty", "1"),
            ("side", "buy"),
            ("type", "market"),
            ("product", "delivery"),
            ("validity", "day"),
        ];
        for field in form(Endpoint::PlaceOrder) {
            let fields = all.into_iter().filter(|(name, _)| *name != field.name);
            assert_eq!(OrderRequest::from_fields(fields).is_err(), field.needed, "{}", field.name);
        }
    }
}
