use std::time::Duration;

use serde_json::Value;
use steadfast_sandbox::Fault;

use crate::{
    client::Answer,
    world::{LIMIT, MARKET, ORDERS, World},
};

const STOP: &str = "symId=EQT_ITC_EQ_NSE&qty=3&side=buy&type=stoplimit&product=bracket&validity=day&\
                    limitPrice=420&trigPrice=419.5";

/// Checks a list under a fault, given the same list without one.
type Check = fn(&Answer, &[Value]);

const TABLE: &[(Fault, &str, Check)] = &[
    (Fault::ListEmpty, "list.empty", |list, _| {
        assert_eq!(list.status(), 200);
        assert_eq!(list.json(), serde_json::json!({"s": "no-data", "msg": "no-data"}));
    }),
    (Fault::ListPartial, "list.partial", |list, whole| {
        let kept: Vec<Value> = whole.iter().skip(1).step_by(2).cloned().collect();
        assert_eq!(list.records(), kept, "every other order is missing");
    }),
    (Fault::ListStale, "list.stale", |list, whole| {
        // The last order and the cancellation are younger than two seconds.
        let mut old = whole[..whole.len() - 1].to_vec();
        assert_eq!(old[1]["status"], "cancelled");
        old[1]["status"] = "open".into();
        assert_eq!(list.records(), old);
    }),
    (Fault::ListOpenOnly, "list.open-only", |list, whole| {
        let open: Vec<Value> = whole.iter().filter(|record| record["status"] == "open").cloned().collect();
        assert!(!open.is_empty() && open.len() < whole.len(), "the case is there: {whole:?}");
        assert_eq!(list.records(), open);
    }),
    (Fault::ListDuplicatedIds, "list.duplicated-ids", |list, whole| {
        let twice: Vec<Value> = whole.iter().flat_map(|record| [record.clone(), record.clone()]).collect();
        assert_eq!(list.records(), twice);
    }),
    (Fault::ListNumericIds, "list.numeric-ids", |list, whole| {
        assert_changed(list, whole, |record| {
            let id: u64 = record["orderId"].as_str().expect("a text").parse().expect("digits");
            record["orderId"] = id.into();
        });
    }),
    (Fault::ListUnknownEnums, "list.unknown-enums", |list, whole| {
        let known = ["open", "completed", "rejected", "cancelled"];
        for (record, good) in list.records().iter().zip(whole) {
            assert!(!known.contains(&record["status"].as_str().expect("a text")), "{record}");
            assert_eq!(record["orderId"], good["orderId"]);
        }
        assert_eq!(list.records().len(), whole.len());
    }),
    (Fault::ListMissingLegType, "list.missing-leg-type", |list, whole| {
        assert_changed(list, whole, |record| remove(record, &["legType"]));
    }),
    (Fault::ListMissingPrice, "list.missing-price", |list, whole| {
        assert!(whole.iter().any(|record| record.get("trigPrice").is_some()), "the case is there: {whole:?}");
        assert_changed(list, whole, |record| remove(record, &["limitPrice", "trigPrice"]));
    }),
    (Fault::ListPricesReformatted, "list.prices-reformatted", |list, whole| {
        let numbers = |records: &[Value]| -> Vec<Option<String>> {
            let fields =
                records.iter().flat_map(|r| ["qty", "limitPrice", "trigPrice"].map(|name| r.get(name)));
            fields.map(|number| number.map(text_of)).collect()
        };
        let value = |number: &Option<String>| number.as_ref().map(|n| n.parse::<f64>().expect("a number"));
        let (reformatted, plain) = (numbers(&list.records()), numbers(whole));
        assert!(
            reformatted.iter().flatten().all(|number| number.split_once('.').is_some_and(|n| n.1.len() == 4))
        );
        let values = |all: &[Option<String>]| all.iter().map(value).collect::<Vec<_>>();
        assert_eq!(values(&reformatted), values(&plain), "the same numbers, written otherwise");
    }),
    (Fault::ListMarketAsLimit, "list.market-as-limit", |list, whole| {
        assert!(whole.iter().any(|record| record["type"] == "market"), "the case is there: {whole:?}");
        assert_changed(list, whole, |record| {
            if record["type"] == "market" {
                record["type"] = "limit".into();
                record["limitPrice"] = "100.00".into();
            }
        });
    }),
    (Fault::ListTruncated, "list.truncated", |list, _| {
        assert_eq!(list.status(), 200);
        assert!(!list.is_whole() && !list.body().is_empty());
    }),
    (Fault::List504, "list.504", |list, _| assert_eq!(list.error(), (504, "Gateway timedout".to_owned()))),
    (Fault::List429, "list.429", |list, _| assert_eq!(list.error(), (429, "Too many requests".to_owned()))),
    (Fault::List403, "list.403", |list, _| assert_eq!(list.error(), (403, "Forbidden".to_owned()))),
    (Fault::List500, "list.500", |list, _| {
        assert_eq!(list.error(), (500, "Internal server error".to_owned()));
    }),
    (Fault::List502, "list.502", |list, _| assert_eq!(list.error(), (502, "Bad gateway".to_owned()))),
    (Fault::List503, "list.503", |list, _| {
        assert_eq!(list.error(), (503, "Service unavailable".to_owned()));
    }),
    (Fault::ListHuge, "list.huge", |list, whole| {
        let records = list.records();
        assert_eq!((&records[..whole.len()], records.len()), (whole, whole.len() + 50_000));
        assert!(list.body().len() > 8 << 20, "{}", list.body().len());
    }),
    (Fault::ListHugeBare, "list.huge-bare", |list, whole| {
        let records = list.records();
        assert_eq!((&records[..whole.len()], records.len()), (whole, whole.len() + 100_000));
        let bare = records[whole.len()].as_object().expect("a record");
        assert_eq!(bare.keys().collect::<Vec<_>>(), ["orderId"]);
    }),
    // All orders of the test are younger than the cached list.
    (Fault::ListCachedAge, "list.cached-age", |list, _| {
        assert_eq!((list.status(), list.header("age"), list.header("x-cache")), (200, Some("30"), None));
        assert_eq!(list.json()["s"], "no-data");
    }),
    (Fault::ListCachedHit, "list.cached-hit", |list, _| {
        assert_eq!((list.status(), list.header("age"), list.header("x-cache")), (200, None, Some("HIT")));
        assert_eq!(list.json()["s"], "no-data");
    }),
    (Fault::ListCachedUnlessAsked, "list.cached-unless-asked", |list, _| {
        assert_eq!((list.status(), list.header("age")), (200, Some("30")));
        assert_eq!(list.json()["s"], "no-data");
    }),
    (Fault::List401, "list.401", |list, _| assert_eq!(list.error(), (401, "Unauthorized".to_owned()))),
];

pub(super) fn faults() -> Vec<Fault> {
    TABLE.iter().map(|(fault, ..)| *fault).collect()
}

#[tokio::test(start_paused = true)]
async fn a_list_fault_changes_what_is_shown_as_its_row_says_and_nothing_else() {
    for &(fault, name, check) in TABLE {
        assert_eq!(fault.as_str(), name);
        let world = world_with_orders().await;
        let (whole, truth) = (world.records().await, orders(&world));
        world.strike_always(name);
        check(&world.list().await, &whole);
        assert_eq!(world.struck(name), 1, "{name}");
        assert_eq!(orders(&world), truth, "{name}");
        world.sandbox.heal();
        assert_eq!(world.records().await, whole, "{name}: a good token, an unused quota, the same orders");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_is_asked_to_step_aside_does() {
    let world = World::with_fault("list.cached-unless-asked", 1.0);
    world.place(MARKET).await;
    assert!(world.records().await.is_empty());
    world.pass(Duration::from_secs(30));
    assert_eq!(world.records().await.len(), 1, "as old as it may be");
    world.place(MARKET).await;
    for (value, records) in [("no-cache", 2), ("max-age=0, No-Cache", 2), ("max-age=0", 1)] {
        let list = world.get(ORDERS).cache_control(value).send().await;
        assert_eq!(list.records().len(), records, "{value}");
        assert_eq!(list.header("age").is_none(), records == 2, "{value}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_huge_list_holds_other_identifiers() {
    let world = World::with_fault("list.huge-bare", 1.0);
    let (first, second) = (world.records().await, world.records().await);
    assert_ne!(first[0]["orderId"], second[0]["orderId"]);
}

#[tokio::test(start_paused = true)]
async fn an_injected_429_is_no_zones() {
    let world = World::with_fault("list.429", 1.0);
    assert_eq!(world.list().await.status(), 429);
    let truth = world.truth();
    assert!(truth.refusals.is_empty(), "{:?}", truth.refusals);
    assert_eq!((truth.injected_429s, truth.arrivals[0].zone_refused), (1, None));
}

/// Creates one order of each status and type that a fault may treat differently; two of them are
/// young.
async fn world_with_orders() -> World {
    let world = World::new();
    world.place(MARKET).await;
    let cancelled = world.place(LIMIT).await.order_id();
    world.place(STOP).await;
    world.pass(Duration::from_secs(5));
    world.sandbox.edit_order(&cancelled, steadfast_sandbox::BookEdit::Cancel).expect("an open order");
    world.place("symId=EQT_LT_EQ_NSE&qty=1&side=buy&type=market&product=intraday&validity=day").await;
    world
}

/// Returns the facts about orders that do not change with time.
fn orders(world: &World) -> Vec<(String, u64, &'static str)> {
    world
        .truth()
        .orders
        .into_iter()
        .map(|order| (order.order_id, order.applied_ns, order.order_type))
        .collect()
}

#[track_caller]
fn assert_changed(list: &Answer, whole: &[Value], change: impl Fn(&mut Value)) {
    let mut changed = whole.to_vec();
    changed.iter_mut().for_each(change);
    assert_ne!(changed, whole, "the case is there");
    assert_eq!(list.records(), changed);
}

fn remove(record: &mut Value, names: &[&str]) {
    let fields = record.as_object_mut().expect("an object");
    fields.retain(|name, _| !names.contains(&name.as_str()));
}

fn text_of(number: &Value) -> String {
    number.as_str().map_or_else(|| number.to_string(), str::to_owned)
}
