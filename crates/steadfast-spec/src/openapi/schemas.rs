use serde_json::{Value, json};

use super::account;
use crate::{Endpoint, LegType, OrderStatus, OrderType, Product, Side, Validity, msg};

/// Returns the schemas that several answers share, and those of the endpoints for which `has` is true.
pub(super) fn all(has: impl Fn(Endpoint) -> bool) -> Value {
    let mut schemas = json!({
        "Error": {
            "type": "object",
            "description": "The envelope of an error (§1, §7).",
            "properties": {"s": {"const": "error"}, "msg": {"type": "string"}},
            "required": ["s", "msg"],
        },
        "NoData": {
            "type": "object",
            "description": "The envelope for no records: the normal empty state, not an error (§1).",
            "properties": {"s": {"const": "no-data"}, "msg": {"type": "string", "examples": [msg::NO_DATA]}},
            "required": ["s"],
        },
        "Any": ok(&json!({})),
        "List": list(&json!({})),
        "Placed": ok(&json!({
            "type": "object",
            "properties": {"orderId": {"type": "string"}, "msg": {"type": "string"}},
            "required": ["orderId"],
        })),
        "Orders": list(&json!({"$ref": "#/components/schemas/Order"})),
        "Order": order(),
        "Token": {
            "type": "object",
            "description": "The access token record (§2).",
            "properties": {
                "access_token": {"type": "string"},
                "token_type": {"type": "string", "examples": ["bearer"]},
                "expires_in": {"type": "integer", "examples": [86_400]},
                "scope": {"type": "string", "examples": ["general"]},
            },
            "required": ["access_token"],
        },
    });
    for (_, name, schema) in account::all().into_iter().filter(|(endpoint, ..)| has(*endpoint)) {
        schemas[name] = schema;
    }
    schemas
}

/// Returns the good answer of an endpoint.
pub(super) fn success(endpoint: Endpoint) -> Value {
    let refer = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let one_of = |forms: &[Value]| json!({"oneOf": forms});
    let or_none = |name: &str| one_of(&[refer(name), refer("NoData")]);
    let list_of = |name: &str| list(&refer(name));
    let (text, schema) = match endpoint {
        Endpoint::Authorize => {
            let content = json!({"text/html": {"schema": {"type": "string"}}});
            return json!({"description": "The login page; not shown in the specification", "content": content});
        }
        Endpoint::Token => ("The token, without an envelope (§4.2)", refer("Token")),
        Endpoint::IndividualToken => {
            let enveloped = ok(&refer("Token"));
            ("The token; whether in an envelope is not shown", json!({"oneOf": [enveloped, refer("Token")]}))
        }
        Endpoint::PlaceOrder | Endpoint::PlaceSpecial => ("The order's id", refer("Placed")),
        Endpoint::Orders => ("The orders, or none", or_none("Orders")),
        Endpoint::Positions => ("The positions, or none", one_of(&[list_of("Position"), refer("NoData")])),
        Endpoint::Trades => ("The fills of orders, or none", one_of(&[list_of("Trade"), refer("NoData")])),
        Endpoint::Holdings => {
            let inner = json!({"type": "array", "items": refer("Holding")});
            let inner =
                json!({"type": "object", "properties": {"holdings": inner}, "required": ["holdings"]});
            ("The holdings, or none", one_of(&[list_of("Holding"), ok(&inner), refer("NoData")]))
        }
        Endpoint::History => {
            let one = ok(&refer("OrderHistory"));
            let forms = [list_of("OrderHistory"), one, refer("NoData")];
            ("What became of the orders, or of one, or none", one_of(&forms))
        }
        Endpoint::Funds => ("The funds", one_of(&[ok(&refer("Funds")), refer("NoData")])),
        Endpoint::SpecialOrders | Endpoint::SymbolStore | Endpoint::ScripMaster => {
            ("Records, or none; their fields are not shown", or_none("List"))
        }
        _ => ("The payload is not shown", or_none("Any")),
    };
    json!({"description": text, "content": {"application/json": {"schema": schema}}})
}

/// Returns the envelope of a payload (§1).
fn ok(payload: &Value) -> Value {
    json!({"type": "object", "properties": {"s": {"const": "ok"}, "d": payload}, "required": ["s", "d"]})
}

fn list(record: &Value) -> Value {
    ok(&json!({"type": "array", "items": record}))
}

/// Returns the record of an order; the specification shows some names, and no types.
fn order() -> Value {
    let number = json!({"type": ["number", "string"], "description": "The type is not shown."});
    let side: Vec<&str> = Side::ALL.iter().map(|code| code.as_str()).collect();
    let types: Vec<&str> = OrderType::ALL.iter().map(|code| code.as_str()).collect();
    let products: Vec<&str> = Product::ALL.iter().map(|code| code.as_str()).collect();
    let validities: Vec<&str> = Validity::ALL.iter().map(|code| code.as_str()).collect();
    let statuses: Vec<&str> = OrderStatus::ALL.iter().map(|code| code.as_str()).collect();
    let legs: Vec<&str> = LegType::ALL.iter().map(|code| code.as_str()).collect();
    json!({
        "type": "object",
        "description": "An order in the order list. Other fields may stand beside these (§2).",
        "properties": {
            "orderId": {"type": "string"},
            "symId": {"type": "string"},
            "qty": number,
            Side::FIELD: {"enum": side},
            OrderType::FIELD: {"enum": types},
            Product::FIELD: {"enum": products},
            Validity::FIELD: {"enum": validities},
            OrderStatus::FIELD: {"enum": statuses},
            LegType::FIELD: {"enum": legs},
            "limitPrice": number,
            "trigPrice": number,
        },
        "required": ["orderId"],
    })
}
