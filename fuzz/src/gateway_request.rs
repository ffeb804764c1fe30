use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use steadfast_sandbox::{Credentials, Sandbox};
use steadfast_spec::{ERRORS, TokenRecord};
use tower::ServiceExt;

/// The maximum number of requests of one input; more would only be slower.
const MOST_REQUESTS: usize = 8;

/// Sends requests to an in-process gateway.
///
/// An input is a text of HTTP/1.1 requests: a request line, headers, an empty line and a body; a line of `---`
/// ends each. Lines may end in CR LF or LF. `$KEY`, `$TOKEN`, `$CLIENT`, `$PASSWORD`, `$SECRET`, `$TOTP`,
/// `$OTHER_KEY` and `$OTHER_TOKEN` are replaced by the sandbox's values. A first line `!name=rate` injects a
/// fault.
///
/// # Panics
///
/// If the specification does not have the answer, or the ground truth has another.
pub fn gateway_request(data: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(send_all(data));
}

async fn send_all(data: &[u8]) {
    let epoch = std::time::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
    let mut sandbox = Sandbox::builder().seed(1).wall_clock(epoch).build().expect("a sandbox");
    let mut data = data;
    if let Some(rest) = data.strip_prefix(b"!") {
        let (fault, rest) = line(rest);
        data = rest;
        let fault = String::from_utf8_lossy(fault);
        let (name, rate) = fault.split_once('=').unwrap_or((&fault, "1"));
        let builder = Sandbox::builder().seed(1).wall_clock(epoch);
        if let Ok(builder) = builder.fault(name, rate.parse().unwrap_or(f64::NAN)) {
            sandbox = builder.build().expect("a sandbox");
        }
    }
    let mut statuses = Vec::new();
    for text in split(data).into_iter().take(MOST_REQUESTS) {
        let Some(request) = request(&filled_in(text, &sandbox)) else { continue };
        let path = request.uri().path().to_owned();
        match sandbox.gateway().oneshot(request).await {
            Ok(answer) => {
                statuses.push(answer.status().as_u16());
                let (head, body) = answer.into_parts();
                let body = body.collect().await.map(http_body_util::Collected::to_bytes);
                if let Ok(body) = body {
                    check(&path, &head, &body);
                }
            }
            Err(_) => statuses.push(0),
        }
        sandbox.advance(Duration::from_millis(50));
    }
    let truth = sandbox.state();
    let seen: Vec<u16> = truth.arrivals.iter().map(|arrival| arrival.status).collect();
    assert_eq!(statuses, seen, "the truth saw other answers");
    let placements = truth.arrivals.iter().filter(|arrival| arrival.path == "/api/oms/place-order").count();
    let main = truth.orders.iter().filter(|order| order.leg_type == "main").count();
    assert!(main + truth.pending_orders <= 2 * placements, "orders from nowhere");
}

/// Checks for an envelope of §1 and §7, the token record of §4.2, a login page, or its redirect.
fn check(path: &str, head: &http::response::Parts, body: &Bytes) {
    let content_type = head.headers.get("content-type").and_then(|value| value.to_str().ok());
    assert!(head.headers.contains_key("date"));
    if content_type == Some("text/html; charset=utf-8") {
        let is_redirect = head.status == StatusCode::FOUND && head.headers.contains_key("location");
        assert!(is_redirect || head.status == StatusCode::OK, "{path}: {}", head.status);
        return;
    }
    assert_eq!(content_type, Some("application/json"), "{path}");
    let json: Value = serde_json::from_slice(body).expect("JSON");
    let fields = json.as_object().expect("an object");
    match json.get("s").and_then(Value::as_str) {
        Some("ok") => assert!(head.status == StatusCode::OK && fields.len() == 2 && fields.contains_key("d")),
        Some("no-data") => {
            assert!(head.status == StatusCode::OK && fields.len() == 2 && json["msg"] == "no-data")
        }
        Some("error") => {
            let msg = json["msg"].as_str().expect("a text");
            let known =
                ERRORS.iter().any(|row| row.status == head.status && row.msg.is_none_or(|text| text == msg));
            let is_fault = head.status == StatusCode::OK && path.ends_with("/place-order");
            assert!(fields.len() == 2 && (known || is_fault), "{path}: {} {json}", head.status);
        }
        Some(other) => panic!("{path}: s is {other}"),
        None => assert!(head.status == StatusCode::OK && TokenRecord::parse(body).is_ok(), "{path}: {json}"),
    }
}

/// Returns the texts between lines of `---`.
fn split(data: &[u8]) -> Vec<&[u8]> {
    let (mut texts, mut start, mut at) = (Vec::new(), 0, 0);
    while at < data.len() {
        let (this, rest) = line(&data[at..]);
        let next = data.len() - rest.len();
        if this == b"---" {
            texts.push(&data[start..at]);
            start = next;
        }
        at = next;
    }
    texts.push(&data[start..]);
    texts
}

/// Returns the first line, and the rest.
fn line(data: &[u8]) -> (&[u8], &[u8]) {
    let end = data.iter().position(|&byte| byte == b'\n');
    let (first, rest) = end.map_or((data, &[][..]), |end| (&data[..end], &data[end + 1..]));
    (first.strip_suffix(b"\r").unwrap_or(first), rest)
}

/// Returns the request that a client could send, if any: the HTTP library refuses the rest before the gateway
/// sees it.
fn request(text: &[u8]) -> Option<Request<Full<Bytes>>> {
    let (first, mut rest) = line(text);
    let mut words = first.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    let method = http::Method::from_bytes(words.next()?).ok()?;
    let target = http::Uri::try_from(words.next()?).ok()?;
    let mut request = Request::builder().method(method).uri(target);
    loop {
        let (header, after) = line(rest);
        rest = after;
        if header.is_empty() {
            break;
        }
        let colon = header.iter().position(|&byte| byte == b':')?;
        let name = HeaderName::from_bytes(&header[..colon]).ok()?;
        request = request.header(name, HeaderValue::from_bytes(header[colon + 1..].trim_ascii()).ok()?);
    }
    // A text file ends in a line feed, which is not part of a form.
    let body = rest.strip_suffix(b"\n").unwrap_or(rest);
    request.body(Bytes::copy_from_slice(body).into()).ok()
}

fn filled_in(text: &[u8], sandbox: &Sandbox) -> Vec<u8> {
    let (user, other): (Credentials, Credentials) = (sandbox.credentials(), sandbox.other_credentials());
    let totp = sandbox.totp_now();
    let values: [(&[u8], &str); 8] = [
        (b"$OTHER_KEY", &other.api_key),
        (b"$OTHER_TOKEN", &other.access_token),
        (b"$KEY", &user.api_key),
        (b"$TOKEN", &user.access_token),
        (b"$CLIENT", &user.client_id),
        (b"$PASSWORD", &user.password),
        (b"$SECRET", &user.client_secret),
        (b"$TOTP", &totp),
    ];
    let (mut filled, mut rest) = (Vec::with_capacity(text.len() + 100), text);
    while let Some(&first) = rest.first() {
        match values.iter().find(|(name, _)| rest.starts_with(name)) {
            Some((name, value)) => {
                filled.extend_from_slice(value.as_bytes());
                rest = &rest[name.len()..];
            }
            None => {
                filled.push(first);
                rest = &rest[1..];
            }
        }
    }
    filled
}
