use std::{
    error::Error,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use super::broken_off::BrokenOff;
use crate::{
    faults::Fault,
    wire::{page::Content, patience::GIVE_UP, scrips::ScripPieces},
};

/// The body of the gateway's responses.
pub struct Body {
    inner: Inner,
    /// True once everything before the break was handed out and the connection could send it.
    sent: bool,
}

enum Inner {
    Whole(Option<Bytes>),
    /// Announced in full; breaks after `part`.
    Cut {
        announced: u64,
        part: Option<Bytes>,
    },
    /// Announced in full; nothing comes after `part` until the waiting ends.
    Stalled {
        announced: u64,
        part: Option<Bytes>,
        end: Option<Pin<Box<Sleep>>>,
    },
    Filled {
        head: Option<&'static str>,
        fillers: u64,
        tail: Option<&'static str>,
    },
    Pieces(ScripPieces),
}

/// The filler of long bodies.
static FILLER: [u8; 64 * 1024] = [b'x'; 64 * 1024];

impl Body {
    pub(crate) fn new(content: Content) -> Self {
        let inner = match content {
            Content::Whole(whole) => Inner::Whole(Some(whole).filter(|whole| !whole.is_empty())),
            Content::Cut { whole, sent } => {
                Inner::Cut { announced: whole.len() as u64, part: Some(whole.slice(..sent.min(whole.len()))) }
            }
            Content::Stalled { whole, sent } => Inner::Stalled {
                announced: whole.len() as u64,
                part: Some(whole.slice(..sent.min(whole.len()))).filter(|part| !part.is_empty()),
                end: None,
            },
            Content::Filled { head, fillers, tail } => {
                Inner::Filled { head: Some(head), fillers, tail: Some(tail) }
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
            Inner::Stalled { part, end, .. } => match part.take() {
                Some(part) => Some(Ok(Frame::data(part))),
                None => {
                    let end = end.get_or_insert_with(|| Box::pin(sleep(GIVE_UP)));
                    std::task::ready!(end.as_mut().poll(cx));
                    Some(Err(BrokenOff))
                }
            },
            Inner::Filled { head, fillers, tail } => {
                let piece = match (head.take(), *fillers) {
                    (Some(head), _) => Some(Bytes::from_static(head.as_bytes())),
                    (None, 0) => tail.take().map(|tail| Bytes::from_static(tail.as_bytes())),
                    (None, left) => {
                        *fillers = left - 1;
                        Some(Bytes::from_static(&FILLER))
                    }
                };
                piece.map(|piece| Ok(Frame::data(piece)))
            }
            Inner::Pieces(pieces) => pieces.next().map(|piece| piece.map(Frame::data)),
        };
        if matches!(frame, Some(Err(BrokenOff))) && !std::mem::replace(&mut self.sent, true) {
            // A server that gets the error in the same turn drops what it has not sent yet, even the head.
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
            Inner::Cut { announced, .. } | Inner::Stalled { announced, .. } => {
                SizeHint::with_exact(*announced)
            }
            Inner::Filled { .. } | Inner::Pieces(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}

/// Why the in-process service gives no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoAnswer {
    /// The connection was reset or ended, or its bytes were not an answer.
    Reset,
    /// The fault strikes connections, and the in-process service has none: serve the sandbox on a
    /// [line](crate::Sandbox::serve_line) or a listener.
    NeedsConnection(Fault),
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reset => f.write_str("connection reset"),
            Self::NeedsConnection(fault) => {
                write!(f, "fault {fault} strikes connections, and the in-process service has none")
            }
        }
    }
}

impl Error for NoAnswer {}
