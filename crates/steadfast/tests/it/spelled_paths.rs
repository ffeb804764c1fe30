//! Requests of the caller's own whose path is nearly that of an endpoint.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use steadfast::ErrorKind;

use crate::answers::{Answers, GATEWAY_TIMED_OUT, reply};

const FORM: &str =
    "symId=EQT_INFY_EQ_NSE&qty=10&side=buy&type=limit&limitPrice=100.05&product=delivery&validity=day";

fn post(path: &str) -> Request<Full<Bytes>> {
    Request::post(format!("http://localhost/v2{path}")).body(Full::from(FORM)).unwrap()
}

/// A server that normalises paths would place these orders: not covered by the kill switch, and not looked for if
/// the answer is lost.
#[tokio::test(start_paused = true)]
async fn an_order_under_another_spelling_of_its_path_is_refused_and_never_sent() {
    let gateway = Answers::with(|_, _| reply(504, GATEWAY_TIMED_OUT));
    let client = gateway.client();
    for path in [
        "/api/oms/place-order/",
        "/api/oms//place-order",
        "//api/oms/place-order",
        "/api/oms/place%2Dorder",
        "/api/oms/%70lace-order",
        "/api%2foms%2fplace-order",
        "/api/oms/PLACE-ORDER",
        "/api/oms/place-order;v=1",
        "/api/oms/place-order%20",
        "/api/oms/place-order.json",
        "/api/oms/placeorder",
        "/api/oms/place_order",
        "/api/oms/./place-order",
        "/api/oms/x/../place-order",
        "/api/oms/x/%2e%2E/place-order",
        "/../v2/api/oms/place-order",
        "/api/oms/x%2F..%2Fplace-order",
        "/api/oms/x/.%2Fplace-order",
    ] {
        let error = client.raw(post(path)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{path}: {error:?}");
    }
    assert!(gateway.arrivals().is_empty(), "{:?}", gateway.arrivals());
}

#[tokio::test(start_paused = true)]
async fn no_spelling_of_a_path_gets_an_order_past_the_kill_switch() {
    let gateway = Answers::with(|_, _| reply(200, "{}"));
    let client = gateway.client();
    client.halt();
    for path in
        ["/api/oms/place-order", "/api/oms/place-order?x=1", "/api/oms/place-order/", "/api/oms/Place-Order"]
    {
        let error = client.raw(post(path)).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Halted | ErrorKind::InvalidRequest), "{path}: {error:?}");
    }
    assert!(gateway.arrivals().is_empty(), "{:?}", gateway.arrivals());
}

#[tokio::test(start_paused = true)]
async fn what_is_no_endpoint_at_all_is_passed_on_once() {
    let gateway = Answers::with(|_, _| reply(504, GATEWAY_TIMED_OUT));
    let client = gateway.client();
    for (number, path) in ["/api/oms/place-orders", "/api/oms/gtt/place-order", "/api/new"].iter().enumerate()
    {
        assert_eq!(client.raw(post(path)).await.unwrap().status(), 504, "{path}");
        assert_eq!(gateway.arrivals().len(), number + 1, "{path}");
    }
    // A cancel must get out, under whatever path the service has.
    let mut cancel = post("/api/oms/cancel_order?orderId=1");
    *cancel.method_mut() = Method::DELETE;
    assert_eq!(client.raw(cancel).await.unwrap().status(), 504);
    // An endpoint does not allow another method (§7), and the service says so.
    let mut put = post("/api/oms/place-order");
    *put.method_mut() = Method::PUT;
    assert_eq!(client.raw(put).await.unwrap().status(), 504);
}
