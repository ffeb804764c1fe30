//! Attacks on the protocol. Each of them once gave a caller the wrong order, or sent one too many.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use http_body_util::BodyExt;
use serde_json::{Map, Value, json};
use steadfast_call::{BoxError, Call, ext};
use steadfast_dedup::{
    AccountMode, DedupLayer, GuardedBody, OrderEvent, OrderTracker, ResendPolicy, SendGuardLayer, Settings,
};
use tokio::time::{Instant, sleep};
use tower::{Layer, Service, ServiceExt};

use crate::{
    gateway::{Body, Gateway, Place, Read, ReadReply, ack, gw504, http, read},
    policies::{day_with, unresolved},
    rig::{ORDER, Rig, Told, order},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn named(rig: &Rig, intent: &str, form: &str) -> Request<Body> {
    let mut request = rig.request(intent, form);
    Call::of_mut(request.extensions_mut()).set_intent(ext::IntentId::new(intent));
    request
}

/// Returns the answer to a repeated call with the same name.
async fn asked_again(rig: &Rig, intent: &str, form: &str) -> Told {
    crate::rig::tell(rig.service.clone().oneshot(named(rig, intent, form)).await).await
}

fn without_prices(record: &mut Map<String, Value>) {
    record.remove("limitPrice");
}

/// Regression: legs of one order may share an identifier; the first one in the list hid the order that was asked for.
#[tokio::test(start_paused = true)]
async fn a_leg_does_not_hide_the_order_whose_id_it_shares() {
    let leg = |side: &str, leg: &str| json!({"orderId": "x1", "symId": "EQT_INFY_EQ_NSE", "side": side, "qty": 10, "legType": leg});
    let (main, stop, target) = (leg("buy", "main"), leg("sell", "stoploss"), leg("sell", "target"));
    let lists = [
        vec![vec![&stop, &target, &main]],
        vec![vec![&main, &stop, &target]],
        // The leg is listed some time before the order itself.
        vec![vec![&stop], vec![&stop, &main]],
    ];
    for lists in lists {
        let rig = Rig::new();
        rig.gateway.will([gw504()]);
        let raw = |list: &Vec<&Value>| ReadReply::Raw(json!({"s": "ok", "d": list}).to_string());
        rig.gateway.reads([read(ReadReply::List)]);
        rig.gateway.reads(lists.iter().map(|list| read(raw(list))));
        rig.gateway.always(read(raw(lists.last().unwrap())));
        assert_eq!(rig.service_told("a", ORDER).await, Told::Recovered("x1".into()));
        assert_eq!(rig.gateway.posts(), 1, "never sent again");
        sleep(s(60)).await;
        assert_eq!(rig.flagged(), Vec::<String>::new(), "its legs are not too many");
    }
}

/// An order that is placed, and listed under the identifier of the first one.
fn listed_as_the_first(place: Place) -> Place {
    place.placed().edit(|record| drop(record.insert("orderId".into(), json!("o1"))))
}

/// Regression: an order that was listed under another one's identifier, beside that one, was sent a second time.
#[tokio::test(start_paused = true)]
async fn an_order_that_is_listed_under_anothers_id_is_not_absent() {
    let lost = || listed_as_the_first(gw504());
    let refused = || listed_as_the_first(http(429, "Too many requests"));
    for (form, age) in [(order(3), 0), (order(3), 20), (ORDER.into(), 20), (ORDER.replace("buy", "sell"), 20)]
    {
        for (place, status) in [(lost(), 504), (refused(), 0)] {
            let rig = Rig::new();
            assert_eq!(rig.place("a", ORDER).await, Told::Placed("o1".into()));
            sleep(s(age)).await;
            rig.gateway.will([place]);
            let told = rig.place("b", &form).await;
            assert_eq!(told, Told::Unresolved("near_match", vec![], status), "{form} {age}");
            assert_eq!(rig.gateway.posts(), 2, "never sent again");
            // Both records were there before a later order, so neither is that one.
            rig.gateway.will([gw504()]);
            let later = rig.place("c", &ORDER.replace("INFY", "TCS")).await;
            assert_eq!(later, Told::Resent("o3".into()));
        }
    }
}

/// In a shared account a late order is a candidate too, and has no owner.
#[tokio::test(start_paused = true)]
async fn in_a_shared_account_nothing_is_adopted_late() {
    let settings = Settings::default().account_mode(AccountMode::Shared).resend(ResendPolicy::Never);
    let rig = Rig::with(settings);
    rig.gateway.will([gw504()]);
    assert_eq!(rig.send(named(&rig, "a", ORDER)).await, unresolved("not_observed", &[]));
    rig.gateway.foreign(ORDER, |_| {});
    sleep(s(120)).await;
    assert_eq!(rig.flagged(), ["o1"], "it is told, once");
    let told = asked_again(&rig, "a", ORDER).await;
    assert!(matches!(told, Told::Unresolved("not_observed", ..)), "{told:?}");
    rig.audit();
}

/// It may have been there before.
#[tokio::test(start_paused = true)]
async fn without_a_baseline_nothing_is_adopted_late() {
    let rig = Rig::new();
    rig.gateway.foreign(ORDER, |_| {});
    rig.gateway.always(read(ReadReply::Http(500)));
    rig.gateway.will([gw504()]);
    assert_eq!(rig.send(named(&rig, "a", ORDER)).await, unresolved("budget", &[]));
    rig.gateway.always(read(ReadReply::List));
    sleep(s(120)).await;
    assert_eq!(rig.flagged(), ["o1"]);
    let told = asked_again(&rig, "a", ORDER).await;
    assert!(matches!(told, Told::Unresolved("budget", ..)), "{told:?}");
    // Nothing is concluded about later orders: one that appears may still be the first.
    rig.gateway.will([gw504().placed()]);
    assert!(matches!(rig.place("b", ORDER).await, Told::Unresolved("tainted", ..)));
    rig.audit();
}

/// A record that matches two orders belongs to neither, even if it comes late.
#[tokio::test(start_paused = true)]
async fn a_late_record_that_two_orders_share_is_not_adopted() {
    let dear = ORDER.replace("limitPrice=100", "limitPrice=101");
    let rig = Rig::with(Settings::default().resend(ResendPolicy::Never));
    rig.gateway.will([gw504(), gw504().placed_after(s(40)).edit(without_prices)]);
    let a = rig.service.clone().oneshot(named(&rig, "a", ORDER));
    let b = rig.service.clone().oneshot(named(&rig, "b", &dear));
    let (a, b) = tokio::join!(a, b);
    drop((a, b));
    sleep(s(120)).await;
    assert_eq!(rig.flagged(), ["o1"]);
    for (intent, form) in [("a", ORDER), ("b", &dear)] {
        let told = asked_again(&rig, intent, form).await;
        assert!(matches!(told, Told::Unresolved("not_observed", ..)), "{intent}: {told:?}");
    }
    rig.audit();
}

/// After midnight the list is empty; the read that finds it so was asked for the day before.
#[tokio::test(start_paused = true)]
async fn a_read_that_ends_on_the_next_day_proves_nothing() {
    let rig = Rig::on(day_with(s(17)));
    rig.gateway.will([gw504()]);
    let reads = |count| (0..count).map(|_| read(ReadReply::List));
    // The baseline, four reads, and the one that decides.
    rig.gateway.reads(reads(5));
    rig.gateway.reads([Read { before: s(4), ..read(ReadReply::List) }]);
    assert_eq!(rig.place("a", ORDER).await, unresolved("epoch_changed", &[]));
    assert_eq!(rig.gateway.posts(), 1);
    rig.audit();
}

/// The resend waits in a queue between the verdict and the wire, and midnight passes meanwhile.
#[tokio::test(start_paused = true)]
async fn a_resend_that_was_granted_before_midnight_does_not_leave_after_it() {
    // It left before midnight was near: an order lost later is not granted a resend at all.
    let rig = Rig::over(
        Gateway::default(),
        day_with(s(660)).max_resend_age(s(3_600)).verification_budget(s(3_600)),
    );
    rig.between.queue(Duration::ZERO, s(700));
    rig.gateway.will([gw504()]);
    assert_eq!(rig.place("a", ORDER).await, unresolved("epoch_changed", &[]));
    assert_eq!(rig.gateway.posts(), 1);
    rig.audit();
}

/// An order acknowledged long ago must be in its session's list, even if other lists have shown it meanwhile.
#[tokio::test(start_paused = true)]
async fn an_acknowledged_order_is_missed_in_its_own_session() {
    let rig = Rig::new();
    assert_eq!(rig.place("first", &order(5)).await, Told::Placed("o1".into()));
    rig.between.token(1);
    assert_eq!(rig.place("second", &order(3)).await, Told::Placed("o2".into()));
    rig.between.token(0);
    // Beyond the bound, and before the next read.
    sleep(Duration::from_millis(15_200)).await;
    rig.gateway.will([gw504()]);
    rig.gateway.reads((0..5).map(|_| read(ReadReply::Without(vec!["o1"]))));
    let start = Instant::now();
    assert_eq!(rig.place("a", ORDER).await, Told::Resent("o3".into()));
    assert!(start.elapsed() >= s(25), "two reads after the list caught up: {:?}", start.elapsed());
    rig.audit();
}

/// The same for an order that a caller's own list had shown before its answer came.
#[tokio::test(start_paused = true)]
async fn an_order_that_was_overheard_and_then_acknowledged_is_missed() {
    let rig = Rig::new();
    rig.gateway.will([ack().answered_after(s(2))]);
    let first = rig.start("first", &order(5));
    sleep(s(1)).await;
    let own = Request::get("https://gateway.example/v2/api/oms/orders").body(Body::default()).unwrap();
    rig.service.clone().oneshot(own).await.unwrap().into_body().collect().await.unwrap();
    assert_eq!(first.await.unwrap(), Told::Placed("o1".into()));
    sleep(s(60)).await;
    rig.gateway.will([gw504()]);
    rig.gateway.reads((0..7).map(|_| read(ReadReply::Without(vec!["o1"]))));
    let start = Instant::now();
    assert_eq!(rig.place("a", ORDER).await, Told::Resent("o2".into()));
    assert!(start.elapsed() >= s(30), "two reads after the list caught up: {:?}", start.elapsed());
    rig.audit();
}

/// Two callers are gone. That one of their orders is found does not settle the other.
#[tokio::test(start_paused = true)]
async fn every_orphaned_twin_holds_a_repetition() {
    let rig = Rig::new();
    rig.gateway.will([gw504().placed(), gw504()]);
    let (a, b) = (rig.start("a", ORDER), rig.start("b", ORDER));
    sleep(Duration::from_millis(200)).await;
    for gone in [a, b] {
        gone.abort();
        assert!(gone.await.is_err());
    }
    let start = Instant::now();
    assert_eq!(rig.place("c", ORDER).await, Told::NotSent("the same order is in doubt already".into()));
    assert_eq!(start.elapsed(), s(5), "for five seconds in all");
    rig.tracker.shutdown().await;
    rig.audit();
}

/// The hold can be set shorter, but not longer than the default.
#[tokio::test(start_paused = true)]
async fn a_twin_is_held_as_long_as_is_set_and_never_longer() {
    for (set, held) in [(0, 0), (2, 2), (60, 5)] {
        let rig = Rig::with(Settings::new().duplicate_hold(s(set)));
        rig.gateway.will([gw504()]);
        let gone = rig.start("a", ORDER);
        sleep(s(1)).await;
        gone.abort();
        assert!(gone.await.is_err());
        let start = Instant::now();
        assert_eq!(
            rig.place("b", ORDER).await,
            Told::NotSent("the same order is in doubt already".into()),
            "{set} s"
        );
        assert_eq!(start.elapsed(), s(held), "{set} s");
    }
}

/// A cached copy may be of the day before.
#[tokio::test(start_paused = true)]
async fn a_callers_list_out_of_a_cache_is_not_looked_at() {
    let rig = Rig::new();
    rig.gateway.will([gw504().placed()]);
    rig.gateway.reads([read(ReadReply::List)]);
    rig.gateway.always(read(ReadReply::Lost));
    let call = rig.start("a", ORDER);
    sleep(s(3)).await;
    rig.gateway.reads([read(ReadReply::Aged)]);
    let own = Request::get("https://gateway.example/v2/api/oms/orders").body(Body::default()).unwrap();
    rig.service.clone().oneshot(own).await.unwrap().into_body().collect().await.unwrap();
    sleep(Duration::from_millis(100)).await;
    assert!(!call.is_finished());
    rig.gateway.always(read(ReadReply::List));
    assert_eq!(call.await.unwrap(), Told::Recovered("o1".into()));
}

/// A gateway where the list for the old token lacks orders placed with the new one.
#[derive(Clone)]
struct PerToken(Gateway);

impl Service<Request<GuardedBody<Body>>> for PerToken {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = <Gateway as Service<Request<GuardedBody<Body>>>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<GuardedBody<Body>>) -> Self::Future {
        if request.method() == http::Method::GET && request.headers()["authorization"] == "Bearer k:old" {
            self.0.reads([read(ReadReply::Without(vec!["o2"]))]);
        }
        self.0.call(request)
    }
}

/// Regression: without a layer that counts tokens the list was always read with the first order's token.
#[tokio::test(start_paused = true)]
async fn an_order_is_looked_for_with_the_token_it_was_sent_with() {
    let (tracker, gateway) = (OrderTracker::default(), Gateway::default());
    let guarded = SendGuardLayer::new(&tracker).layer(PerToken(gateway.clone()));
    let service = DedupLayer::new(&tracker).layer(guarded);
    let place = async |token: &str, form: &str| {
        let request = Request::post("https://gateway.example/v2/api/oms/place-order")
            .header("x-test-intent", token)
            .header("authorization", token)
            .body(Body::from(form.to_owned()))
            .unwrap();
        crate::rig::tell(service.clone().oneshot(request).await).await
    };
    assert_eq!(place("Bearer k:old", &order(3)).await, Told::Placed("o1".into()));
    gateway.will([gw504().placed(), gw504()]);
    assert_eq!(place("Bearer k:new", ORDER).await, Told::Recovered("o2".into()));
    // An order that the other token's list lacks is not absent: its own list is read, too.
    let form = order(4);
    let doubt = place("Bearer k:new", &form);
    let meanwhile = async {
        sleep(s(1)).await;
        place("Bearer k:old", &order(5)).await
    };
    let (doubt, _) = tokio::join!(doubt, meanwhile);
    assert!(matches!(doubt, Told::Unresolved("not_observed", ..)), "{doubt:?}");
    assert_eq!(gateway.posts(), 4, "nothing is sent again");
}

/// A list of another session in between does not change what this session's list must hold.
#[tokio::test(start_paused = true)]
async fn what_a_session_listed_must_be_in_its_next_list_whoever_read_between() {
    let rig = Rig::new();
    rig.gateway.foreign(&order(7), |_| {});
    assert_eq!(rig.place("first", &order(5)).await, Told::Placed("o2".into()));
    rig.between.token(1);
    assert_eq!(rig.place("second", &order(3)).await, Told::Placed("o3".into()));
    rig.between.token(0);
    rig.gateway.will([gw504()]);
    rig.gateway.always(read(ReadReply::Without(vec!["o1"])));
    assert_eq!(rig.place("a", ORDER).await, unresolved("list_not_monotone", &[]));
    assert_eq!(rig.gateway.posts(), 3);
}

/// Absent orders were sent again, and then lists turned out to lose orders.
#[tokio::test(start_paused = true)]
async fn o06_a_resend_by_lists_that_prove_less_later_is_told() {
    let doubled = |rig: &Rig| {
        let told = rig.events().into_iter().filter_map(|event| match event {
            OrderEvent::MayBeDoubled { intent, kept, .. } => Some((intent.0, kept)),
            _ => None,
        });
        told.collect::<Vec<_>>()
    };
    for (lacks, from) in [(Some("o1"), 20), (Some("o3"), 0), (None, 20)] {
        let rig = Rig::new();
        assert_eq!(rig.place("first", &order(5)).await, Told::Placed("o1".into()));
        rig.gateway.will([gw504()]);
        assert_eq!(rig.place("a", ORDER).await, Told::Resent("o2".into()));
        assert_eq!(rig.place("last", &order(7)).await, Told::Placed("o3".into()));
        sleep(s(from)).await;
        assert_eq!(doubled(&rig), []);
        if let Some(lacks) = lacks {
            rig.gateway.always(read(ReadReply::Without(vec![lacks])));
        }
        sleep(s(3_600)).await;
        let told = if lacks.is_some() { vec![(1, Some("o2".into()))] } else { vec![] };
        assert_eq!(doubled(&rig), told, "{lacks:?}, and once");
    }
}
