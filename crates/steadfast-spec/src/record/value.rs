//! Reads the values of fields leniently: numbers as numbers or texts, without floating point.

use std::{borrow::Cow, str::FromStr};

use rust_decimal::Decimal;
use serde_json::value::RawValue;

use crate::{Code, parse_decimal};

/// A value of another kind than the field's.
#[derive(Debug)]
pub(crate) struct Unreadable;

/// Returns the field's value, unless it is absent or `null`.
fn given(value: Option<&RawValue>) -> Option<&str> {
    value.map(RawValue::get).filter(|raw| *raw != "null")
}

/// Reads a text; an empty one counts as absent.
pub(crate) fn text(value: Option<&RawValue>) -> Result<Option<Cow<'_, str>>, Unreadable> {
    let Some(raw) = given(value) else { return Ok(None) };
    let text = unquoted(raw).ok_or(Unreadable)?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// Reads a code; a text that is none is kept.
pub(crate) fn code<T: FromStr>(value: Option<&RawValue>) -> Result<Option<Code<T>>, Unreadable> {
    let known = |text: Cow<'_, str>| {
        text.parse().map_or_else(|_| Code::Other(text.clone().into_owned()), Code::Known)
    };
    Ok(text(value)?.map(known))
}

/// Reads a number, written as a number or a text.
pub(crate) fn number(value: Option<&RawValue>) -> Result<Option<Decimal>, Unreadable> {
    let Some(raw) = given(value) else { return Ok(None) };
    let written = unquoted(raw).unwrap_or(Cow::Borrowed(raw));
    if written.is_empty() {
        return Ok(None);
    }
    parse_decimal(&written).map(Some).map_err(|_| Unreadable)
}

/// Returns the content of a JSON text; `None` for other values.
fn unquoted(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        return serde_json::from_str(raw).ok().map(Cow::Owned);
    }
    // Without an escape the text is exactly what stands between the quotation marks.
    Some(Cow::Borrowed(inner))
}
