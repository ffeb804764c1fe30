use std::{
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::{Request, Response};
use pin_project_lite::pin_project;
use steadfast_call::{BoxError, Failure, Outcome, Routes};
use steadfast_spec::Endpoint;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use super::{
    catalog,
    earlier::Earlier,
    keys::{observe_call, outcome_label},
};

/// Records how long calls take, repeats and waits included.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct CallMetricsLayer;

impl<S> Layer<S> for CallMetricsLayer {
    type Service = CallMetrics<S>;

    fn layer(&self, inner: S) -> CallMetrics<S> {
        CallMetrics { inner }
    }
}

/// The service that [`CallMetricsLayer`] builds.
#[derive(Clone, Debug)]
pub struct CallMetrics<S> {
    inner: S,
}

impl<S, B, R> Service<Request<B>> for CallMetrics<S>
where
    S: Service<Request<B>, Response = Response<R>, Error = BoxError>,
{
    type Response = Response<R>;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let running =
            Running { since: Instant::now(), endpoint: Routes::of(&request).endpoint, ended: false };
        request.extensions_mut().insert(Earlier::default());
        ResponseFuture { inner: self.inner.call(request), running }
    }
}

pin_project! {
    /// The future of a [`CallMetrics`] service.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<F> {
        #[pin]
        inner: F,
        running: Running,
    }
}

impl<F, R> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<R>, BoxError>>,
{
    type Output = Result<Response<R>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = ready!(this.inner.poll(cx));
        this.running.end(match &result {
            Ok(response) => Outcome::of(response.extensions()).map_or(catalog::UNKNOWN, outcome_label),
            Err(error) => outcome_label(&Failure::outcome_of(&**error)),
        });
        Poll::Ready(result)
    }
}

/// Records a call once, at its end or when it is dropped.
#[derive(Debug)]
struct Running {
    since: Instant,
    endpoint: Option<Endpoint>,
    ended: bool,
}

impl Running {
    fn end(&mut self, outcome: &'static str) {
        if !mem::replace(&mut self.ended, true) {
            observe_call(self.endpoint, outcome, self.since.elapsed());
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end("dropped");
    }
}
