//! Tests orders in flight or waiting while the trading day changes.

use std::time::Duration;

use steadfast_dedup::KeyPolicy;
use tokio::time::{sleep, timeout};

use crate::{
    gateway::{ack, gw504},
    policies::{day_with, unresolved},
    rig::{ORDER, Rig, Told, order},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// It left yesterday and takes effect today: until its answer is there, a listed order may be its own.
#[tokio::test(start_paused = true)]
async fn an_order_in_flight_since_yesterday_may_own_what_todays_twin_sees() {
    let rig = Rig::on(day_with(s(100)));
    rig.place("warm", &order(3)).await;
    sleep(s(98)).await;
    rig.gateway.will([gw504().placed_after(s(6)).answered_after(s(30)), gw504()]);
    let yesterdays = rig.start("a", ORDER);
    sleep(s(4)).await;
    let todays = rig.start("b", ORDER);
    sleep(s(25)).await;
    assert!(!yesterdays.is_finished() && !todays.is_finished());
    assert_eq!(yesterdays.await.unwrap(), unresolved("epoch_changed", &["o1", "o2"]));
    todays.await.unwrap();
    assert_eq!(rig.gateway.posts(), 3, "the twin is not sent again");
    rig.audit();
}

/// The line of waiting orders is the same after midnight as before.
#[tokio::test(start_paused = true)]
async fn who_waits_in_line_at_midnight_keeps_his_place() {
    let rig = Rig::on(day_with(s(100)).key_policy(KeyPolicy::Serialize));
    sleep(s(97)).await;
    rig.gateway.will([ack().answered_after(s(8)), ack().answered_after(s(2)), ack()]);
    let first = rig.start("a", ORDER);
    sleep(s(1)).await;
    let second = rig.start("b", ORDER);
    sleep(s(4)).await;
    let third = rig.start("c", ORDER);
    assert_eq!(first.await.unwrap(), Told::Placed("o1".into()));
    let told = timeout(s(60), async { (second.await.unwrap(), third.await.unwrap()) }).await.unwrap();
    assert_eq!(told, (Told::Placed("o2".into()), Told::Placed("o3".into())));
}
