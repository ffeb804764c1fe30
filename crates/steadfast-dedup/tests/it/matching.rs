//! D. Matching.

use std::time::Duration;

use serde_json::{Value, json};
use steadfast_dedup::{OrderEvent, Settings};
use tokio::time::sleep;

use crate::{
    clocks::Clockwork,
    gateway::{ReadReply, gw504, read},
    policies::day_with,
    rig::{ORDER, Rig, Told, market, order},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn near(candidates: &[&str]) -> Told {
    Told::Unresolved("near_match", candidates.iter().map(|&id| id.into()).collect(), 504)
}

#[tokio::test(start_paused = true)]
async fn s46_s47_rejected_and_cancelled_orders_were_processed() {
    for status in ["rejected", "cancelled"] {
        let rig = Rig::new();
        let placed = gw504().placed();
        rig.gateway.will([match status {
            "rejected" => placed.edit(|record| drop(record.insert("status".into(), json!("rejected")))),
            _ => placed.edit(|record| drop(record.insert("status".into(), json!("cancelled")))),
        }]);
        assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o1".into()));
        assert_eq!(rig.gateway.posts(), 1);
        rig.audit();
    }
}

#[tokio::test(start_paused = true)]
async fn s48_bracket_legs() {
    let rig = Rig::new();
    let leg = |name: &'static str| {
        move |rig: &Rig, form: &str| {
            let form = form.replace("delivery", "bracket");
            rig.gateway.foreign(
                &form,
                match name {
                    "stoploss" => |record| drop(record.insert("legType".into(), json!("stoploss"))),
                    _ => |record| drop(record.insert("legType".into(), json!("target"))),
                },
            )
        }
    };
    rig.gateway.will([gw504(), gw504().placed()]);
    // The legs of an earlier bracket appear while a sell is in doubt: they neither match nor veto it.
    let sell = ORDER.replace("buy", "sell");
    let a = rig.start("a", &sell);
    sleep(s(1)).await;
    leg("stoploss")(&rig, &sell);
    leg("target")(&rig, &sell);
    assert_eq!(a.await.unwrap(), Told::Recovered("o3".into()));
    assert_eq!(rig.gateway.posts(), 2, "sent again, and found");
    rig.audit();
}

/// Regression: listed with a leg's type, although its product has no legs, it was sent a second time.
#[tokio::test(start_paused = true)]
async fn o05_an_order_listed_as_a_leg_is_not_sent_again() {
    for leg in ["stoploss", "target"] {
        let rig = Rig::new();
        rig.gateway.will([match leg {
            "target" => {
                gw504().placed().edit(|record| drop(record.insert("legType".into(), json!("target"))))
            }
            _ => gw504().placed().edit(|record| drop(record.insert("legType".into(), json!("stoploss")))),
        }]);
        let told = rig.place("a", ORDER).await;
        assert!(matches!(told, Told::Unresolved("near_match" | "uncalibrated", ..)), "{leg}: {told:?}");
        assert_eq!(rig.gateway.posts(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn s50_price_format() {
    let rig = Rig::new();
    rig.gateway.will([gw504().placed().edit(|record| {
        record.insert("limitPrice".into(), json!("100.00"));
        record.insert("qty".into(), json!(10.0));
    })]);
    assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o1".into()));
}

#[tokio::test(start_paused = true)]
async fn s51_market_price_noise() {
    let rig = Rig::new();
    rig.gateway
        .will([gw504().placed().edit(|record| drop(record.insert("limitPrice".into(), json!(1534.2))))]);
    assert_eq!(rig.place("a", &market()).await, Told::Recovered("o1".into()));
}

#[tokio::test(start_paused = true)]
async fn s53_user_modified() {
    let rig = Rig::new();
    rig.gateway.will([gw504().placed().edit(|record| drop(record.insert("qty".into(), json!(20))))]);
    assert_eq!(rig.place("a", ORDER).await, near(&["o1"]));
    assert_eq!(rig.gateway.posts(), 1);
    sleep(s(3_600)).await;
    assert_eq!(rig.flagged(), Vec::<String>::new());
}

/// Two indistinguishable twins are given up at the same moment; the end of the first one ends the second.
#[tokio::test(start_paused = true)]
async fn twins_that_are_given_up_in_one_moment_are_reported_once_each() {
    let rig = Rig::new();
    let changed = gw504().placed().edit(|record| drop(record.insert("qty".into(), json!(20))));
    rig.gateway.will([changed, gw504().placed_after(s(3))]);
    let (a, b) = (rig.start("a", ORDER), rig.start("b", ORDER));
    let both = vec!["o1".to_owned(), "o2".to_owned()];
    assert_eq!(a.await.unwrap(), Told::Unresolved("near_match", both.clone(), 504));
    assert_eq!(b.await.unwrap(), Told::Unresolved("tainted", both, 504));
    let ended = rig.events().into_iter().filter(|event| matches!(event, OrderEvent::Unresolved { .. }));
    assert_eq!(ended.count(), 2);
    assert_eq!(rig.gateway.posts(), 2);
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s54_autosliced() {
    let rig = Rig::new();
    rig.gateway.will([gw504()]);
    let a = rig.start("a", &order(5_000));
    sleep(s(1)).await;
    for qty in [1_800, 1_800, 1_400] {
        rig.gateway.foreign(&order(qty), |_| {});
    }
    assert_eq!(a.await.unwrap(), near(&["o1", "o2", "o3"]));
    assert_eq!(rig.gateway.posts(), 1);
}

#[tokio::test(start_paused = true)]
async fn s55_tick_rounding() {
    let rig = Rig::new();
    rig.gateway
        .will([gw504().placed().edit(|record| drop(record.insert("limitPrice".into(), json!(100.05))))]);
    assert_eq!(rig.place("a", ORDER).await, near(&["o1"]));
    assert_eq!(rig.gateway.posts(), 1);
}

#[tokio::test(start_paused = true)]
async fn s56_symid_alias() {
    let alias = |record: &mut serde_json::Map<_, _>| drop(record.insert("symId".into(), json!("INFY")));
    for settings in [Settings::default(), Settings::conservative()] {
        let rig = Rig::with(settings);
        rig.gateway.will([crate::gateway::ack().edit(alias), gw504().placed().edit(alias)]);
        assert_eq!(rig.place("first", &order(5)).await, Told::Placed("o1".into()));
        let told = rig.place("a", ORDER).await;
        assert_eq!(told, near(&["o2"]), "it may be the order under another name, and resends are off");
        let uncalibrated =
            |event| matches!(event, OrderEvent::Uncalibrated { order_id, .. } if order_id == "o1");
        assert!(rig.events().into_iter().any(uncalibrated));
        assert_eq!(rig.gateway.posts(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn conservative_resends_once_an_acknowledged_order_was_recognised() {
    let rig = Rig::with(Settings::conservative().max_resend_age(s(300)));
    rig.gateway.will([crate::gateway::ack(), gw504()]);
    rig.place("first", &order(5)).await;
    assert_eq!(rig.place("a", ORDER).await, Told::Resent("o2".into()));
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s57_morning_twin() {
    let rig = Rig::new();
    rig.gateway.foreign(ORDER, |_| {});
    rig.gateway.will([gw504()]);
    assert_eq!(rig.place("a", ORDER).await, Told::Resent("o2".into()));
    assert_eq!(rig.gateway.posts(), 2);
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s58_cold_baseline_fails() {
    let rig = Rig::new();
    rig.gateway.foreign(ORDER, |_| {});
    rig.gateway.reads([read(ReadReply::Http(500))]);
    rig.gateway.will([gw504()]);
    let told = rig.place("a", ORDER).await;
    assert_eq!(told, Told::Unresolved("no_baseline", vec!["o1".into()], 504));
    assert_eq!(rig.gateway.posts(), 1);
    sleep(s(3_600)).await;
    assert_eq!(rig.flagged(), Vec::<String>::new(), "its caller was told of it");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_could_not_be_had_is_not_asked_for_before_each_order() {
    let rig = Rig::new();
    rig.gateway.reads([read(ReadReply::Http(500))]);
    assert_eq!(rig.place("a", ORDER).await, Told::Placed("o1".into()));
    let reads = rig.gateway.gets();
    assert_eq!(rig.place("b", ORDER).await, Told::Placed("o2".into()));
    assert_eq!((reads, rig.gateway.gets()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn s59_id_reused_next_day() {
    let rig = Rig::on(day_with(s(3_600)));
    assert_eq!(rig.place("a", ORDER).await, Told::Placed("o1".into()));
    rig.gateway.0.lock().orders.clear();
    rig.gateway.0.lock().renumber(0);
    // After midnight, by every clock.
    sleep(s(3_600 + 601)).await;
    rig.gateway.will([gw504().placed()]);
    assert_eq!(rig.place("b", ORDER).await, Told::Recovered("o1".into()), "yesterday's o1 hides nothing");
    assert_eq!(rig.gateway.posts(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_day_that_ends_leaves_its_doubts_unresolved() {
    let rig = Rig::on(day_with(s(5)));
    rig.gateway.will([gw504()]);
    let a = rig.start("a", ORDER);
    assert_eq!(a.await.unwrap(), Told::Unresolved("epoch_changed", vec![], 504));
    assert_eq!(rig.gateway.posts(), 1);
}

#[tokio::test(start_paused = true)]
async fn s83_clock_jumps() {
    let world = Clockwork::at(s(1_000_000));
    let rig = Rig::with(world.settings());
    rig.gateway.will([gw504()]);
    let start = tokio::time::Instant::now();
    let a = rig.start("a", ORDER);
    for jump in [3_600, -3_600, 0] {
        sleep(s(2)).await;
        world.set_wall(jump);
    }
    assert_eq!(a.await.unwrap(), Told::Resent("o1".into()), "a clock that is set ages nothing");
    assert!(start.elapsed() >= s(15), "no window is shortened");

    // A machine that sleeps shortens none either, and an order that is too old when it wakes is not sent again.
    rig.gateway.will([gw504()]);
    let start = tokio::time::Instant::now();
    let b = rig.start("b", &ORDER.replace("INFY", "TCS"));
    sleep(s(2)).await;
    world.suspend(s(3 * 3_600));
    assert_eq!(b.await.unwrap(), Told::Unresolved("not_observed", vec![], 504));
    assert!(start.elapsed() >= s(15), "by the clock that stood still");
    rig.audit();
}

/// In any spelling of a field, an order is found or left unresolved, never absent.
#[tokio::test(start_paused = true)]
async fn an_order_that_is_listed_in_whatever_spelling_is_never_sent_again() {
    let whole = json!({"orderId": "o7", "symId": "EQT_INFY_EQ_NSE", "qty": "10", "side": "buy", "type": "limit",
        "product": "delivery", "validity": "day", "limitPrice": "100", "trigPrice": "0", "status": "open",
        "legType": "main"});
    let names: Vec<String> = whole.as_object().unwrap().keys().cloned().collect();
    for name in &names {
        let text = whole[name].as_str().unwrap();
        let mut spellings = vec![
            Value::Null,
            json!(""),
            json!("  "),
            json!(format!(" {text} ")),
            json!(text.to_uppercase()),
            json!(text.to_lowercase()),
            json!([text]),
            json!({ "value": text }),
            json!(true),
            json!(7),
            json!(-10),
            json!(10.0),
        ];
        // An order of another instrument is another order.
        if name != "symId" {
            spellings.push(json!("something else"));
        }
        for spelling in spellings {
            let mut record = whole.clone();
            record[name] = spelling.clone();
            let rig = Rig::new();
            rig.gateway.will([gw504()]);
            rig.gateway.reads([read(ReadReply::List)]);
            rig.gateway.always(read(ReadReply::Raw(json!({"s": "ok", "d": [record]}).to_string())));
            let told = rig.service_told("a", ORDER).await;
            assert!(matches!(told, Told::Recovered(_) | Told::Unresolved(..)), "{name} {spelling}: {told:?}");
            assert_eq!(rig.gateway.posts(), 1, "{name} {spelling}");
        }
    }
}
