use http::StatusCode;

use crate::Envelope;

/// The exact `msg` texts of the service (§1, §4.2, §7).
pub mod msg {
    /// 400 raised by the gateway.
    pub const BAD_REQUEST: &str = "Bad request";
    /// 400 raised by the application: a field is missing or wrong.
    pub const INPUT_VALIDATION: &str =
        "Input validation failed. Kindly check your input contains required fields for the request";
    /// 400 raised by the application. It may be repeated, and does not say what was executed.
    pub const INTERNAL_ERROR: &str = "Internal Error occurred. Kindly try again.";
    /// 401.
    pub const UNAUTHORIZED: &str = "Unauthorized";
    /// 403.
    pub const FORBIDDEN: &str = "Forbidden";
    /// 404.
    pub const NOT_FOUND: &str = "Resource not found";
    /// 405.
    pub const METHOD_NOT_ALLOWED: &str = "Method not allowed";
    /// 429.
    pub const TOO_MANY_REQUESTS: &str = "Too many requests";
    /// 500.
    pub const INTERNAL_SERVER_ERROR: &str = "Internal server error";
    /// 502.
    pub const BAD_GATEWAY: &str = "Bad gateway";
    /// 503.
    pub const SERVICE_UNAVAILABLE: &str = "Service unavailable";
    /// 504.
    pub const GATEWAY_TIMED_OUT: &str = "Gateway timedout";
    /// The `msg` of an empty, successful answer.
    pub const NO_DATA: &str = "no-data";
}

/// The part of the service that raises an error (§7, column "Origin").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The gateway in front of the application.
    Gateway,
    /// The application.
    Application,
    /// Either.
    GatewayOrApplication,
}

/// One row of the error table (§7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorRow {
    /// The HTTP status.
    pub status: StatusCode,
    /// The exact text; `None` if the table does not show it (415).
    pub msg: Option<&'static str>,
    /// The part that raises it.
    pub origin: Origin,
    /// Whether the table says that the request may be repeated. It does not say what was executed.
    pub retry: bool,
}

const fn row(status: StatusCode, msg: Option<&'static str>, origin: Origin, retry: bool) -> ErrorRow {
    ErrorRow { status, msg, origin, retry }
}

/// The thirteen rows of §7, in its order.
pub const ERRORS: [ErrorRow; 13] = [
    row(StatusCode::BAD_REQUEST, Some(msg::BAD_REQUEST), Origin::Gateway, false),
    row(StatusCode::BAD_REQUEST, Some(msg::INPUT_VALIDATION), Origin::Application, false),
    row(StatusCode::BAD_REQUEST, Some(msg::INTERNAL_ERROR), Origin::Application, true),
    row(StatusCode::UNAUTHORIZED, Some(msg::UNAUTHORIZED), Origin::GatewayOrApplication, false),
    row(StatusCode::FORBIDDEN, Some(msg::FORBIDDEN), Origin::Gateway, false),
    row(StatusCode::NOT_FOUND, Some(msg::NOT_FOUND), Origin::Gateway, false),
    row(StatusCode::METHOD_NOT_ALLOWED, Some(msg::METHOD_NOT_ALLOWED), Origin::Gateway, false),
    row(StatusCode::UNSUPPORTED_MEDIA_TYPE, None, Origin::Application, false),
    row(StatusCode::TOO_MANY_REQUESTS, Some(msg::TOO_MANY_REQUESTS), Origin::Gateway, true),
    row(StatusCode::INTERNAL_SERVER_ERROR, Some(msg::INTERNAL_SERVER_ERROR), Origin::Application, true),
    row(StatusCode::BAD_GATEWAY, Some(msg::BAD_GATEWAY), Origin::Gateway, true),
    row(StatusCode::SERVICE_UNAVAILABLE, Some(msg::SERVICE_UNAVAILABLE), Origin::Gateway, true),
    row(StatusCode::GATEWAY_TIMEOUT, Some(msg::GATEWAY_TIMED_OUT), Origin::Gateway, true),
];

/// True if an answer is a documented error: its status and its whole `msg` are exactly one row of §7.
///
/// Only such an answer is certainly the service's own. Another text with the same status may come from a proxy. Where
/// §7 does not show the text (415), every envelope with an error counts.
#[must_use]
pub fn is_documented(status: StatusCode, body: &[u8]) -> bool {
    let Ok(Envelope::Error { msg }) = Envelope::parse(body) else { return false };
    ERRORS.iter().any(|row| row.status == status && row.msg.is_none_or(|text| text == &*msg))
}
