use std::io;

use super::{list, order, request, started};
use crate::world::{SCRIP_MASTER, World};

#[tokio::test]
async fn a_reset_arrives_as_one_and_not_as_an_end() {
    for (name, orders) in [
        ("connection.reset-before", 0),
        ("connection.reset-after", 1),
        ("placement.reset-applied", 1),
        ("placement.reset-not-applied", 0),
    ] {
        let (world, server) =
            started(World::with_script(&format!("[[fault]]\nname = '{name}'\nnth = 1"))).await;
        let mut wire = server.connect().await;
        wire.send(order(&world)).await;
        let error = wire.response().await.expect_err(name);
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{name}: {error}");
        assert_eq!(world.orders(), orders, "{name}");
        // Only that connection was reset, not the server.
        assert_eq!(server.ask(&list(&world)).await.status, 200, "{name}");
        server.stop().await;
    }
}

#[tokio::test]
async fn a_reset_of_a_used_connection_takes_the_requests_behind_it_along() {
    let script = "[[fault]]\nname = 'placement.reset-applied'\nnth = 2";
    let (world, server) = started(World::with_script(script)).await;
    let mut wire = server.connect().await;
    wire.send(order(&world)).await;
    assert_eq!(wire.response().await.expect("an answer").status, 200);
    wire.send([order(&world), order(&world), order(&world)].concat()).await;
    let error = wire.response().await.expect_err("the second order's answer");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{error}");
    assert_eq!(world.orders(), 2, "the third and fourth were never read");
    server.stop().await;
}

#[tokio::test]
async fn a_cut_body_ends_before_its_announced_length() {
    for name in ["placement.200-truncated", "connection.reset-mid-body"] {
        let (world, server) = started(World::with_fault(name, 1.0)).await;
        let mut wire = server.connect().await;
        wire.send(order(&world)).await;
        let answer = wire.response().await.expect("a head");
        let announced: usize =
            answer.header("content-length").and_then(|length| length.parse().ok()).expect("a length");
        assert!(answer.status == 200 && !answer.whole, "{name}");
        assert!(!answer.body.is_empty() && answer.body.len() < announced, "{name}: {}", answer.body.len());
        assert_eq!(world.orders(), 1, "{name}");
        server.stop().await;
    }
}

#[tokio::test]
async fn a_cut_stream_ends_without_its_last_chunk() {
    let (world, server) = started(World::with_fault("connection.reset-mid-body", 1.0)).await;
    let mut wire = server.connect().await;
    wire.send(request(&world, "GET", SCRIP_MASTER, "", "")).await;
    let answer = wire.response().await.expect("a head");
    assert_eq!((answer.status, answer.header("transfer-encoding")), (200, Some("chunked")));
    assert!(!answer.whole && answer.body.len() > 10_000, "{}", answer.body.len());
    assert!(serde_json::from_slice::<serde_json::Value>(&answer.body).is_err());
    server.stop().await;
}
