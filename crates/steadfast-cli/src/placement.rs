use http::{HeaderName, HeaderValue, StatusCode};
use http_body_util::BodyExt;
use steadfast::{
    Client, Error, ErrorKind, Operation, OrderRequest, Outcome,
    auth::{AuthError, AuthErrorKind},
    dedup::{Reason, Resolution, Unresolved},
    ext::{IntentId, Stamp},
    retry::AttemptTrail,
};
use steadfast_spec::{Envelope, PlacedOrder};

/// The request header that names a call in a sandbox's ground truth.
pub(crate) const INTENT: HeaderName = HeaderName::from_static("x-test-intent");

/// More characters of what a service says help nobody.
const LONGEST: usize = 300;

/// What is known of an order once its call has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// It is placed.
    Placed { order_id: String, msg: String, resolution: Option<Resolution> },
    /// It is not placed: the service looked at it and refused it for good.
    Refused { msg: String },
    /// It is not placed: the service turned the request away before it looked at the order (401, 429).
    NotExecuted { why: Hindrance, msg: String },
    /// Nothing of it has left.
    NotSent { why: Hindrance, msg: String },
    /// It was looked for beyond the lateness bound, is not there, and was not sent again. `said` is the service's own text.
    NotObserved { said: Option<String> },
    /// Nobody knows, and this is why. `candidates` are orders that it may be, `said` is the service's own text.
    Unresolved { reason: &'static str, candidates: Vec<String>, said: Option<String> },
}

/// What has kept an order from being looked at, although nothing is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Hindrance {
    /// Logins are latched.
    Latched,
    /// There is no token that the service accepts, and none comes without a person.
    Login,
    /// The service cannot be reached, or fails.
    Unavailable,
    /// The service's quota is used up.
    RateLimited,
    /// Something on this side: a deadline, a journal that cannot be written.
    Here,
    /// Somebody asked for the end.
    Interrupted,
}

impl Hindrance {
    fn of(error: &Error) -> Self {
        let of_token = |kind| match kind {
            AuthErrorKind::Latched => Self::Latched,
            AuthErrorKind::Unavailable | AuthErrorKind::TooLate | AuthErrorKind::Overloaded => {
                Self::Unavailable
            }
            _ => Self::Login,
        };
        match error.kind() {
            ErrorKind::Halted => Self::Interrupted,
            ErrorKind::Unauthorized => auth_error(error).map_or(Self::Login, |error| of_token(error.kind())),
            ErrorKind::Unreachable | ErrorKind::Unavailable => Self::Unavailable,
            ErrorKind::RateLimited => Self::RateLimited,
            // A zone that would admit it only after its deadline.
            ErrorKind::Refused if error.zone().is_some() => Self::RateLimited,
            _ => Self::Here,
        }
    }

    /// True if it keeps every later order from being placed as well.
    pub(crate) fn is_for_good(self) -> bool {
        matches!(self, Self::Login | Self::Latched)
    }
}

/// What the tokens' side says of an error, if it is the cause.
fn auth_error(error: &Error) -> Option<&AuthError> {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
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
        Some(unresolved) => Placement::in_doubt(unresolved, None),
        // A send before the halt whose outcome is not known makes it an order in doubt.
        None if may_have_left(&error) => Placement::unresolved("answer_lost", None),
        None if error.kind() == ErrorKind::Rejected => Placement::Refused { msg: error.to_string() },
        None => {
            let (why, msg) = (Hindrance::of(&error), error.to_string());
            match error.outcome() {
                Outcome::Rejected => Placement::Refused { msg },
                Outcome::NotExecuted => Placement::NotExecuted { why, msg },
                _ => Placement::NotSent { why, msg },
            }
        }
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
    // What of an answer breaks off has been looked at further in; here it is only a text.
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    if let Some(unresolved) = head.extensions.get::<Unresolved>() {
        return Ok(Placement::in_doubt(unresolved, said(head.status, &body)));
    }
    let is_unknown = Outcome::of(&head.extensions).is_some_and(Outcome::is_unknown);
    Ok(match PlacedOrder::parse(&body) {
        Ok(placed) if head.status == StatusCode::OK && !is_unknown => Placement::Placed {
            order_id: placed.order_id,
            msg: placed.msg,
            resolution: head.extensions.get().cloned(),
        },
        _ => {
            let said = said(head.status, &body);
            let msg = said.clone().unwrap_or_else(|| head.status.as_u16().to_string());
            let why = match head.status.as_u16() {
                401 => Hindrance::Login,
                429 => Hindrance::RateLimited,
                _ => Hindrance::Unavailable,
            };
            match Outcome::of(&head.extensions) {
                Some(Outcome::NotExecuted) => Placement::NotExecuted { why, msg },
                Some(Outcome::NotSent) => Placement::NotSent { why, msg },
                Some(outcome) if !outcome.is_unknown() => Placement::Refused { msg },
                _ => Placement::unresolved("answer_not_understood", said),
            }
        }
    })
}

impl Placement {
    fn in_doubt(unresolved: &Unresolved, said: Option<String>) -> Self {
        match unresolved.reason {
            Reason::NotObserved => Self::NotObserved { said },
            reason => {
                let candidates = unresolved.candidates.clone();
                Self::Unresolved { reason: reason.as_str(), candidates, said }
            }
        }
    }

    /// In doubt, where nobody has seen an order that it may be.
    pub(crate) fn unresolved(reason: &'static str, said: Option<String>) -> Self {
        Self::Unresolved { reason, candidates: Vec::new(), said }
    }

    /// What has kept the order from being looked at, if something has.
    pub(crate) fn hindrance(&self) -> Option<Hindrance> {
        match self {
            Self::NotExecuted { why, .. } | Self::NotSent { why, .. } => Some(*why),
            _ => None,
        }
    }
}

/// The service's own text, behind its status; `None` if it has said nothing.
fn said(status: StatusCode, body: &[u8]) -> Option<String> {
    match Envelope::parse(body) {
        Ok(Envelope::Error { msg }) => {
            Some(format!("{} {}", status.as_u16(), msg.chars().take(LONGEST).collect::<String>()))
        }
        _ => None,
    }
}
