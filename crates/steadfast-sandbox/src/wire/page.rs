use std::{
    borrow::Cow,
    time::{Duration, UNIX_EPOCH},
};

use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;

use crate::{faults::Fault, wire::scrips::ScripPieces};

/// The end of the year 9999, the last date of HTTP.
pub(crate) const LAST_DATE: Duration = Duration::from_secs(253_402_300_799);

/// An answer whose bytes a fault changes.
#[derive(Clone, Debug)]
pub(crate) struct Corrupted {
    pub(crate) fault: Fault,
    pub(crate) page: Page,
    /// The byte at which the fault strikes, if it strikes at one and a script names it.
    pub(crate) at_byte: Option<u64>,
    /// A random number for what the script does not fix.
    pub(crate) chance: u64,
}

/// A response before it is put on the wire.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) content_type: &'static str,
    pub(crate) hint: Option<Hint>,
    pub(crate) content: Content,
    /// Seconds added to the clock of the `Date` header.
    pub(crate) date_skew: i8,
}

/// The one extra header of a response: where to go, when to return, or another property.
#[derive(Clone, Debug)]
pub(crate) enum Hint {
    Location(String),
    RetryAfter(Cow<'static, str>),
    /// The answer is from a cache and this many seconds old.
    Age(u64),
    /// The answer is from a cache.
    CacheHit,
    /// A fault claims that the body is compressed.
    Gzip,
    /// A fault ends the connection.
    Close,
}

/// A response's body.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Whole(Bytes),
    /// The head announces the whole body, and the connection breaks after `sent` bytes.
    Cut {
        whole: Bytes,
        sent: usize,
    },
    /// The head announces the whole body, and nothing comes after `sent` bytes.
    Stalled {
        whole: Bytes,
        sent: usize,
    },
    /// `head`, a number of fillers, `tail`; sent in pieces and never held in memory.
    Filled {
        head: &'static str,
        fillers: u64,
        tail: &'static str,
    },
    /// This many instruments, generated while they are sent.
    Scrips {
        count: u64,
        /// The number of instruments after which the connection breaks, if it does.
        broken_after: Option<u64>,
    },
}

impl Content {
    /// Returns the body in one piece, but of a generated one only a part: without its fillers, or some 4 MiB.
    pub(crate) fn bytes(&self) -> Bytes {
        const MOST: usize = 4 << 20;
        match self {
            Self::Whole(whole) | Self::Cut { whole, .. } | Self::Stalled { whole, .. } => whole.clone(),
            Self::Filled { head, tail, .. } => [*head, *tail].concat().into(),
            Self::Scrips { count, .. } => {
                let mut body = Vec::new();
                for piece in ScripPieces::new(*count, None).flatten() {
                    body.extend_from_slice(&piece);
                    if body.len() > MOST {
                        break;
                    }
                }
                body.into()
            }
        }
    }
}

impl Page {
    fn new(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self { status, content_type, hint: None, content: Content::Whole(body.into()), date_skew: 0 }
    }

    /// Creates a JSON answer.
    pub(crate) fn json(status: StatusCode, body: &serde_json::Value) -> Self {
        Self::new(status, "application/json", body.to_string())
    }

    /// Creates a success envelope (§1).
    pub(crate) fn ok(d: impl Serialize) -> Self {
        #[derive(Serialize)]
        struct Envelope<T> {
            s: &'static str,
            d: T,
        }

        // Proof: the sandbox's own records are texts and numbers under text keys, which is always JSON.
        let body = serde_json::to_string(&Envelope { s: "ok", d }).unwrap_or_default();
        Self::new(StatusCode::OK, "application/json", body)
    }

    /// Creates the envelope for no data (§1).
    pub(crate) fn no_data() -> Self {
        let msg = steadfast_spec::msg::NO_DATA;
        Self::json(StatusCode::OK, &serde_json::json!({"s": "no-data", "msg": msg}))
    }

    /// Creates an error envelope (§7).
    pub(crate) fn error(status: StatusCode, msg: &str) -> Self {
        Self::json(status, &serde_json::json!({"s": "error", "msg": msg}))
    }

    /// Creates an HTML page for a person.
    pub(crate) fn html(body: String) -> Self {
        Self::new(StatusCode::OK, "text/html; charset=utf-8", body)
    }

    /// Creates a line of text for a person.
    pub(crate) fn text(status: StatusCode, body: &'static str) -> Self {
        Self::new(status, "text/plain; charset=utf-8", body)
    }

    /// Creates a page of plain text.
    pub(crate) fn plain(body: String) -> Self {
        Self::new(StatusCode::OK, "text/plain; charset=utf-8", body)
    }

    /// Creates a redirect.
    pub(crate) fn redirect(location: String) -> Self {
        let page = Self::new(StatusCode::FOUND, "text/html; charset=utf-8", Bytes::new());
        Self { hint: Some(Hint::Location(location)), ..page }
    }

    /// Returns the answer's headers at this wall clock, without those for the body's length.
    pub(crate) fn headers(&self, wall: Duration) -> Vec<(&'static str, String)> {
        let skew = Duration::from_secs(self.date_skew.unsigned_abs().into());
        let shown = if self.date_skew < 0 { wall.saturating_sub(skew) } else { wall.saturating_add(skew) };
        let date = httpdate::fmt_http_date(UNIX_EPOCH + shown.min(LAST_DATE));
        let mut headers = vec![("content-type", self.content_type.to_owned()), ("date", date)];
        match &self.hint {
            Some(Hint::Location(address)) => headers.push(("location", address.clone())),
            Some(Hint::RetryAfter(wait)) => headers.push(("retry-after", wait.clone().into_owned())),
            Some(Hint::Age(seconds)) => headers.push(("age", seconds.to_string())),
            Some(Hint::CacheHit) => headers.push(("x-cache", "HIT".to_owned())),
            Some(Hint::Gzip) => headers.push(("content-encoding", "gzip".to_owned())),
            Some(Hint::Close) => headers.push(("connection", "close".to_owned())),
            None => {}
        }
        headers
    }

    /// Returns true if there is no body.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(&self.content, Content::Whole(whole) if whole.is_empty())
    }

    /// Returns the same answer, cut in the middle of its body.
    pub(crate) fn cut_in_half(self) -> Self {
        match self.content {
            Content::Whole(whole) => {
                let sent = whole.len() / 2;
                Self { content: Content::Cut { whole, sent }, ..self }
            }
            Content::Scrips { count, .. } => {
                Self { content: Content::Scrips { count, broken_after: Some(count / 2) }, ..self }
            }
            Content::Cut { .. } | Content::Stalled { .. } | Content::Filled { .. } => self,
        }
    }

    /// Returns the same answer with another body.
    pub(crate) fn with_body(self, body: impl Into<Bytes>) -> Self {
        Self { content: Content::Whole(body.into()), ..self }
    }
}

/// The gateway's refusals, as the table of §7 has them.
pub(crate) mod refusal {
    use http::StatusCode;
    use steadfast_spec::msg;

    use super::Page;

    pub(crate) fn bad_request() -> Page {
        Page::error(StatusCode::BAD_REQUEST, msg::BAD_REQUEST)
    }

    pub(crate) fn input_validation() -> Page {
        Page::error(StatusCode::BAD_REQUEST, msg::INPUT_VALIDATION)
    }

    pub(crate) fn unauthorized() -> Page {
        Page::error(StatusCode::UNAUTHORIZED, msg::UNAUTHORIZED)
    }

    pub(crate) fn forbidden() -> Page {
        Page::error(StatusCode::FORBIDDEN, msg::FORBIDDEN)
    }

    pub(crate) fn not_found() -> Page {
        Page::error(StatusCode::NOT_FOUND, msg::NOT_FOUND)
    }

    pub(crate) fn method_not_allowed() -> Page {
        Page::error(StatusCode::METHOD_NOT_ALLOWED, msg::METHOD_NOT_ALLOWED)
    }

    /// §7 does not show the text; it is the name of the status.
    pub(crate) fn unsupported_media_type() -> Page {
        Page::error(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Unsupported media type")
    }

    pub(crate) fn too_many_requests() -> Page {
        Page::error(StatusCode::TOO_MANY_REQUESTS, msg::TOO_MANY_REQUESTS)
    }
}
