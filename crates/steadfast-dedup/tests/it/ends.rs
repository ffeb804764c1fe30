//! When nobody watches for late orders any more: the task that reads the list ends, and with it all that it holds.

use std::{sync::Weak, time::Duration};

use http::Request;
use http_body_util::Full;
use steadfast_dedup::{Dedup, DedupLayer, Ledger, ResendPolicy, SendGuard, SendGuardLayer, Settings};
use tokio::time::sleep;
use tower::{Layer, ServiceExt};

use crate::{
    gateway::{Body, Gateway, gw504},
    rig::{ORDER, Rig, Told, order, tell},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn never_resends() -> Settings {
    Settings::default().resend(ResendPolicy::Never)
}

/// A stack that nothing but its owners, and the tasks that it starts, keeps alive.
fn stack(gateway: Gateway) -> (Dedup<SendGuard<Gateway>>, Ledger) {
    let ledger = Ledger::new(never_resends());
    let service = DedupLayer::new(&ledger).layer(SendGuardLayer::new(&ledger).layer(gateway));
    (service, ledger)
}

fn request() -> Request<Body> {
    Request::post("https://gateway.example/v2/api/oms/place-order")
        .header("x-test-intent", "a")
        .body(Full::from(ORDER.to_owned()))
        .unwrap()
}

/// Lets every task run that can, while no time passes.
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
    let (service, ledger) = stack(gateway);
    let told = tell(service.clone().oneshot(request()).await).await;
    assert!(matches!(told, Told::Unresolved("not_observed", ..)), "{told:?}");
    ledger.shutdown().await;
    drop((service, ledger));
    assert_eq!(settled(&kept).await, 0);
}

#[tokio::test(start_paused = true)]
async fn once_it_is_dropped_nothing_is_left_of_a_stack_without_doubts() {
    let gateway = Gateway::default();
    gateway.will([gw504()]);
    let kept = std::sync::Arc::downgrade(&gateway.0);
    let (service, ledger) = stack(gateway);
    let told = tell(service.clone().oneshot(request()).await).await;
    assert!(matches!(told, Told::Unresolved("not_observed", ..)), "{told:?}");
    drop(service);
    sleep(s(600)).await;
    assert!(settled(&kept).await > 0, "the ledger's owner may still be told of a late order");
    drop(ledger);
    assert_eq!(settled(&kept).await, 0);
}

#[tokio::test(start_paused = true)]
async fn an_order_in_doubt_is_found_though_its_stack_is_dropped() {
    let gateway = Gateway::default();
    gateway.will([gw504().placed_after(s(10))]);
    let kept = std::sync::Arc::downgrade(&gateway.0);
    let (service, ledger) = stack(gateway);
    let call = tokio::spawn(service.oneshot(request()));
    sleep(s(2)).await;
    drop(ledger);
    assert_eq!(tell(call.await.unwrap()).await, Told::Recovered("o1".into()));
    assert_eq!(settled(&kept).await, 0);
}

#[tokio::test(start_paused = true)]
async fn after_a_shutdown_nothing_is_read_until_another_order_is_sent() {
    let rig = Rig::with(never_resends());
    rig.gateway.will([gw504().placed_after(s(3_600)), gw504().placed_after(s(5_400))]);
    rig.place("a", ORDER).await;
    rig.ledger.shutdown().await;
    let gets = rig.gateway.gets();
    sleep(s(4_000)).await;
    assert_eq!((rig.gateway.gets(), rig.flagged()), (gets, vec![]));
    // Whoever sends again hears of both.
    rig.place("b", &order(3)).await;
    assert_eq!(rig.flagged(), ["o1"]);
    sleep(s(7_200)).await;
    assert_eq!(rig.flagged(), ["o1", "o2"]);
    rig.audit();
}
