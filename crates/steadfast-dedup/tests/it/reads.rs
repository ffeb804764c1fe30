//! C. Read quality.

use std::time::Duration;

use serde_json::json;
use steadfast_dedup::{OrderEvent, OrdersScope, ResendPolicy, Settings};
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

use crate::{
    gateway::{Read, ReadReply, Reply, ack, gw504, read},
    rig::{ORDER, Rig, Told, order},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn unresolved(reason: &'static str) -> Told {
    Told::Unresolved(reason, vec![], 504)
}

/// Returns a rig with `o1` in its list, acknowledged and seen.
async fn with_a_listed_order() -> Rig {
    let rig = Rig::new();
    rig.gateway.foreign(&order(7), |_| {});
    assert_eq!(rig.place("first", &order(5)).await, Told::Placed("o2".into()));
    rig
}

#[tokio::test(start_paused = true)]
async fn s26_no_data_after_504_known_ids() {
    let rig = with_a_listed_order().await;
    rig.gateway.will([gw504()]);
    rig.gateway.always(read(ReadReply::Raw(json!({"s": "no-data", "msg": "no-data"}).to_string())));
    assert_eq!(rig.place("a", ORDER).await, unresolved("list_not_monotone"));
    assert_eq!(rig.gateway.posts(), 2);
    assert!(rig.events().contains(&OrderEvent::ListNotMonotone { order_id: "o1".into() }));
    rig.audit();
}

/// Watches for orders that were given up go in the slowest lane, and must not delay other reads.
#[tokio::test(start_paused = true)]
async fn a_look_that_can_wait_holds_up_no_search() {
    for ahead in [s(1), Duration::ZERO] {
        let rig = Rig::with(Settings::default().resend(ResendPolicy::Never));
        rig.gateway.will([gw504()]);
        assert_eq!(rig.place("given up", &order(5)).await, unresolved("not_observed"));
        rig.between.bulk_queue(s(25));
        // The first watch is due half a minute later; it waits already, or becomes due during the search.
        sleep(s(30) + ahead).await;
        let start = Instant::now();
        rig.gateway.will([gw504().placed()]);
        assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o1".into()));
        assert!(start.elapsed() < s(3), "{ahead:?}: {:?}", start.elapsed());
        rig.audit();
    }
}

#[tokio::test(start_paused = true)]
async fn a_look_that_was_turned_away_and_waits_again_holds_up_no_search() {
    let rig = Rig::with(Settings::default().resend(ResendPolicy::Never));
    rig.gateway.will([gw504()]);
    assert_eq!(rig.place("given up", &order(5)).await, unresolved("not_observed"));
    rig.between.bulk_repeats(s(25));
    rig.gateway.reads([read(ReadReply::Http(429))]);
    sleep(s(31)).await;
    let start = Instant::now();
    rig.gateway.will([gw504().placed()]);
    assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o1".into()));
    assert!(start.elapsed() < s(3), "{:?}", start.elapsed());
    rig.audit();
}

/// A second read beside it would cost a request, and its answer would be dropped.
#[tokio::test(start_paused = true)]
async fn a_look_that_has_left_is_waited_for() {
    let rig = Rig::with(Settings::default().resend(ResendPolicy::Never));
    rig.gateway.will([gw504()]);
    assert_eq!(rig.place("given up", &order(5)).await, unresolved("not_observed"));
    rig.gateway.reads([Read { before: Duration::ZERO, after: s(8), reply: ReadReply::List }]);
    sleep(s(31)).await;
    let (start, looks) = (Instant::now(), rig.gateway.gets());
    rig.gateway.will([gw504().placed()]);
    assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o1".into()));
    assert!(start.elapsed() > s(5), "{:?}", start.elapsed());
    assert_eq!(rig.gateway.gets(), looks + 1);
    rig.audit();
}

/// The baseline of a new session also comes before a read that can wait, and keeps no distance from one that never
/// left.
#[tokio::test(start_paused = true)]
async fn a_look_that_can_wait_holds_up_no_baseline() {
    for begun in [Duration::from_millis(50), Duration::from_millis(400), s(1)] {
        let rig = Rig::with(Settings::default().resend(ResendPolicy::Never));
        rig.gateway.will([gw504()]);
        assert_eq!(rig.place("given up", &order(5)).await, unresolved("not_observed"));
        rig.between.bulk_queue(s(25));
        sleep(s(30) + begun).await;
        rig.between.token(2);
        let start = Instant::now();
        assert_eq!(rig.place("a", ORDER).await, Told::Placed("o1".into()));
        assert!(start.elapsed() < Duration::from_millis(500), "{begun:?}: {:?}", start.elapsed());
        rig.audit();
    }
}

#[tokio::test(start_paused = true)]
async fn s27_no_data_empty_day() {
    let rig = Rig::new();
    rig.gateway.will([gw504()]);
    assert_eq!(rig.place("a", ORDER).await, Told::Resent("o1".into()));
    rig.audit();

    let rig = Rig::with(Settings::conservative());
    rig.gateway.will([gw504()]);
    assert_eq!(rig.place("a", ORDER).await, unresolved("no_positive_control"));
    assert_eq!(rig.gateway.posts(), 1);
}

#[tokio::test(start_paused = true)]
async fn s28_partial_list() {
    let rig = with_a_listed_order().await;
    rig.gateway.will([gw504()]);
    rig.gateway.always(read(ReadReply::Without(vec!["o1"])));
    assert_eq!(rig.place("a", ORDER).await, unresolved("list_not_monotone"));
    assert_eq!(rig.gateway.posts(), 2);
}

#[tokio::test(start_paused = true)]
async fn s29_truncated_body_limit() {
    let rig = Rig::with(Settings::default().list_body_cap(300));
    rig.gateway.will([gw504()]);
    for qty in 1..5 {
        rig.gateway.foreign(&order(qty), |_| {});
    }
    assert_eq!(rig.place("a", ORDER).await, unresolved("unverifiable"));
    assert_eq!(rig.gateway.posts(), 1);
}

#[tokio::test(start_paused = true)]
async fn s30_stale_replica() {
    let rig = Rig::new();
    assert_eq!(rig.place("first", &order(5)).await, Told::Placed("o1".into()));
    // Beyond the bound, and before the next read.
    sleep(Duration::from_millis(15_200)).await;
    // The replica lacks an acknowledgement from beyond the bound: until it has it, it proves nothing.
    rig.gateway.will([gw504()]);
    rig.gateway.reads((0..5).map(|_| read(ReadReply::Without(vec!["o1"]))));
    let start = tokio::time::Instant::now();
    assert_eq!(rig.place("a", ORDER).await, Told::Resent("o2".into()));
    assert!(start.elapsed() >= s(25), "two reads after the replica caught up, {:?}", start.elapsed());
    rig.audit();
}

/// Before the missing acknowledgement itself is contradicted.
#[tokio::test(start_paused = true)]
async fn s30_a_list_without_an_old_acknowledgement_proves_no_absence() {
    let rig = Rig::new();
    rig.gateway.will([gw504().answered_after(s(1)), ack()]);
    let a = rig.start("a", ORDER);
    sleep(Duration::from_millis(200)).await;
    assert_eq!(rig.place("b", &order(5)).await, Told::Placed("o1".into()));
    rig.gateway.always(read(ReadReply::Without(vec!["o1"])));
    let told = a.await.unwrap();
    assert!(matches!(told, Told::Unresolved(..)), "{told:?}");
    assert_eq!(rig.gateway.posts(), 2, "it is not sent again");
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s30_a_younger_acknowledgement_may_be_missing() {
    let rig = Rig::new();
    rig.gateway.will([gw504(), ack()]);
    let a = rig.start("a", ORDER);
    sleep(s(14)).await;
    assert_eq!(rig.place("b", &order(5)).await, Told::Placed("o1".into()));
    rig.gateway.always(read(ReadReply::Without(vec!["o1"])));
    let start = tokio::time::Instant::now();
    assert_eq!(a.await.unwrap(), Told::Resent("o2".into()));
    assert!(start.elapsed() <= s(2));
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s31_straddling_read_contains() {
    let rig = Rig::new();
    // A slow baseline, evaluated and answered only after the order was sent. It holds the order.
    rig.gateway.reads([Read { before: s(2), after: s(1), reply: ReadReply::List }]);
    rig.gateway.will([gw504().placed()]);
    let told = rig.place("a", ORDER).await;
    // Without a baseline in time its order is a candidate; it must never count as known before.
    assert_eq!(told, Told::Unresolved("no_baseline", vec!["o1".into()], 504));

    let rig = with_a_listed_order().await;
    rig.gateway.will([gw504().answered_after(s(1))]);
    let first = rig.start("first doubt", &order(20));
    sleep(Duration::from_millis(1_400)).await;
    // The read for the first order starts before the second is sent and ends after it is placed.
    rig.gateway.reads([Read { before: s(1), after: s(1), reply: ReadReply::List }]);
    sleep(Duration::from_millis(300)).await;
    rig.gateway.will([gw504().placed()]);
    assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o3".into()));
    assert_eq!(first.await.unwrap(), Told::Resent("o4".into()));
    rig.audit();
}

/// Regression: an order that left while its baseline was on the way ended as unresolved, although that list did not
/// show it.
#[tokio::test(start_paused = true)]
async fn s31_a_list_that_lacks_an_order_serves_as_its_baseline() {
    let rig = Rig::new();
    // Evaluated before the order is sent, and answered after it.
    rig.gateway.reads([Read { after: s(2), ..read(ReadReply::List) }]);
    rig.gateway.will([gw504().placed()]);
    assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o1".into()));
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s33_coalesced_read() {
    let rig = Rig::new();
    rig.gateway.will([gw504()]);
    rig.gateway.reads([read(ReadReply::List)]);
    rig.gateway.always(read(ReadReply::Aged));
    assert_eq!(rig.place("a", ORDER).await, unresolved("budget"));
    assert_eq!(rig.gateway.posts(), 1);
}

#[tokio::test(start_paused = true)]
async fn s34_verify_504() {
    let rig = Rig::new();
    rig.gateway.will([gw504().placed(), gw504()]);
    let fails = || (0..3).map(|_| read(ReadReply::Http(504)));
    rig.gateway.reads(std::iter::once(read(ReadReply::List)).chain(fails()));
    assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o1".into()));
    rig.gateway.reads(fails());
    assert_eq!(rig.place("b", ORDER).await, Told::Resent("o2".into()));
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s35_verify_429() {
    let rig = Rig::new();
    rig.gateway.will([gw504()]);
    rig.gateway.reads([read(ReadReply::List)]);
    rig.gateway.reads((0..5).map(|_| read(ReadReply::Http(429))));
    let start = tokio::time::Instant::now();
    assert_eq!(rig.place("a", ORDER).await, Told::Resent("o1".into()));
    assert!(start.elapsed() >= s(25), "two reads after the last failure: {:?}", start.elapsed());
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s36_verify_401_session_change() {
    for scope in [OrdersScope::Session, OrdersScope::Account] {
        let rig = Rig::with(Settings::default().orders_scope(scope));
        rig.gateway.will([gw504()]);
        let a = rig.start("a", ORDER);
        sleep(s(3)).await;
        rig.between.token(1);
        let told = match scope {
            OrdersScope::Session => unresolved("session_changed"),
            OrdersScope::Account => Told::Resent("o1".into()),
        };
        assert_eq!(a.await.unwrap(), told);
        rig.audit();
    }

    // Orders that another session lists count.
    let rig = Rig::new();
    rig.gateway.will([gw504().placed_after(s(5))]);
    let a = rig.start("a", ORDER);
    sleep(s(3)).await;
    rig.between.token(1);
    assert_eq!(a.await.unwrap(), Told::Recovered("o1".into()));
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s37_verify_403() {
    let rig = Rig::new();
    rig.gateway.will([gw504()]);
    rig.gateway.always(read(ReadReply::Http(403)));
    assert_eq!(rig.place("a", ORDER).await, unresolved("unverifiable"));
    assert_eq!(rig.gateway.posts(), 1);
}

#[tokio::test(start_paused = true)]
async fn s38_verify_budget() {
    let rig = Rig::new();
    rig.gateway.will([gw504()]);
    rig.gateway.always(read(ReadReply::Lost));
    let start = tokio::time::Instant::now();
    assert_eq!(rig.place("a", ORDER).await, unresolved("budget"));
    assert!(start.elapsed() >= s(105) && start.elapsed() < s(107));
    assert_eq!(rig.gateway.posts(), 1);
}

#[tokio::test(start_paused = true)]
async fn s39_dup_ids_in_list() {
    let rig = Rig::new();
    rig.gateway.will([gw504()]);
    let record = |status: &str| json!({"orderId": "x1", "symId": "EQT_INFY_EQ_NSE", "side": "buy", "qty": 10, "status": status});
    let list = json!({"s": "ok", "d": [record("open"), record("completed")]}).to_string();
    rig.gateway.reads([read(ReadReply::List)]);
    rig.gateway.always(read(ReadReply::Raw(list)));
    let told = rig.service_told("a", ORDER).await;
    assert_eq!(told, Told::Recovered("x1".into()));
    sleep(s(60)).await;
    assert_eq!(rig.flagged(), Vec::<String>::new(), "one order, listed twice, is not too many");
}

#[tokio::test(start_paused = true)]
async fn s41_s42_unknown_status_and_numeric_order_id() {
    let rig = Rig::new();
    rig.gateway.will([gw504().placed().edit(|record| {
        record.insert("status".into(), json!("trigger pending"));
        record.insert("orderId".into(), json!(4711));
    })]);
    assert_eq!(rig.service_told("a", ORDER).await, Told::Recovered("4711".into()));
}

#[tokio::test(start_paused = true)]
async fn s43_filtered_user_get() {
    let rig = Rig::new();
    rig.gateway.will([gw504().placed_after(s(14))]);
    rig.gateway.reads([read(ReadReply::List)]);
    rig.gateway.always(read(ReadReply::Lost));
    let a = rig.start("a", ORDER);
    sleep(s(16)).await;
    // The caller's own lists, filtered, lack the order after it had settled. They prove nothing.
    for _ in 0..3 {
        rig.gateway.reads([read(ReadReply::Without(vec!["o1"]))]);
        let request = http::Request::get("https://gateway.example/v2/api/oms/orders?status=rejected");
        let request = request.body(crate::gateway::Body::default()).unwrap();
        rig.service.clone().oneshot(request).await.unwrap();
    }
    assert!(!a.is_finished());
    rig.gateway.always(read(ReadReply::List));
    assert_eq!(a.await.unwrap(), Told::Recovered("o1".into()));
    assert_eq!(rig.gateway.posts(), 1);
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s44_open_only_list() {
    let rig = Rig::new();
    rig.gateway.always(read(ReadReply::OnlyOpen));
    rig.gateway.foreign(&order(7), |_| {});
    rig.gateway.will([ack(), gw504()]);
    rig.place("first", &order(5)).await;
    rig.gateway.set("o1", "status", json!("completed"));
    assert_eq!(rig.place("a", ORDER).await, unresolved("list_not_monotone"));
    assert_eq!(rig.gateway.posts(), 2);
    rig.gateway.will([gw504()]);
    assert_eq!(rig.place("b", ORDER).await, unresolved("list_not_monotone"), "for the whole session");
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_list_is_no_evidence() {
    let spoilt = [
        "",
        "<html>",
        "[]",
        r#"{"s":"ok"}"#,
        r#"{"s":"OK","d":[]}"#,
        r#"{"s":"ok","d":null}"#,
        r#"{"s":"ok","d":{}}"#,
        r#"{"s":"ok","d":[null]}"#,
        r#"{"s":"ok","d":[{"symId":"x"}]}"#,
        r#"{"s":"ok","d":[{"#,
        r#"{"s":"ok","d":[]} {"s":"ok","d":[]}"#,
        r#"{"s":"ok","d":[{"orderId":"7"}],"d":[]}"#,
        r#"{"s":"error","msg":"no-data"}"#,
        // Two answers in one: neither counts.
        r#"{"s":"no-data","msg":"no-data","d":[{"orderId":"7","symId":"EQT_INFY_EQ_NSE","side":"buy","qty":10}]}"#,
        r#"{"s":"ok","d":[{"orderId":"7","symId":"EQT_INFY_EQ_NSE","side":"buy","side":"sell","qty":10}]}"#,
    ];
    for body in spoilt {
        let rig = Rig::new();
        rig.gateway.will([gw504().reply(Reply::Http(504, "Gateway timedout"))]);
        rig.gateway.reads([read(ReadReply::List)]);
        rig.gateway.always(read(ReadReply::Raw(body.into())));
        assert_eq!(rig.place("a", ORDER).await, unresolved("unverifiable"), "{body}");
        assert_eq!(rig.gateway.posts(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn only_a_200_is_a_list() {
    for status in [201, 202, 203, 204, 206, 302, 304, 404, 500] {
        for body in [r#"{"s":"ok","d":[]}"#, r#"{"s":"no-data","msg":"no-data"}"#] {
            let rig = Rig::new();
            rig.gateway.will([gw504()]);
            rig.gateway.reads([read(ReadReply::List)]);
            rig.gateway.always(read(ReadReply::Answer(status, body.into())));
            assert_eq!(rig.place("a", ORDER).await, unresolved("budget"), "{status} {body}");
            assert_eq!(rig.gateway.posts(), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn o12_what_a_cache_calls_its_own_is_no_evidence() {
    for hit in ["HIT", "Hit from cloudfront", "TCP_MEM_HIT from edge", "MISS, HIT"] {
        let rig = Rig::new();
        rig.gateway.always(read(ReadReply::Cached(hit)));
        rig.gateway.will([gw504()]);
        let told = rig.place("a", ORDER).await;
        assert!(matches!(told, Told::Unresolved("budget", ..)), "{hit}: {told:?}");
        assert_eq!(rig.gateway.posts(), 1, "{hit}");
    }
    let rig = Rig::new();
    rig.gateway.always(read(ReadReply::Cached("Miss from cloudfront")));
    rig.gateway.will([gw504()]);
    assert_eq!(rig.place("a", ORDER).await, Told::Resent("o1".into()));
}

#[tokio::test(start_paused = true)]
async fn o12_every_read_asks_caches_to_stand_aside() {
    let rig = Rig::new();
    rig.gateway.will([gw504().placed()]);
    assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o1".into()));
    let book = rig.gateway.0.lock();
    assert_eq!(book.cache_controls, ["no-cache", "no-cache"]);
}
