//! The sidecar's API as an OpenAPI document: the service's paths, and what is different here.

use bytes::Bytes;
use http::{HeaderName, StatusCode};
use steadfast::spec::{Endpoint, OpenApi, Paths};

/// Writes the document of `GET /openapi.json`.
pub(crate) fn document(paths: &Paths) -> Bytes {
    let name = HeaderName::from_static;
    let is_order = |of: Endpoint| of == Endpoint::PlaceOrder;
    let needs_token = |of: Endpoint| of != Endpoint::IndividualToken;
    let everywhere = |_: Endpoint| true;
    let document = OpenApi::new(paths)
        .only(|of| !matches!(of, Endpoint::Authorize | Endpoint::Token))
        .server("/v2")
        .bearer(
            "<local token>, or <anything>:<local token>",
            "A token of the sidecar's own, which needs no login.",
        )
        .header(name("idempotency-key"), KEY, is_order)
        .header(name("x-new-order"), NEW_ORDER, is_order)
        .header(name("x-lane"), LANE, needs_token)
        .header(name("x-request-id"), "The answer has it, too.", everywhere)
        .answer(StatusCode::UNAUTHORIZED, "the local token is missing or wrong", needs_token)
        .answer(StatusCode::FORBIDDEN, FORBIDDEN, everywhere)
        .answer(StatusCode::REQUEST_TIMEOUT, "the body took too long; nothing was sent", everywhere)
        .answer(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long; nothing was sent", everywhere)
        .answer(StatusCode::CONFLICT, CONFLICT, is_order)
        .answer(
            StatusCode::UNPROCESSABLE_ENTITY,
            "the name is that of another order; nothing was sent",
            is_order,
        )
        .answer(StatusCode::BAD_GATEWAY, "the service cannot be reached", needs_token)
        .answer(StatusCode::SERVICE_UNAVAILABLE, UNAVAILABLE, needs_token)
        .answer(StatusCode::GATEWAY_TIMEOUT, IN_DOUBT, Endpoint::moves_money)
        .document();
    document.to_string().into()
}

const KEY: &str = "The order's name, 1 to 128 visible characters. Under one name one order is placed on a trading day, however \
     often it is sent.";
const NEW_ORDER: &str = "`1`: an order without a name is another one, although an equal one is in doubt.";
const LANE: &str = "How urgent the request is: `critical`, `trading`, `normal` or `bulk`.";
const FORBIDDEN: &str = "the host is no name of this sidecar, a web page has sent it, or the local token or the sidecar does not \
     allow it; nothing was sent";
const CONFLICT: &str = "with `Retry-After`, an order of this name is on its way; without, it has no name, and an equal one is in \
     doubt or was placed (`x-steadfast-order-id`)";
const UNAVAILABLE: &str = "with `Retry-After`, the sidecar is busy or ends, a login is due, or another sidecar of the account places \
     the orders (`x-steadfast-owner`), and nothing was sent; without, orders are halted, the service accepts no token and no login \
     starts by itself, or the shared store may lack orders";
const IN_DOUBT: &str = "with `retry-safe: false`, it is in doubt whether it was executed: it must not be repeated under another \
     name";
