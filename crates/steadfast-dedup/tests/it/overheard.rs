//! Tests lists that callers read.

use std::time::Duration;

use http_body::Body as _;
use http_body_util::BodyExt;
use steadfast_dedup::Settings;
use tokio::time::sleep;
use tower::ServiceExt;

use crate::{
    gateway::{Body, ReadReply, ack, gw504, read},
    policies::unresolved,
    rig::{ORDER, Rig, Told},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn own_list(query: &str) -> http::Request<Body> {
    http::Request::get(format!("https://gateway.example/v2/api/oms/orders{query}"))
        .body(Body::default())
        .unwrap()
}

async fn read_own_list(rig: &Rig) {
    let response = rig.service.clone().oneshot(own_list("")).await.unwrap();
    response.into_body().collect().await.unwrap();
}

/// Returns a rig with a placed order in doubt that none of our reads can find.
async fn unreadable() -> (Rig, tokio::task::JoinHandle<Told>) {
    let rig = Rig::new();
    rig.gateway.will([gw504().placed()]);
    rig.gateway.reads([read(ReadReply::List)]);
    rig.gateway.always(read(ReadReply::Lost));
    let call = rig.start("a", ORDER);
    sleep(s(3)).await;
    rig.gateway.always(read(ReadReply::List));
    rig.gateway.0.lock().reads.clear();
    (rig, call)
}

#[tokio::test(start_paused = true)]
async fn a_callers_own_list_finds_an_order() {
    for query in ["", "?symId=EQT_INFY_EQ_NSE"] {
        let (rig, call) = unreadable().await;
        let response = rig.service.clone().oneshot(own_list(query)).await.unwrap();
        let gets = rig.gateway.gets();
        assert!(response.body().size_hint().exact().is_some(), "the caller sees the body's own length");
        assert!(!response.body().is_end_stream());
        let mut body = response.into_body();
        let bytes = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(body.is_end_stream(), "the caller need not ask for more");
        let list: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(list["d"][0]["orderId"], "o1", "the bytes are the caller's");
        tokio::task::yield_now().await;
        assert_eq!(call.await.unwrap(), Told::Recovered("o1".into()));
        assert_eq!(rig.gateway.gets(), gets, "no read of ours found it");
        rig.audit();
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_the_caller_drops_unread_is_not_looked_at() {
    let (rig, call) = unreadable().await;
    rig.gateway.always(read(ReadReply::Lost));
    rig.gateway.reads([read(ReadReply::List)]);
    drop(rig.service.clone().oneshot(own_list("")).await.unwrap());
    sleep(s(1)).await;
    assert!(!call.is_finished());
    rig.gateway.always(read(ReadReply::List));
    assert_eq!(call.await.unwrap(), Told::Recovered("o1".into()));
}

#[tokio::test(start_paused = true)]
async fn a_list_beyond_the_memory_cap_passes_and_is_not_looked_at() {
    let rig = Rig::with(Settings::default().list_body_cap(100));
    rig.gateway.will([gw504().placed()]);
    let call = rig.start("a", ORDER);
    sleep(s(3)).await;
    let response = rig.service.clone().oneshot(own_list("")).await.unwrap();
    assert!(response.into_body().collect().await.unwrap().to_bytes().len() > 100);
    sleep(s(1)).await;
    assert!(!call.is_finished());
    assert_eq!(call.await.unwrap(), unresolved("unverifiable", &[]));
    assert_eq!(rig.gateway.posts(), 1);
}

/// Regression: an order that was held back until an acknowledged one is listed was never reported where the list that
/// showed it was a caller's: all identifiers in that list were known, so it was not looked at.
#[tokio::test(start_paused = true)]
async fn an_order_held_back_is_reported_once_a_callers_list_shows_the_acknowledged_one() {
    let ms = Duration::from_millis;
    let rig = Rig::new();
    rig.gateway.will([gw504().placed(), ack().placed_after(ms(300)).answered_after(ms(500))]);
    let lost = rig.start("a", ORDER);
    sleep(ms(50)).await;
    rig.gateway.foreign(ORDER, |_| {});
    let acknowledged = rig.start("b", ORDER);
    sleep(ms(100)).await;
    // It shows the lost order and the stranger's. Either may be the second one's, whose answer is awaited.
    read_own_list(&rig).await;
    assert_eq!(acknowledged.await.unwrap(), Told::Placed("o3".into()));
    assert_eq!(lost.await.unwrap(), Told::Recovered("o1".into()));
    assert_eq!(rig.flagged(), [""; 0], "it may be the acknowledged one, whose identifier is not listed yet");
    let reads = rig.gateway.gets();
    read_own_list(&rig).await;
    assert_eq!(rig.flagged(), ["o2"]);
    assert_eq!(rig.gateway.gets(), reads + 1, "the caller's");
    rig.check();
}
