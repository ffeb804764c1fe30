use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use steadfast_spec::{Envelope, EnvelopeError, FieldNames, OrderRecord, UnreadableRecord};

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

    /// Returns a text or number field, even if other fields are unreadable.
    pub(super) fn text_of(&self, name: &str) -> Option<String> {
        let fields: serde_json::Map<String, serde_json::Value> = self.read().ok()?;
        let text = match fields.get(name)? {
            serde_json::Value::String(text) => text.trim().to_owned(),
            serde_json::Value::Number(number) => number.to_string(),
            _ => return None,
        };
        (!text.is_empty()).then_some(text)
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
