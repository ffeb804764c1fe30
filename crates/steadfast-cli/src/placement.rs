use http::{HeaderName, HeaderValue, StatusCode};
use http_body_util::BodyExt;
use steadfast::{
    Client, Error, ErrorKind, Operation, OrderRequest, Outcome,
    dedup::{Reason, Resolution, Unresolved},
    ext::{IntentId, Stamp},
    retry::AttemptTrail,
};
use steadfast_spec::{Envelope, PlacedOrder};

/// The request header that names a call in a sandbox's ground truth.
pub(crate) const INTENT: HeaderName = HeaderName::from_static("x-test-intent");

/// What is known of an order once its call has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// It is placed.
    Placed { order_id: String, msg: String, resolution: Option<Resolution> },
    /// It is not placed: the service refused it, or it was never sent.
    Refused { msg: String },
    /// Nothing of it has left, because somebody asked for the end.
    NotSent,
    /// It was looked for beyond the lateness bound, is not there, and was not sent again.
    NotObserved,
    /// Nobody knows, and this is why.
    Unresolved { reason: &'static str },
}

/// Whether the call's name goes to the gateway: a sandbox keeps it in its ground truth, nobody else wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tell {
    Sandbox,
    Nobody,
}

/// Places an order under a name: all calls with one name place one order at most.
pub(crate) async fn place(client: &Client, name: &str, order: &OrderRequest, tell: Tell) -> Placement {
    send(client, name, order, tell).await.unwrap_or_else(|error| match error.unresolved() {
        Some(unresolved) => Placement::in_doubt(unresolved),
        // A send before the halt whose outcome is not known makes it an order in doubt.
        None if error.kind() == ErrorKind::Halted && !may_have_left(&error) => Placement::NotSent,
        None if may_have_left(&error) => Placement::Unresolved { reason: "answer lost" },
        None => Placement::Refused { msg: error.to_string() },
    })
}

/// True if the order may be placed: by its last send, or by an earlier one.
fn may_have_left(error: &Error) -> bool {
    error.outcome().is_unknown() || error.trail().is_some_and(AttemptTrail::is_in_doubt)
}

async fn send(client: &Client, name: &str, order: &OrderRequest, tell: Tell) -> Result<Placement, Error> {
    let mut request = client.request(&Operation::place_order(order))?;
    request.extensions_mut().insert(IntentId::new(name));
    if let (Tell::Sandbox, Ok(name)) = (tell, HeaderValue::from_str(name)) {
        request.headers_mut().insert(INTENT, name);
    }
    let (head, body) = client.raw(request).await?.into_parts();
    if let Some(unresolved) = head.extensions.get::<Unresolved>() {
        return Ok(Placement::in_doubt(unresolved));
    }
    // What of an answer breaks off has been looked at further in; here it is only a text.
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    Ok(match PlacedOrder::parse(&body) {
        Ok(placed) if head.status == StatusCode::OK => Placement::Placed {
            order_id: placed.order_id,
            msg: placed.msg,
            resolution: head.extensions.get().cloned(),
        },
        _ => match Outcome::of(&head.extensions) {
            Some(outcome) if !outcome.is_unknown() => Placement::Refused { msg: refusal(head.status, &body) },
            _ => Placement::Unresolved { reason: "answer not understood" },
        },
    })
}

impl Placement {
    fn in_doubt(unresolved: &Unresolved) -> Self {
        match unresolved.reason {
            Reason::NotObserved => Self::NotObserved,
            reason => Self::Unresolved { reason: reason.as_str() },
        }
    }
}

fn refusal(status: StatusCode, body: &[u8]) -> String {
    match Envelope::parse(body) {
        Ok(Envelope::Error { msg }) => format!("{} {msg}", status.as_u16()),
        _ => status.as_u16().to_string(),
    }
}
