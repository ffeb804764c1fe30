//! Paths in one spelling only.
//!
//! The service, a proxy before it and this one could each tidy up a path in its own way. A path that any of them could
//! read as another one is refused, so that the scope, the zone and the protection of an order are those of the request
//! that arrives.

use super::{BASE, Refusal};

/// Splits a request target into path and query, and checks both.
pub(super) fn split(target: &str) -> Result<(&str, Option<&str>), Refusal> {
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    // A person who tries the address asks for nothing of the service's.
    if path == "/" {
        return Err(Refusal::OutsideBase);
    }
    if has_one_reading(path) && query.is_none_or(is_query) { Ok((path, query)) } else { Err(Refusal::Path) }
}

/// Returns the path below the base address.
pub(super) fn below_base(path: &str) -> Result<&str, Refusal> {
    let below = path.strip_prefix(BASE).filter(|rest| rest.starts_with('/')).ok_or(Refusal::OutsideBase)?;
    let first = below.split('/').nth(1).unwrap_or_default();
    // No path of the service has an escape here, and a lenient one would read a login in it.
    if first.contains('%') {
        return Err(Refusal::Path);
    }
    // In any case of letters: a lenient service might take it.
    if first.eq_ignore_ascii_case("api-gw") { Err(Refusal::Login) } else { Ok(below) }
}

/// True if a query names an order.
pub(super) fn names_order(query: Option<&str>) -> bool {
    let fields = query.unwrap_or_default().split('&').filter_map(|field| field.split_once('='));
    fields.into_iter().any(|(name, value)| name == "orderId" && !value.is_empty())
}

fn has_one_reading(path: &str) -> bool {
    let mut segments = path.split('/');
    // The target begins with a slash.
    segments.next() == Some("") && segments.all(is_segment)
}

/// True for a segment with nothing that a server resolves, decodes to a separator, or cuts off.
fn is_segment(segment: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,=:@".contains(&byte);
    let mut bytes = segment.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let Some(decoded) = hex(bytes.next()).zip(hex(bytes.next())).map(|(high, low)| high << 4 | low)
            else {
                return false;
            };
            if decoded.is_ascii_control() || b"./\\%;?#".contains(&decoded) {
                return false;
            }
        } else if !plain(byte) {
            return false;
        }
    }
    !matches!(segment, "" | "." | "..")
}

/// True if every escape of a query is whole and hides no control character.
fn is_query(query: &str) -> bool {
    let mut bytes = query.bytes();
    while let Some(byte) = bytes.next() {
        let fine = match byte {
            b'%' => hex(bytes.next())
                .zip(hex(bytes.next()))
                .is_some_and(|(high, low)| !(high << 4 | low).is_ascii_control()),
            other => !b"#\\\"<>^`{|}".contains(&other),
        };
        if !fine {
            return false;
        }
    }
    true
}

fn hex(byte: Option<u8>) -> Option<u8> {
    let digit = char::from(byte?).to_digit(16)?;
    u8::try_from(digit).ok()
}
