use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use steadfast_spec::{
    Decimal, Envelope, EnvelopeError, FieldNames, OrderRecord, UnreadableRecord, parse_decimal,
};

/// One JSON value as the service wrote it, with all digits.
///
/// The specification shows the fields of few records, so the caller chooses the type to read it as.
#[derive(Clone, Debug)]
pub struct Record(Box<RawValue>);

impl Record {
    pub(super) fn new(raw: Box<RawValue>) -> Self {
        Self(raw)
    }

    /// Returns the payload of a successful answer.
    pub(super) fn payload_of(body: &[u8]) -> Result<Self, EnvelopeError> {
        match Envelope::parse(body)? {
            Envelope::Ok { d } => Ok(Self(d.to_owned())),
            _ => Err(EnvelopeError::UnexpectedPayload),
        }
    }

    /// Returns each element of the payload of a successful answer.
    pub(super) fn payloads_of(body: &[u8]) -> Result<Vec<Self>, EnvelopeError> {
        let Self(d) = Self::payload_of(body)?;
        let elements: Vec<Box<RawValue>> =
            serde_json::from_str(d.get()).map_err(|_| EnvelopeError::UnexpectedPayload)?;
        Ok(elements.into_iter().map(Self).collect())
    }

    /// Reads it as a record of the order list.
    pub(super) fn order(&self, names: &FieldNames) -> Result<OrderRecord, UnreadableRecord> {
        OrderRecord::parse(&self.0, names)
    }

    /// Returns a number field, given as a number or as a text, exactly.
    #[must_use]
    pub fn decimal_of(&self, name: &str) -> Option<Decimal> {
        parse_decimal(&self.text_of(name)?).ok()
    }

    /// Returns a text or number field as a text, even if other fields are unreadable; `None` if it is empty or absent.
    #[must_use]
    pub fn text_of(&self, name: &str) -> Option<String> {
        // Raw, so that a number keeps all its digits.
        let fields: BTreeMap<String, &RawValue> = self.read_borrowed().ok()?;
        let raw = fields.get(name)?.get();
        let text = match raw.as_bytes().first()? {
            b'"' => serde_json::from_str::<String>(raw).ok()?.trim().to_owned(),
            b'-' | b'0'..=b'9' => raw.to_owned(),
            _ => return None,
        };
        (!text.is_empty()).then_some(text)
    }

    fn read_borrowed<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.0.get())
    }

    /// Returns the JSON text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// Reads it as a type of the caller's.
    ///
    /// # Errors
    ///
    /// The error of deserializing the type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.text())
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_keeps_its_digits_whether_it_is_a_number_or_a_text() {
        let raw =
            r#"{"qty": 12345678901234567.05, "price": " 99.950 ", "open": true, "none": "", "a b": -1}"#;
        let record = Record::new(serde_json::from_str(raw).unwrap());
        assert_eq!(record.decimal_of("qty").unwrap().to_string(), "12345678901234567.05");
        assert_eq!(record.decimal_of("price").unwrap().to_string(), "99.950");
        assert_eq!(record.text_of("a b").as_deref(), Some("-1"));
        for name in ["open", "none", "absent"] {
            assert_eq!(record.text_of(name), None, "{name}");
        }
        assert_eq!(record.decimal_of("open"), None);
    }
}
