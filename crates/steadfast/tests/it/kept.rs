//! A call that is polled until its order has left, and then kept: neither polled nor dropped.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use steadfast::{Access, Client, Placed};
use steadfast_sandbox::SandboxBuilder;
use tokio::{
    task::yield_now,
    time::{advance, pause, resume, sleep, timeout},
};

use crate::{
    served::{Served, serve},
    world::{SECOND, order, script},
};

async fn served(sandbox: SandboxBuilder) -> (Served, Client) {
    let served = serve(sandbox.build().unwrap()).await;
    let facts = served.facts.clone();
    let client = served.builder(Access::token(facts.api_key, facts.access_token).unwrap()).build().unwrap();
    (served, client)
}

/// Lets time pass without waiting for it. Sockets go on in their own time.
async fn pass(time: Duration) {
    pause();
    advance(time).await;
    resume();
    sleep(Duration::from_millis(50)).await;
}

/// Keeps a call while the client shuts down, and returns its result and the number of orders that exist.
async fn kept_over_a_shutdown(sandbox: SandboxBuilder) -> (Placed, usize) {
    let (served, client) = served(sandbox).await;
    let order = order("EQT_INFY_EQ_NSE");
    let mut kept = pin!(client.place_order(&order));
    // Not polled again once its order has left.
    while client.tracker().in_flight() == 0 {
        let is_pending = poll_fn(|cx| Poll::Ready(kept.as_mut().poll(cx).is_pending())).await;
        assert!(is_pending, "its answer takes longer");
        yield_now().await;
    }
    let shutdown = tokio::spawn({
        let client = client.clone();
        async move { client.shutdown().await }
    });
    sleep(Duration::from_millis(50)).await;
    for _ in 0..12 {
        pass(5 * SECOND).await;
    }
    timeout(10 * SECOND, shutdown).await.expect("a shutdown does not wait for polls").unwrap();
    assert_eq!((client.tracker().in_flight(), client.tracker().in_doubt()), (0, 0));
    let placed = timeout(10 * SECOND, kept).await.expect("the result is there").unwrap();
    (placed, served.sandbox.state().orders.len())
}

#[tokio::test]
async fn o15_an_answer_that_a_kept_call_does_not_read_is_not_lost() {
    let (placed, orders) = kept_over_a_shutdown(script("")).await;
    assert_eq!((placed.resolution, orders), (None, 1));
}

#[tokio::test]
async fn o15_an_order_of_a_kept_call_is_looked_for_if_its_answer_is_lost() {
    let lost = script("[[fault]]\nname = 'placement.reset-applied'\nnth = 1");
    let (placed, orders) = kept_over_a_shutdown(lost).await;
    assert!(placed.resolution.is_some(), "{placed:?}");
    assert_eq!(orders, 1);
}
