use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use steadfast_call::{
    BoxError, Call, Failure, Fate, Routes,
    ext::{self, Sent},
};
use steadfast_spec::Endpoint;
use tokio::time::{Instant, Sleep, sleep_until};
use tower_layer::Layer;
use tower_service::Service;

use crate::{classify::peek::decides_by_body, error::AttemptTimedOut, timeout::timed_body::TimedBody};

/// How long the gateway itself may work on a request before it answers 504.
const GATEWAY_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest pause of a body.
const BODY_IDLE: Duration = Duration::from_secs(10);

/// The cap for a timeout too long for the clock.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Ends one send that takes too long, and says whether anything had left.
///
/// 1. The time runs from the call. Earlier waits, above all for a permit, do not count.
/// 2. It covers the head, and the body where the body decides the outcome: see [`Classify`](crate::Classify). Any
///    other body may take any time, but no pause longer than the idle timeout.
/// 3. A call's [deadline](Call::deadline) ends it earlier.
/// 4. It ends as a [`Failure`] with an [`AttemptTimedOut`] in it. The fate is [`NeverLeft`](Fate::NeverLeft) if the
///    request's [`SendStamp`](ext::SendStamp) could be given up before it began, and [`Lost`](Fate::Lost)
///    otherwise. A blank stamp proves nothing if this layer had to make it, or if the request's body has nothing to
///    poll.
/// 5. A send that is given up has ended: it is dropped, its connection is [aborted](ext::SendStamp::abort), and the
///    fate says when, if the transport can tell. The same holds for an answer whose body decides the outcome and is
///    cut, too slow, or dropped before its end.
/// 6. Every request has a [`SendStamp`](ext::SendStamp), in which the transport sets its connection. Every answer
///    whose body decides the outcome, or that is no success, carries the stamp of its request. A layer that finds an
///    order in doubt by its answer learns from it [when](ext::SendStamp::abort) the connection ended.
///
/// # Example
///
/// ```
/// use std::{future::pending, time::Duration};
///
/// use http_body_util::Full;
/// use steadfast_retry::{AttemptTimedOut, AttemptTimeoutLayer};
/// use steadfast_call::Failure;
/// use tower::{BoxError, ServiceBuilder, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), BoxError> {
/// let silent = service_fn(|_: http::Request<Full<bytes::Bytes>>| {
///     pending::<Result<http::Response<Full<bytes::Bytes>>, BoxError>>()
/// });
/// let service = ServiceBuilder::new().layer(AttemptTimeoutLayer::new(Duration::from_secs(5))).service(silent);
///
/// let order = http::Request::post("https://host/v2/api/oms/place-order").body(Full::from("qty=1"))?;
/// let error = service.oneshot(order).await.unwrap_err();
/// assert!(Failure::outcome_of(&*error).is_unknown(), "the order may have been placed");
/// # Ok(())
/// # }
/// ```
///
/// # Order
///
/// Inside every layer that waits, directly above the transport, and inside [`Classify`](crate::Classify). A debug
/// build panics at a wrong [order](ext::Place).
///
/// # Clone
///
/// Clones share nothing; each call has its own clock.
///
/// # Cost
///
/// About 590 instructions for a call that succeeds (`cargo xtask bench overhead`), and an allocation if the request
/// has no stamp.
///
/// # Cancellation
///
/// Dropping the future drops the send with it.
#[derive(Clone, Copy, Debug)]
pub struct AttemptTimeoutLayer {
    timeout: Duration,
    idle: Option<Duration>,
}

impl AttemptTimeoutLayer {
    /// Ends each send after `timeout`, and a body that pauses for more than 10 s.
    #[must_use]
    pub const fn new(timeout: Duration) -> Self {
        Self { timeout, idle: Some(BODY_IDLE) }
    }

    /// Returns how long one send may take, and how long a body may pause.
    #[must_use]
    pub const fn limits(&self) -> (Duration, Option<Duration>) {
        (self.timeout, self.idle)
    }

    /// Sets how long a body may pause; `None` means for ever.
    #[must_use]
    pub const fn body_idle(mut self, idle: Option<Duration>) -> Self {
        self.idle = idle;
        self
    }
}

impl Default for AttemptTimeoutLayer {
    /// 30 s, the gateway's own timeout.
    fn default() -> Self {
        Self::new(GATEWAY_TIMEOUT)
    }
}

impl<S> Layer<S> for AttemptTimeoutLayer {
    type Service = AttemptTimeout<S>;

    fn layer(&self, inner: S) -> Self::Service {
        AttemptTimeout { inner, settings: *self }
    }
}

/// The service that [`AttemptTimeoutLayer`] builds.
#[derive(Clone, Copy, Debug)]
pub struct AttemptTimeout<S> {
    inner: S,
    settings: AttemptTimeoutLayer,
}

impl<S, B, R> Service<Request<B>> for AttemptTimeout<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Error: Into<BoxError>,
    B: Body,
    R: Body<Data = Bytes> + Unpin,
{
    type Response = Response<TimedBody<R>>;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        ext::Place::AttemptTimeout.pass(request.extensions_mut());
        let now = Instant::now();
        let call = Call::of(request.extensions());
        let deadline = call.deadline().map(Instant::from_std);
        let until = now.checked_add(self.settings.timeout).unwrap_or_else(|| now + FOREVER);
        let until = deadline.map_or(until, |deadline| deadline.min(until));
        let endpoint = Routes::or_shown(call.route(), request.method(), request.uri()).endpoint;
        let shared = call.send().cloned();
        // The transport never polls an empty body, so its stamp stays blank although the request left. And no layer
        // has promised to write a stamp made here.
        let blank_proves = shared.is_some() && !request.body().is_end_stream();
        let stamp = shared.unwrap_or_else(|| {
            let stamp = ext::SendStamp::new();
            Call::of_mut(request.extensions_mut()).set_send(stamp.clone());
            stamp
        });
        ResponseFuture {
            endpoint,
            stamp,
            blank_proves,
            until,
            after: until.saturating_duration_since(now),
            idle: self.settings.idle,
            inner: Some(self.inner.call(request)),
            sleep: None,
        }
    }
}

pin_project! {
    /// The future of an [`AttemptTimeout`] service.
    pub struct ResponseFuture<F> {
        #[pin]
        inner: Option<F>,
        // Made when the answer is first waited for: an immediate answer costs no timer.
        #[pin]
        sleep: Option<Sleep>,
        endpoint: Option<Endpoint>,
        stamp: ext::SendStamp,
        // True if a blank stamp proves that nothing has left.
        blank_proves: bool,
        until: Instant,
        after: Duration,
        idle: Option<Duration>,
    }
}

impl<F, R, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
    E: Into<BoxError>,
    R: Body,
{
    type Output = Result<Response<TimedBody<R>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        // An answer at the last moment counts. A send without any time left is not polled.
        if !this.after.is_zero()
            && let Some(inner) = this.inner.as_mut().as_pin_mut()
            && let Poll::Ready(result) = inner.poll(cx)
        {
            let mut response = result.map_err(Into::into)?;
            let decides = decides_by_body(*this.endpoint, response.status());
            // Another success leaves nothing in doubt, and the entry would cost an allocation.
            if decides || !response.status().is_success() {
                Sent::of_mut(response.extensions_mut()).set_stamp(this.stamp.clone());
            }
            return Poll::Ready(Ok(response.map(|body| {
                let body = TimedBody::new(body, *this.idle);
                if decides { body.within(*this.until, *this.after, this.stamp.clone()) } else { body }
            })));
        }
        if this.sleep.is_none() {
            this.sleep.set(Some(sleep_until(*this.until)));
        }
        if let Some(sleep) = this.sleep.as_mut().as_pin_mut() {
            ready!(sleep.poll(cx));
        }
        // ## Sending => (NeverLeft | Lost)
        //
        // The send is dropped and its connection ended, even if a layer below has moved it to a task of its own. A send
        // that is given up before its body was polled never begins.
        this.inner.set(None);
        let ended = this.stamp.abort();
        let fate =
            if *this.blank_proves && this.stamp.give_up() { Fate::NeverLeft } else { Fate::Lost { ended } };
        Poll::Ready(Err(Failure::timed_out(fate, AttemptTimedOut::new(*this.after)).into()))
    }
}

impl<F> fmt::Debug for ResponseFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").field("after", &self.after).finish_non_exhaustive()
    }
}
