use http::StatusCode;
use serde_json::{Map, Value};
use steadfast_call::{Outcome, Peek, outcome_of};
use steadfast_spec::{Endpoint, Envelope, EnvelopeError, FieldNames, PlacedOrder, TokenRecord, parse_order_list};

/// Reads a response body with every reader of bodies.
///
/// # Panics
///
/// If `s` alone does not decide, if an order id or a token is not from the body, or if a body proves more than
/// it contains.
pub fn envelope(data: &[u8]) {
    // An independent reader, which keeps the last of repeated fields instead of refusing them.
    let object: Option<Map<String, Value>> = serde_json::from_slice(data).ok();
    let field = |name: &str| object.as_ref().and_then(|object| object.get(name));
    let read = Envelope::parse(data);
    match &read {
        Ok(read) => {
            let s = match read {
                Envelope::Ok { d } => {
                    assert!(contains(data, d.get().as_bytes()), "a payload from nowhere");
                    "ok"
                }
                Envelope::NoData { .. } => "no-data",
                Envelope::Error { msg } => {
                    assert_eq!(field("msg").and_then(Value::as_str), Some(msg.as_str()));
                    "error"
                }
            };
            // The independent reader gives up on numbers beyond its range, and is then ignored.
            if object.is_some() {
                assert_eq!(field("s").and_then(Value::as_str), Some(s));
            }
        }
        // Depends on the body only: reading again gives the same error.
        Err(error) => assert_eq!(Envelope::parse(data).err(), Some(*error)),
    }
    placement(data, &read);
    let _ = parse_order_list(data, &FieldNames::default());
    token_record(data);
    outcomes(data);
}

/// Checks that a placement succeeds only if an `ok` holds a non-empty order id, and that it is that id.
fn placement(data: &[u8], read: &Result<Envelope<&serde_json::value::RawValue>, EnvelopeError>) {
    let Ok(placed) = PlacedOrder::parse(data) else { return };
    let Ok(Envelope::Ok { d }) = read else { panic!("a placement without an ok") };
    assert!(!placed.order_id.trim().is_empty());
    if let Ok(d) = serde_json::from_str::<Value>(d.get()) {
        match &d["orderId"] {
            Value::String(id) => assert_eq!(*id, placed.order_id),
            Value::Number(_) => assert!(contains(data, placed.order_id.as_bytes()), "an invented identifier"),
            other => panic!("an identifier from {other}"),
        }
    }
    // Cutting the body off removes the proof, unless only blanks are lost.
    let end = data.trim_ascii_end().len();
    for cut in [0, end / 3, end / 2, end - 1] {
        assert!(PlacedOrder::parse(&data[..cut]).is_err(), "a cut placement is taken for a success");
    }
}

fn token_record(data: &[u8]) {
    let Ok(record) = TokenRecord::parse(data) else { return };
    assert!(record.expires_in.as_secs() > 0 && record.expires_in.as_secs() <= 86_400);
    // The token must not show. A short text, such as a single digit, may be part of the output by chance.
    let shown = format!("{record:?}");
    if let Some(token) = serde_json::from_slice::<Value>(data).ok().and_then(|body| token_of(&body))
        && token.len() > 12
        && record.token_type.as_deref() != Some(&token)
        && record.scope.as_deref() != Some(&token)
    {
        assert!(!shown.contains(&token) || contains_elsewhere(&record, &token), "the token shows");
    }
}

fn token_of(body: &Value) -> Option<String> {
    let token = body.get("access_token").or_else(|| body.get("d")?.get("access_token"))?;
    token.as_str().map(str::to_owned)
}

fn contains_elsewhere(record: &TokenRecord, token: &str) -> bool {
    [&record.token_type, &record.scope].into_iter().flatten().any(|text| text.contains(token))
}

/// Checks what a body proves at each status: no panic, and no order id that is not in the body.
fn outcomes(data: &[u8]) {
    let endpoints = Endpoint::SPECIFIED.into_iter().map(Some).chain([None]);
    for (endpoint, status) in endpoints.flat_map(|e| [200, 201, 302, 400, 401, 429, 500, 504].map(|s| (e, s)))
    {
        let status = StatusCode::from_u16(status).expect("a status");
        let outcome = outcome_of(endpoint, status, Peek::Whole(data));
        if let Outcome::Accepted { order_id: Some(id) } = &outcome {
            assert_eq!((endpoint, status), (Some(Endpoint::PlaceOrder), StatusCode::OK));
            assert_eq!(PlacedOrder::parse(data).map(|placed| placed.order_id.into()).as_ref(), Ok(id));
        }
        if endpoint == Some(Endpoint::PlaceOrder) && matches!(outcome, Outcome::Accepted { order_id: None }) {
            panic!("a placement accepted without an identifier");
        }
    }
}

fn contains(data: &[u8], part: &[u8]) -> bool {
    part.is_empty() || data.windows(part.len()).any(|window| window == part)
}
