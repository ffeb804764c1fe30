//! The answers that the sidecar makes itself, and what it leaves out of the service's.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use steadfast::{BrokenBody, spec::msg};

use crate::{
    front::{Admitted, Refusal},
    mask::{Mask, Masked},
    orders::Delivery,
    screen::Talk,
};

/// The headers of the connection between sidecar and service, and those that would lead a caller past the sidecar or
/// let a page read the answer.
const LEFT_OUT: [&str; 14] = [
    "alt-svc",
    "connection",
    "content-length",
    "keep-alive",
    "location",
    "proxy-authenticate",
    "proxy-connection",
    "set-cookie",
    "set-cookie2",
    "strict-transport-security",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The body of an answer.
pub(crate) enum AnswerBody {
    Own { body: Masked<Full<Bytes>>, then: Option<(Arc<Talk<Admitted>>, Delivery)> },
    Service(Masked<steadfast::Body>),
    Events(Pin<Box<dyn Body<Data = Bytes, Error = Infallible> + Send>>),
}

impl AnswerBody {
    pub(crate) fn own(text: impl Into<Bytes>) -> Self {
        Self::Own { body: Masked::of(Full::new(text.into())), then: None }
    }

    /// Returns the same body without the secrets of `mask`.
    pub(crate) fn by(self, mask: Arc<Mask>) -> Self {
        match self {
            Self::Own { body, then } => Self::Own { body: body.by(mask), then },
            Self::Service(body) => Self::Service(body.by(mask)),
            Self::Events(stream) => Self::Events(stream),
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BrokenBody;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenBody>>> {
        match self.get_mut() {
            Self::Own { body, then } => {
                let frame = Pin::new(&mut *body).poll_frame(cx).map_err(|never| match never {});
                // The next flush carries its end to the caller.
                if body.is_end_stream()
                    && let Some((talk, delivery)) = then.take()
                {
                    talk.deliver(delivery);
                }
                frame
            }
            Self::Service(body) => Pin::new(body).poll_frame(cx),
            Self::Events(stream) => stream.as_mut().poll_frame(cx).map_err(|never| match never {}),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own { body, .. } => body.is_end_stream(),
            Self::Service(body) => body.is_end_stream(),
            Self::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own { body, .. } => body.size_hint(),
            Self::Service(body) => body.size_hint(),
            Self::Events(_) => SizeHint::default(),
        }
    }
}

/// Makes an answer in plain text.
pub(crate) fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::own(text));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

/// An answer of the sidecar's own, in the service's envelope.
pub(crate) struct Own {
    status: StatusCode,
    msg: String,
    headers: HeaderMap,
}

impl Own {
    /// Creates an answer with the service's text for its status. `error` is a type of RFC 9209, `details` says why.
    pub(crate) fn new(status: StatusCode, error: &str, details: &str) -> Self {
        let msg = match status {
            StatusCode::BAD_REQUEST => msg::BAD_REQUEST,
            StatusCode::UNAUTHORIZED => msg::UNAUTHORIZED,
            StatusCode::FORBIDDEN => msg::FORBIDDEN,
            StatusCode::NOT_FOUND => msg::NOT_FOUND,
            StatusCode::METHOD_NOT_ALLOWED => msg::METHOD_NOT_ALLOWED,
            StatusCode::TOO_MANY_REQUESTS => msg::TOO_MANY_REQUESTS,
            StatusCode::BAD_GATEWAY => msg::BAD_GATEWAY,
            StatusCode::SERVICE_UNAVAILABLE => msg::SERVICE_UNAVAILABLE,
            StatusCode::GATEWAY_TIMEOUT => msg::GATEWAY_TIMED_OUT,
            _ => details,
        };
        let quoted: String = details
            .chars()
            .map(|c| if c == ' ' || c.is_ascii_graphic() && c != '"' && c != '\\' { c } else { '?' })
            .collect();
        let own = Self { status, msg: msg.to_owned(), headers: HeaderMap::new() };
        own.with("proxy-status", &format!("steadfast; error={error}; details=\"{quoted}\""))
    }

    pub(crate) fn refusal(refusal: Refusal) -> Self {
        let own = Self::new(refusal.status(), refusal.error_type(), refusal.details());
        // Where the next request begins is not known.
        let own = Self { msg: refusal.msg().to_owned(), ..own }.with("connection", "close");
        let own = match refusal.allowed() {
            Some(methods) => own.with("allow", &methods.to_string()),
            None => own,
        };
        if refusal == Refusal::Token {
            own.with("www-authenticate", "Bearer realm=\"steadfast\"")
        } else {
            own
        }
    }

    /// Creates the answer to a request of which it is not known whether it was executed.
    pub(crate) fn in_doubt(details: &str) -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "http_response_timeout", details)
            .with("retry-safe", "false")
            .with("verify", "/api/oms/orders")
    }

    pub(crate) fn saying(mut self, msg: &str) -> Self {
        self.msg = msg.to_owned();
        self
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(HeaderName::from_static(name), value);
        }
        self
    }

    pub(crate) fn retry_after(self, delay: Duration) -> Self {
        let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
        self.with("retry-after", &seconds.max(1).to_string())
    }

    pub(crate) fn into_response(self) -> Response<AnswerBody> {
        let envelope = serde_json::json!({"s": "error", "msg": self.msg}).to_string();
        let mut response = Response::new(AnswerBody::own(envelope));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}

/// Takes out of the service's headers those that are not the caller's.
pub(crate) fn clean(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in LEFT_OUT {
        headers.remove(name);
    }
    let pages: Vec<_> =
        headers.keys().filter(|name| name.as_str().starts_with("access-control-")).cloned().collect();
    for name in pages {
        headers.remove(name);
    }
}
