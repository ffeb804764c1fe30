//! The rows of the error table, for orders.

use http::StatusCode;
use steadfast::spec::ERRORS;

use crate::{
    wire::{Wire, bare, error, ok},
    world::{HOUR, SECOND, World, faulty, order_with, totp_source},
};

const PLACE: &str = "/v2/api/oms/place-order";

/// Returns a service with an empty order list that gives this answer to the first order and a success to
/// the next.
fn answering_the_first_order(status: u16, msg: &'static str) -> World {
    let orders = std::sync::atomic::AtomicU32::new(0);
    World::over(Wire::answering(move |request| {
        if request.uri().path() != PLACE {
            return bare(r#"{"s":"no-data","msg":"no-data"}"#);
        }
        match orders.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => error(status, msg),
            _ => ok(r#"{"orderId":"1","msg":"placed"}"#),
        }
    }))
}

/// Returns the requests after the first order. Before it the list is read, so that older orders are known.
fn lines_after_the_first_order(world: &World) -> Vec<String> {
    let lines = world.wire.lines();
    let first = lines.iter().position(|line| line.starts_with("POST")).unwrap();
    lines[first + 1..].to_vec()
}

#[tokio::test(start_paused = true)]
async fn spec_7_client_an_order_refused_for_good_is_sent_once_and_looked_for_by_nobody() {
    for row in ERRORS.iter().filter(|row| !row.retry && row.status != StatusCode::UNAUTHORIZED) {
        let world = answering_the_first_order(row.status.as_u16(), row.msg.unwrap_or("x"));
        let refused = world.place(&order_with(&[])).await.unwrap_err();
        assert_eq!(refused.status(), row.status);
        assert_eq!(lines_after_the_first_order(&world), [""; 0], "{}", row.status);
    }
}

#[tokio::test(start_paused = true)]
async fn spec_7_client_an_order_in_doubt_is_looked_for_before_it_is_sent_again() {
    let doubtful: Vec<_> =
        ERRORS.iter().filter(|row| row.retry && row.status != StatusCode::TOO_MANY_REQUESTS).collect();
    assert_eq!(doubtful.len(), 5);
    for row in doubtful {
        let world = answering_the_first_order(row.status.as_u16(), row.msg.unwrap());
        let placed = world.place(&order_with(&[])).await.unwrap();
        assert_eq!(placed.order_id, "1");
        let lines = lines_after_the_first_order(&world);
        let (resend, reads) = lines.split_last().unwrap();
        assert_eq!(resend, "POST /api/oms/place-order 200", "{:?}", row.status);
        assert!(!reads.is_empty() && reads.iter().all(|line| line == "GET /api/oms/orders 200"), "{lines:?}");
        let sends = world.wire.to_path("/api/oms/place-order");
        let apart = sends[1].at - sends[0].at;
        assert!(apart >= 15 * SECOND, "sent again after {apart:?}, although the order may come late");
    }
}

#[tokio::test(start_paused = true)]
async fn spec_7_client_an_order_refused_with_429_is_sent_again_after_one_look() {
    let world = answering_the_first_order(429, "Too many requests");
    world.place(&order_with(&[])).await.unwrap();
    assert_eq!(
        lines_after_the_first_order(&world),
        ["GET /api/oms/orders 200", "POST /api/oms/place-order 200"]
    );
    let sends = world.wire.to_path("/api/oms/place-order");
    assert!(sends[1].at - sends[0].at >= SECOND);
}

#[tokio::test(start_paused = true)]
async fn spec_7_client_an_order_refused_with_401_is_sent_once_more_with_a_new_token() {
    let sandbox = faulty("[[fault]]\nname = 'auth.token-revoked'\nendpoint = 'place-order'\nnth = 1");
    let wire = Wire::to(&sandbox);
    let world = World::logging_in(wire.clone(), totp_source(&sandbox, &wire));
    world.orders().await;
    tokio::time::sleep(HOUR).await;
    let placed = world.place(&order_with(&[])).await.unwrap();
    let sends = wire.to_path("/api/oms/place-order");
    let statuses: Vec<u16> = sends.iter().map(|send| send.status).collect();
    assert_eq!(statuses, [401, 200], "{:?}", wire.lines());
    assert_ne!(sends[0].authorization(), sends[1].authorization());
    assert_eq!(wire.to_path("/api-gw/oauth/individual-token-v2").len(), 2);
    let orders = sandbox.state().orders;
    assert_eq!(orders.iter().map(|order| &order.order_id).collect::<Vec<_>>(), [&placed.order_id]);
}

#[tokio::test(start_paused = true)]
async fn spec_7_client_an_order_that_a_504_had_placed_is_found_and_told() {
    let orders = std::sync::atomic::AtomicU32::new(0);
    let listed = r#"[{"orderId":"77","symId":"EQT_INFY_EQ_NSE","qty":10,"side":"buy","type":"limit",
        "product":"delivery","validity":"day","limitPrice":100.05,"status":"open","legType":"main"}]"#;
    let world = World::over(Wire::answering(move |request| {
        match (request.uri().path(), orders.load(std::sync::atomic::Ordering::Relaxed)) {
            (PLACE, _) => {
                orders.store(1, std::sync::atomic::Ordering::Relaxed);
                error(504, "Gateway timedout")
            }
            (_, 0) => bare(r#"{"s":"no-data","msg":"no-data"}"#),
            _ => ok(listed),
        }
    }));
    let placed = world.place(&order_with(&[])).await.unwrap();
    assert_eq!(placed.order_id, "77");
    assert_eq!(world.wire.to_path("/api/oms/place-order").len(), 1);
}
