use std::time::Duration;

use http::{HeaderMap, Method, header, request::Parts};
use serde::Deserialize;
use steadfast_spec::PlacedOrder;
use tokio::time::Instant;

use crate::sim::wire::{Body, Broken, INTENT, LOOK, intent_number};

/// One send of a call, as seen at the client's end of the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exchange {
    pub(crate) of: Call,
    /// The number of its token.
    pub(crate) session: usize,
    pub(crate) sent: Instant,
    /// The client's boot clock at the send; it runs on while the machine is suspended.
    pub(crate) sent_by_boot: Duration,
    /// When the client learned its end, if it waited that long.
    pub(crate) ended: Option<(Instant, Ended)>,
}

/// The call of a send.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Call {
    /// An order, by its number.
    Order(u64),
    /// A cancel, by the path and query that name the order.
    Cancel(String),
    /// A caller's own read of the list, by the number of the order before it.
    Look(u64),
    /// The client's own read of the list.
    Verification,
    /// Anything else.
    Other,
}

impl Call {
    /// Returns the client's call of a request.
    pub(super) fn of(parts: &Parts) -> Self {
        let (path, name) = (parts.uri.path(), parts.headers.get(INTENT));
        let name = name.and_then(|name| name.to_str().ok());
        if parts.method == Method::POST && path.ends_with("/place-order") {
            Self::Order(name.and_then(intent_number).unwrap_or(u64::MAX))
        } else if parts.method == Method::GET && path.ends_with("/orders") {
            let number = name.and_then(|name| name.strip_prefix(LOOK)?.parse().ok());
            number.map_or(Self::Verification, Self::Look)
        } else if parts.method == Method::DELETE {
            Self::Cancel(parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default())
        } else {
            Self::Other
        }
    }
}

/// How a send ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Nothing left.
    NotSent,
    /// The connection broke.
    Broken,
    /// An answer came, whole or in part.
    Answered {
        status: u16,
        says: Says,
        /// How long the client is asked to wait.
        retry_after: Option<Duration>,
    },
}

/// The meaning of an answer's body, as far as it decides anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    /// It is whole, and names an order.
    Placed,
    /// It is whole, and its message says that nothing was done.
    Refused,
    /// It is whole, and its message leaves open what was done.
    InternalError,
    /// Nothing reliable.
    Nothing,
}

/// The messages of the specification's error table (§7), written independently: the judge must not share the client's
/// table.
const REFUSED: [&str; 2] = [
    "Bad request",
    "Input validation failed. Kindly check your input contains required fields for the request",
];
const INTERNAL_ERROR: &str = "Internal Error occurred. Kindly try again.";

#[derive(Deserialize)]
struct Message {
    msg: String,
}

impl Ended {
    pub(super) fn of(answer: &Result<http::Response<Body>, Broken>) -> Self {
        let response = match answer {
            Ok(response) => response,
            Err(Broken::Refused | Broken::Withheld) => return Self::NotSent,
            Err(Broken::Reset | Broken::MidBody) => return Self::Broken,
        };
        let says = response.body().whole().map_or(Says::Nothing, Says::of);
        Self::Answered {
            status: response.status().as_u16(),
            says,
            retry_after: retry_after(response.headers()),
        }
    }
}

impl Says {
    pub(super) fn of(body: &[u8]) -> Self {
        if PlacedOrder::parse(body).is_ok() {
            return Self::Placed;
        }
        match serde_json::from_slice::<Message>(body) {
            Ok(Message { msg }) if REFUSED.contains(&msg.as_str()) => Self::Refused,
            Ok(Message { msg }) if msg == INTERNAL_ERROR => Self::InternalError,
            _ => Self::Nothing,
        }
    }
}

pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
