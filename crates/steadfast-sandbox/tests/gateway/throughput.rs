//! Measures how many requests a second the in-process gateway answers on one core.
//!
//! A debug build only has to be usable. The figures are from
//! `cargo test --release -p steadfast-sandbox --test gateway throughput -- --nocapture --test-threads 1`.
#![expect(
    clippy::disallowed_types,
    reason = "what is measured is real time, which tokio's clock does not show here"
)]

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use steadfast_sandbox::{Gateway, Sandbox};
use tower::ServiceExt;

use crate::world::{MARKET, World};

/// The target of a release build on one core.
const TARGET: f64 = 20_000.0;
/// The minimum, also for a debug build on a busy machine.
const FLOOR: f64 = if cfg!(debug_assertions) { 300.0 } else { 20_000.0 };
const REQUESTS: u32 = if cfg!(debug_assertions) { 4_000 } else { 200_000 };

fn order(world: &World) -> Request<Full<Bytes>> {
    Request::post("http://sandbox.local/v2/api/oms/place-order")
        .header("authorization", format!("Bearer {}:{}", world.user.api_key, world.user.access_token))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(MARKET.into())
        .expect("a request")
}

fn list(world: &World) -> Request<Full<Bytes>> {
    Request::get("http://sandbox.local/v2/api/oms/orders")
        .header("authorization", format!("Bearer {}:{}", world.user.api_key, world.user.access_token))
        .body(Full::default())
        .expect("a request")
}

/// Sends one request and reads its answer to the end.
async fn status(gateway: &Gateway, request: Request<Full<Bytes>>) -> u16 {
    let answer = gateway.clone().oneshot(request).await.expect("an answer");
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.expect("a body").to_bytes();
    assert!(!body.is_empty());
    status
}

#[expect(clippy::print_stdout, reason = "the figure is what the test is for")]
fn report(case: &str, requests: u32, took: Duration) {
    let rate = f64::from(requests) / took.as_secs_f64();
    let missed = if cfg!(debug_assertions) || rate >= TARGET { "" } else { ", which misses the target" };
    println!("{case}: {requests} requests, {rate:.0} a second{missed}");
    assert!(rate >= FLOOR, "{case}: {rate:.0} requests a second");
}

/// Sends four orders and a list in turn, paced in virtual time so that every zone admits them.
///
/// A list costs as much as its orders, so the book is emptied every hundred requests to stay small.
#[tokio::test(start_paused = true)]
async fn requests_that_are_admitted() {
    let world = World::new();
    let gateway = world.sandbox.gateway();
    let began = Instant::now();
    for number in 0..REQUESTS {
        if number % 100 == 0 {
            world.sandbox.reset();
        }
        world.pass(Duration::from_millis(120));
        let request = if number % 5 == 4 { list(&world) } else { order(&world) };
        assert_eq!(status(&gateway, request).await, 200);
    }
    report("four orders and a list", REQUESTS, began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn orders_that_are_admitted() {
    let world = World::new();
    let gateway = world.sandbox.gateway();
    let began = Instant::now();
    for _ in 0..REQUESTS {
        world.pass(Duration::from_millis(100));
        assert_eq!(status(&gateway, order(&world)).await, 200);
    }
    report("orders alone", REQUESTS, began.elapsed());
}

/// Sends without pause: ten orders a second pass, all others are refused.
#[tokio::test(start_paused = true)]
async fn requests_that_are_mostly_refused() {
    let world = World::new();
    let gateway = world.sandbox.gateway();
    let (mut refused, began) = (0, Instant::now());
    for number in 0..REQUESTS {
        world.pass(Duration::from_millis(1));
        let request = if number % 2 == 0 { order(&world) } else { list(&world) };
        if number % 1_000 == 0 {
            world.sandbox.reset();
        }
        refused += u32::from(status(&gateway, request).await == 429);
    }
    assert!(refused > REQUESTS / 10 * 9, "{refused} of {REQUESTS}");
    report("mostly 429", REQUESTS, began.elapsed());
}

/// Gives every fault a small rate, so that the plan draws for each request.
#[tokio::test(start_paused = true)]
async fn requests_with_faults() {
    let mut builder = Sandbox::builder();
    for fault in steadfast_sandbox::Fault::ALL.iter().filter(|fault| fault.as_str().starts_with("placement"))
    {
        builder = builder.fault(fault.as_str(), 0.01).expect("a fault");
    }
    let world = World::of(builder);
    let gateway = world.sandbox.gateway();
    let began = Instant::now();
    for _ in 0..REQUESTS {
        world.pass(Duration::from_millis(100));
        if let Ok(answer) = gateway.clone().oneshot(order(&world)).await {
            // A body may break off; that is one of the faults.
            let _ = answer.into_body().collect().await;
        }
    }
    report("orders with faults", REQUESTS, began.elapsed());
}
