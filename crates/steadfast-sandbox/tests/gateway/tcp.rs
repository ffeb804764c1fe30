//! The server on real sockets, with a client that writes its bytes by hand.

mod crowds;
mod limits;
mod resets;
mod shutdown;
mod targets;

use crate::{
    wire::Server,
    world::{MARKET, ORDERS, World},
};

/// A sandbox and its server.
async fn started(world: World) -> (World, Server) {
    let server = Server::gateway(&world.sandbox).await;
    (world, server)
}

/// Returns a request below the base address with the first user's credentials.
fn request(world: &World, method: &str, path: &str, more: &str, body: &str) -> String {
    let (key, token, length) = (&world.user.api_key, &world.user.access_token, body.len());
    let content_type =
        if body.is_empty() { "" } else { "content-type: application/x-www-form-urlencoded\r\n" };
    format!(
        "{method} /v2{path} HTTP/1.1\r\nhost: sandbox\r\nauthorization: Bearer {key}:{token}\r\n\
         content-length: {length}\r\n{content_type}{more}\r\n{body}"
    )
}

fn list(world: &World) -> String {
    request(world, "GET", ORDERS, "", "")
}

fn order(world: &World) -> String {
    request(world, "POST", "/api/oms/place-order", "", MARKET)
}

/// Waits for something that the server does on its own.
async fn until(happened: impl Fn() -> bool) {
    while !happened() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_connection_is_kept_for_the_next_request() {
    let (world, server) = started(World::new()).await;
    let mut wire = server.connect().await;
    for placed in 1..=3 {
        wire.send(order(&world)).await;
        let answer = wire.response().await.expect("an answer");
        assert_eq!((answer.status, &answer.json()["s"]), (200, &"ok".into()));
        wire.send(list(&world)).await;
        let answer = wire.response().await.expect("an answer");
        assert_eq!(answer.json()["d"].as_array().map(Vec::len), Some(placed));
    }
    server.stop().await;
}

#[tokio::test]
async fn an_answer_has_its_date_its_type_and_its_length_once() {
    let (world, server) = started(World::new()).await;
    let answer = server.ask(&list(&world)).await;
    for (name, value) in [("content-type", "application/json"), ("content-length", "31")] {
        assert_eq!(answer.header(name), Some(value), "{}", answer.head);
    }
    assert_eq!(answer.json(), serde_json::json!({"s": "no-data", "msg": "no-data"}));
    for name in ["date:", "content-type:", "content-length:"] {
        assert_eq!(answer.head.matches(name).count(), 1, "{}", answer.head);
    }
    server.stop().await;
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_their_order() {
    let (world, server) = started(World::new()).await;
    let mut wire = server.connect().await;
    wire.send([order(&world), list(&world), request(&world, "GET", "/none", "", ""), order(&world)].concat())
        .await;
    let mut seen = Vec::new();
    for _ in 0..4 {
        let answer = wire.response().await.expect("an answer");
        seen.push((answer.status, answer.json()["d"].is_array()));
    }
    assert_eq!(seen, [(200, false), (200, true), (404, false), (200, false)]);
    server.stop().await;
}

#[tokio::test]
async fn a_connection_that_is_to_be_closed_is_closed() {
    let (world, server) = started(World::new()).await;
    let mut wire = server.connect().await;
    wire.send(request(&world, "GET", ORDERS, "connection: close\r\n", "")).await;
    assert_eq!(wire.response().await.expect("an answer").status, 200);
    assert_eq!(wire.end().await.expect("a regular end"), 0);

    let mut wire = server.connect().await;
    wire.send(list(&world).replace("HTTP/1.1", "HTTP/1.0")).await;
    assert_eq!(wire.response().await.expect("an answer").status, 200);
    assert_eq!(wire.end().await.expect("a regular end"), 0);
    server.stop().await;
}

#[tokio::test]
async fn a_request_may_come_in_single_bytes_and_its_body_in_chunks() {
    let (world, server) = started(World::new()).await;
    let mut wire = server.connect().await;
    for byte in list(&world).bytes() {
        wire.send([byte]).await;
    }
    assert_eq!(wire.response().await.expect("an answer").status, 200);

    let (first, second) = MARKET.split_at(17);
    let chunks = format!("{:x}\r\n{first}\r\n{:x};ext=1\r\n{second}\r\n0\r\n\r\n", first.len(), second.len());
    let head = order(&world).split("\r\n\r\n").next().expect("a head").to_owned();
    let head = head.replace(&format!("content-length: {}", MARKET.len()), "transfer-encoding: chunked");
    wire.send(format!("{head}\r\n\r\n{chunks}")).await;
    assert_eq!(wire.response().await.expect("an answer").status, 200);
    assert_eq!(world.truth().orders[0].sym_id, "EQT_INFY_EQ_NSE");
    server.stop().await;
}

#[tokio::test]
async fn a_client_is_told_to_go_on_before_it_sends_its_body() {
    let (world, server) = started(World::new()).await;
    let mut wire = server.connect().await;
    let order = request(&world, "POST", "/api/oms/place-order", "expect: 100-continue\r\n", MARKET);
    let (head, body) = order.split_at(order.len() - MARKET.len());
    wire.send(head).await;
    assert_eq!(wire.response().await.expect("a provisional answer").status, 100);
    wire.send(body).await;
    assert_eq!(wire.response().await.expect("an answer").status, 200);
    server.stop().await;
}

#[tokio::test]
async fn an_order_counts_although_its_sender_went_away() {
    let (world, server) = started(World::with_fault("placement.504-applied", 1.0)).await;
    let mut wire = server.connect().await;
    wire.send(order(&world)).await;
    until(|| world.truth().requests == 1).await;
    drop(wire);
    assert_eq!(world.orders(), 1);
    server.stop().await;
}

#[tokio::test]
async fn a_body_that_ends_too_early_places_nothing() {
    let (world, server) = started(World::new()).await;
    let mut wire = server.connect().await;
    let order = order(&world);
    wire.send(&order[..order.len() - 1]).await;
    wire.half_close().await;
    // The gateway's answer would have no reader, so an end and an error are both fine.
    let _ = wire.end().await;
    assert_eq!(world.orders(), 0);
    server.stop().await;
}

#[tokio::test]
async fn clients_are_told_apart_by_their_real_address() {
    let world = World::of(steadfast_sandbox::Sandbox::builder().whitelist([[127, 0, 0, 1].into()]));
    let (world, server) = started(world).await;
    for (ip, status) in [([127, 0, 0, 1], 200), ([127, 0, 0, 2], 401)] {
        let mut wire = server.connect_from(ip).await;
        wire.send(list(&world)).await;
        assert_eq!(wire.response().await.expect("an answer").status, status, "{ip:?}");
    }
    server.stop().await;
}
