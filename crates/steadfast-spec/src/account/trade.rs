use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::payload::{Fields, payload, records};
use crate::{Code, LegType, OrderType, Product, Side, UnreadableRecord, Validity};

const LIST: &str = "list of trades";

/// One fill of an order. An order may have several. Not in the specification: names are from public documentation, where
/// they are not those of §2.
///
/// With serde it is written and read as a [`Position`](crate::Position) is.
///
/// # Example
///
/// ```
/// use steadfast_spec::{Side, Trade};
///
/// let answer = br#"{"s":"ok","d":[{"orderId":"26","symId":"EQT_INFY_EQ_NSE","side":"buy","fillQty":10,"fillPrice":99.95}]}"#;
/// let trades = Trade::parse_list(answer)?;
/// assert!(trades[0].side.is(Side::Buy));
/// assert_eq!((trades[0].fill_qty * trades[0].fill_price).to_string(), "999.50");
/// # Ok::<(), steadfast_spec::UnreadableRecord>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Trade {
    /// The order that was filled.
    pub order_id: String,
    /// The instrument (§2).
    pub sym_id: crate::SymId,
    /// The direction (§2).
    pub side: Code<Side>,
    /// How much was filled.
    #[serde(with = "crate::serialized::exact_number")]
    pub fill_qty: Decimal,
    /// At what price.
    #[serde(with = "crate::serialized::exact_number")]
    pub fill_price: Decimal,
    /// The fill's own identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill_id: Option<String>,
    /// When it was filled, as the service writes it: `dd-MM-yyyy HH:mm:ss` in its own time zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The price type of the order (§2).
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub order_type: Option<Code<OrderType>>,
    /// The product (§2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product: Option<Code<Product>>,
    /// The validity (§2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validity: Option<Code<Validity>>,
    /// The leg of a bracket or cover order (§2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leg_type: Option<Code<LegType>>,
    /// The exchange's identifier of the order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exch_order_id: Option<String>,
    /// The text that the order was sent with as a remark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remarks: Option<String>,
}

impl Trade {
    /// Reads the answer with the account's trades; `no-data` is the empty list (§1).
    ///
    /// # Errors
    ///
    /// [`UnreadableRecord`], which names list, record and field. `orderId`, `symId`, `side`, `fillQty` and `fillPrice` are
    /// required.
    pub fn parse_list(body: &[u8]) -> Result<Vec<Self>, UnreadableRecord> {
        payload(LIST, body)?.map_or(Ok(Vec::new()), |d| records(LIST, "d", d, Self::read))
    }

    fn read(fields: &Fields<'_>) -> Result<Self, UnreadableRecord> {
        Ok(Self {
            order_id: fields.required("orderId", fields.id("orderId")?)?,
            sym_id: fields.sym_id()?,
            side: fields.required("side", fields.code("side")?)?,
            fill_qty: fields.required("fillQty", fields.number("fillQty")?)?,
            fill_price: fields.required("fillPrice", fields.number("fillPrice")?)?,
            fill_id: fields.id("fillId")?,
            time: fields.note("time")?,
            order_type: fields.code("type")?,
            product: fields.code("product")?,
            validity: fields.code("validity")?,
            leg_type: fields.code("legType")?,
            exch_order_id: fields.id("exchOrderId")?,
            remarks: fields.note("remarks")?,
        })
    }
}
