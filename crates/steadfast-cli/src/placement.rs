use http::{Extensions, HeaderName, HeaderValue, StatusCode};
use http_body_util::BodyExt;
use steadfast::{
    Client, Error, ErrorKind, Operation, OrderRequest, Outcome,
    auth::{AuthError, AuthErrorKind, Unrenewed},
    dedup::{OrderWithheld, Reason, Resolution, Unresolved},
    ext::IntentId,
    retry::AttemptTrail,
};
use steadfast_call::{Call, find_cause};
use steadfast_spec::{Envelope, OrderStatus, PlacedOrder};

use crate::readable::{identifier, readable};

/// The request header with a call's name for the sandbox's ground truth.
pub(crate) const INTENT: HeaderName = HeaderName::from_static("x-test-intent");

/// The maximum length of a text of the service's, in characters.
const LONGEST: usize = 300;

/// The result of an order's call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// It is placed.
    Placed { order_id: String, msg: String, resolution: Option<Resolution> },
    /// It is not placed: the service refused the order for good.
    Refused { msg: String },
    /// It is not placed: the service refused the request without looking at the order (401, 429).
    NotExecuted { why: Hindrance, msg: String },
    /// Nothing of it has left.
    NotSent { why: Hindrance, msg: String },
    /// It was looked for beyond the lateness bound, was not found, and was not sent again. `said` is the service's
    /// text.
    NotObserved { said: Option<String> },
    /// The outcome is not known, for this reason. `candidates` are orders that it may be, `said` is the service's text.
    /// `why` is set if the order was turned away for a cause that the next ones would meet as well.
    Unresolved { reason: &'static str, candidates: Vec<String>, why: Option<Hindrance>, said: Option<String> },
}

/// Why an order was not looked at, although nothing is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Hindrance {
    /// Logins are latched.
    Latched,
    /// There is no token that the service accepts, and only a person can log in.
    Login,
    /// The service cannot be reached, or fails.
    Unavailable,
    /// The service's quota is used up.
    RateLimited,
    /// A cause on this side: a deadline, or a journal that cannot be written.
    Here,
    /// The user asked for the end.
    Interrupted,
}

impl Hindrance {
    pub(crate) fn of(error: &Error) -> Self {
        let of_token = |kind| match kind {
            AuthErrorKind::Latched => Self::Latched,
            AuthErrorKind::Unavailable | AuthErrorKind::TooLate | AuthErrorKind::Overloaded => {
                Self::Unavailable
            }
            _ => Self::Login,
        };
        if find_cause(error).is_some_and(|refused: &OrderWithheld| matches!(refused, OrderWithheld::Halted)) {
            return Self::Interrupted;
        }
        match error.kind() {
            ErrorKind::Halted => Self::Interrupted,
            ErrorKind::Unauthorized => auth_error(error).map_or(Self::Login, |error| of_token(error.kind())),
            ErrorKind::Unreachable | ErrorKind::Unavailable => Self::Unavailable,
            ErrorKind::RateLimited => Self::RateLimited,
            // A zone would admit it only after its deadline.
            ErrorKind::Refused if error.zone().is_some() => Self::RateLimited,
            _ => Self::Here,
        }
    }

    /// Returns true if later orders cannot be placed either.
    pub(crate) fn is_for_good(self) -> bool {
        matches!(self, Self::Login | Self::Latched)
    }
}

/// Returns the token error that caused `error`, if there is one.
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

/// Whether the call's name is sent to the gateway. Only a sandbox uses it, for its ground truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tell {
    Sandbox,
    Nobody,
}

/// Places an order under a name. All calls with one name place at most one order.
pub(crate) async fn place(client: &Client, name: &str, order: &OrderRequest, tell: Tell) -> Placement {
    send(client, name, order, tell).await.unwrap_or_else(|error| match error.unresolved() {
        Some(unresolved) => Placement::in_doubt(unresolved, None),
        // A send before the halt with an unknown outcome puts the order in doubt.
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

/// Returns true if the order may be placed, by its last send or an earlier one.
fn may_have_left(error: &Error) -> bool {
    error.outcome().is_unknown() || error.trail().is_some_and(AttemptTrail::is_in_doubt)
}

async fn send(client: &Client, name: &str, order: &OrderRequest, tell: Tell) -> Result<Placement, Error> {
    let mut request = client.request(&Operation::place_order(order))?;
    Call::of_mut(request.extensions_mut()).set_intent(IntentId::new(name));
    if let (Tell::Sandbox, Ok(name)) = (tell, HeaderValue::from_str(name)) {
        request.headers_mut().insert(INTENT, name);
    }
    let (head, body) = client.raw(request).await?.into_parts();
    // The layers have handled an answer that broke off; here the body is only a text.
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    if let Some(unresolved) = head.extensions.get::<Unresolved>() {
        return Ok(Placement::in_doubt(unresolved, said(head.status, &body)).refused_token(&head.extensions));
    }
    let is_unknown = Outcome::of(&head.extensions).is_some_and(Outcome::is_unknown);
    Ok(match PlacedOrder::parse(&body) {
        Ok(placed) if head.status == StatusCode::OK && !is_unknown => Placement::Placed {
            // The id first: the text may quote it.
            msg: quoted(&placed.order_id, &placed.msg),
            order_id: placed.order_id,
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
    pub(crate) fn in_doubt(unresolved: &Unresolved, said: Option<String>) -> Self {
        match unresolved.reason {
            Reason::NotObserved => Self::NotObserved { said },
            reason => {
                let candidates = unresolved.candidates.clone();
                let answered =
                    unresolved.answered.as_ref().map(|id| format!("order {} (unconfirmed)", identifier(id)));
                let said = answered.or(said);
                Self::Unresolved { reason: reason.as_str(), candidates, why: None, said }
            }
        }
    }

    /// Returns an order in doubt without candidates.
    pub(crate) fn unresolved(reason: &'static str, said: Option<String>) -> Self {
        Self::Unresolved { reason, candidates: Vec::new(), why: None, said }
    }

    /// Notes in an order in doubt that its token is dead: the service answered 401 without a renewal after it, and no
    /// list could be read either. One that can be read speaks for the token.
    fn refused_token(self, answered: &Extensions) -> Self {
        let is_dead = answered.get::<Unrenewed>().is_some();
        match self {
            Self::Unresolved { reason, candidates, said, .. }
                if is_dead && reason == Reason::Unverifiable.as_str() =>
            {
                Self::Unresolved { reason, candidates, why: Some(Hindrance::Login), said }
            }
            placement => placement,
        }
    }

    /// Returns why the order was not looked at, if that is known.
    pub(crate) fn hindrance(&self) -> Option<Hindrance> {
        match self {
            Self::NotExecuted { why, .. } | Self::NotSent { why, .. } => Some(*why),
            Self::Unresolved { why, .. } => *why,
            _ => None,
        }
    }
}

/// Returns true for the status of a rejected order, in whatever case. Here it says only what a person is told.
pub(crate) fn means_rejected(status: &str) -> bool {
    status.eq_ignore_ascii_case(OrderStatus::Rejected.as_str())
}

/// Returns the service's text about an order, which may quote the order's id.
fn quoted(order_id: &str, msg: &str) -> String {
    drop(identifier(order_id));
    readable(msg).into_owned()
}

/// Returns the service's text after its status; `None` if there is none.
fn said(status: StatusCode, body: &[u8]) -> Option<String> {
    match Envelope::parse(body) {
        Ok(Envelope::Error { msg }) => {
            let msg: String = msg.chars().take(LONGEST).collect();
            Some(format!("{} {}", status.as_u16(), readable(&msg)))
        }
        _ => None,
    }
}
