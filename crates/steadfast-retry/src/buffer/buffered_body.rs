use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use crate::{
    buffer::replay::Replay,
    collect::{CollectEnd, Collecting},
};

/// A request body that [`BufferBody`](crate::BufferBody) has read: whole, or its beginning and the rest.
///
/// A whole body can be sent again. One with a rest is sent once, because the parts already sent are not kept.
pub struct BufferedBody<B> {
    data: VecDeque<Bytes>,
    trailers: Option<HeaderMap>,
    rest: Option<B>,
}

impl<B> BufferedBody<B> {
    pub(crate) fn new<E>(collected: Collecting<B>, end: CollectEnd<E>) -> Result<Self, E> {
        let mut body = Self::default();
        for frame in collected.frames {
            match frame.into_data() {
                Ok(data) => body.data.push_back(data),
                Err(frame) => body.trailers = frame.into_trailers().ok(),
            }
        }
        match end {
            CollectEnd::Whole => {}
            CollectEnd::TooLong => body.rest = Some(collected.rest),
            CollectEnd::Failed(error) => return Err(error),
        }
        Ok(body)
    }

    fn held(&self) -> u64 {
        self.data.iter().map(|data| data.len() as u64).sum()
    }
}

impl<B> Default for BufferedBody<B> {
    fn default() -> Self {
        Self { data: VecDeque::new(), trailers: None, rest: None }
    }
}

impl<B> From<Bytes> for BufferedBody<B> {
    fn from(data: Bytes) -> Self {
        Self { data: Some(data).into_iter().filter(|data| !data.is_empty()).collect(), ..Self::default() }
    }
}

impl<B> Replay for BufferedBody<B> {
    fn replay(&self) -> Option<Self> {
        self.rest.is_none().then(|| Self {
            data: self.data.clone(),
            trailers: self.trailers.clone(),
            rest: None,
        })
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for BufferedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if let Some(data) = self.data.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        if let Some(trailers) = self.trailers.take() {
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_empty() && self.trailers.is_none() && self.rest.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let held = self.held();
        let mut hint = self.rest.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint);
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper.saturating_add(held));
        }
        hint.set_lower(hint.lower().saturating_add(held));
        hint
    }
}

impl<B> fmt::Debug for BufferedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A login's form contains a password, so the bytes are never printed.
        f.debug_struct("BufferedBody")
            .field("held", &self.held())
            .field("whole", &self.rest.is_none())
            .finish_non_exhaustive()
    }
}
