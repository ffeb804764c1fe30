use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use steadfast_call::{BoxError, Failure, Fate, ext};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::{
    classify::peek::PEEK_LIMIT,
    collect::weight,
    error::{AttemptTimedOut, BodyStalled},
};

/// The body of an answer, with a bound on how long it may keep its reader waiting.
///
/// The part that decides the outcome of the send must arrive within the send's own time. The rest must not pause for
/// longer than the idle timeout. The clock of a pause starts when a reader finds nothing to read, so a slow reader
/// is not mistaken for a slow server.
///
/// If the deciding part is cut, late, or dropped unread, the connection is [aborted](ext::SendStamp::abort): the
/// send is in doubt, and nothing more of it may arrive.
pub struct TimedBody<B> {
    /// `None` once the body has timed out, because its contents are then useless.
    inner: Option<B>,
    attempt: Option<AttemptClock>,
    /// The send, until enough of its answer has arrived to know its outcome.
    open: Option<OpenSend>,
    idle: Option<Duration>,
    /// Made when a reader first has to wait, so that an immediate body costs no timer.
    sleep: Option<Pin<Box<Sleep>>>,
    armed: bool,
}

/// A send with an unknown outcome. Dropping it ends its connection.
#[derive(Debug)]
struct OpenSend(Option<ext::SendStamp>);

impl OpenSend {
    /// Marks the outcome as known, so the connection may be used again.
    fn close(mut self) {
        self.0 = None;
    }
}

impl Drop for OpenSend {
    fn drop(&mut self) {
        if let Some(send) = &self.0 {
            // The answer's stamp keeps the instant.
            let _ = send.abort();
        }
    }
}

/// The rest of the time of one send.
#[derive(Clone, Copy, Debug)]
struct AttemptClock {
    until: Instant,
    after: Duration,
    /// How much of the body it still covers, in units of [`weight`].
    covers: usize,
}

impl<B> TimedBody<B> {
    pub(crate) fn new(inner: B, idle: Option<Duration>) -> Self {
        Self { inner: Some(inner), attempt: None, open: None, idle, sleep: None, armed: false }
    }

    /// Bounds the deciding part of the body by the end of the attempt `send`.
    pub(crate) fn within(mut self, until: Instant, after: Duration, send: ext::SendStamp) -> Self
    where
        B: Body,
    {
        self.attempt = Some(AttemptClock { until, after, covers: PEEK_LIMIT });
        let is_whole = self.inner.as_ref().is_none_or(Body::is_end_stream);
        self.open = (!is_whole).then(|| OpenSend(Some(send)));
        self
    }

    /// Polls the clock, and starts it if it does not run yet.
    fn poll_clock(&mut self, cx: &mut Context<'_>) -> Poll<BoxError> {
        let due = match (self.attempt, self.idle) {
            (Some(attempt), _) => attempt.until,
            (None, Some(idle)) => match Instant::now().checked_add(idle) {
                Some(due) => due,
                None => return Poll::Pending,
            },
            (None, None) => return Poll::Pending,
        };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if !self.armed {
            sleep.as_mut().reset(due);
            self.armed = true;
        }
        ready!(sleep.as_mut().poll(cx));
        Poll::Ready(match (self.attempt, self.idle) {
            (Some(attempt), _) => AttemptTimedOut::new(attempt.after).into(),
            (None, idle) => BodyStalled::new(idle.unwrap_or_default()).into(),
        })
    }
}

impl<B> Body for TimedBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let Some(inner) = &mut this.inner else { return Poll::Ready(None) };
        if let Poll::Ready(frame) = Pin::new(&mut *inner).poll_frame(cx) {
            this.armed = false;
            if let (Some(Ok(frame)), Some(attempt)) = (&frame, &mut this.attempt) {
                match attempt.covers.checked_sub(weight(frame)) {
                    Some(left) => attempt.covers = left,
                    None => this.attempt = None,
                }
            }
            let is_known = match &frame {
                Some(Err(_)) => {
                    this.open = None;
                    false
                }
                None => true,
                // The rest decides nothing and belongs to the reader, or there is none.
                Some(Ok(_)) => this.attempt.is_none() || inner.is_end_stream(),
            };
            if is_known && let Some(open) = this.open.take() {
                open.close();
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let error = ready!(this.poll_clock(cx));
        this.inner = None;
        this.open = None;
        Poll::Ready(Some(Err(Failure::timed_out(Fate::Answered, error).into())))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl<B> fmt::Debug for TimedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimedBody")
            .field("attempt", &self.attempt)
            .field("idle", &self.idle)
            .finish_non_exhaustive()
    }
}
