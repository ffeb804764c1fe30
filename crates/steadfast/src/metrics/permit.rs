use std::task::{Context, Poll};

use http::Request;
use steadfast_spec::{Lane, Routes};
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use super::keys::observe_permit;

/// Notes when a request begins to wait for its permits; right outside of the rate limit.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct QueuedLayer;

/// Records how long a request has waited for its permits; right inside of the rate limit.
///
/// The wait is recorded for each zone that the request falls under. One that is refused or dropped while it waits is
/// not among them: its end is that of the call.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct AdmittedLayer;

impl<S> Layer<S> for QueuedLayer {
    type Service = Queued<S>;

    fn layer(&self, inner: S) -> Queued<S> {
        Queued { inner }
    }
}

impl<S> Layer<S> for AdmittedLayer {
    type Service = Admitted<S>;

    fn layer(&self, inner: S) -> Admitted<S> {
        Admitted { inner }
    }
}

/// When a request began to wait.
#[derive(Clone, Copy, Debug)]
struct QueuedAt(Instant);

/// The service that [`QueuedLayer`] builds.
#[derive(Clone, Debug)]
pub struct Queued<S> {
    inner: S,
}

/// The service that [`AdmittedLayer`] builds.
#[derive(Clone, Debug)]
pub struct Admitted<S> {
    inner: S,
}

impl<S, B> Service<Request<B>> for Queued<S>
where
    S: Service<Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        request.extensions_mut().insert(QueuedAt(Instant::now()));
        self.inner.call(request)
    }
}

impl<S, B> Service<Request<B>> for Admitted<S>
where
    S: Service<Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> S::Future {
        if let Some(QueuedAt(since)) = request.extensions().get() {
            let (route, waited) = (Routes::of(&request), since.elapsed());
            let lane = request.extensions().get::<Lane>().copied().unwrap_or(route.lane);
            for zone in &route.zones {
                observe_permit(*zone, lane, waited);
            }
        }
        self.inner.call(request)
    }
}
