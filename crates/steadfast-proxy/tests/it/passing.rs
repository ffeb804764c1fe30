use steadfast_sandbox::Sandbox;

use crate::world::{FORM, READER, TOKEN, World};

#[tokio::test]
async fn a_connection_carries_many_requests_with_the_services_answers() {
    let world = World::new(Sandbox::builder()).await;
    let mut line = world.connect().await;
    line.send(&world.order(&[])).await;
    let placed = line.answer().await.unwrap();
    assert_eq!(placed.status, 200, "{placed:?}");
    assert!(placed.body.contains(r#""s":"ok""#) && placed.header("set-cookie").is_none());
    let id = world.sandbox.state().orders[0].order_id.clone();
    assert!(placed.body.contains(&id));

    line.send(&world.request("GET /v2/api/oms/orders HTTP/1.1", &["X-Request-Id: r7"], "")).await;
    let listed = line.answer().await.unwrap();
    assert!(listed.body.contains(&id) && listed.header("x-request-id") == Some("r7"), "{listed:?}");
    let change = format!("orderId={id}&qty=7");
    line.send(&world.request("PUT /v2/api/oms/modify-order HTTP/1.1", &[], &change)).await;
    assert_eq!(line.answer().await.unwrap().status, 200);
    assert_eq!(world.sandbox.state().orders[0].qty.to_string(), "7");
    let cancel = format!("DELETE /v2/api/oms/cancel-order?orderId={id} HTTP/1.1");
    line.send(&world.request(&cancel, &[], "")).await;
    assert_eq!(line.answer().await.unwrap().status, 200);
    // A heard answer makes room for an equal order.
    line.send(&world.order(&[])).await;
    assert_eq!(line.answer().await.unwrap().status, 200);
    assert_eq!(world.placed(), 2);
}

#[tokio::test]
async fn the_services_form_of_a_token_is_known_and_never_passed_on() {
    let world = World::new(Sandbox::builder()).await;
    let host = format!("Host: {}", world.address);
    for (token, status) in [(TOKEN, 200), (READER, 403)] {
        let form = FORM;
        let order = format!(
            "POST /v2/api/oms/place-order HTTP/1.1\r\n{host}\r\nAuthorization: Bearer their-key:{token}\r\n\
             Content-Length: {}\r\n\r\n{form}",
            form.len()
        );
        assert_eq!(world.ask(order.as_bytes()).await.status, status);
        let list = format!(
            "GET /v2/api/oms/orders HTTP/1.1\r\n{host}\r\nAuthorization: Bearer their-key:{token}\r\n\r\n"
        );
        assert_eq!(world.ask(list.as_bytes()).await.status, 200, "the service got its own token");
    }
    assert_eq!(world.placed(), 1);
}

#[tokio::test]
async fn wrong_requests_are_answered_as_the_service_would_and_not_sent() {
    let world = World::new(Sandbox::builder()).await;
    let (input, method, path) =
        ((400, "Input validation failed"), (405, "Method not allowed"), (404, "Resource not found"));
    for (line, form, (status, msg)) in [
        ("POST /v2/api/oms/place-order HTTP/1.1", "qty=1", input),
        ("POST /v2/api/oms/place-order HTTP/1.1", "", input),
        ("PUT /v2/api/oms/modify-order HTTP/1.1", "qty=1", input),
        ("DELETE /v2/api/oms/cancel-order HTTP/1.1", "", method),
        ("DELETE /v2/api/oms/cancel-order?orderId= HTTP/1.1", "", method),
        ("PUT /v2/api/oms/place-order HTTP/1.1", FORM, method),
        ("PATCH /v2/api/oms/place-order HTTP/1.1", FORM, method),
        ("DELETE /v2/api/oms/place-order HTTP/1.1", "", method),
        ("DELETE /v2/api/oms/place-order?orderId=7 HTTP/1.1", "", method),
        ("DELETE /v2/api/oms/orders HTTP/1.1", "", method),
        ("POST /v2/api/oms/orders HTTP/1.1", "a=1", method),
        ("GET / HTTP/1.1", "", path),
        ("GET /v2 HTTP/1.1", "", path),
    ] {
        let answer = world.ask(&world.request(line, &[], form)).await;
        assert_eq!(answer.status, status, "{line} {answer:?}");
        assert!(answer.body.contains(msg), "{answer:?}");
        assert_eq!(answer.header("allow").is_some(), status == 405, "{line} {answer:?}");
    }
    assert_eq!(world.arrivals(), 0);
    let unknown = world.ask(&world.request("GET /v2/api/never/heard/of HTTP/1.1", &[], "")).await;
    assert_eq!((unknown.status, world.arrivals()), (404, 1), "the service's own word");
}
