use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use http::Request;
use pin_project_lite::pin_project;
use steadfast_call::{BoxError, Call, Lane, Route, Routes, find_cause};
use steadfast_limit::Refusal;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use super::{
    earlier::Earlier,
    keys::{observe_missed, observe_permit},
};

/// Notes when a request begins to wait for its permits, and records a wait that ends without them. Stands right outside
/// of the rate limit.
///
/// A refused wait is recorded for the zone that refused it, if there is one; a dropped wait for each zone of the
/// request.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct QueuedLayer;

/// Records how long a request waited for its permits, for each of its zones. Stands right inside of the rate limit.
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
    S: Service<Request<B>, Error = BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let since = Instant::now();
        let route = Routes::of(&request).into_owned();
        let lane = lane_of(&request, &route);
        let extensions = request.extensions_mut();
        extensions.insert(QueuedAt(since));
        // A read without a call, such as one that looks for an order, gets a state of its own here.
        let earlier = extensions.get_or_insert_default::<Earlier>().clone();
        earlier.wait();
        ResponseFuture {
            inner: self.inner.call(request),
            wait: Wait { since, route, lane, earlier, ended: false },
        }
    }
}

pin_project! {
    /// The future of a [`Queued`] service.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<F> {
        #[pin]
        inner: F,
        wait: Wait,
    }
}

impl<F, R> Future for ResponseFuture<F>
where
    F: Future<Output = Result<R, BoxError>>,
{
    type Output = Result<R, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = ready!(this.inner.poll(cx));
        let refusal = result.as_ref().err().and_then(|error| find_cause::<Refusal>(&**error));
        this.wait.end(refusal, "other");
        Poll::Ready(result)
    }
}

/// Records a wait once, if it ended without permits.
#[derive(Debug)]
struct Wait {
    since: Instant,
    route: Arc<Route>,
    lane: Lane,
    earlier: Earlier,
    ended: bool,
}

impl Wait {
    fn end(&mut self, refusal: Option<&Refusal>, otherwise: &'static str) {
        if std::mem::replace(&mut self.ended, true) || !self.earlier.admit() {
            return;
        }
        let end = match refusal {
            Some(Refusal::WouldMissDeadline { .. }) => "deadline",
            Some(Refusal::QueueFull { .. }) => "queue_full",
            Some(Refusal::NotReadyInTime) => "not_ready",
            Some(_) => "other",
            None => otherwise,
        };
        let waited = self.since.elapsed();
        match refusal.and_then(Refusal::zone) {
            Some(zone) => observe_missed(zone, self.lane, end, waited),
            None => self.route.zones.iter().for_each(|zone| observe_missed(*zone, self.lane, end, waited)),
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.end(None, "dropped");
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
            let lane = lane_of(&request, &route);
            for zone in &route.zones {
                observe_permit(*zone, lane, waited);
            }
        }
        if let Some(earlier) = request.extensions().get::<Earlier>() {
            earlier.admit();
        }
        self.inner.call(request)
    }
}

fn lane_of<B>(request: &Request<B>, route: &Route) -> Lane {
    Call::of(request.extensions()).lane().unwrap_or(route.lane)
}
