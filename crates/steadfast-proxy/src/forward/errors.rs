//! The answers of the sidecar's own to a request that it does not pass on, or that got none of the service's.

use std::time::Duration;

use http::StatusCode;
use steadfast::{
    Error, ErrorKind,
    call::{causes, find_cause, one_line},
    dedup::OrderWithheld,
};

use super::Forward;
use crate::{answer::Own, orders::Conflict, sharing};

/// Returns the answer to an order that another one keeps from being entered.
pub(super) fn conflict(conflict: Conflict) -> Own {
    let own = |details| Own::new(StatusCode::CONFLICT, "http_request_denied", details);
    match conflict {
        Conflict::Running => own("an order of this name is on its way").retry_after(Duration::from_secs(1)),
        Conflict::Equal(None) | Conflict::Leaving(None) => {
            own("an equal order is in doubt; x-new-order: 1 places another one")
                .with("verify", "/api/oms/orders")
        }
        Conflict::Equal(Some(id)) | Conflict::Leaving(Some(id)) => {
            own("an equal order was placed; x-new-order: 1 places another one")
                .saying(&format!("an equal order was placed as {id}; x-new-order: 1 places another one"))
                .with("x-steadfast-order-id", &id)
                .with("verify", "/api/oms/orders")
        }
    }
}

/// True if the order may have been placed.
pub(super) fn is_doubtful(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::InDoubt | ErrorKind::NotObserved)
}

/// Returns the answer for a call without one of the service's.
pub(super) fn of_error(error: &Error, moves_money: bool, forward: &Forward) -> Own {
    let why = one_line(causes(error));
    let why = why.as_str();
    if matches!(find_cause(error), Some(OrderWithheld::IntentMismatch(_))) {
        return Own::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "http_request_denied",
            "name is that of another order",
        );
    }
    let unavailable =
        |details: &str| Own::new(StatusCode::SERVICE_UNAVAILABLE, "http_request_denied", details);
    let wait = error.retry_in();
    match error.kind() {
        kind if is_doubtful(kind) => Own::in_doubt(why),
        _ if moves_money && error.outcome().is_unknown() => Own::in_doubt(why),
        ErrorKind::InvalidRequest => Own::new(StatusCode::BAD_REQUEST, "http_request_error", why)
            .saying(steadfast::spec::msg::INPUT_VALIDATION),
        ErrorKind::Halted => forward.switch.refusal(),
        ErrorKind::NotOwner => sharing::refusal(error.not_owner(), forward.sharing(), why),
        ErrorKind::Refused => unavailable(why).retry_after(wait.unwrap_or(Duration::from_secs(1))),
        ErrorKind::RateLimited => Own::new(StatusCode::TOO_MANY_REQUESTS, "http_request_denied", why)
            .retry_after(wait.unwrap_or(Duration::from_secs(1))),
        ErrorKind::Unreachable => Own::new(StatusCode::BAD_GATEWAY, "destination_unavailable", why),
        ErrorKind::NotOpen => Own::new(StatusCode::BAD_REQUEST, "http_request_denied", why),
        _ => match error.status() {
            Some(status) if status.is_client_error() || status.is_server_error() => {
                let own = Own::new(status, "http_request_denied", why);
                match error.message() {
                    Some(msg) => own.saying(msg),
                    None => own,
                }
            }
            _ if error.kind() == ErrorKind::Unavailable => {
                Own::new(StatusCode::BAD_GATEWAY, "connection_terminated", why)
            }
            _ => unavailable(why),
        },
    }
}

/// True if a call has got no answer of the service, not even an error's.
pub(super) fn found_none(error: &Error) -> bool {
    let kind = error.kind();
    kind == ErrorKind::Unreachable || kind == ErrorKind::Unavailable && error.status().is_none()
}
