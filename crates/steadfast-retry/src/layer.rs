use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use steadfast_call::{BoxError, ext::Place};
use tower::retry;
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    buffer::replay::Replay,
    policy::RetryPolicy,
    stored_request::{Sender, StoredRequest},
};

/// Repeats requests by a [`RetryPolicy`]; made by [`RetryPolicy::layer`].
///
/// It contains a [`tower::retry::Retry`]. tower keeps a copy of each request for a repeat; here the copy becomes a
/// whole request only if it is sent.
#[derive(Clone, Debug)]
pub struct RetryLayer {
    policy: RetryPolicy,
}

impl RetryPolicy {
    /// Returns the layer with this policy.
    #[must_use]
    pub fn layer(self) -> RetryLayer {
        RetryLayer::new(self)
    }
}

impl RetryLayer {
    pub(crate) fn new(policy: RetryPolicy) -> Self {
        Self { policy }
    }
}

impl<S> Layer<S> for RetryLayer {
    type Service = Retry<S>;

    fn layer(&self, inner: S) -> Retry<S> {
        Retry(retry::Retry::new(self.policy.clone(), Sender(inner)))
    }
}

/// The service that [`RetryLayer`] builds.
#[derive(Clone, Debug)]
pub struct Retry<S>(retry::Retry<RetryPolicy, Sender<S>>);

impl<S, B, R> Service<Request<B>> for Retry<S>
where
    S: Service<Request<B>, Response = Response<R>, Error = BoxError> + Clone,
    B: Replay,
    R: Body,
{
    type Response = Response<R>;
    type Error = BoxError;
    type Future = ResponseFuture<S, B, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        Place::Retry.pass(request.extensions_mut());
        ResponseFuture { inner: self.0.call(StoredRequest::whole(request)) }
    }
}

pin_project! {
    /// The future of a [`Retry`] service.
    pub struct ResponseFuture<S, B, R>
    where
        S: Service<Request<B>, Response = Response<R>, Error = BoxError>,
        B: Replay,
        R: Body,
    {
        #[pin]
        inner: retry::future::ResponseFuture<RetryPolicy, Sender<S>, StoredRequest<B>>,
    }
}

impl<S, B, R> Future for ResponseFuture<S, B, R>
where
    S: Service<Request<B>, Response = Response<R>, Error = BoxError>,
    B: Replay,
    R: Body,
{
    type Output = Result<Response<R>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().inner.poll(cx)
    }
}

impl<S, B, R> fmt::Debug for ResponseFuture<S, B, R>
where
    S: Service<Request<B>, Response = Response<R>, Error = BoxError>,
    B: Replay,
    R: Body,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
