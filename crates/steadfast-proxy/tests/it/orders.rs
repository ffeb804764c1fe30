//! Orders whose answers get lost, on either side of the sidecar.

use std::time::Duration;

use steadfast::{
    dedup::{ResendPolicy, Settings},
    spec::{Form, OrderRequest},
};
use steadfast_sandbox::{Sandbox, SandboxBuilder};

use crate::world::{FORM, PLACE, World};

/// The first order is placed behind a 504, and the list fails twice, so that it is not found for some seconds.
const LOST: &str = "[[fault]]\nname = 'placement.504-applied'\nnth = 1\n\
    [[fault]]\nname = 'list.504'\nnth = 2\ntimes = 2";

fn lost() -> SandboxBuilder {
    Sandbox::builder().script(LOST).unwrap()
}

/// Returns settings under which a search ends within seconds.
pub(crate) fn hasty() -> Settings {
    let second = Duration::from_secs(1);
    Settings::default()
        .lateness(second)
        .gateway_timeout(second)
        .verification_budget(4 * second)
        .resend(ResendPolicy::Never)
}

#[tokio::test]
async fn an_order_behind_a_504_is_answered_when_it_is_found() {
    let world = World::new(lost()).await;
    let answer = world.ask(&world.order(&[])).await;
    assert_eq!(
        (answer.status, answer.header("x-steadfast-resolution")),
        (200, Some("recovered")),
        "{answer:?}"
    );
    assert!(answer.body.contains(&world.sandbox.state().orders[0].order_id));
    assert_eq!((answer.header("x-steadfast-listed"), world.placed()), (Some("open"), 1), "{answer:?}");
}

/// Regression: a program was told 200 as for any other, and took it for a position.
#[tokio::test]
async fn an_order_that_is_found_as_rejected_says_so() {
    let rejected = "[[fault]]\nname = 'placement.booked-rejected'\nnth = 1\n\
        [[fault]]\nname = 'connection.reset-after'\nendpoint = 'place-order'\nnth = 1";
    let world = World::new(Sandbox::builder().script(rejected).unwrap()).await;
    let answer = world.ask(&world.order(&[])).await;
    assert_eq!((answer.status, answer.header("x-steadfast-listed")), (200, Some("rejected")), "{answer:?}");
}

#[tokio::test]
async fn an_equal_order_waits_for_the_first_unless_it_is_new() {
    let world = World::new(lost()).await;
    let mut first = world.connect().await;
    first.send(&world.order(&[])).await;
    while world.placed() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let equal = world.ask(&world.order(&[])).await;
    assert_eq!((equal.status, equal.header("verify")), (409, Some("/api/oms/orders")), "{equal:?}");
    for respelled in [
        FORM.replace("limitPrice=100", "limitPrice=100.00").replace("qty=10", "qty=10.0"),
        FORM.replace("EQT_INFY_EQ_NSE", "eqt_infy_eq_nse"),
        FORM.replace("symId=EQT_INFY_EQ_NSE&", "") + "&symId=EQT_INFY_EQ_NSE",
        FORM.to_owned() + "&trigPrice=0&disclosedQty=0",
        FORM.to_owned() + "&remarks=x",
        FORM.to_owned() + "&foo=1",
    ] {
        let again = world.ask(&world.request(PLACE, &[], &respelled)).await;
        assert_eq!(again.status, 409, "the same order in another spelling: {respelled}: {again:?}");
    }
    let new = world.ask(&world.order(&["x-new-order: 1"])).await;
    assert_eq!(new.status, 200, "{new:?}");
    assert_eq!(first.answer().await.unwrap().status, 200);
    assert_eq!(world.placed(), 2);
}

/// Closes the connection of a placed order. Its caller asks again, as clients do after a timeout, until the sidecar knows
/// its id: it is placed once.
async fn leave_and_ask_again<C>(world: &World, first: C) {
    while world.placed() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    drop(first);
    let id = world.sandbox.state().orders[0].order_id.clone();
    let known = loop {
        let again = world.ask(&world.order(&[])).await;
        assert_eq!(again.status, 409, "{again:?}");
        match again.header("x-steadfast-order-id") {
            Some(known) => break known.to_owned(),
            None => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    };
    assert_eq!((known, world.placed()), (id, 1));
}

#[tokio::test]
async fn an_order_whose_caller_has_gone_is_not_placed_again() {
    let world = World::new(lost()).await;
    let mut first = world.connect().await;
    first.send(&world.order(&[])).await;
    leave_and_ask_again(&world, first).await;
}

#[tokio::test]
async fn a_caller_that_left_has_heard_nothing_although_a_request_waited_behind_its_order() {
    let world = World::new(lost()).await;
    let mut first = world.connect().await;
    let behind = world.request("GET /v2/api/oms/history HTTP/1.1", &[], "");
    first.send(&[world.order(&[]), behind].concat()).await;
    leave_and_ask_again(&world, first).await;
}

#[tokio::test]
async fn a_name_stands_for_one_order() {
    let world = World::new(lost()).await;
    let named = world.order(&["Idempotency-Key: k1"]);
    let mut first = world.connect().await;
    first.send(&named).await;
    while world.placed() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let running = world.ask(&named).await;
    assert_eq!((running.status, running.header("retry-after")), (409, Some("1")), "{running:?}");
    let answer = first.answer().await.unwrap();
    let id = world.sandbox.state().orders[0].order_id.clone();
    assert!(answer.status == 200 && answer.body.contains(&id));
    let again = world.ask(&named).await;
    assert!(again.status == 200 && again.body.contains(&id), "{again:?}");
    let other = FORM.replace("qty=10", "qty=11");
    let other = world.request(PLACE, &["Idempotency-Key: k1"], &other);
    assert_eq!(world.ask(&other).await.status, 422);
    assert_eq!(world.placed(), 1);
}

#[tokio::test]
async fn an_order_in_doubt_for_good_must_not_be_sent_again() {
    let script = "[[fault]]\nname = 'placement.504-not-applied'\nnth = 1";
    let world = World::with(Sandbox::builder().script(script).unwrap(), hasty()).await;
    let answer = world.ask(&world.order(&[])).await;
    assert_eq!((answer.status, answer.header("retry-safe")), (504, Some("false")), "{answer:?}");
    assert_eq!(answer.header("verify"), Some("/api/oms/orders"));
    assert!(answer.body.contains("Gateway timedout"));
    let again = world.ask(&world.order(&[])).await;
    assert_eq!(again.status, 409, "{again:?}");
    assert_eq!(world.placed(), 0);
}

#[tokio::test]
async fn an_order_that_may_be_another_ones_is_not_named() {
    let script = "[[fault]]\nname = 'placement.504-not-applied'\nnth = 1";
    let world = World::with(Sandbox::builder().script(script).unwrap(), hasty()).await;
    let mut first = world.connect().await;
    first.send(&world.order(&[])).await;
    while world.client.in_doubt() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // A person places a similar order by hand.
    let form = FORM.replace("qty=10", "qty=11");
    let similar = OrderRequest::from_fields(Form::parse(form.as_bytes()).unwrap().iter()).unwrap();
    world.sandbox.place_foreign(&similar);
    let answer = first.answer().await.unwrap();
    assert!(answer.status == 504 && answer.head.contains("near_match"), "{answer:?}");
    let again = world.ask(&world.order(&[])).await;
    assert_eq!((again.status, again.header("x-steadfast-order-id")), (409, None), "{again:?}");
}

#[tokio::test]
async fn a_repeat_by_name_is_told_of_its_order_during_a_halt() {
    let world = World::new(Sandbox::builder()).await;
    assert_eq!(world.ask(&world.order(&["Idempotency-Key: k1"])).await.status, 200);
    let id = world.sandbox.state().orders[0].order_id.clone();
    world.client.halt();
    let again = world.ask(&world.order(&["Idempotency-Key: k1"])).await;
    assert!(again.status == 200 && again.body.contains(&id), "{again:?}");
    assert_eq!(world.ask(&world.order(&["Idempotency-Key: k2"])).await.status, 503);
    assert_eq!(world.placed(), 1);
}

#[tokio::test]
async fn a_halt_stops_orders_and_unknown_writes_and_no_cancel() {
    let world = World::new(Sandbox::builder()).await;
    assert_eq!(world.ask(&world.order(&[])).await.status, 200);
    let id = world.sandbox.state().orders[0].order_id.clone();
    world.client.halt();
    let before = world.arrivals();
    assert_eq!(world.ask(&world.order(&["x-new-order: 1"])).await.status, 503);
    for method in ["POST", "PUT", "PATCH"] {
        let unknown = world.request(&format!("{method} /v2/api/never/heard/of HTTP/1.1"), &[], "a=1");
        assert_eq!(world.ask(&unknown).await.status, 503, "{method}");
    }
    assert_eq!(world.arrivals(), before);
    let cancel = world.request(&format!("DELETE /v2/api/oms/cancel-order?orderId={id} HTTP/1.1"), &[], "");
    assert_eq!(world.ask(&cancel).await.status, 200);
}

#[tokio::test]
async fn the_end_waits_for_orders_and_lets_no_other_leave() {
    let mut world = World::new(lost()).await;
    let mut first = world.connect().await;
    let mut idle = world.connect().await;
    first.send(&world.order(&[])).await;
    while world.placed() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Not the list, which would show the order.
    idle.send(&world.request("GET /v2/api/oms/history HTTP/1.1", &[], "")).await;
    assert_eq!(idle.answer().await.unwrap().status, 200);
    world.proxy.stop();
    let before = world.arrivals();
    let margin = world.request("POST /v2/api/oms/basket-margin HTTP/1.1", &[], "a=1");
    assert_ne!(world.ask(&margin).await.status, 503);
    assert_eq!(world.arrivals(), before + 1, "a margin is read");
    world.end.take().unwrap().send(()).unwrap();
    let answer = first.answer().await.unwrap();
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")), "{answer:?}");
    assert!(idle.is_over().await);
    let sandbox = world.sandbox.clone();
    world.served.await.unwrap();
    assert_eq!(sandbox.state().orders.len(), 1);
}
