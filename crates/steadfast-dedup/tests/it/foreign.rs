//! F. Foreign orders, and S88.

use std::time::Duration;

use steadfast_dedup::{AccountMode, OrderEvent, Settings};
use tokio::time::sleep;

use crate::{
    gateway::{Place, ReadReply, Reply, ack, gw504, read},
    rig::{ORDER, Rig, Told, order},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn shared() -> Rig {
    Rig::with(Settings::default().account_mode(AccountMode::Shared))
}

/// An order whose search reads the list, and which is no rival of the others.
fn other() -> String {
    ORDER.replace("INFY", "TCS")
}

async fn with_a_foreign_twin(rig: &Rig, place: Place, twin: &str) -> Told {
    rig.gateway.will([place.answered_after(s(1))]);
    let a = rig.start("a", ORDER);
    sleep(Duration::from_millis(500)).await;
    rig.gateway.foreign(twin, |_| {});
    a.await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn s70_foreign_twin_ours_lost() {
    let rig = Rig::new();
    let told = with_a_foreign_twin(&rig, gw504(), ORDER).await;
    assert_eq!(told, Told::Recovered("o1".into()), "the price of an exclusive account that is not");
    assert_eq!(rig.gateway.posts(), 1);

    let rig = shared();
    let told = with_a_foreign_twin(&rig, gw504(), ORDER).await;
    assert_eq!(told, Told::Unresolved("ambiguous_owner", vec!["o1".into()], 504));
    assert_eq!(rig.gateway.posts(), 1);
}

#[tokio::test(start_paused = true)]
async fn s71_foreign_twin_ours_placed() {
    let rig = Rig::new();
    let told = with_a_foreign_twin(&rig, gw504().placed(), ORDER).await;
    assert_eq!(told, Told::Recovered("o1".into()));
    let excess: Vec<_> =
        rig.events().into_iter().filter(|event| matches!(event, OrderEvent::Excess { .. })).collect();
    assert_eq!(excess.len(), 1);
    assert_eq!(rig.flagged(), ["o2"]);

    let rig = shared();
    let told = with_a_foreign_twin(&rig, gw504().placed(), ORDER).await;
    assert_eq!(told, Told::Unresolved("ambiguous_owner", vec!["o1".into(), "o2".into()], 504));
    assert_eq!(rig.gateway.posts(), 1);
}

#[tokio::test(start_paused = true)]
async fn s72_foreign_other_qty() {
    let rig = Rig::new();
    let told = with_a_foreign_twin(&rig, gw504(), &order(3)).await;
    assert_eq!(told, Told::Unresolved("near_match", vec!["o1".into()], 504));
    assert_eq!(rig.gateway.posts(), 1);
}

#[tokio::test(start_paused = true)]
async fn s88_gateway_double_forward() {
    let rig = Rig::new();
    rig.gateway.will([Place { copies: 2, ..ack() }, gw504().placed()]);
    assert_eq!(rig.place("a", ORDER).await, Told::Placed("o1".into()));
    // Nothing was in doubt, so there is no read; the next read notices.
    assert_eq!(rig.place("b", &order(3)).await, Told::Recovered("o3".into()));
    assert_eq!(rig.flagged(), ["o2"]);
    rig.audit();
}

/// Regression: the order of a wrong answer was reported as one too many before it turned out to be its own.
#[tokio::test(start_paused = true)]
async fn o06_an_order_that_may_be_an_acknowledged_one_is_not_one_too_many() {
    let rig = Rig::new();
    rig.gateway.will([ack().reply(Reply::AckId("ghost")), gw504().placed_after(s(3))]);
    assert_eq!(rig.place("a", ORDER).await, Told::Placed("ghost".into()));
    // The list is read for another order, and shows the first one under an identifier that no answer named.
    assert_eq!(rig.place("b", &other()).await, Told::Recovered("o2".into()));
    sleep(s(200)).await;
    assert_eq!(rig.flagged(), [""; 0]);
    let is_found = |event: &OrderEvent| matches!(event, OrderEvent::Recovered { intent, order_id, .. } if intent.0 == 0 && order_id == "o1");
    assert!(rig.events().iter().any(is_found), "{:?}", rig.events());
    rig.check();
}

#[tokio::test(start_paused = true)]
async fn o06_an_order_too_many_is_told_once_the_acknowledged_one_is_listed() {
    let rig = Rig::new();
    rig.gateway.will([Place { lag: s(5), ..ack() }, gw504().placed_after(s(3))]);
    assert_eq!(rig.place("a", ORDER).await, Told::Placed("o1".into()));
    assert_eq!(rig.gateway.foreign(ORDER, |_| {}), "o2");
    assert_eq!(rig.place("b", &other()).await, Told::Recovered("o3".into()));
    assert_eq!(rig.flagged(), [""; 0], "it may be the first one's");
    sleep(s(20)).await;
    assert_eq!(rig.flagged(), ["o2"]);
    rig.audit();
}

/// A report that is held back is made before the process may end, although no list is read any more.
#[tokio::test(start_paused = true)]
async fn o06_a_shutdown_tells_of_an_order_too_many_that_was_held_back() {
    let rig = Rig::new();
    rig.gateway.will([Place { lag: s(5), ..ack() }, gw504().placed_after(s(3))]);
    assert_eq!(rig.place("a", ORDER).await, Told::Placed("o1".into()));
    rig.gateway.foreign(ORDER, |_| {});
    rig.place("b", &other()).await;
    rig.gateway.always(read(ReadReply::Http(503)));
    rig.tracker.shutdown().await;
    assert_eq!(rig.flagged(), ["o2"]);
}
