use std::{borrow::Cow, error::Error, fmt, sync::Arc};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::msg;

/// The response envelope (§1), judged by `s` alone.
#[derive(Clone, Debug)]
pub enum Envelope<T> {
    /// `s` is `ok`.
    Ok {
        /// The payload.
        d: T,
    },
    /// `s` is `no-data`: a normal empty state, not an error.
    NoData {
        /// The text.
        msg: String,
    },
    /// `s` is `error`.
    Error {
        /// The text.
        msg: String,
    },
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow, default)]
    s: Option<&'a RawValue>,
    // A `d` of `null` was sent; it is not the same as a missing `d`.
    #[serde(borrow, default)]
    d: Option<&'a RawValue>,
    #[serde(borrow, default)]
    msg: Option<&'a RawValue>,
}

impl<'a> Envelope<&'a RawValue> {
    /// Reads an envelope and leaves its payload as it is, so that its numbers lose no digit.
    ///
    /// Unknown fields are ignored, and so is a `d` beside an error. A non-empty `d` beside `no-data` contradicts it:
    /// reading that as the empty list would miss its content.
    ///
    /// # Errors
    ///
    /// [`EnvelopeError`] if the body is no such envelope: a body that was cut, HTML, an unknown `s`.
    pub fn parse(body: &'a [u8]) -> Result<Self, EnvelopeError> {
        let text = std::str::from_utf8(body).map_err(|_| EnvelopeError::NotJson)?;
        let wire: Wire<'a> = read_object(text).ok_or(EnvelopeError::NotJson)?;
        let s = wire.s.ok_or(EnvelopeError::MissingS)?;
        let s = string(s).ok_or(EnvelopeError::UnknownS)?;
        let text =
            |raw: Option<&RawValue>| raw.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
        match &*s {
            "ok" => wire.d.map(|d| Self::Ok { d }).ok_or(EnvelopeError::OkWithoutPayload),
            "no-data" if wire.d.is_some_and(holds_something) => Err(EnvelopeError::NoDataWithPayload),
            // `s` decides. The text is only for people, and some gateways omit it.
            "no-data" => Ok(Self::NoData { msg: text(wire.msg).unwrap_or_else(|| msg::NO_DATA.to_owned()) }),
            "error" => text(wire.msg).map(|msg| Self::Error { msg }).ok_or(EnvelopeError::ErrorWithoutText),
            _ => Err(EnvelopeError::UnknownS),
        }
    }
}

impl<T> Envelope<T> {
    /// Applies `read` to the payload.
    ///
    /// # Errors
    ///
    /// The error of `read`.
    pub fn try_map<U, E>(self, read: impl FnOnce(T) -> Result<U, E>) -> Result<Envelope<U>, E> {
        Ok(match self {
            Self::Ok { d } => Envelope::Ok { d: read(d)? },
            Self::NoData { msg } => Envelope::NoData { msg },
            Self::Error { msg } => Envelope::Error { msg },
        })
    }
}

/// A body that is not the envelope of §1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// Not a JSON object, or one with a field given twice.
    NotJson,
    /// No `s`.
    MissingS,
    /// `s` is none of `ok`, `error`, `no-data`.
    UnknownS,
    /// `s` is `ok` and there is no `d`.
    OkWithoutPayload,
    /// `s` is `no-data` and `d` holds something.
    NoDataWithPayload,
    /// `s` is `error` and there is no `msg`.
    ErrorWithoutText,
    /// `s` is `ok` and `d` is not the endpoint's payload.
    UnexpectedPayload,
}

impl fmt::Display for EnvelopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotJson => "answer is not a json object",
            Self::MissingS => "answer has no field s",
            Self::UnknownS => "answer's field s is none of ok, error, no-data",
            Self::OkWithoutPayload => "answer is ok without field d",
            Self::NoDataWithPayload => "answer is no-data with something in field d",
            Self::ErrorWithoutText => "answer is an error without field msg",
            Self::UnexpectedPayload => "answer's field d has an unexpected shape",
        })
    }
}

impl Error for EnvelopeError {}

/// The payload of a successful `POST /api/oms/place-order` (§1, §4.4).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlacedOrder {
    /// The order's identifier as the service wrote it; never empty. Texts like `0` and `null` are not identifiers:
    /// [`id_of`](Self::id_of) leaves them out.
    pub order_id: String,
    /// The text of the answer; empty if there was none.
    pub msg: String,
}

impl PlacedOrder {
    /// Reads the answer to a place-order.
    ///
    /// # Errors
    ///
    /// [`EnvelopeError`] if the body does not prove that an order exists: no envelope, not `ok`, or no
    /// non-empty `orderId`.
    pub fn parse(body: &[u8]) -> Result<Self, EnvelopeError> {
        let wire = PlacedWire::read(body)?;
        let order_id = order_id(wire.order_id).ok_or(EnvelopeError::UnexpectedPayload)?.into_owned();
        let msg = wire.msg.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        Ok(Self { order_id, msg })
    }

    /// Reads only the identifier of such an answer; `None` also for a text like `null`.
    #[must_use]
    pub fn id_of(body: &[u8]) -> Option<Arc<str>> {
        let id = order_id(PlacedWire::read(body).ok()?.order_id)?;
        is_identifier(&id).then(|| id.into())
    }
}

#[derive(Deserialize)]
struct PlacedWire<'a> {
    #[serde(borrow, rename = "orderId")]
    order_id: &'a RawValue,
    #[serde(borrow, default)]
    msg: Option<&'a RawValue>,
}

impl<'a> PlacedWire<'a> {
    fn read(body: &'a [u8]) -> Result<Self, EnvelopeError> {
        let Envelope::Ok { d } = Envelope::parse(body)? else { return Err(EnvelopeError::UnexpectedPayload) };
        read_object(d.get()).ok_or(EnvelopeError::UnexpectedPayload)
    }
}

/// True unless a payload is some form of empty.
fn holds_something(d: &RawValue) -> bool {
    let bare: Vec<u8> = d.get().bytes().filter(|byte| !byte.is_ascii_whitespace()).take(5).collect();
    !matches!(bare.as_slice(), b"null" | b"[]" | b"{}" | b"\"\"")
}

/// Reads a JSON object. Plain serde would also accept an array for a structure.
pub(crate) fn read_object<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    text.trim_ascii_start().starts_with('{').then(|| serde_json::from_str(text).ok()).flatten()
}

/// Returns an order identifier, written as a string or an integer; `None` if it is anything else, or empty.
pub(crate) fn order_id(raw: &RawValue) -> Option<Cow<'_, str>> {
    if let Some(id) = string(raw) {
        return (!id.trim().is_empty()).then_some(id);
    }
    let text = raw.get();
    text.bytes().all(|b| b.is_ascii_digit()).then_some(Cow::Borrowed(text))
}

/// No service names an order by a longer text, in bytes.
const LONGEST_ID: usize = 256;

/// False for the texts that programs write for a missing identifier, and for malformed ones with surrounding blanks or
/// a control character, or endless ones. An order cannot be found by such a text.
fn is_identifier(id: &str) -> bool {
    let is_nothing = || {
        let nothing = ["null", "undefined", "none", "nil", "nan"];
        id.bytes().all(|digit| digit == b'0') || nothing.iter().any(|word| id.eq_ignore_ascii_case(word))
    };
    id.len() <= LONGEST_ID && id.trim() == id && !id.chars().any(char::is_control) && !is_nothing()
}

/// Returns the content of a JSON string.
fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    // It is copied only if it contains an escape.
    let plain = serde_json::from_str::<&str>(raw.get()).map(Cow::Borrowed);
    plain.or_else(|_| serde_json::from_str::<String>(raw.get()).map(Cow::Owned)).ok()
}

#[cfg(test)]
mod tests;
