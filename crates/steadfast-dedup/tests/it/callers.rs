//! Tests difficult callers: storms of clones, ended services, broken bodies, a shutdown with a queue.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::Full;
use steadfast_call::{BoxError, Failure, Outcome};
use steadfast_dedup::{DedupLayer, GuardedBody, OrderTracker, SendGuardLayer, Settings};
use tokio::time::sleep;
use tower::{Layer, Service, ServiceExt};

use crate::{
    gateway::{Body, Gateway, ack, gw504, http},
    rig::{ORDER, Rig, Told, order, tell},
};

#[tokio::test(start_paused = true)]
async fn k3_a_storm_of_clones_is_one_account() {
    let rig = Rig::new();
    rig.gateway.will((0..50).map(|_| gw504().placed()));
    // Clones of clones, most of them dropped without a call.
    let mut services = vec![rig.service.clone()];
    for _ in 0..9 {
        services.extend(services.clone());
    }
    let calls = services.drain(..50).enumerate().map(|(number, service)| {
        let request = rig.request(&number.to_string(), ORDER);
        async move { tell(service.oneshot(request).await).await }
    });
    let calls: Vec<_> = calls.map(tokio::spawn).collect();
    drop(services);
    let mut found = Vec::new();
    for call in calls {
        match call.await.unwrap() {
            Told::Recovered(id) | Told::Placed(id) => found.push(id),
            other => panic!("{other:?}"),
        }
    }
    found.sort();
    found.dedup();
    assert_eq!((found.len(), rig.gateway.posts()), (50, 50), "each has an order of its own");
}

/// A service with an ended worker, as behind tower's Buffer: it is never ready again.
#[derive(Clone)]
struct Closed(Gateway);

impl Service<Request<GuardedBody<Body>>> for Closed {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = <Gateway as Service<Request<GuardedBody<Body>>>>::Future;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Err("the buffer's worker has closed".into()))
    }

    fn call(&mut self, request: Request<GuardedBody<Body>>) -> Self::Future {
        self.0.call(request)
    }
}

#[tokio::test(start_paused = true)]
async fn k3_an_order_for_a_service_that_has_closed_was_not_sent_and_leaves_no_doubt() {
    let (gateway, tracker) = (Gateway::default(), OrderTracker::new(Settings::default()));
    let service =
        DedupLayer::new(&tracker).layer(SendGuardLayer::new(&tracker).layer(Closed(gateway.clone())));
    let request = Request::post("https://gateway.example/v2/api/oms/place-order")
        .header("x-test-intent", "a")
        .body(Full::from(ORDER))
        .unwrap();
    let error = service.oneshot(request).await.map(drop).unwrap_err();
    assert!(error.to_string().contains("closed"), "{error}");
    assert_eq!((gateway.posts(), tracker.in_doubt()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_acknowledgement_that_is_lost_below_is_no_failed_order() {
    let (gateway, tracker) = (Gateway::default(), OrderTracker::new(Settings::default()));
    let guarded = SendGuardLayer::new(&tracker).layer(gateway.clone());
    let lossy = tower::service_fn(move |request: Request<Body>| {
        let (places, guarded) = (request.method() == http::Method::POST, guarded.clone());
        async move {
            let answer = guarded.oneshot(request).await;
            if places { Err("lost on the way up".into()) } else { answer }
        }
    });
    let request = Request::post("https://gateway.example/v2/api/oms/place-order")
        .header("x-test-intent", "a")
        .body(Full::from(ORDER))
        .unwrap();
    let told = tell(DedupLayer::new(&tracker).layer(lossy).oneshot(request).await).await;
    assert_eq!((told, gateway.posts()), (Told::Recovered("o1".into()), 1));
}

/// A form that fails after its pieces.
#[derive(Default)]
struct Breaking(VecDeque<Bytes>);

impl From<Bytes> for Breaking {
    fn from(piece: Bytes) -> Self {
        Self([piece].into())
    }
}

impl http_body::Body for Breaking {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(Some(self.0.pop_front().map(Frame::data).ok_or_else(|| "broke off".into())))
    }
}

#[tokio::test(start_paused = true)]
async fn k7_a_form_that_breaks_off_is_not_sent_even_if_its_first_part_is_an_order() {
    let tracker = OrderTracker::new(Settings::default());
    let below = tower::service_fn(|_: Request<GuardedBody<Breaking>>| async {
        panic!("part of a form was sent");
        #[expect(unreachable_code, reason = "it says what the service would answer")]
        Ok::<Response<Body>, BoxError>(Response::default())
    });
    let service = DedupLayer::new(&tracker).layer(SendGuardLayer::new(&tracker).layer(below));
    let whole = Bytes::from(ORDER.to_owned());
    for pieces in [vec![whole.clone()], vec![whole.slice(..20), whole.slice(20..)], vec![]] {
        let request = Request::post("https://gateway.example/v2/api/oms/place-order")
            .body(Breaking(pieces.into()))
            .unwrap();
        let error = service.clone().oneshot(request).await.map(drop).unwrap_err();
        assert_eq!(Failure::outcome_of(&*error), Outcome::NotSent, "{error}");
    }
    assert_eq!(tracker.in_doubt(), 0);
}

#[tokio::test(start_paused = true)]
async fn k8_a_shutdown_waits_for_calls_in_the_queue() {
    let rig = Rig::new();
    rig.between.queue(Duration::from_secs(20), Duration::ZERO);
    rig.gateway.will([gw504().placed_after(Duration::from_secs(5))]);
    let (kept, dropped) = (rig.start("a", ORDER), rig.start("b", &order(3)));
    sleep(Duration::from_secs(1)).await;
    let tracker = rig.tracker.clone();
    let shutdown = tokio::spawn(async move { tracker.shutdown().await });
    sleep(Duration::from_secs(1)).await;
    assert_eq!(rig.gateway.posts(), 0);
    dropped.abort();
    // Nothing leaves after it: the kept order has left, and is found.
    shutdown.await.unwrap();
    assert_eq!((rig.gateway.posts(), rig.tracker.in_doubt()), (1, 0));
    assert_eq!(kept.await.unwrap(), Told::Recovered("o1".into()));
    assert_eq!(rig.gateway.posts(), 1);
}

/// An order that was refused with 429 may leave again.
#[tokio::test(start_paused = true)]
async fn k8_a_shutdown_waits_for_a_repeat() {
    let rig = Rig::new();
    rig.gateway.will([http(429, "Too many requests"), ack()]);
    let call = rig.start("a", ORDER);
    sleep(Duration::from_millis(200)).await;
    rig.tracker.shutdown().await;
    assert_eq!(rig.gateway.posts(), 2, "sent again before it returned");
    assert_eq!(call.await.unwrap(), Told::Placed("o1".into()));
}
