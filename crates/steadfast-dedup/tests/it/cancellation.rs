//! G. Cancellation.

use std::time::Duration;

use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use steadfast_call::{Call, Fate, ext};
use steadfast_dedup::{DedupLayer, OrderEvent, OrderTracker};
use tokio::time::sleep;
use tower::{Layer, ServiceExt};

use crate::{
    gateway::{Body, Gateway, Reply, ack, gw504, http},
    rig::{ORDER, Rig, Told, order, tell},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn recovered(rig: &Rig) -> Vec<String> {
    let found = rig.events().into_iter().filter_map(|event| match event {
        OrderEvent::Recovered { order_id, .. } => Some(order_id),
        _ => None,
    });
    found.collect()
}

#[tokio::test(start_paused = true)]
async fn s75_drop_in_flight() {
    let rig = Rig::new();
    rig.gateway.will([gw504().placed().answered_after(s(2))]);
    let a = rig.start("a", ORDER);
    sleep(s(1)).await;
    a.abort();
    sleep(s(3)).await;
    assert_eq!(recovered(&rig), ["o1"]);
    assert_eq!((rig.gateway.posts(), rig.tracker.in_doubt()), (1, 0));

    // Not placed: its caller is gone, so it is not sent again.
    rig.gateway.will([gw504().answered_after(s(2))]);
    let b = rig.start("b", ORDER);
    sleep(s(1)).await;
    b.abort();
    sleep(s(2)).await;
    assert_eq!(rig.tracker.in_doubt(), 1);
    rig.tracker.shutdown().await;
    assert_eq!((rig.gateway.posts(), rig.tracker.in_doubt()), (2, 0));
    rig.audit();
}

/// Regression: the order was placed, and no caller got its identifier.
#[tokio::test(start_paused = true)]
async fn o02_an_order_acknowledged_after_its_call_was_dropped_is_told() {
    let rig = Rig::new();
    rig.gateway.will([ack().answered_after(s(5)), ack().answered_after(s(5))]);
    let a = rig.start("a", ORDER);
    sleep(s(1)).await;
    a.abort();
    assert_eq!((rig.tracker.in_flight(), rig.tracker.in_doubt()), (1, 0));
    let told = rig.place("b", &order(3)).await;
    assert_eq!(told, Told::Placed("o2".into()));
    let unheard = rig.events().into_iter().filter_map(|event| match event {
        OrderEvent::PlacedUnheard { order_id, .. } => Some(order_id),
        _ => None,
    });
    assert_eq!(unheard.collect::<Vec<_>>(), ["o1"]);
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn dropped_while_looked_for_it_is_still_looked_for() {
    let rig = Rig::new();
    rig.gateway.will([gw504().placed_after(s(10))]);
    let a = rig.start("a", ORDER);
    sleep(s(5)).await;
    a.abort();
    sleep(s(15)).await;
    assert_eq!(recovered(&rig), ["o1"]);
    assert_eq!(rig.gateway.posts(), 1);
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn dropped_before_the_send_nothing_is_left() {
    let rig = Rig::new();
    rig.between.queue(s(5), Duration::ZERO);
    let a = rig.start("a", ORDER);
    sleep(s(1)).await;
    a.abort();
    // The same while the connection is being made.
    rig.between.queue(Duration::ZERO, Duration::ZERO);
    rig.gateway.will([ack().reply(Reply::NotPolled).answered_after(s(5))]);
    let b = rig.start("b", ORDER);
    sleep(s(1)).await;
    b.abort();
    sleep(s(100)).await;
    assert_eq!((rig.gateway.posts(), rig.gateway.gets(), rig.tracker.in_doubt()), (0, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn dropped_while_the_resend_is_queued_it_is_not_sent() {
    let rig = Rig::new();
    rig.between.queue(Duration::ZERO, s(10));
    rig.gateway.will([gw504()]);
    let a = rig.start("a", ORDER);
    sleep(s(20)).await;
    a.abort();
    sleep(s(100)).await;
    assert_eq!((rig.gateway.posts(), rig.tracker.in_doubt()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn s76_drop_then_identical() {
    // The orphan is found within the hold, so the repetition counts as a new order.
    let rig = Rig::new();
    rig.gateway.will([gw504().placed_after(s(3))]);
    let a = rig.start("a", ORDER);
    sleep(s(1)).await;
    a.abort();
    assert!(a.await.is_err());
    let start = tokio::time::Instant::now();
    assert_eq!(rig.place("b", ORDER).await, Told::Placed("o2".into()));
    assert!(start.elapsed() > s(2), "held while the orphan was looked for");
    rig.audit();

    // The orphan is not found: the repetition is refused after five seconds, and nothing is sent.
    let rig = Rig::new();
    rig.gateway.will([gw504()]);
    let a = rig.start("a", ORDER);
    sleep(s(1)).await;
    a.abort();
    assert!(a.await.is_err());
    let start = tokio::time::Instant::now();
    assert_eq!(rig.place("b", ORDER).await, Told::NotSent("the same order is in doubt already".into()));
    assert_eq!(start.elapsed(), s(5));
    // An order that is only similar, or that has a name, is not held.
    let start = tokio::time::Instant::now();
    assert!(matches!(rig.place("c", &order(11)).await, Told::Placed(_)));
    assert!(matches!(rig.send(with_id(&rig, "d", ORDER, "x")).await, Told::Placed(_)));
    assert_eq!(start.elapsed(), Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn a_twin_whose_caller_waits_holds_nobody_up() {
    let rig = Rig::new();
    rig.gateway.will([gw504()]);
    let a = rig.start("a", ORDER);
    sleep(s(1)).await;
    assert_eq!(rig.place("b", ORDER).await, Told::Placed("o1".into()));
    assert!(!a.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_repeat_by_a_layer_between_is_refused_and_stays_in_doubt() {
    let rig = Rig::new();
    rig.between.repeats_everything();
    rig.gateway.will([gw504(), gw504()]);
    let request = rig.request("a", ORDER);
    let error = rig.service.clone().oneshot(request).await.err().unwrap();
    let outcome = steadfast_call::Failure::outcome_of(&*error);
    assert!(outcome.is_unknown(), "the refused repeat proves nothing of the first send: {outcome}");
    assert_eq!(rig.gateway.posts(), 2, "one send, and one resend after its absence");
}

fn with_id(rig: &Rig, intent: &str, form: &str, id: &str) -> Request<Body> {
    let mut request = rig.request(intent, form);
    Call::of_mut(request.extensions_mut()).set_intent(ext::IntentId::new(id));
    request
}

#[tokio::test(start_paused = true)]
async fn s77_same_intent_id() {
    let rig = Rig::new();
    rig.gateway.will([gw504().placed_after(s(3))]);
    let (a, b) =
        tokio::join!(rig.send(with_id(&rig, "a", ORDER, "x")), rig.send(with_id(&rig, "a", ORDER, "x")));
    assert_eq!((a, b), (Told::Recovered("o1".into()), Told::Attached("o1".into())));
    assert_eq!(rig.send(with_id(&rig, "a", ORDER, "x")).await, Told::Attached("o1".into()));
    let other = rig.send(with_id(&rig, "b", &order(11), "x")).await;
    assert_eq!(other, Told::NotSent("intent id \"x\" stands for another order".into()));
    assert_eq!(rig.gateway.posts(), 1);
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn an_empty_intent_id_is_none() {
    let rig = Rig::new();
    for (intent, id) in [("a", "o1"), ("b", "o2")] {
        assert_eq!(rig.send(with_id(&rig, intent, ORDER, "")).await, Told::Placed(id.into()));
    }
    assert_eq!(rig.gateway.posts(), 2);
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn an_intent_that_left_nothing_behind_may_run_again_under_its_id() {
    let rig = Rig::new();
    rig.gateway.will([http(403, "Forbidden")]);
    assert_eq!(rig.send(with_id(&rig, "a", ORDER, "x")).await, Told::Answer(403));
    assert_eq!(rig.send(with_id(&rig, "a", ORDER, "x")).await, Told::Placed("o1".into()));
    rig.audit();
}

/// Regression: a caller got a refusal, and the call that had joined it placed the order.
#[tokio::test(start_paused = true)]
async fn whoever_has_joined_an_intent_is_refused_with_it_and_sends_nothing() {
    let rig = Rig::new();
    rig.gateway.will([http(403, "Forbidden").answered_after(s(1))]);
    let call = || rig.send(with_id(&rig, "a", ORDER, "x"));
    let (a, b, c) = tokio::join!(call(), call(), call());
    let refused = Told::NotSent("order of the same intent id was rejected".into());
    assert_eq!((a, b, c), (Told::Answer(403), refused.clone(), refused));
    assert_eq!(rig.gateway.posts(), 1);
    // After a lost answer and a proved absence, a refusal of the resend leaves both calls in doubt.
    rig.gateway.will([gw504(), http(400, "Bad request")]);
    let call = || rig.send(with_id(&rig, "b", &ORDER.replace("qty=10", "qty=3"), "y"));
    let (a, b) = tokio::join!(call(), call());
    assert!(
        matches!((&a, &b), (Told::Unresolved(one, ..), Told::Unresolved(two, ..)) if one == two),
        "{a:?} {b:?}"
    );
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn an_intent_in_doubt_stays_so_under_its_id() {
    let rig = Rig::new();
    rig.gateway.will([gw504(), gw504()]);
    let told = rig.send(with_id(&rig, "a", ORDER, "x")).await;
    assert_eq!(told, Told::Unresolved("resends_exhausted", vec![], 504));
    let told = rig.send(with_id(&rig, "a", ORDER, "x")).await;
    assert_eq!(told, Told::Unresolved("resends_exhausted", vec![], 0));
    assert_eq!(rig.gateway.posts(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_attaches_outlives_the_first_one() {
    let rig = Rig::new();
    rig.between.queue(s(5), Duration::ZERO);
    let (service, request) = (rig.service.clone(), with_id(&rig, "a", ORDER, "x"));
    let first = tokio::spawn(async move { tell(service.oneshot(request).await).await });
    sleep(s(1)).await;
    let second = rig.send(with_id(&rig, "a", ORDER, "x"));
    let abort = async {
        sleep(s(1)).await;
        first.abort();
    };
    let (second, ()) = tokio::join!(second, abort);
    assert_eq!(second, Told::Placed("o1".into()), "the first left before it sent, so the second sends");
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s84_shutdown_while_verifying() {
    let rig = Rig::new();
    rig.gateway.will([gw504().placed_after(s(9))]);
    let a = rig.start("a", ORDER);
    sleep(s(1)).await;
    assert_eq!(rig.tracker.in_doubt(), 1);
    rig.tracker.shutdown().await;
    assert_eq!(rig.tracker.in_doubt(), 0);
    assert_eq!(a.await.unwrap(), Told::Recovered("o1".into()));
}

#[tokio::test(start_paused = true)]
async fn shutdown_looks_once_more_for_late_orders() {
    let rig = Rig::new();
    rig.gateway.will([gw504().placed_after(s(18))]);
    assert_eq!(rig.place("a", ORDER).await, Told::Resent("o2".into()));
    sleep(s(5)).await;
    rig.tracker.shutdown().await;
    assert_eq!(rig.flagged(), ["o1"]);
    rig.audit();
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

/// Returns a rig whose runtime ended with an order in flight.
///
/// The reads were begun on a runtime that accepted no tasks any more.
fn interrupted() -> Rig {
    let rig = runtime().block_on(async {
        let rig = Rig::new();
        rig.gateway.will([gw504().reply(Reply::Hang)]);
        drop(rig.start("a", ORDER));
        sleep(s(1)).await;
        rig
    });
    assert_eq!((rig.gateway.posts(), rig.tracker.in_doubt()), (1, 1));
    rig
}

#[test]
fn a_runtime_that_ends_with_an_order_in_flight_leaves_it_in_doubt() {
    let rig = interrupted();
    // The next call continues the reads.
    runtime().block_on(async {
        assert_eq!(rig.place("b", &order(3)).await, Told::Placed("o1".into()));
        tokio::time::timeout(s(600), rig.tracker.shutdown()).await.expect("it is looked for");
        assert_eq!((rig.gateway.posts(), rig.tracker.in_doubt()), (2, 0));
    });
}

/// Regression: it waited for ever, because nothing read the list any more.
#[test]
fn a_shutdown_on_another_runtime_continues_the_reads() {
    let rig = interrupted();
    runtime().block_on(async {
        tokio::time::timeout(s(600), rig.tracker.shutdown()).await.expect("it is looked for");
        assert_eq!((rig.gateway.posts(), rig.tracker.in_doubt()), (1, 0));
    });
}

/// Regression: the runtime that read the list ended while a shutdown waited on another one, which waited for ever.
#[test]
fn a_shutdown_goes_on_reading_if_the_other_runtime_ends() {
    let first = runtime();
    let rig = first.block_on(async {
        let rig = Rig::new();
        rig.gateway.will([gw504().placed_after(s(8))]);
        drop(rig.start("a", ORDER));
        sleep(s(1)).await;
        rig
    });
    runtime().block_on(async {
        let mut shutdown = std::pin::pin!(rig.tracker.shutdown());
        assert!(tokio::time::timeout(s(2), &mut shutdown).await.is_err(), "the other runtime has the poller");
        first.shutdown_background();
        tokio::time::timeout(s(600), shutdown).await.expect("it is looked for");
        assert_eq!((rig.gateway.posts(), rig.tracker.in_doubt()), (1, 0));
    });
}

#[tokio::test(start_paused = true)]
async fn other_traffic_passes_untouched() {
    let gateway = Gateway::default();
    let tracker = OrderTracker::default();
    let inner = tower::service_fn(async |request: Request<Body>| {
        let (parts, body) = request.into_parts();
        let mut response = http::Response::new(Full::new(body.collect().await.unwrap().to_bytes()));
        *response.headers_mut() = parts.headers;
        Ok::<_, steadfast_call::BoxError>(response)
    });
    let service =
        DedupLayer::new(&tracker).layer(tower::util::BoxCloneService::new(inner.map_future(Box::pin)));
    for (method, path) in
        [(Method::GET, "/api/oms/orders"), (Method::DELETE, "/api/oms/place-order"), (Method::PUT, "/x")]
    {
        let request =
            Request::builder().method(method).uri(path).header("x", "y").body(Full::from("a\0b")).unwrap();
        let response = service.clone().oneshot(request).await.unwrap();
        assert_eq!(response.headers()["x"], "y");
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "a\0b");
    }
    assert_eq!(gateway.posts(), 0);
}

#[tokio::test(start_paused = true)]
async fn without_a_send_guard_orders_are_refused() {
    let tracker = OrderTracker::default();
    let inner = tower::service_fn(|_: Request<Body>| {
        std::future::ready(Ok::<_, steadfast_call::BoxError>(http::Response::new(
            Full::<bytes::Bytes>::default(),
        )))
    });
    let service = DedupLayer::new(&tracker).layer(inner);
    let rig = Rig::new();
    let told = tell(service.oneshot(rig.request("a", ORDER)).await).await;
    assert_eq!(told, Told::NotSent("no send guard below the dedup layer".into()));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_an_order_is_not_sent() {
    let rig = Rig::new();
    for form in ["qty=10", "a=%zz", "", &ORDER.replace("buy", "BUY")] {
        assert!(matches!(rig.place("a", form).await, Told::NotSent(_)), "{form}");
    }
    assert_eq!((rig.gateway.posts(), rig.gateway.gets()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_original_error_stays_findable() {
    let rig = Rig::new();
    rig.gateway.will([gw504().reply(Reply::Ended)]);
    let request = {
        let mut request = rig.request("a", ORDER);
        Call::of_mut(request.extensions_mut()).set_deadline((tokio::time::Instant::now() + s(5)).into_std());
        request
    };
    let error = rig.service.clone().oneshot(request).await.err().unwrap();
    assert!(error.to_string().starts_with("order in doubt: deadline: answer lost: "), "{error}");
    let fate = steadfast_call::Failure::find(&*error).map(steadfast_call::Failure::fate);
    assert!(matches!(fate, Some(Fate::Lost { ended: Some(_) })), "{fate:?}");
    assert!(steadfast_dedup::Unresolved::find(&*error).is_some());
}
