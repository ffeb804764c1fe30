//! Tests lists with spellings of their own for instruments (assumption A4).

use std::time::Duration;

use serde_json::{Map, Value};
use steadfast_call::{Call, ext};
use steadfast_dedup::{AccountMode, Settings};
use tokio::time::sleep;

use crate::{
    gateway::{Place, ack, gw504, http},
    rig::{ORDER, Rig, Told, order},
};

const OTHER: &str =
    "symId=EQT_TCS_EQ_NSE&qty=10&side=buy&type=limit&product=delivery&validity=day&limitPrice=100";

fn respelled(record: &mut Map<String, Value>) {
    record.insert("symId".into(), "INFY-EQ".into());
}

fn lost(apply: bool) -> Place {
    if apply { gw504().placed().edit(respelled) } else { gw504() }
}

/// Regression: the first order in doubt was sent twice: it was listed under a name that none of our orders had.
#[tokio::test(start_paused = true)]
async fn o09_the_first_order_in_doubt_is_not_sent_again_if_a_strange_one_is_listed() {
    let rig = Rig::new();
    rig.gateway.will([lost(true)]);
    let told = rig.place("a", ORDER).await;
    assert_eq!(told, Told::Unresolved("near_match", vec!["o1".into()], 504));
    assert_eq!(rig.gateway.posts(), 1);
}

/// Regression: the name of a refused order was repeated, and each stranger was a candidate twice.
#[tokio::test(start_paused = true)]
async fn o09_a_strange_order_is_a_candidate_once() {
    let rig = Rig::new();
    rig.between.repeats_nothing();
    rig.gateway.will([lost(true), http(429, "Too many requests")]);
    let call = rig.start("a", ORDER);
    sleep(Duration::from_secs(1)).await;
    let named = || {
        let mut request = rig.request("n", &ORDER.replace("EQT_INFY", "EQT_SBIN"));
        Call::of_mut(request.extensions_mut()).set_intent(ext::IntentId::new("n"));
        request
    };
    assert_eq!(rig.send(named()).await, Told::Answer(429));
    sleep(Duration::from_secs(3)).await;
    rig.send(named()).await;
    assert_eq!(call.await.unwrap(), Told::Unresolved("near_match", vec!["o1".into()], 504));
}

/// A recognised instrument proves nothing about another one.
#[tokio::test(start_paused = true)]
async fn o09_one_instrument_that_is_recognised_does_not_speak_for_another() {
    let rig = Rig::new();
    assert_eq!(rig.place("tcs", OTHER).await, Told::Placed("o1".into()));
    sleep(Duration::from_secs(60)).await;
    rig.gateway.will([lost(true)]);
    let told = rig.place("a", ORDER).await;
    assert_eq!(told, Told::Unresolved("near_match", vec!["o2".into()], 504));
    assert_eq!(rig.gateway.posts(), 2);
}

#[tokio::test(start_paused = true)]
async fn o09_a_list_that_has_shown_the_instrument_proves_its_absence_beside_strange_orders() {
    let rig = Rig::new();
    assert_eq!(rig.place("warm", &order(3)).await, Told::Placed("o1".into()));
    sleep(Duration::from_secs(60)).await;
    rig.gateway.will([lost(false)]);
    let call = rig.start("a", ORDER);
    sleep(Duration::from_secs(1)).await;
    rig.gateway.foreign(OTHER, |_| {});
    assert_eq!(call.await.unwrap(), Told::Resent("o3".into()));
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn o09_what_was_listed_before_or_is_ours_vetoes_nothing() {
    let rig = Rig::new();
    rig.gateway.foreign(OTHER, respelled);
    rig.gateway.will([lost(false), ack().answered_after(Duration::from_secs(2))]);
    let (a, b) = (rig.start("a", ORDER), rig.start("b", &OTHER.replace("buy", "sell")));
    assert_eq!(b.await.unwrap(), Told::Placed("o2".into()));
    assert_eq!(a.await.unwrap(), Told::Resent("o3".into()));
    rig.audit();
}

/// In a shared account others place orders of any instrument.
#[tokio::test(start_paused = true)]
async fn o09_in_a_shared_account_strange_orders_are_other_peoples() {
    let rig = Rig::with(Settings::default().account_mode(AccountMode::Shared));
    rig.gateway.will([lost(false)]);
    let call = rig.start("a", ORDER);
    sleep(Duration::from_secs(1)).await;
    rig.gateway.foreign(OTHER, |_| {});
    assert_eq!(call.await.unwrap(), Told::Resent("o2".into()));
    rig.audit();
}
