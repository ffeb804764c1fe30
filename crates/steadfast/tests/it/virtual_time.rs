//! Tests in tokio's paused time: minutes of waiting take no time.

use futures_util::{StreamExt, stream::FuturesUnordered};
use http::StatusCode;
use steadfast::{
    Operation,
    dedup::{Resolution, Unresolved},
    ext,
};
use steadfast_sandbox::Sandbox;
use steadfast_spec::Zone;
use steadfast_verify::probes::{accountings, densest_window};
use tokio::time::Instant;

use crate::world::{SECOND, World, order, script};

#[tokio::test(start_paused = true)]
async fn a_placed_order_that_was_answered_504_is_found_and_not_placed_again() {
    let world = World::new(script("[[fault]]\nname = 'placement.504-applied'\nnth = 1"));
    let response = world.send(&Operation::place_order(&order("EQT_INFY_EQ_NSE")), Some("a")).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let id = world.placed()["a"].clone();
    assert_eq!(id.len(), 1);
    let Some(Resolution::Recovered { order_id, .. }) = response.extensions().get() else {
        panic!("not recovered")
    };
    assert_eq!(*order_id, id[0]);
}

#[tokio::test(start_paused = true)]
async fn an_order_that_appears_late_is_waited_for() {
    let world = World::new(script("[[fault]]\nname = 'placement.504-late'\nnth = 1\nlate_by_ms = 8000"));
    let start = Instant::now();
    assert!(world.place("a").await.unwrap().is_some());
    assert_eq!(world.placed()["a"].len(), 1);
    assert!(start.elapsed() > 8 * SECOND && start.elapsed() < 16 * SECOND, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_order_that_was_not_placed_is_placed_once_after_its_absence_is_established() {
    let world = World::new(script("[[fault]]\nname = 'placement.504-not-applied'\nnth = 1"));
    let start = Instant::now();
    assert!(world.place("a").await.unwrap().is_some());
    assert_eq!(world.placed()["a"].len(), 1);
    assert!(start.elapsed() > 15 * SECOND, "resent after {:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn every_way_of_losing_the_answer_ends_with_one_order() {
    for fault in [
        "placement.500-applied",
        "placement.502-late",
        "placement.503-not-applied",
        "placement.400-internal-applied",
        "placement.400-internal-not-applied",
        "placement.200-truncated",
        "placement.200-no-order-id",
        "placement.reset-applied",
        "connection.reset-after",
        "connection.reset-mid-body",
    ] {
        let script = script(&format!("[[fault]]\nname = '{fault}'\nendpoint = 'place-order'\nnth = 1"));
        let world = World::new(script);
        let id = world.place("a").await.unwrap();
        assert_eq!(world.placed()["a"], id.into_iter().collect::<Vec<_>>(), "{fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_that_nobody_can_verify_stays_in_doubt_and_is_never_sent_again() {
    let world = World::new(
        Sandbox::builder().fault("placement.504-applied", 1.0).unwrap().fault("list.504", 1.0).unwrap(),
    );
    let response = world.send(&Operation::place_order(&order("EQT_INFY_EQ_NSE")), Some("a")).await.unwrap();
    assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT, "the original answer");
    assert!(response.extensions().get::<Unresolved>().is_some());
    assert!(response.extensions().get::<ext::DoNotRetry>().is_some());
    assert_eq!(world.placed()["a"].len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_burst_uses_the_quota_and_meets_no_429() {
    let world = World::new(Sandbox::builder());
    let intents: Vec<String> = (0..100).map(|i| i.to_string()).collect();
    let start = Instant::now();
    let mut calls: FuturesUnordered<_> = intents.iter().map(|intent| world.place(intent)).collect();
    while let Some(placed) = calls.next().await {
        assert!(placed.unwrap().is_some());
    }
    assert_eq!(world.refused(), 0);
    assert_eq!(world.placed().len(), 100);
    assert!(start.elapsed() < 11 * SECOND, "100 orders at 10 a second took {:?}", start.elapsed());
    let owner = world.sandbox.credentials().client_id;
    let counted = accountings(&world.sandbox.state(), Zone::PLACE_ORDER, &owner);
    assert_eq!((counted.len(), densest_window(&counted, SECOND)), (100, 10));
}

#[tokio::test(start_paused = true)]
async fn twins_in_a_storm_of_504s_end_with_one_order_for_each_caller_that_was_told_of_one() {
    let world = World::new(
        Sandbox::builder()
            .seed(11)
            .fault("placement.504-applied", 0.3)
            .unwrap()
            .fault("placement.504-late", 0.1)
            .unwrap()
            .fault("placement.504-not-applied", 0.1)
            .unwrap(),
    );
    let intents: Vec<String> = (0..60).map(|i| i.to_string()).collect();
    let mut calls: FuturesUnordered<_> = intents.iter().map(|intent| world.place(intent)).collect();
    let mut told = Vec::new();
    while let Some(placed) = calls.next().await {
        told.extend(placed.unwrap());
    }
    world.stack.known_orders().shutdown().await;
    // The twins are equal, so only their number matters. The resend of an order may be lost as well; its caller is
    // then told that it is in doubt.
    let mut orders: Vec<String> =
        world.sandbox.state().orders.into_iter().map(|order| order.order_id).collect();
    told.sort();
    orders.sort();
    assert_eq!(told, orders, "each order was told to exactly one caller");
    assert!((55..=60).contains(&orders.len()), "{} orders for 60 intents", orders.len());
    assert_eq!(world.refused(), 0);
    assert_eq!(world.stack.known_orders().in_doubt(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_read_is_repeated_after_1_2_4_and_8_seconds() {
    let world = World::new(Sandbox::builder().fault("list.504", 1.0).unwrap());
    let start = Instant::now();
    let response = world.send(&Operation::orders(), None).await.unwrap();
    assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(world.sandbox.state().requests, 5);
    assert!(start.elapsed() >= 15 * SECOND && start.elapsed() < 18 * SECOND, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_429_cools_the_zone_down_and_the_call_succeeds() {
    let world = World::new(script("[[fault]]\nname = 'quota.storm'\nendpoint = 'orders'\nnth = 1"));
    let start = Instant::now();
    let response = world.send(&Operation::orders(), None).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert!(start.elapsed() >= SECOND, "{:?}", start.elapsed());
}
