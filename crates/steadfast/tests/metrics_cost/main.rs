//! Counts the allocations of the metrics layers for each call.
//!
//! Alone in its binary, because its allocator counts all threads.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    alloc::System,
    future::{Ready, ready},
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use http::{Request, Response};
use metrics::{
    Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use steadfast::{
    BoxError, Outcome,
    call::{Call, Route},
    ext,
    metrics::{AdmittedLayer, AttemptMetricsLayer, CallMetricsLayer, QueuedLayer},
    spec::Endpoint,
};
use tower::{Service, ServiceBuilder, service_fn};

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const CALLS: usize = 10_000;

fn leaf(_: Request<()>) -> Ready<Result<Response<()>, BoxError>> {
    let mut response = Response::new(());
    ext::Sent::of_mut(response.extensions_mut()).set_outcome(Outcome::Rejected);
    ready(Ok(response))
}

/// Returns how many allocations a call makes, and how long it takes in this build.
fn cost<S>(mut service: S) -> (f64, Duration)
where
    S: Service<Request<()>, Response = Response<()>, Error = BoxError>,
{
    let route = Arc::new(Route::new(Endpoint::PlaceOrder));
    let mut call = || {
        let mut request = Request::new(());
        Call::of_mut(request.extensions_mut()).set_route(route.clone());
        let mut future = pin!(service.call(request));
        let Poll::Ready(Ok(_)) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("a leaf that is always ready was not");
        };
    };
    // The first calls fill the tables and the recorder's entries.
    (0..100).for_each(|_| call());
    let (before, start) = (MEMORY.stats().allocations, tokio::time::Instant::now());
    (0..CALLS).for_each(|_| call());
    let took = start.elapsed() / u32::try_from(CALLS).unwrap();
    let allocations = MEMORY.stats().allocations - before;
    #[expect(clippy::cast_precision_loss, reason = "a figure to be read")]
    (allocations as f64 / CALLS as f64, took)
}

fn metered() -> impl Service<Request<()>, Response = Response<()>, Error = BoxError> {
    ServiceBuilder::new()
        .layer(CallMetricsLayer::default())
        .layer(QueuedLayer::default())
        .layer(AdmittedLayer::default())
        .layer(AttemptMetricsLayer::default())
        .service(service_fn(leaf))
}

/// A recorder that allocates nothing, so that only the layers' allocations count.
#[derive(Default)]
struct Cheap(Arc<Sink>);

#[derive(Default)]
struct Sink;

impl CounterFn for Sink {
    fn increment(&self, _: u64) {}
    fn absolute(&self, _: u64) {}
}

impl HistogramFn for Sink {
    fn record(&self, _: f64) {}
}

impl Recorder for Cheap {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.0.clone())
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.0.clone())
    }
}

#[test]
fn a_call_allocates_its_two_extensions_and_nothing_for_what_is_recorded() {
    let bare = cost(service_fn(leaf));
    let unrecorded = cost(metered());
    let recorded = metrics::with_local_recorder(&Cheap::default(), || cost(metered()));
    println!(
        "allocations and time for each call: bare {bare:?}, layers {unrecorded:?}, recorded {recorded:?}"
    );
    let added = unrecorded.0 - bare.0;
    // The test harness has its own thread, which occasionally allocates too.
    assert!(added < 3.1, "{added} allocations: a cell, and the boxes of two extensions");
    assert!(recorded.0 < unrecorded.0 + 0.1, "recording allocates: {recorded:?}");
}
