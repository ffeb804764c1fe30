//! F. Foreign orders, and S88.

use std::time::Duration;

use steadfast_dedup::{AccountMode, OrderEvent, Settings};
use tokio::time::sleep;

use crate::{
    gateway::{Place, ack, gw504},
    rig::{ORDER, Rig, Told, order},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn shared() -> Rig {
    Rig::with(Settings::default().account_mode(AccountMode::Shared))
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
