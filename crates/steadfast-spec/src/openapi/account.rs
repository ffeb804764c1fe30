use serde_json::{Map, Value, json};

use crate::{Endpoint, LegType, OrderStatus, OrderType, Product, Side, Validity};

/// Returns the schemas of what an account has, each with the endpoint that answers with it. Only names of the specification
/// are required.
pub(super) fn all() -> [(Endpoint, &'static str, Value); 6] {
    let sym_id = text("The instrument (§2).");
    let order_id = text("The order.");
    let step = record(
        "One step of an order's history.",
        &[],
        vec![
            ("msg", text("What happened.")),
            ("time", time()),
            ("fillId", text("The fill.")),
            ("fillQty", number()),
            ("fillPrice", number()),
        ],
    );
    [
        (
            Endpoint::Positions,
            "Position",
            record(
                "What is held of one instrument in one product.",
                &["symId"],
                vec![
                    ("symId", sym_id.clone()),
                    ("qty", number()),
                    ("netQty", number()),
                    (Product::FIELD, code(Product::ALL.iter().map(|code| code.as_str()))),
                    ("netAvgPrice", number()),
                    ("buyQty", number()),
                    ("buyAvgPrice", number()),
                    ("sellQty", number()),
                    ("sellAvgPrice", number()),
                    ("cfQty", number()),
                    ("realizedPnl", number()),
                ],
            ),
        ),
        (
            Endpoint::Holdings,
            "Holding",
            record(
                "What is owned of one instrument since an earlier day.",
                &["symId"],
                vec![
                    ("symId", sym_id.clone()),
                    ("qty", number()),
                    ("avgPrice", number()),
                    ("saleableQty", number()),
                    ("t1Qty", number()),
                    ("pledgeQty", number()),
                ],
            ),
        ),
        (
            Endpoint::Funds,
            "Funds",
            record(
                "What the account has to trade with.",
                &[],
                ["availMargin", "marginUsed", "totalCredits", "availCash", "realizedPnl", "payIn", "payOut"]
                    .map(|name| (name, number()))
                    .to_vec(),
            ),
        ),
        (
            Endpoint::Trades,
            "Trade",
            record(
                "One fill of an order.",
                &["orderId", "symId"],
                vec![
                    ("orderId", order_id.clone()),
                    ("symId", sym_id),
                    (Side::FIELD, code(Side::ALL.iter().map(|code| code.as_str()))),
                    ("fillQty", number()),
                    ("fillPrice", number()),
                    ("fillId", text("The fill.")),
                    ("time", time()),
                    (OrderType::FIELD, code(OrderType::ALL.iter().map(|code| code.as_str()))),
                    (Product::FIELD, code(Product::ALL.iter().map(|code| code.as_str()))),
                    (Validity::FIELD, code(Validity::ALL.iter().map(|code| code.as_str()))),
                    (LegType::FIELD, code(LegType::ALL.iter().map(|code| code.as_str()))),
                    ("exchOrderId", text("The exchange's identifier of the order.")),
                    ("remarks", text("What the order was sent with as a remark.")),
                ],
            ),
        ),
        (
            Endpoint::History,
            "OrderHistory",
            record(
                "What became of one order.",
                &["orderId"],
                vec![
                    ("orderId", order_id),
                    (OrderStatus::FIELD, code(OrderStatus::ALL.iter().map(|code| code.as_str()))),
                    ("reason", text("Why it was rejected.")),
                    ("totalFillQty", number()),
                    ("avgPrice", number()),
                    ("remarks", text("What the order was sent with as a remark.")),
                    (
                        "history",
                        json!({"type": "array", "items": {"$ref": "#/components/schemas/HistoryEntry"}}),
                    ),
                ],
            ),
        ),
        (Endpoint::History, "HistoryEntry", step),
    ]
}

fn record(text: &str, required: &[&str], fields: Vec<(&str, Value)>) -> Value {
    let fields: Map<String, Value> =
        fields.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    let text = format!(
        "{text} Names that are not in §2 are from public documentation. Other fields may stand beside these."
    );
    let mut schema = json!({"type": "object", "description": text, "properties": fields});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn number() -> Value {
    json!({"type": ["number", "string", "null"], "description": "The type is not shown."})
}

fn text(text: &str) -> Value {
    json!({"type": ["string", "null"], "description": text})
}

fn time() -> Value {
    text("`dd-MM-yyyy HH:mm:ss` in the service's own time zone.")
}

fn code<'a>(codes: impl Iterator<Item = &'a str>) -> Value {
    json!({"type": ["string", "null"], "examples": codes.collect::<Vec<_>>()})
}
