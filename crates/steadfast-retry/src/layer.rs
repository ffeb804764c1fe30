use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use steadfast_call::{BoxError, ext::Place};
use tower_layer::Layer;
use tower_service::Service;

use crate::{backoff::Backoff, buffer::replay::Replay, policy::RetryPolicy, spare_request::SpareRequest};

/// Repeats requests by a [`RetryPolicy`]; made by [`RetryPolicy::layer`].
///
/// It is no `tower::retry::Retry`: that returns the error of a service that is not ready for a repeat without asking
/// the policy, and the caller would not hear that the send before it is in doubt.
#[derive(Clone, Debug)]
pub struct RetryLayer {
    policy: RetryPolicy,
}

impl RetryPolicy {
    /// Returns the layer with this policy.
    #[must_use]
    pub fn layer(self) -> RetryLayer {
        RetryLayer { policy: self }
    }
}

impl<S> Layer<S> for RetryLayer {
    type Service = Retry<S>;

    fn layer(&self, inner: S) -> Retry<S> {
        Retry { inner, policy: self.policy.clone() }
    }
}

/// The service that [`RetryLayer`] builds.
#[derive(Clone, Debug)]
pub struct Retry<S> {
    inner: S,
    policy: RetryPolicy,
}

/// The error of a service whose failures [`ClassifyLayer`](crate::ClassifyLayer) has judged: a boxed error.
#[diagnostic::on_unimplemented(
    message = "an error of type `{Self}` does not say whether its request may be repeated",
    label = "Retry stands around a service that fails with `{Self}`",
    note = "put a `ClassifyLayer` between the layer of `RetryPolicy` and the service"
)]
pub trait Classified: Into<BoxError> {}

impl Classified for BoxError {}

impl<S, B, R> Service<Request<B>> for Retry<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    S::Error: Classified,
    B: Replay,
    R: Body,
{
    type Response = Response<R>;
    type Error = BoxError;
    type Future = ResponseFuture<S, B, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        Place::Retry.pass(request.extensions_mut());
        let (policy, inner, spare) = (self.policy.clone(), self.inner.clone(), SpareRequest::of(&request));
        // Last, so that the large future further in is made in its place.
        ResponseFuture { policy, inner, spare, state: State::Sent { answer: self.inner.call(request) } }
    }
}

pin_project! {
    /// The future of a [`Retry`] service.
    pub struct ResponseFuture<S, B, R>
    where
        S: Service<Request<B>>,
    {
        policy: RetryPolicy,
        inner: S,
        // `None` if the body can be sent only once: its first result is the last.
        spare: Option<SpareRequest<B>>,
        #[pin]
        state: State<S::Future, R>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F, R> {
        Sent { #[pin] answer: F },
        Waiting { #[pin] backoff: Backoff<R> },
        Repeating,
    }
}

impl<S, B, R> Future for ResponseFuture<S, B, R>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Error: Classified,
    B: Replay,
    R: Body,
{
    type Output = Result<Response<R>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.state.as_mut().project() {
                // ## Sent => Waiting | returned
                StateProj::Sent { answer } => {
                    let mut result = ready!(answer.poll(cx)).map_err(Into::into);
                    let backoff =
                        this.spare.as_mut().and_then(|spare| this.policy.after_send(spare, &mut result));
                    let Some(backoff) = backoff else { return Poll::Ready(result) };
                    this.state.set(State::Waiting { backoff });
                }
                // ## Waiting => Repeating
                StateProj::Waiting { backoff } => {
                    ready!(backoff.poll(cx));
                    this.state.set(State::Repeating);
                }
                // ## Repeating => Sent | returned
                //
                // A service that is not ready sends nothing, but an earlier send may be in doubt.
                StateProj::Repeating => {
                    if let Err(error) = ready!(this.inner.poll_ready(cx)) {
                        let mut error = error.into();
                        this.policy.not_ready(&mut error);
                        return Poll::Ready(Err(error));
                    }
                    let Some(spare) = this.spare.take() else { panic!("polled after it was ready") };
                    let (request, next) = spare.into_request();
                    *this.spare = next;
                    this.state.set(State::Sent { answer: this.inner.call(request) });
                }
            }
        }
    }
}

impl<S: Service<Request<B>>, B, R> fmt::Debug for ResponseFuture<S, B, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
