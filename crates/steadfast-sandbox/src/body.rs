use std::{
    error::Error,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::{arrival::Content, market::ScripPieces};

/// The body of the gateway's responses.
pub struct Body {
    inner: Inner,
    /// True once everything before the break was handed out and the connection had its turn to send it.
    sent: bool,
}

enum Inner {
    Whole(Option<Bytes>),
    /// Announced in full, broken off after `part`.
    Cut {
        announced: u64,
        part: Option<Bytes>,
    },
    Pieces(ScripPieces),
}

impl Body {
    pub(crate) fn new(content: Content) -> Self {
        let inner = match content {
            Content::Whole(whole) => Inner::Whole(Some(whole).filter(|whole| !whole.is_empty())),
            Content::Cut { whole, sent } => {
                Inner::Cut { announced: whole.len() as u64, part: Some(whole.slice(..sent.min(whole.len()))) }
            }
            Content::Scrips { count, broken_after } => Inner::Pieces(ScripPieces::new(count, broken_after)),
        };
        Self { inner, sent: false }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let frame = match &mut self.inner {
            Inner::Whole(whole) => whole.take().map(|whole| Ok(Frame::data(whole))),
            Inner::Cut { part, .. } => Some(part.take().map(Frame::data).ok_or(BrokenOff)),
            Inner::Pieces(pieces) => pieces.next().map(|piece| piece.map(Frame::data)),
        };
        if matches!(frame, Some(Err(BrokenOff))) && !std::mem::replace(&mut self.sent, true) {
            // A server that meets the error in the same turn drops what it has not sent yet: head and all.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.inner, Inner::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Inner::Whole(whole) => SizeHint::with_exact(whole.as_ref().map_or(0, |whole| whole.len() as u64)),
            Inner::Cut { announced, .. } => SizeHint::with_exact(*announced),
            Inner::Pieces(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}

/// The connection broke in the middle of a response's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenOff;

impl fmt::Display for BrokenOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("connection broken in the middle of the body")
    }
}

impl Error for BrokenOff {}

/// The connection was reset without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionReset;

impl fmt::Display for ConnectionReset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("connection reset")
    }
}

impl Error for ConnectionReset {}
