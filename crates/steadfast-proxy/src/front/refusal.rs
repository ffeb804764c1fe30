use std::{error::Error, fmt};

use http::{Method, StatusCode};
use steadfast::spec::msg;

use super::methods::Methods;

/// Why a request does not pass. Nothing of it has reached the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// The head is not HTTP in its strictest grammar.
    Malformed,
    /// The head is too long, or has too many lines.
    HeadTooLong,
    /// Another version of HTTP than 1.1.
    Version,
    /// The method is none of GET, POST, PUT, DELETE and PATCH.
    Method,
    /// The path is one of the service's, for these methods alone.
    WrongMethod(Methods),
    /// A cancel names no order.
    NoOrderId,
    /// An order has fields in its query: the name of the order stands for those in its body alone.
    OrderQuery,
    /// The request line does not hold a path alone: another server's address, a name, or `*`.
    NotAPath,
    /// Two parsers could disagree about where the body ends.
    Framing,
    /// A GET or DELETE has a body.
    UnexpectedBody,
    /// The body is too long for any request of the service.
    BodyTooLong,
    /// A header that must not be repeated is.
    Repeated,
    /// `Host` is missing, or is not a name of this listener.
    Host,
    /// The request comes from a web page.
    Page,
    /// The local token is missing or wrong.
    Token,
    /// The local token does not allow it.
    Scope,
    /// The proxy only reads.
    ReadOnly,
    /// The path could be read in two ways.
    Path,
    /// The path does not lie below `/v2`.
    OutsideBase,
    /// Logins are the proxy's own.
    Login,
    /// The connection is to be used for another protocol.
    Upgrade,
    /// `Expect` is not `100-continue`.
    Expectation,
    /// `Connection` names a header that the proxy itself needs.
    Dropped,
    /// The body is compressed.
    Encoded,
    /// `x-lane` is none of `critical`, `trading`, `normal` and `bulk`.
    Lane,
    /// `Idempotency-Key` is not 1 to 128 visible characters.
    Key,
    /// `Idempotency-Key` stands at a request that may act and is no order of place-order.
    KeyElsewhere,
    /// `x-new-order` is not `1`.
    NewOrder,
}

impl Refusal {
    /// Returns the status of the answer.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::HeadTooLong => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::Version => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            Self::Method | Self::WrongMethod(_) | Self::NoOrderId => StatusCode::METHOD_NOT_ALLOWED,
            Self::BodyTooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Host | Self::Page | Self::Scope | Self::ReadOnly => StatusCode::FORBIDDEN,
            Self::Token => StatusCode::UNAUTHORIZED,
            Self::OutsideBase | Self::Login => StatusCode::NOT_FOUND,
            Self::Upgrade => StatusCode::NOT_IMPLEMENTED,
            Self::Expectation => StatusCode::EXPECTATION_FAILED,
            Self::Encoded => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Malformed
            | Self::NotAPath
            | Self::Framing
            | Self::UnexpectedBody
            | Self::Repeated
            | Self::Path
            | Self::Dropped
            | Self::Lane
            | Self::Key
            | Self::KeyElsewhere
            | Self::NewOrder
            | Self::OrderQuery => StatusCode::BAD_REQUEST,
        }
    }

    /// Returns the `msg` of the answer's envelope: the service's own where §7 has one for the status, so that clients
    /// take it for what it is, a request that was not executed.
    #[must_use]
    pub const fn msg(self) -> &'static str {
        match self.status() {
            StatusCode::BAD_REQUEST => msg::BAD_REQUEST,
            StatusCode::UNAUTHORIZED => msg::UNAUTHORIZED,
            StatusCode::FORBIDDEN => msg::FORBIDDEN,
            StatusCode::NOT_FOUND => msg::NOT_FOUND,
            StatusCode::METHOD_NOT_ALLOWED => msg::METHOD_NOT_ALLOWED,
            _ => self.details(),
        }
    }

    /// Returns the reason in words, for the `details` of `Proxy-Status` (RFC 9209).
    #[must_use]
    pub const fn details(self) -> &'static str {
        match self {
            Self::Malformed => "request is not strict HTTP/1.1",
            Self::HeadTooLong => "request head is too long",
            Self::Version => "HTTP/1.1 is the only version",
            Self::Method => "method is none of GET, POST, PUT, DELETE and PATCH",
            Self::WrongMethod(_) => "path has no such method",
            Self::NoOrderId => "a cancel needs orderId in its query",
            Self::OrderQuery => "an order has its fields in the body, and no query",
            Self::NotAPath => "request line must hold a path",
            Self::Framing => "end of the body is not clear",
            Self::UnexpectedBody => "GET and DELETE have no body",
            Self::BodyTooLong => "body is too long",
            Self::Repeated => "a header is repeated",
            Self::Host => "host is no name of this proxy",
            Self::Page => "web pages may not call the proxy",
            Self::Token => "local token is missing or wrong",
            Self::Scope => "local token does not allow this",
            Self::ReadOnly => "the proxy only reads",
            Self::Path => "path can be read in two ways",
            Self::OutsideBase => "paths begin with /v2",
            Self::Login => "the proxy logs in by itself",
            Self::Upgrade => "connections are not upgraded",
            Self::Expectation => "expectation is not 100-continue",
            Self::Dropped => "connection names a header that is needed",
            Self::Encoded => "body is compressed",
            Self::Lane => "x-lane is none of critical, trading, normal and bulk",
            Self::Key => "idempotency-key is not 1 to 128 visible characters",
            Self::KeyElsewhere => "idempotency-key is kept for place-order only",
            Self::NewOrder => "x-new-order is not 1",
        }
    }

    /// Returns the methods that the path has, if it is known.
    #[must_use]
    pub fn allowed(self) -> Option<Methods> {
        match self {
            Self::WrongMethod(methods) => Some(methods),
            Self::NoOrderId => Some(Methods::from_iter([&Method::DELETE])),
            _ => None,
        }
    }

    /// Returns the error type of `Proxy-Status` (RFC 9209, 2.3).
    #[must_use]
    pub const fn error_type(self) -> &'static str {
        match self {
            Self::Host | Self::Page | Self::Token | Self::Scope | Self::ReadOnly | Self::Login => {
                "http_request_denied"
            }
            _ => "http_request_error",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.details())
    }
}

impl Error for Refusal {}
