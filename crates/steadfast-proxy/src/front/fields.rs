use http::{HeaderMap, HeaderName, HeaderValue, header};
use steadfast::call::Lane;

use super::{Head, Refusal};

/// The headers that are passed on. All others are the proxy's, a connection's, or none of the service's business.
const PASSED_ON: [HeaderName; 4] =
    [header::ACCEPT, header::ACCEPT_LANGUAGE, header::CONTENT_TYPE, header::USER_AGENT];

/// The headers without which a request would mean something else.
const NEEDED: [&str; 10] = [
    "authorization",
    "content-length",
    "content-type",
    "host",
    "idempotency-key",
    "origin",
    "transfer-encoding",
    "x-lane",
    "x-new-order",
    "sec-fetch-site",
];

/// The longest name of an order, in characters.
const LONGEST_KEY: usize = 128;

/// The headers by which a caller steers the proxy; the service never sees them.
#[derive(Debug)]
pub(super) struct Steering {
    pub(super) lane: Option<Lane>,
    pub(super) key: Option<String>,
    pub(super) is_new_order: bool,
    pub(super) request_id: Option<String>,
}

/// Reads the headers that steer the proxy, and refuses those that it cannot obey.
pub(super) fn steering(head: &Head<'_>) -> Result<Steering, Refusal> {
    if head.all("upgrade").next().is_some() {
        return Err(Refusal::Upgrade);
    }
    if head.all("expect").any(|value| !value.eq_ignore_ascii_case(b"100-continue")) {
        return Err(Refusal::Expectation);
    }
    if head.all("content-encoding").any(|coding| !coding.eq_ignore_ascii_case(b"identity")) {
        return Err(Refusal::Encoded);
    }
    if named_by_connection(head)
        .any(|name| NEEDED.iter().any(|own| name.eq_ignore_ascii_case(own.as_bytes())))
    {
        return Err(Refusal::Dropped);
    }
    let lane = match head.one("x-lane")? {
        None => None,
        Some(b"critical") => Some(Lane::Critical),
        Some(b"trading") => Some(Lane::Trading),
        Some(b"normal") => Some(Lane::Normal),
        Some(b"bulk") => Some(Lane::Bulk),
        Some(_) => return Err(Refusal::Lane),
    };
    let key = head.one("idempotency-key")?;
    let key = key.map(|key| visible(key, LONGEST_KEY).ok_or(Refusal::Key)).transpose()?;
    let is_new_order = match head.one("x-new-order")? {
        None => false,
        Some(b"1") => true,
        Some(_) => return Err(Refusal::NewOrder),
    };
    // It only comes back to the caller, so that a strange one is left out.
    let request_id = head.all("x-request-id").next().and_then(|id| visible(id, LONGEST_KEY));
    Ok(Steering { lane, key, is_new_order, request_id })
}

/// Returns the headers that are passed on, without those that belong to the connection.
pub(super) fn passed_on(head: &Head<'_>) -> Result<HeaderMap, Refusal> {
    let mut headers = HeaderMap::new();
    for name in PASSED_ON {
        if named_by_connection(head).any(|named| named.eq_ignore_ascii_case(name.as_str().as_bytes())) {
            continue;
        }
        let value = match name {
            header::CONTENT_TYPE => head.one(name.as_str())?,
            _ => head.all(name.as_str()).next(),
        };
        if let Some(value) = value {
            headers.insert(name, HeaderValue::from_bytes(value).map_err(|_| Refusal::Malformed)?);
        }
    }
    Ok(headers)
}

/// Returns what `Connection` names as belonging to the connection.
fn named_by_connection<'a>(head: &Head<'a>) -> impl Iterator<Item = &'a [u8]> {
    head.all("connection").flat_map(|value| value.split(|&byte| byte == b',')).map(<[u8]>::trim_ascii)
}

fn visible(text: &[u8], longest: usize) -> Option<String> {
    let fits = (1..=longest).contains(&text.len()) && text.iter().all(u8::is_ascii_graphic);
    fits.then(|| String::from_utf8_lossy(text).into_owned())
}
