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
mod tests {
    use proptest::prelude::*;

    /// Reads a list as a whole, and in pieces.
    fn both(body: &[u8], most: usize) -> [Result<Vec<OrderRecord>, UnreadableRecord>; 2] {
        let names = FieldNames::default();
        let pieces = || {
            let (mut reader, mut records) = (OrderListReader::new(body, &names)?, Vec::new());
            loop {
                let some = reader.read(most)?;
                if some.is_empty() {
                    return Ok(records);
                }
                assert!(some.len() <= most, "{} of {most}", some.len());
                records.extend(some);
            }
        };
        [parse_order_list(body, &names), pieces()]
    }

    #[test]
    fn remarks_are_kept_as_a_text_and_never_make_a_list_unreadable() {
        let shown = |value: &str| {
            let body = format!(r#"{{"s":"ok","d":[{{"orderId":"a","remarks":{value}}}]}}"#);
            both(body.as_bytes(), 1).map(|list| list.unwrap().remove(0).remarks)
        };
        let text = || Some("k3v9".to_owned());
        assert_eq!(shown(r#""k3v9""#), [text(), text()]);
        for value in ["null", r#""""#, "7", "{}", "[1]", "true"] {
            assert_eq!(shown(value), [None, None], "{value}");
        }
    }

    #[test]
    fn o08_a_list_in_pieces_is_the_list() {
        let one = r#"{"orderId":"a","qty":1,"x":[{"],":"\"]"}]}"#;
        let two = r#" { "orderId" : 7 } "#;
        for d in [
            String::from("[]"),
            format!("[{one}]"),
            format!("[{one},{two}]"),
            format!(" [ {two} , {one}\n,{one} ] "),
            format!("[{one},null]"),
            format!("[{one},{{}}]"),
            format!("[{one},{{\"orderId\":\"\"}}]"),
            format!("[{one},[{two}]]"),
            format!("[{one}"),
            one.to_owned(),
            String::from("7"),
        ] {
            let body = format!(r#"{{"s":"ok","d":{d}}}"#);
            for most in [1, 2, 3, 10] {
                let [whole, pieces] = both(body.as_bytes(), most);
                // The named field may differ; it is only for people.
                assert_eq!(whole.ok(), pieces.ok(), "{body}");
            }
        }
        for body in [
            r#"{"s":"no-data","msg":"x"}"#,
            r#"{"s":"error","msg":"x"}"#,
            "",
            r#"{"s":"ok"}"#,
            &format!(r#" {{ "d" : [{one}] , "x" : [1,{{}}] , "s" : "ok" }} "#),
            &format!(r#"{{"d":[{one}],"s":"ok","s":"ok"}}"#),
            &format!(r#"{{"d":[{one}],"d":[{one}],"s":"ok"}}"#),
            &format!(r#"{{"d":[{one}],"s":"error","msg":"x"}}"#),
            &format!(r#"{{"s":"no-data","d":[{one}]}}"#),
            &format!(r#"{{"\u0073":"ok","d":[{one}]}}"#),
            &format!(r#"{{"s":"ok","d":[{one},]}}"#),
            &format!(r#"{{"s":"ok","d":[{one}{two}]}}"#),
            &format!(r#"{{"s":"ok","d":[{one}],}}"#),
            &format!(r#"{{"s":"ok","d":[{one}]}} x"#),
            &format!(r#"{{"s":"ok","d":[{one}]"#),
            &format!(r#"{{"s":"ok" "d":[{one}]}}"#),
            &format!(r#"{{"s":"ok","msg":"x","d":[{one}]}}"#),
            &format!(r#"{{"s":"ok","d":[{one}],"msg":"x"}}"#),
            &format!(r#"{{"s":"ok","d":[{one}],"msg":"x","msg":"y"}}"#),
            &format!("\u{feff}{{\"s\":\"ok\",\"d\":[{one}]}}"),
        ] {
            let [whole, pieces] = both(body.as_bytes(), 2);
            assert_eq!(whole.ok(), pieces.ok(), "{body}");
        }
    }

    use super::*;

    fn list(body: &str) -> Result<Vec<OrderRecord>, String> {
        parse_order_list(body.as_bytes(), &FieldNames::default()).map_err(|e| e.field().to_owned())
    }

    fn one(record: &str) -> Result<OrderRecord, String> {
        list(&format!(r#"{{"s":"ok","d":[{record}]}}"#)).map(|mut records| records.remove(0))
    }

    #[test]
    fn numbers_keep_every_digit_in_any_spelling() {
        for qty in ["10", "\"10\"", "10.0", "\"10.00\"", "1e1"] {
            assert_eq!(
                one(&format!(r#"{{"orderId":"1","qty":{qty}}}"#)).unwrap().qty,
                Some(Decimal::TEN),
                "{qty}"
            );
        }
        let exact = one(r#"{"orderId":"1","limitPrice":123456789012345678.0123456789}"#).unwrap();
        assert_eq!(exact.limit_price.unwrap().to_string(), "123456789012345678.0123456789");
    }

    #[test]
    fn unknown_values_and_absent_fields_are_tolerated() {
        let record =
            one(r#"{"orderId":42,"status":"trigger pending","legType":null,"side":"","new":{"a":1}}"#)
                .unwrap();
        assert_eq!(record.order_id, "42");
        assert_eq!(record.status, Some(Code::Other("trigger pending".into())));
        assert_eq!((record.leg_type, record.side, record.qty), (None, None, None));
    }

    #[test]
    fn a_record_that_cannot_be_read_spoils_the_list_and_is_named() {
        for (record, field) in [
            ("7", "record"),
            (r#"{"symId":"x"}"#, "orderId"),
            (r#"{"orderId":"1","qty":"ten"}"#, "qty"),
            (r#"{"orderId":"1","qty":1e400}"#, "qty"),
            (r#"{"orderId":"1","qty":{}}"#, "qty"),
            (r#"{"orderId":"1","side":1}"#, "side"),
            (r#"{"orderId":"1","side":"buy","side":"sell"}"#, "record"),
            (r#"{"orderId":"1","side":"buy","s\u0069de":"sell"}"#, "record"),
        ] {
            assert_eq!(one(record).unwrap_err(), field, "{record}");
        }
    }

    #[test]
    fn only_a_whole_ok_or_no_data_answer_is_a_list() {
        assert_eq!(list(r#"{"s":"no-data","msg":"no-data"}"#), Ok(vec![]));
        assert_eq!(list(r#"{"s":"ok","d":[]}"#), Ok(vec![]));
        for (body, field) in [
            (r#"{"s":"error","msg":"x"}"#, "s"),
            ("", "s"),
            (r#"{"s":"ok"}"#, "d"),
            (r#"{"s":"ok","d":{}}"#, "d"),
            (r#"{"s":"ok","d":"no-data"}"#, "d"),
            (r#"{"s":"no-data","msg":"no-data","d":[{"orderId":"1"}]}"#, "d"),
        ] {
            assert_eq!(list(body), Err(field.to_owned()), "{body}");
        }
    }

    #[test]
    fn field_names_are_a_setting() {
        let names = FieldNames { order_id: "id".into(), qty: "quantity".into(), ..FieldNames::default() };
        let records =
            parse_order_list(br#"{"s":"ok","d":[{"id":"9","quantity":3,"qty":"junk is ignored"}]}"#, &names)
                .unwrap();
        assert_eq!((records[0].order_id.as_str(), records[0].qty), ("9", Some(Decimal::from(3))));
    }

    proptest! {
        #[test]
        fn no_json_like_text_panics(body in r#"\{"s":"ok","d":\[[\{\}\[\]":,a-z0-9.eE-]{0,40}\]\}"#) {
            let _ = list(&body);
        }
    }
}
