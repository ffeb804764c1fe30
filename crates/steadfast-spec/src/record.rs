mod pieces;
mod read;
pub(crate) mod value;

use std::{error::Error, fmt};

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{Envelope, EnvelopeError, LegType, OrderStatus, OrderType, Product, Side, Validity};

/// A code in a record: one of §2, or a text that this version does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code<T> {
    /// A code of §2.
    Known(T),
    /// Any other text; never an error, because services add values.
    Other(String),
}

impl<T: PartialEq> Code<T> {
    /// True if this is the known code `value`.
    pub fn is(&self, value: T) -> bool {
        matches!(self, Self::Known(known) if *known == value)
    }
}

/// The names of a record's fields.
///
/// The specification shows only some of them; the defaults are the request's names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each field is the name of the record field that it is called after")]
pub struct FieldNames {
    pub order_id: String,
    pub sym_id: String,
    pub side: String,
    pub qty: String,
    pub order_type: String,
    pub product: String,
    pub validity: String,
    pub limit_price: String,
    pub trig_price: String,
    pub status: String,
    pub leg_type: String,
    pub remarks: String,
}

impl Default for FieldNames {
    fn default() -> Self {
        let name = str::to_owned;
        Self {
            order_id: name("orderId"),
            sym_id: name("symId"),
            side: name("side"),
            qty: name("qty"),
            order_type: name("type"),
            product: name("product"),
            validity: name("validity"),
            limit_price: name("limitPrice"),
            trig_price: name("trigPrice"),
            status: name("status"),
            leg_type: name("legType"),
            remarks: name("remarks"),
        }
    }
}

/// One record of `GET /api/oms/orders`, read leniently: only its identifier is required.
///
/// With serde it is written and read under the request's names, whatever the service calls them; that is for a program's
/// own files, and [`parse`](Self::parse) for the service's answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct OrderRecord {
    /// The order's identifier; never empty.
    pub order_id: String,
    /// The instrument's text, if the record carries it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sym_id: Option<String>,
    /// The direction, if the record carries it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<Code<Side>>,
    /// The quantity, if the record carries it.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::serialized::exact")]
    pub qty: Option<Decimal>,
    /// The price type, if the record carries it.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub order_type: Option<Code<OrderType>>,
    /// The product, if the record carries it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product: Option<Code<Product>>,
    /// The validity, if the record carries it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validity: Option<Code<Validity>>,
    /// The limit price, if the record carries it.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::serialized::exact")]
    pub limit_price: Option<Decimal>,
    /// The trigger price, if the record carries it.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::serialized::exact")]
    pub trig_price: Option<Decimal>,
    /// The status, if the record carries it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Code<OrderStatus>>,
    /// The leg, if the record carries it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leg_type: Option<Code<LegType>>,
    /// The text that the order was sent with as a remark, if the record carries it as a text. The specification shows
    /// no such field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remarks: Option<String>,
}

impl OrderRecord {
    /// Reads one record.
    ///
    /// A field that is absent, `null` or an empty text counts as not carried.
    ///
    /// # Errors
    ///
    /// [`UnreadableRecord`] if it is not an object, has no identifier, or has a field twice or one with an unreadable
    /// value. A list with such a record proves nothing about orders that are not in it.
    pub fn parse(raw: &RawValue, names: &FieldNames) -> Result<Self, UnreadableRecord> {
        read::record(raw, names)
    }
}

/// Reads the answer to `GET /api/oms/orders`: every record, or an error.
///
/// `no-data` is the empty list (§1). An answer is never read in part, because "not in the list" is evidence.
///
/// # Errors
///
/// [`UnreadableRecord`], which names what could not be read. An error envelope or no envelope counts as the field `s`,
/// a payload that is not an array as the field `d`.
pub fn parse_order_list(body: &[u8], names: &FieldNames) -> Result<Vec<OrderRecord>, UnreadableRecord> {
    match Envelope::parse(body) {
        Ok(Envelope::NoData { .. }) => Ok(Vec::new()),
        Ok(Envelope::Ok { d }) => read::records(d, names),
        Err(EnvelopeError::OkWithoutPayload | EnvelopeError::NoDataWithPayload) => {
            Err(UnreadableRecord::new("d"))
        }
        Ok(Envelope::Error { .. }) | Err(_) => Err(UnreadableRecord::new("s")),
    }
}

pub use self::pieces::OrderListReader;

/// A record, or a list of them, that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableRecord {
    list: &'static str,
    index: Option<usize>,
    field: String,
}

impl UnreadableRecord {
    fn new(field: impl Into<String>) -> Self {
        Self::in_list("order list", field)
    }

    pub(crate) fn in_list(list: &'static str, field: impl Into<String>) -> Self {
        Self { list, index: None, field: field.into() }
    }

    pub(crate) fn in_record(self, index: usize) -> Self {
        Self { index: Some(index), ..self }
    }

    /// Returns the field that cannot be read: it is required and missing, given twice, or has a value of another kind.
    #[must_use]
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Returns which record of the list cannot be read, counted from zero; `None` if that is not known, or the answer is
    /// no list.
    #[must_use]
    pub fn index(&self) -> Option<usize> {
        self.index
    }
}

impl fmt::Display for UnreadableRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be read: field {}", self.list, self.field)?;
        match self.index {
            Some(index) => write!(f, " in d[{index}]"),
            None => Ok(()),
        }
    }
}

impl Error for UnreadableRecord {}

#[cfg(test)]
mod tests;
