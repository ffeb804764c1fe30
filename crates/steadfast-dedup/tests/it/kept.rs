//! Calls that are kept: neither polled to their end nor dropped.

use std::{pin::pin, time::Duration};

use steadfast_dedup::OrderEvent;
use tokio::time::{sleep, timeout};

use crate::{
    gateway::{ack, gw504},
    rig::{ORDER, Rig, Told},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[tokio::test(start_paused = true)]
async fn o15_the_answer_to_a_kept_call_is_read_without_it() {
    let rig = Rig::new();
    rig.gateway.will([ack().answered_after(s(5))]);
    let mut kept = pin!(rig.place("a", ORDER));
    timeout(s(3), &mut kept).await.unwrap_err();
    assert_eq!((rig.gateway.posts(), rig.tracker.in_flight()), (1, 1));
    sleep(s(30)).await;
    assert_eq!(rig.tracker.in_flight(), 0);
    assert!(rig.events().iter().any(|event| matches!(event, OrderEvent::PlacedUnheard { .. })));
    assert_eq!(kept.await, Told::Placed("o1".into()), "a later poll is told");
    rig.audit();
}

// Regression: the other order ended as unresolved, because the kept one stayed in flight.
#[tokio::test(start_paused = true)]
async fn o15_a_kept_call_does_not_keep_another_order_in_doubt() {
    let rig = Rig::new();
    rig.gateway.will([gw504().placed().answered_after(s(5)), gw504()]);
    let mut kept = pin!(rig.place("a", ORDER));
    timeout(s(3), &mut kept).await.unwrap_err();
    assert_eq!(rig.place("b", ORDER).await, Told::Resent("o2".into()));
    assert_eq!(kept.await, Told::Recovered("o1".into()));
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn o15_a_shutdown_ends_a_kept_call_whose_order_has_not_left() {
    let rig = Rig::new();
    rig.between.queue(s(300), s(0));
    let mut kept = pin!(rig.place("a", ORDER));
    timeout(s(3), &mut kept).await.unwrap_err();
    timeout(s(20), rig.tracker.shutdown()).await.expect("it does not wait for polls");
    assert_eq!(kept.await, Told::NotSent("order is no longer wanted".into()));
    assert_eq!(rig.gateway.posts(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_a_call_that_is_polled() {
    let rig = Rig::new();
    rig.between.queue(s(60), s(0));
    let polled = rig.start("a", ORDER);
    sleep(s(1)).await;
    rig.tracker.shutdown().await;
    assert_eq!(polled.await.unwrap(), Told::Placed("o1".into()));
}

#[tokio::test(start_paused = true)]
async fn a_polled_call_may_wait_long_and_is_sent_again() {
    let rig = Rig::new();
    rig.gateway.will([gw504().answered_after(s(25))]);
    assert_eq!(rig.place("a", ORDER).await, Told::Resent("o1".into()));
    rig.audit();
}
