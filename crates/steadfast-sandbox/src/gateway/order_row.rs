use std::{borrow::Cow, time::Duration};

use serde::Serialize;
use serde_json::Value;
use steadfast_spec::Decimal;

use crate::gateway::{
    book::BookedOrder,
    spec_reading::{Prices, SpecReading},
};

/// A record of the order list. Written directly and not through [`Value`], because a list may have thousands.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OrderRow<'a> {
    order_id: &'a str,
    sym_id: &'a str,
    side: &'static str,
    qty: Value,
    #[serde(rename = "type")]
    order_type: &'static str,
    product: &'static str,
    validity: &'static str,
    status: &'static str,
    leg_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_price: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trig_price: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remarks: Option<Cow<'a, str>>,
}

impl BookedOrder {
    /// Returns the order as a record of `GET /api/oms/orders`.
    pub(crate) fn record(&self, now: Duration, reading: &SpecReading) -> OrderRow<'_> {
        let request = &self.request;
        let priced = |price: Option<Decimal>| price.filter(|_| reading.prices == Prices::Present).map(number);
        OrderRow {
            order_id: &self.order_id,
            sym_id: request.sym_id().as_str(),
            side: request.side().as_str(),
            qty: reading.quantity(number(request.qty())),
            order_type: request.order_type().as_str(),
            product: request.product().as_str(),
            validity: request.validity().as_str(),
            status: self.status(now).as_str(),
            leg_type: self.leg.as_str(),
            limit_price: priced(request.limit_price()),
            trig_price: priced(request.trig_price()),
            remarks: self.shown_remarks(reading.remarks),
        }
    }
}

/// Returns a decimal as a JSON number if that is exact, otherwise as a text.
pub(crate) fn number(decimal: Decimal) -> Value {
    if let (0, Ok(whole)) = (decimal.scale(), i64::try_from(decimal)) {
        return whole.into();
    }
    let text = decimal.to_string();
    let number = serde_json::from_str(&text).ok().map(Value::Number);
    number.filter(|number| *number.to_string() == *text).unwrap_or_else(|| text.into())
}
