//! The kill switch.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use steadfast_call::{BoxError, Call, Failure, Fate, Route, ext::IntentId, find_cause};
use steadfast_dedup::{DedupLayer, GuardedBody, OrderTracker, OrderWithheld, SendGuardLayer};
use steadfast_spec::Endpoint;
use tokio::time::sleep;
use tower::{Layer, ServiceExt, service_fn};

use crate::{
    gateway::gw504,
    rig::{ORDER, Rig, Told},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn halted() -> Told {
    Told::NotSent("orders are halted".into())
}

#[tokio::test(start_paused = true)]
async fn while_halted_an_order_is_refused_and_nothing_of_it_is_sent() {
    let rig = Rig::new();
    rig.tracker.halt();
    assert_eq!(rig.place("a", ORDER).await, halted());
    assert_eq!((rig.gateway.posts(), rig.gateway.gets()), (0, 0));
    assert!(rig.tracker.is_halted());
    rig.tracker.resume();
    assert_eq!(rig.place("a", ORDER).await, Told::Placed("o1".into()));
}

#[tokio::test(start_paused = true)]
async fn an_order_that_waits_in_a_queue_does_not_leave_after_a_halt() {
    for resumed in [false, true] {
        let rig = Rig::new();
        rig.between.queue(s(5), Duration::ZERO);
        let a = rig.start("a", ORDER);
        sleep(s(1)).await;
        rig.tracker.halt();
        if resumed {
            sleep(s(1)).await;
            rig.tracker.resume();
        }
        assert_eq!(a.await.unwrap(), halted());
        assert_eq!((rig.gateway.posts(), rig.tracker.in_doubt()), (0, 0), "resumed {resumed}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_whose_connection_is_being_made_does_not_leave_after_a_halt() {
    let tracker = OrderTracker::default();
    let (held, go) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
    let gateway = {
        let (held, go) = (held.clone(), go.clone());
        service_fn(move |request: Request<GuardedBody<Full<Bytes>>>| {
            let (held, go) = (held.clone(), go.clone());
            async move {
                if request.method() == Method::POST {
                    held.notify_one();
                    go.notified().await;
                }
                // The first poll of the body, once the connection is there.
                request.into_body().collect().await?;
                Ok::<_, BoxError>(Response::new(Full::<Bytes>::from("{}")))
            }
        })
    };
    let service = DedupLayer::new(&tracker).layer(SendGuardLayer::new(&tracker).layer(gateway));
    let request =
        Request::post("https://gateway.example/v2/api/oms/place-order").body(Full::from(ORDER)).unwrap();
    let service = tower::util::BoxCloneService::new(service.map_future(Box::pin));
    let call = tokio::spawn(service.oneshot(request));
    held.notified().await;
    tracker.halt();
    go.notify_one();
    let error = call.await.unwrap().err().unwrap();
    assert!(matches!(find_cause(&*error), Some(OrderWithheld::Halted)), "{error:?}");
    assert!(Failure::find(&*error).is_some_and(Failure::is_refusal));
    assert_eq!(tracker.in_doubt(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_resend_does_not_leave_while_halted_and_is_not_made_up_for() {
    // Halted during the search, and while the resend waits in a queue.
    for at in [s(3), s(25)] {
        let rig = Rig::new();
        rig.between.queue(Duration::ZERO, s(20));
        rig.gateway.will([gw504()]);
        let a = rig.start("a", ORDER);
        sleep(at).await;
        rig.tracker.halt();
        let reads = rig.gateway.gets();
        let told = a.await.unwrap();
        assert!(matches!(told, Told::Unresolved("not_observed", _, 504)), "{told:?}");
        rig.tracker.resume();
        sleep(s(100)).await;
        assert_eq!((rig.gateway.posts(), rig.tracker.in_doubt()), (1, 0));
        assert!(rig.gateway.gets() > reads, "it is looked for all the same");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_in_doubt_is_found_while_halted() {
    let rig = Rig::new();
    rig.gateway.will([gw504().placed_after(s(9))]);
    let a = rig.start("a", ORDER);
    sleep(s(1)).await;
    rig.tracker.halt();
    assert_eq!(a.await.unwrap(), Told::Recovered("o1".into()));
}

#[tokio::test(start_paused = true)]
async fn while_halted_a_repeat_is_told_what_became_of_its_order() {
    let rig = Rig::new();
    let named = |name: &'static str| {
        let mut request = rig.request("a", ORDER);
        Call::of_mut(request.extensions_mut()).set_intent(IntentId::new(name));
        request
    };
    assert_eq!(rig.send(named("n")).await, Told::Placed("o1".into()));
    rig.tracker.halt();
    assert_eq!(rig.send(named("n")).await, Told::Attached("o1".into()));
    assert_eq!(rig.send(named("m")).await, halted());
    assert_eq!(rig.gateway.posts(), 1);
}

/// A request that a layer above has marked with this endpoint.
fn routed(method: Method, endpoint: Endpoint) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::from("orderId=o1&qty=5"));
    (*request.method_mut(), *request.uri_mut()) = (method, "https://gateway.example/v2/x".parse().unwrap());
    Call::of_mut(request.extensions_mut()).set_route(Arc::new(Route::new(endpoint)));
    request
}

#[tokio::test(start_paused = true)]
async fn while_halted_a_change_is_refused_and_a_cancel_leaves() {
    let tracker = OrderTracker::default();
    let gateway = service_fn(async |request: Request<GuardedBody<Full<Bytes>>>| {
        // The connection takes some time.
        sleep(s(1)).await;
        let body = request.into_body().collect().await?.to_bytes();
        Ok::<_, BoxError>(Response::new(Full::from(body)))
    });
    let service = DedupLayer::new(&tracker).layer(SendGuardLayer::new(&tracker).layer(gateway));
    let service = tower::util::BoxCloneService::new(service.map_future(Box::pin));
    let change = || routed(Method::PUT, Endpoint::ModifyOrder);
    assert!(service.clone().oneshot(change()).await.is_ok());
    // Accepted before the halt, and not sent when it comes.
    let waiting = tokio::spawn(service.clone().oneshot(change()));
    sleep(Duration::from_millis(500)).await;
    tracker.halt();
    for late in [waiting.await.unwrap(), service.clone().oneshot(change()).await] {
        let error = late.err().unwrap();
        assert!(matches!(find_cause(&*error), Some(OrderWithheld::Halted)), "{error:?}");
        assert!(Failure::find(&*error).is_some_and(Failure::is_refusal), "nobody repeats it");
    }
    let out = service.clone().oneshot(routed(Method::DELETE, Endpoint::CancelOrder)).await;
    assert!(out.is_ok());
    tracker.resume();
    assert!(service.oneshot(change()).await.is_ok());
}

/// Transports do not poll a body that reports its end.
#[tokio::test(start_paused = true)]
async fn an_empty_body_is_polled_where_that_decides_whether_it_may_leave() {
    let tracker = OrderTracker::default();
    let gateway = service_fn(async |request: Request<GuardedBody<Full<Bytes>>>| {
        sleep(s(1)).await;
        let (mut sent, body) = (Bytes::from("ended"), request.into_body());
        if !body.is_end_stream() {
            sent = body.collect().await?.to_bytes();
        }
        Ok::<_, BoxError>(Response::new(Full::<Bytes>::from(sent)))
    });
    let service = SendGuardLayer::new(&tracker).layer(gateway);
    let sent = async |method, endpoint, form: &'static str| {
        let request = routed(method, endpoint).map(|_| Full::from(form));
        let body = service.clone().oneshot(request).await?.into_body();
        Ok::<_, BoxError>(body.collect().await?.to_bytes())
    };
    assert_eq!(sent(Method::PUT, Endpoint::ModifyOrder, "").await.unwrap(), "");
    assert_eq!(sent(Method::PUT, Endpoint::ModifyOrder, "qty=5").await.unwrap(), "qty=5");
    assert_eq!(sent(Method::GET, Endpoint::Orders, "").await.unwrap(), "ended");
    assert_eq!(sent(Method::POST, Endpoint::Token, "a=1").await.unwrap(), "a=1", "no form is cut");
    // Requested during a halt, or halted while its connection is made.
    let (change, ()) = tokio::join!(sent(Method::PUT, Endpoint::ModifyOrder, ""), async { tracker.halt() });
    assert!(matches!(find_cause(&*change.unwrap_err()), Some(OrderWithheld::Halted)));
}

#[tokio::test(start_paused = true)]
async fn only_what_was_withheld_by_a_halt_is_called_refused() {
    let tracker = OrderTracker::default();
    let lost = |_: Request<GuardedBody<Full<Bytes>>>| async {
        Err::<Response<Full<Bytes>>, BoxError>(
            Failure::new(Fate::Lost { ended: None }, "connection reset").into(),
        )
    };
    let service = SendGuardLayer::new(&tracker).layer(service_fn(lost));
    for (method, endpoint) in [(Method::PUT, Endpoint::ModifyOrder), (Method::DELETE, Endpoint::CancelOrder)]
    {
        let error = service.clone().oneshot(routed(method, endpoint)).await.err().unwrap();
        let failure = Failure::find(&*error).unwrap();
        assert!(matches!(failure.fate(), Fate::Lost { .. }) && !failure.is_refusal(), "{error:?}");
    }
}
