//! Orders, codes and records in a program's own files and messages.
//!
//! Codes, instruments and numbers are texts, as on the wire; an order is the map of its form's fields, and is checked
//! when it is read.

use std::{fmt, str::FromStr};

use rust_decimal::Decimal;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Visitor},
    ser::SerializeMap as _,
};

use crate::{
    BaseUrl, Code, InvalidOrder, InvalidOrderReason, LegType, OrderChange, OrderRequest, OrderStatus,
    OrderType, Product, Scope, Side, SymId, Validity, Zone, parse_decimal,
};

macro_rules! as_text {
    ($($name:ident),+) => {
        $(impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        })+
    };
}

macro_rules! from_text {
    ($($name:ident),+) => {
        $(impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
            }
        })+
    };
}

as_text!(BaseUrl, LegType, OrderStatus, OrderType, Product, Scope, Side, SymId, Validity, Zone);
from_text!(BaseUrl, LegType, OrderStatus, OrderType, Product, Side, SymId, Validity);

impl<T: fmt::Display> Serialize for Code<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(code) => serializer.collect_str(code),
            Self::Other(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de, T: FromStr> Deserialize<'de> for Code<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(text.parse().map_or_else(|_| Self::Other(text), Self::Known))
    }
}

/// Writes and reads an optional number as a text, so that no format rounds it.
pub(crate) mod exact {
    use super::{Decimal, Deserialize, Deserializer, Error, Serializer, parse_decimal};

    pub(crate) fn serialize<S: Serializer>(
        number: &Option<Decimal>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match number {
            Some(number) => serializer.collect_str(number),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Decimal>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| parse_decimal(&text).map_err(D::Error::custom)).transpose()
    }
}

/// The same for a number that is always there.
pub(crate) mod exact_number {
    use super::{Decimal, Deserialize, Deserializer, Error, Serializer, parse_decimal};

    pub(crate) fn serialize<S: Serializer>(number: &Decimal, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(number)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Decimal, D::Error> {
        parse_decimal(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

fn map_of<'a, S: Serializer>(
    serializer: S,
    fields: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for (name, value) in fields {
        map.serialize_entry(name, value)?;
    }
    map.end()
}

impl Serialize for OrderRequest {
    /// Writes the fields of the order's form, each as a text.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        map_of(serializer, self.form().iter())
    }
}

impl<'de> Deserialize<'de> for OrderRequest {
    /// Reads the fields of an order's form, as texts or whole numbers, and checks them as
    /// [`from_fields`](OrderRequest::from_fields) does.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = deserializer.deserialize_map(Fields)?;
        Self::from_fields(fields.iter().map(|(name, value)| (&**name, &**value))).map_err(D::Error::custom)
    }
}

impl Serialize for OrderChange {
    /// Writes the fields that are to be changed, each as a text.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let form = self.form("");
        map_of(serializer, form.iter().filter(|(name, _)| *name != "orderId"))
    }
}

impl<'de> Deserialize<'de> for OrderChange {
    /// Reads the fields that are to be changed, as texts or whole numbers. A field given twice is an error, and an empty
    /// text counts as absent, as in [`from_fields`](OrderChange::from_fields).
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = deserializer.deserialize_map(Fields)?;
        let fields = fields.iter().map(|(name, value)| (&**name, &**value));
        match Self::read(fields).map_err(D::Error::custom)? {
            (None, change) => Ok(change),
            (Some(_), _) => Err(D::Error::custom(InvalidOrder::new("orderId", InvalidOrderReason::OwnField))),
        }
    }
}

/// Reads a map of texts. Whole numbers are taken as their texts; a number with a fraction is refused, because the format
/// may have rounded it already.
struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Vec<(String, String)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of an order's fields")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some((name, Text(value))) = map.next_entry::<String, Text>()? {
            fields.push((name, value));
        }
        Ok(fields)
    }
}

struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl Visitor<'_> for Reader {
            type Value = Text;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a whole number; a price is written as a text, \"1500.05\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OrderRecord;

    const ORDER: &str = r#"{"symId":"EQT_INFY_EQ_NSE","qty":"10","side":"buy","type":"limit","product":"delivery","validity":"day","limitPrice":"1500.05","amo":"false"}"#;

    #[test]
    fn an_order_survives_its_own_text_and_is_checked_when_it_is_read() {
        let order: OrderRequest = serde_json::from_str(ORDER).unwrap();
        assert_eq!(serde_json::to_string(&order).unwrap(), ORDER);
        let with_number = ORDER.replace(r#""10""#, "10");
        assert_eq!(serde_json::from_str::<OrderRequest>(&with_number).unwrap(), order);
        for (good, bad, says) in [
            (r#""1500.05""#, "1500.05", "a price is written as a text"),
            (r#""1500.05""#, r#""0""#, "limitPrice must be above zero"),
            (r#""10""#, r#""ten""#, "qty is not a decimal number"),
            (r#""buy""#, r#""BUY""#, "side is not one of buy, sell"),
            (r#""amo""#, r#""Qty""#, "Qty cannot be given as an extra field"),
        ] {
            let error = serde_json::from_str::<OrderRequest>(&ORDER.replace(good, bad)).unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        }
    }

    #[test]
    fn a_change_survives_its_own_text() {
        let text = r#"{"qty":"5","type":"limit","limitPrice":"99.95","amo":"true"}"#;
        let change: OrderChange = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&change).unwrap(), text);
        let bad: OrderChange = serde_json::from_str(r#"{"limitPrice":"much"}"#).unwrap();
        assert_eq!(bad.check("1").unwrap_err().field(), "limitPrice");
    }

    /// Regression: the last of two counted.
    #[test]
    fn a_change_with_a_field_twice_is_refused_as_an_order_is() {
        for text in [r#"{"qty":"5","qty":"50"}"#, r#"{"qty":"","qty":"5"}"#, r#"{"orderId":"1","qty":"5"}"#] {
            let error = serde_json::from_str::<OrderChange>(text).unwrap_err();
            let field = if text.contains("orderId") { "orderId" } else { "qty" };
            assert!(error.to_string().contains(field), "{error}");
        }
        let change: OrderChange = serde_json::from_str(r#"{"qty":"5","limitPrice":""}"#).unwrap();
        assert_eq!(change, OrderChange::new().qty(5), "an empty text counts as absent, as in a form");
    }

    #[test]
    fn a_record_survives_its_own_text_with_codes_that_are_not_known() {
        let text = r#"{"orderId":"17","qty":"12345678901234567.05","type":"limit","status":"queued"}"#;
        let record: OrderRecord = serde_json::from_str(text).unwrap();
        assert_eq!(record.status, Some(Code::Other("queued".into())));
        assert_eq!(record.order_type, Some(Code::Known(OrderType::Limit)));
        assert_eq!(serde_json::to_string(&record).unwrap(), text);
    }

    #[test]
    fn names_of_zones_scopes_and_instruments_are_texts() {
        let names = (Zone::GENERAL, Scope::AuthToken, "EQT_INFY_EQ_NSE".parse::<SymId>().unwrap());
        let text = serde_json::to_string(&names).unwrap();
        assert_eq!(text, r#"["general","auth_token","EQT_INFY_EQ_NSE"]"#);
        assert!(serde_json::from_str::<SymId>(r#""""#).is_err());
    }
}
