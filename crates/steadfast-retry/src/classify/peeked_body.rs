use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// The body of an answer that [`Classify`](crate::Classify) has passed on, as it came.
///
/// First come the frames that were read to decide the outcome, trailers included, then the rest of the body or its
/// error.
pub struct PeekedBody<B: Body> {
    prefix: VecDeque<Frame<Bytes>>,
    rest: Rest<B, B::Error>,
}

enum Rest<B, E> {
    More(B),
    Failed(E),
    Ended,
}

impl<B: Body> PeekedBody<B> {
    /// Wraps a body of which nothing has been read.
    pub fn new(body: B) -> Self {
        Self::more(VecDeque::new(), body)
    }

    pub(crate) fn more(prefix: VecDeque<Frame<Bytes>>, rest: B) -> Self {
        Self { prefix, rest: Rest::More(rest) }
    }

    pub(crate) fn failed(prefix: VecDeque<Frame<Bytes>>, error: B::Error) -> Self {
        Self { prefix, rest: Rest::Failed(error) }
    }

    pub(crate) fn ended(prefix: VecDeque<Frame<Bytes>>) -> Self {
        Self { prefix, rest: Rest::Ended }
    }

    /// Returns the number of bytes read and not yet passed on.
    fn held(&self) -> u64 {
        self.prefix.iter().filter_map(Frame::data_ref).map(|data| data.len() as u64).sum()
    }
}

// Only the body could be pinned, and it is `Unpin` where it is polled.
impl<B: Body + Unpin> Unpin for PeekedBody<B> {}

impl<B> Body for PeekedBody<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        if let Some(frame) = this.prefix.pop_front() {
            return Poll::Ready(Some(Ok(frame)));
        }
        if let Rest::More(body) = &mut this.rest {
            return Pin::new(body).poll_frame(cx);
        }
        Poll::Ready(match std::mem::replace(&mut this.rest, Rest::Ended) {
            Rest::Failed(error) => Some(Err(error)),
            Rest::More(_) | Rest::Ended => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.prefix.is_empty()
            && match &self.rest {
                Rest::More(body) => body.is_end_stream(),
                Rest::Failed(_) => false,
                Rest::Ended => true,
            }
    }

    fn size_hint(&self) -> SizeHint {
        let held = self.held();
        let mut hint = match &self.rest {
            Rest::More(body) => body.size_hint(),
            // The error shows that more was to come, but not how much.
            Rest::Failed(_) => SizeHint::new(),
            Rest::Ended => SizeHint::with_exact(0),
        };
        // Set the upper bound first: the lower one must never exceed it.
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper.saturating_add(held));
        }
        hint.set_lower(hint.lower().saturating_add(held));
        hint
    }
}

impl<B: Body> fmt::Debug for PeekedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An answer may contain a token, so the bytes are never printed.
        f.debug_struct("PeekedBody").field("held", &self.held()).finish_non_exhaustive()
    }
}
