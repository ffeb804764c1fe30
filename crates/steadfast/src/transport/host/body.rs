use std::{
    error::Error,
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use steadfast_call::{BoxError, Failure, Fate};

use super::lease::Lease;

/// The body of an answer over a [`HostTransport`](super::HostTransport).
///
/// Its end gives the connection back. Dropped before that, it ends the connection.
///
/// The last part is held back until it is certain that nothing follows it. If the service has sent more than this one
/// answer, the body ends with an error: it is not certain which request it answers.
pub struct HostBody<B: Send + 'static> {
    inner: Incoming,
    /// The last part, until the exchange is finished.
    last: Option<Bytes>,
    /// `None` once the exchange is finished.
    lease: Option<Lease<B>>,
    /// False if the end of the connection is the end of the answer.
    may_follow: bool,
}

impl<B: Send + 'static> HostBody<B> {
    pub(super) fn new(inner: Incoming, lease: Option<Lease<B>>, may_follow: bool) -> Self {
        Self { inner, last: None, lease, may_follow }
    }
}

impl<B: Send + 'static> Body for HostBody<B> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let Some(lease) = &mut this.lease else { return Poll::Ready(None) };
        if this.last.is_none() {
            match ready!(Pin::new(&mut this.inner).poll_frame(cx)) {
                None => {}
                Some(Err(error)) => {
                    this.lease = None;
                    return Poll::Ready(Some(Err(error.into())));
                }
                Some(Ok(frame)) if !this.inner.is_end_stream() => return Poll::Ready(Some(Ok(frame))),
                Some(Ok(frame)) => this.last = frame.into_data().ok(),
            }
        }
        let is_believed = ready!(lease.poll_finish(this.may_follow, cx));
        this.lease = None;
        let last = this.last.take();
        if !is_believed {
            return Poll::Ready(Some(Err(Failure::new(Fate::Answered, MoreThanAnswered).into())));
        }
        Poll::Ready(last.map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.lease.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.lease, &self.last) {
            (None, _) => SizeHint::with_exact(0),
            (Some(_), Some(last)) => SizeHint::with_exact(last.len() as u64),
            (Some(_), None) => self.inner.size_hint(),
        }
    }
}

impl<B: Send + 'static> fmt::Debug for HostBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostBody").field("inner", &self.inner).finish_non_exhaustive()
    }
}

/// The service has sent more than one answer to one request.
#[derive(Debug)]
pub(super) struct MoreThanAnswered;

impl fmt::Display for MoreThanAnswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the service sent more than one answer to this request")
    }
}

impl Error for MoreThanAnswered {}
