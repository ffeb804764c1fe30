use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::Body;
use steadfast_spec::{BoxError, Planted, ext::Place};
use tower::retry;
use tower_layer::Layer;
use tower_service::Service;

use crate::{Replay, RetryPolicy};

/// Repeats requests by a [`RetryPolicy`]; made by [`RetryPolicy::layer`].
///
/// It is [`tower::retry::RetryLayer`], which in a debug build marks requests with its place in the stack as well.
#[derive(Clone, Debug)]
pub struct RetryLayer(retry::RetryLayer<RetryPolicy>);

impl RetryLayer {
    pub(crate) fn new(policy: RetryPolicy) -> Self {
        Self(retry::RetryLayer::new(policy))
    }
}

impl<S> Layer<S> for RetryLayer {
    type Service = Retry<S>;

    fn layer(&self, inner: S) -> Retry<S> {
        Retry(self.0.layer(inner))
    }
}

/// The service that [`RetryLayer`] builds.
#[derive(Clone, Debug)]
pub struct Retry<S>(retry::Retry<RetryPolicy, S>);

impl<S, B, R> Service<Request<B>> for Retry<S>
where
    S: Service<Request<B>, Response = Response<R>, Error = BoxError> + Clone,
    B: Replay,
    R: Body,
{
    type Response = Response<R>;
    type Error = BoxError;
    type Future = retry::future::ResponseFuture<RetryPolicy, S, Request<B>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        Place::Retry.pass(request.extensions_mut());
        if Planted::CloneInCall.is_on() {
            return self.0.clone().call(request);
        }
        self.0.call(request)
    }
}
