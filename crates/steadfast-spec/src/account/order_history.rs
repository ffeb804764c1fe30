use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::payload::{Fields, is_object, payload, records};
use crate::{Code, OrderStatus, UnreadableRecord};

const LIST: &str = "order history";

/// The history of one order, step by step. The specification shows `orderId` and `status`; the other names are from public
/// documentation.
///
/// With serde it is written and read as a [`Position`](crate::Position) is.
///
/// # Example
///
/// ```
/// use steadfast_spec::{OrderHistory, OrderStatus};
///
/// let answer = br#"{"s":"ok","d":{"orderId":"26","status":"completed","history":[{"fillQty":10,"fillPrice":99.95}]}}"#;
/// let order = OrderHistory::parse_list(answer)?.remove(0);
/// assert!(order.status.is_some_and(|status| status.is(OrderStatus::Completed)));
/// assert_eq!(order.history[0].fill_qty, Some(10.into()));
/// # Ok::<(), steadfast_spec::UnreadableRecord>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct OrderHistory {
    /// The order.
    pub order_id: String,
    /// Its status now (§2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Code<OrderStatus>>,
    /// Why it was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How much of it is filled.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::serialized::exact")]
    pub total_fill_qty: Option<Decimal>,
    /// The average price of that.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::serialized::exact")]
    pub avg_price: Option<Decimal>,
    /// The text that it was sent with as a remark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remarks: Option<String>,
    /// Its steps, in the service's sequence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<HistoryEntry>,
}

/// One step of an [`OrderHistory`]. Nothing of it is required.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct HistoryEntry {
    /// The event, in the service's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub msg: Option<String>,
    /// When, as the service writes it: `dd-MM-yyyy HH:mm:ss` in its own time zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The identifier of a fill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill_id: Option<String>,
    /// How much was filled.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::serialized::exact")]
    pub fill_qty: Option<Decimal>,
    /// At what price.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::serialized::exact")]
    pub fill_price: Option<Decimal>,
}

impl OrderHistory {
    /// Reads the answer of the history; `no-data` is the empty list (§1).
    ///
    /// The payload is a list of orders, or one order, as public documentation has it.
    ///
    /// # Errors
    ///
    /// [`UnreadableRecord`], which names record and field. `orderId` is required.
    pub fn parse_list(body: &[u8]) -> Result<Vec<Self>, UnreadableRecord> {
        match payload(LIST, body)? {
            None => Ok(Vec::new()),
            Some(d) if is_object(d) => Ok(vec![Self::read(&Fields::of(LIST, d)?)?]),
            Some(d) => records(LIST, "d", d, Self::read),
        }
    }

    fn read(fields: &Fields<'_>) -> Result<Self, UnreadableRecord> {
        let history = match fields.get("history")?.filter(|raw| raw.get() != "null") {
            // The index of an error is that of the order.
            Some(steps) => records(LIST, "history", steps, HistoryEntry::read)
                .map_err(|_| fields.unreadable("history"))?,
            None => Vec::new(),
        };
        Ok(Self {
            order_id: fields.required("orderId", fields.id("orderId")?)?,
            status: fields.code("status")?,
            reason: fields.note("reason")?,
            total_fill_qty: fields.number("totalFillQty")?,
            avg_price: fields.number("avgPrice")?,
            remarks: fields.note("remarks")?,
            history,
        })
    }
}

impl HistoryEntry {
    fn read(fields: &Fields<'_>) -> Result<Self, UnreadableRecord> {
        Ok(Self {
            msg: fields.note("msg")?,
            time: fields.note("time")?,
            fill_id: fields.id("fillId")?,
            fill_qty: fields.number("fillQty")?,
            fill_price: fields.number("fillPrice")?,
        })
    }
}
