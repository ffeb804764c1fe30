use std::{
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::{Request, Response};
use pin_project_lite::pin_project;
use steadfast_call::{BoxError, Routes};
use steadfast_spec::Endpoint;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use super::{
    earlier::Earlier,
    keys::{observe_attempt, status_label},
    reason::Reason,
};

/// Records how long each send takes until its answer is classified, and the reasons for repeats.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct AttemptMetricsLayer;

impl<S> Layer<S> for AttemptMetricsLayer {
    type Service = AttemptMetrics<S>;

    fn layer(&self, inner: S) -> AttemptMetrics<S> {
        AttemptMetrics { inner }
    }
}

/// The service that [`AttemptMetricsLayer`] builds.
#[derive(Clone, Debug)]
pub struct AttemptMetrics<S> {
    inner: S,
}

impl<S, B, R> Service<Request<B>> for AttemptMetrics<S>
where
    S: Service<Request<B>, Response = Response<R>, Error = BoxError>,
{
    type Response = Response<R>;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let endpoint = Routes::of(&request).endpoint;
        let earlier = request.extensions().get::<Earlier>().cloned();
        if let Some(earlier) = &earlier {
            earlier.begin();
        }
        let running = Running { since: Instant::now(), endpoint, earlier, ended: false };
        ResponseFuture { inner: self.inner.call(request), running }
    }
}

pin_project! {
    /// The future of an [`AttemptMetrics`] service.
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
        let (status, reason) = match &result {
            Ok(response) => (status_label(response.status()), Reason::of_status(response.status())),
            Err(error) => ("none", Reason::of_error(error)),
        };
        this.running.end(status, reason);
        Poll::Ready(result)
    }
}

/// Records a send once, at its end or when it is dropped.
#[derive(Debug)]
struct Running {
    since: Instant,
    endpoint: Option<Endpoint>,
    earlier: Option<Earlier>,
    ended: bool,
}

impl Running {
    fn end(&mut self, status: &'static str, reason: Reason) {
        if mem::replace(&mut self.ended, true) {
            return;
        }
        observe_attempt(self.endpoint, status, self.since.elapsed());
        if let Some(earlier) = &self.earlier {
            earlier.end(reason);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end("dropped", Reason::NoAnswer);
    }
}
