use std::{
    error::Error,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use http::Request;
use http_body::{Frame, SizeHint};
use pin_project_lite::pin_project;
use steadfast_call::{BoxError, Call, Failure, Fate, ext};
use tokio::time::Instant;

pin_project! {
    /// A request's body that stamps its first poll: the send.
    #[derive(Clone, Default)]
    pub struct StampedBody<B> {
        #[pin]
        body: B,
        // `None` without content: such a body is never polled.
        stamp: Option<ext::SendStamp>,
    }
}

impl<B> StampedBody<B> {
    /// Wraps a body for a send; `None` if it has no content.
    pub(super) fn stamping(body: B, stamp: Option<ext::SendStamp>) -> Self {
        Self { body, stamp }
    }

    /// Wraps a body with a stamp of its own.
    #[must_use]
    pub fn new(body: B) -> Self {
        Self { body, stamp: Some(ext::SendStamp::new()) }
    }
}

// The body may hold a password, for instance in a form.
impl<B> fmt::Debug for StampedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StampedBody").field("stamp", &self.stamp).finish_non_exhaustive()
    }
}

impl<B> http_body::Body for StampedBody<B>
where
    B: http_body::Body,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = self.project();
        if this.stamp.as_ref().is_some_and(|stamp| !stamp.begin(Instant::now().into_std())) {
            return Poll::Ready(Some(Err(GivenUp.into())));
        }
        this.body.poll_frame(cx).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Prepares a request for its send. Returns it with the stamp that the transport writes: the one that outer layers share,
/// else one of its own if the request has content. `None` if another send has taken the stamp.
pub(super) fn stamped<B: http_body::Body>(
    request: Request<B>,
) -> Option<(Request<StampedBody<B>>, Option<ext::SendStamp>)> {
    let shared = Call::of(request.extensions()).send().cloned();
    let is_polled = !request.body().is_end_stream();
    let stamp = if is_polled { Some(shared.unwrap_or_default()) } else { shared };
    if stamp.as_ref().is_some_and(|stamp| !stamp.take()) {
        return None;
    }
    let stamp_of_body = stamp.clone().filter(|_| is_polled);
    Some((request.map(|body| StampedBody::stamping(body, stamp_of_body)), stamp))
}

/// Returns the failure of a request whose stamp another send has taken: a clone, by a layer between the stack and the
/// transport that sends again. Nothing of this one was sent, but the stamp speaks for both, so it counts as lost.
pub(super) fn sent_already() -> BoxError {
    Failure::new(Fate::Lost { ended: None }, SentAlready).into()
}

/// Another send has taken the stamp.
#[derive(Debug)]
struct SentAlready;

impl fmt::Display for SentAlready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("request was sent already: a layer below the stack sends again")
    }
}

impl Error for SentAlready {}

/// The request was given up before its body was taken.
#[derive(Debug)]
struct GivenUp;

impl fmt::Display for GivenUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("request was given up before it was sent")
    }
}

impl Error for GivenUp {}
