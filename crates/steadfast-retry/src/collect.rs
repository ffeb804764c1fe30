use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame};

/// Returns a frame's weight against a limit. An empty frame counts 1; otherwise endless empty frames would be held.
pub(crate) fn weight(frame: &Frame<Bytes>) -> usize {
    frame.data_ref().map_or(1, |data| data.len().max(1))
}

/// The frames of one body as they are collected, up to a limit.
pub(crate) struct Collecting<B> {
    pub(crate) frames: VecDeque<Frame<Bytes>>,
    pub(crate) rest: B,
    pub(crate) held: usize,
    limit: usize,
}

/// How collecting ended.
pub(crate) enum CollectEnd<E> {
    /// The regular end of the body.
    Whole,
    /// The body is longer than the limit.
    TooLong,
    /// The body failed.
    Failed(E),
}

impl<B: Body<Data = Bytes> + Unpin> Collecting<B> {
    pub(crate) fn new(body: B, limit: usize) -> Self {
        Self { frames: VecDeque::new(), rest: body, held: 0, limit }
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<CollectEnd<B::Error>> {
        // A body that announces more than the limit need not be collected.
        if self.held == 0 && self.rest.size_hint().lower() > self.limit as u64 {
            return Poll::Ready(CollectEnd::TooLong);
        }
        loop {
            if self.rest.is_end_stream() {
                return Poll::Ready(CollectEnd::Whole);
            }
            match ready!(Pin::new(&mut self.rest).poll_frame(cx)) {
                None => return Poll::Ready(CollectEnd::Whole),
                Some(Err(error)) => return Poll::Ready(CollectEnd::Failed(error)),
                Some(Ok(frame)) => {
                    self.held += weight(&frame);
                    self.frames.push_back(frame);
                    if self.held > self.limit {
                        return Poll::Ready(CollectEnd::TooLong);
                    }
                }
            }
        }
    }
}
