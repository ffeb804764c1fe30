//! Tests the end of the watch for late orders: the task that reads the list ends, and all that it holds.

use std::{sync::Weak, time::Duration};

use http::Request;
use http_body_util::Full;
use steadfast_dedup::{
    Dedup, DedupLayer, OrderEvent, OrderTracker, ResendPolicy, SendGuard, SendGuardLayer, Settings,
};
use tokio::{sync::broadcast::error::RecvError, time::sleep};
use tower::{Layer, ServiceExt};

use crate::{
    gateway::{Body, Gateway, gw504},
    rig::{ORDER, Told, tell},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A stack that only its owners and the tasks it starts keep alive.
fn stack(gateway: Gateway) -> (Dedup<SendGuard<Gateway>>, OrderTracker) {
    let tracker = OrderTracker::new(Settings::default().resend(ResendPolicy::Never));
    let service = DedupLayer::new(&tracker).layer(SendGuardLayer::new(&tracker).layer(gateway));
    (service, tracker)
}

fn request() -> Request<Body> {
    Request::post("https://gateway.example/v2/api/oms/place-order")
        .header("x-test-intent", "a")
        .body(Full::from(ORDER.to_owned()))
        .unwrap()
}

/// Runs every task that can run, while no time passes.
async fn settled<T>(kept: &Weak<T>) -> usize {
    for _ in 0..16 {
        tokio::task::yield_now().await;
    }
    kept.strong_count()
}

#[tokio::test(start_paused = true)]
async fn once_it_is_shut_down_and_dropped_nothing_is_left_of_a_stack() {
    let gateway = Gateway::default();
    gateway.will([gw504()]);
    let kept = std::sync::Arc::downgrade(&gateway.0);
    let (service, tracker) = stack(gateway);
    let told = tell(service.clone().oneshot(request()).await).await;
    assert!(matches!(told, Told::Unresolved("not_observed", ..)), "{told:?}");
    tracker.shutdown().await;
    drop((service, tracker));
    assert_eq!(settled(&kept).await, 0);
}

#[tokio::test(start_paused = true)]
async fn once_it_is_dropped_nothing_is_left_of_a_stack_without_doubts() {
    let gateway = Gateway::default();
    gateway.will([gw504()]);
    let kept = std::sync::Arc::downgrade(&gateway.0);
    let (service, tracker) = stack(gateway);
    let told = tell(service.clone().oneshot(request()).await).await;
    assert!(matches!(told, Told::Unresolved("not_observed", ..)), "{told:?}");
    drop(service);
    sleep(s(600)).await;
    assert!(settled(&kept).await > 0, "the tracker's owner may still be told of a late order");
    drop(tracker);
    assert_eq!(settled(&kept).await, 0);
}

#[tokio::test(start_paused = true)]
async fn an_order_in_doubt_is_found_though_its_stack_is_dropped() {
    let gateway = Gateway::default();
    gateway.will([gw504().placed_after(s(10))]);
    let kept = std::sync::Arc::downgrade(&gateway.0);
    let (service, tracker) = stack(gateway);
    let call = tokio::spawn(service.oneshot(request()));
    sleep(s(2)).await;
    drop(tracker);
    assert_eq!(tell(call.await.unwrap()).await, Told::Recovered("o1".into()));
    assert_eq!(settled(&kept).await, 0);
}

/// While there is an owner, late orders are noticed after a shutdown, too.
#[tokio::test(start_paused = true)]
async fn after_a_shutdown_its_owner_is_still_told_of_a_late_order() {
    let gateway = Gateway::default();
    gateway.will([gw504().placed_after(s(3_600))]);
    let (service, tracker) = stack(gateway);
    let told = tell(service.oneshot(request()).await).await;
    assert!(matches!(told, Told::Unresolved("not_observed", ..)), "{told:?}");
    tracker.shutdown().await;
    let mut events = tracker.events();
    sleep(s(5_400)).await;
    assert!(matches!(events.try_recv(), Ok(OrderEvent::LateDuplicate { .. })));
    drop(tracker);
    assert_eq!(events.recv().await, Err(RecvError::Closed));
}
