//! Tests panics of a service below: in a read of the list, and between the send of an order and its outcome.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use http::{Method, Request, Response};
use http_body::Body as _;
use steadfast_call::{BoxError, Call, ext};
use steadfast_dedup::{DedupLayer, GuardedBody, OrderEvent, OrderTracker, SendGuardLayer, Settings};
use tokio::{sync::broadcast::Receiver, time::sleep};
use tower::{Layer, Service, ServiceExt};

use crate::{
    gateway::{Body, Gateway, ack, gw504},
    rig::{ORDER, Told, tell},
};

/// Panics after its inner service has answered, in the first so many calls with this method.
#[derive(Clone)]
struct Panics<S> {
    inner: S,
    method: Method,
    left: Arc<AtomicUsize>,
}

impl<S> Panics<S> {
    fn new(inner: S, method: Method, times: usize) -> Self {
        Self { inner, method, left: Arc::new(AtomicUsize::new(times)) }
    }
}

impl<S, B> Service<Request<B>> for Panics<S>
where
    S: Service<Request<B>, Response = Response<Body>, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
{
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (this, hit) = (self.clone(), self.method == *request.method());
        Box::pin(async move {
            let answer = this.inner.oneshot(request).await;
            let less = |left: usize| left.checked_sub(1);
            assert!(!hit || this.left.fetch_update(Relaxed, Relaxed, less).is_err(), "a layer panics");
            answer
        })
    }
}

/// Panics as soon as the order has left.
#[derive(Clone)]
struct PanicsAtSend(Gateway);

impl Service<Request<GuardedBody<Body>>> for PanicsAtSend {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = <Gateway as Service<Request<GuardedBody<Body>>>>::Future;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<GuardedBody<Body>>) -> Self::Future {
        if request.method() != Method::POST {
            return self.0.call(request);
        }
        Box::pin(async move {
            let mut body = request.into_body();
            let frame = Pin::new(&mut body).poll_frame(&mut Context::from_waker(std::task::Waker::noop()));
            panic!("the transport panics after it was given {frame:?}");
        })
    }
}

fn request() -> Request<Body> {
    let request =
        Request::post("https://gateway.example/v2/api/oms/place-order").header("x-test-intent", "a");
    request.body(Body::from(ORDER)).unwrap()
}

/// Fails a call that takes too long: without a reader of the list a search would never end, and paused time would
/// stand still.
async fn in_time<T>(call: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(3_600), call).await.unwrap()
}

fn recovered(events: &mut Receiver<OrderEvent>) -> usize {
    let mut count = 0;
    while let Ok(event) = events.try_recv() {
        count += usize::from(matches!(event, OrderEvent::Recovered { .. }));
    }
    count
}

#[tokio::test(start_paused = true)]
async fn a_read_that_panics_is_a_read_that_failed() {
    let (gateway, tracker) = (Gateway::default(), OrderTracker::new(Settings::default()));
    let guarded = SendGuardLayer::new(&tracker).layer(gateway.clone());
    let service = DedupLayer::new(&tracker).layer(Panics::new(guarded, Method::GET, 3));
    gateway.will([ack(), gw504().placed()]);
    assert_eq!(tell(in_time(service.clone().oneshot(request())).await).await, Told::Placed("o1".into()));
    let told = tell(in_time(service.clone().oneshot(request())).await).await;
    // Its baseline panicked, too: nothing is concluded from the list.
    assert!(matches!(told, Told::Unresolved("no_baseline", ..)), "{told:?}");
    assert_eq!((gateway.posts(), tracker.in_doubt()), (2, 0));

    // A poller that was started after a panic finds the order.
    let (gateway, tracker) = (Gateway::default(), OrderTracker::new(Settings::default()));
    let guarded = SendGuardLayer::new(&tracker).layer(gateway.clone());
    let panics = Panics::new(guarded, Method::GET, 0);
    let left = panics.left.clone();
    let service = DedupLayer::new(&tracker).layer(panics);
    gateway.will([ack(), gw504().placed()]);
    assert_eq!(tell(in_time(service.clone().oneshot(request())).await).await, Told::Placed("o1".into()));
    left.store(3, Relaxed);
    let told = tell(in_time(service.clone().oneshot(request())).await).await;
    assert_eq!((told, gateway.posts()), (Told::Recovered("o2".into()), 2));
    assert_eq!(gateway.gets(), 1 + 4);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_no_call_waits_for_is_read_again_after_a_panic() {
    let (gateway, tracker) = (Gateway::default(), OrderTracker::new(Settings::default()));
    let mut events = tracker.events();
    let guarded = SendGuardLayer::new(&tracker).layer(gateway.clone());
    let panics = Panics::new(guarded, Method::GET, 0);
    let left = panics.left.clone();
    let service = DedupLayer::new(&tracker).layer(panics);
    gateway.will([ack(), gw504().placed_after(Duration::from_secs(300))]);
    assert_eq!(tell(in_time(service.clone().oneshot(request())).await).await, Told::Placed("o1".into()));
    let told = tell(in_time(service.oneshot(request())).await).await;
    assert_eq!(told, Told::Resent("o3".into()));
    // The first send may still show. The first of those reads panics.
    left.store(1, Relaxed);
    sleep(Duration::from_secs(3_600)).await;
    let mut late = 0;
    while let Ok(event) = events.try_recv() {
        late += usize::from(matches!(event, OrderEvent::LateDuplicate { .. }));
    }
    assert_eq!((left.load(Relaxed), late), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn where_every_read_panics_the_search_still_ends_in_time() {
    let (gateway, tracker) = (Gateway::default(), OrderTracker::new(Settings::default()));
    let guarded = SendGuardLayer::new(&tracker).layer(gateway.clone());
    let panics = Panics::new(guarded, Method::GET, 0);
    let left = panics.left.clone();
    let service = DedupLayer::new(&tracker).layer(panics);
    gateway.will([ack(), gw504()]);
    assert_eq!(tell(in_time(service.clone().oneshot(request())).await).await, Told::Placed("o1".into()));
    left.store(usize::MAX, Relaxed);
    let told = tell(in_time(service.clone().oneshot(request())).await).await;
    assert!(matches!(told, Told::Unresolved("unverifiable" | "budget", ..)), "{told:?}");
    assert_eq!((gateway.posts(), tracker.in_doubt()), (2, 0));
    assert!(gateway.gets() < 40, "a poller that panics does not read without a pause: {}", gateway.gets());
}

#[tokio::test(start_paused = true)]
async fn j17_a_panic_above_the_guard_leaves_the_order_looked_for_and_unrepeated() {
    for (script, found) in [(gw504().placed(), 1), (ack(), 0), (gw504(), 0)] {
        let (gateway, tracker) = (Gateway::default(), OrderTracker::new(Settings::default()));
        let mut events = tracker.events();
        let guarded = SendGuardLayer::new(&tracker).layer(gateway.clone());
        let service = DedupLayer::new(&tracker).layer(Panics::new(guarded, Method::POST, 1));
        gateway.will([script]);
        let call = tokio::spawn(service.clone().oneshot(request()));
        assert!(call.await.unwrap_err().is_panic());
        tracker.shutdown().await;
        assert_eq!((gateway.posts(), tracker.in_doubt()), (1, 0));
        assert_eq!(recovered(&mut events), found);
    }
}

#[tokio::test(start_paused = true)]
async fn j17_a_panic_of_the_transport_leaves_the_order_looked_for_and_unrepeated() {
    let (gateway, tracker) = (Gateway::default(), OrderTracker::new(Settings::default()));
    let mut events = tracker.events();
    let guarded = SendGuardLayer::new(&tracker).layer(PanicsAtSend(gateway.clone()));
    let service = DedupLayer::new(&tracker).layer(guarded);
    let named = |mut request: Request<Body>| {
        Call::of_mut(request.extensions_mut()).set_intent(ext::IntentId::new("x"));
        request
    };
    let first = tokio::spawn(service.clone().oneshot(named(request())));
    // Another call for the same order and name waits for the result of the first call's send.
    sleep(Duration::from_millis(1)).await;
    let second = tokio::spawn(async move { tell(service.oneshot(named(request())).await).await });
    assert!(first.await.unwrap_err().is_panic());
    assert_eq!(tracker.in_doubt(), 1, "it left, and nobody knows what became of it");
    let told = second.await.unwrap();
    assert!(matches!(told, Told::Unresolved(..)), "{told:?}");
    tracker.shutdown().await;
    assert_eq!((gateway.posts(), tracker.in_doubt(), recovered(&mut events)), (0, 0, 0));
}
