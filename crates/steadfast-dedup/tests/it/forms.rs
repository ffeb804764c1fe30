//! Tests orders that lists show in another form than they were sent in.

use std::time::Duration;

use serde_json::{Map, Value, json};
use steadfast_dedup::{AccountMode, OrderEvent, Settings};
use tokio::time::sleep;

use crate::{
    gateway::documented,
    rig::{ORDER, Rig, Told},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

type Edit = fn(&mut Map<String, Value>);

fn set(record: &mut Map<String, Value>, field: &str, value: Value) {
    record.insert(field.into(), value);
}

/// Forms in which a list may show an order.
const FORMS: [(&str, Edit); 8] = [
    ("type", |record| set(record, "type", json!("LMT"))),
    ("another type", |record| set(record, "type", json!("market"))),
    ("product", |record| set(record, "product", json!("CNC"))),
    ("validity", |record| set(record, "validity", json!("GFD"))),
    ("a tick off", |record| set(record, "limitPrice", json!("100.05"))),
    ("quantity", |record| set(record, "qty", json!(9))),
    ("no quantity", |record| drop(record.remove("qty"))),
    ("side", |record| set(record, "side", json!("B"))),
];

fn refused_but_placed(rig: &Rig) -> Vec<(String, Option<String>)> {
    let told = rig.events().into_iter().filter_map(|event| match event {
        OrderEvent::RefusedButPlaced { order_id, kept, .. } => Some((order_id, kept)),
        _ => None,
    });
    told.collect()
}

#[tokio::test(start_paused = true)]
async fn o05_a_refused_order_in_another_form_is_not_sent_again() {
    let alias: Edit = |record| set(record, "symId", json!("NSE:INFY"));
    for (form, edit) in FORMS.into_iter().chain([("instrument", alias)]) {
        for status in [401, 429] {
            let rig = Rig::new();
            rig.gateway.will([documented(status).placed().edit(edit)]);
            let told = rig.place("a", ORDER).await;
            let candidates = vec!["o1".into()];
            assert_eq!(told, Told::Unresolved("near_match", candidates, 0), "{form}, {status}");
            assert_eq!(rig.gateway.posts(), 1, "{form}, {status}");
        }
    }
}

/// Regression: the order was sent again before a list showed it, and no event named it.
#[tokio::test(start_paused = true)]
async fn o05_a_refused_order_in_another_form_that_is_late_is_reported() {
    for (form, edit) in FORMS {
        for (status, lag) in [(401, 3), (429, 3), (429, 14)] {
            for repeats in [true, false] {
                let rig = Rig::new();
                if !repeats {
                    rig.between.repeats_nothing();
                }
                rig.gateway.will([documented(status).placed_after(s(lag)).edit(edit)]);
                let told = rig.place("a", ORDER).await;
                let expected = if repeats { Told::Placed("o2".into()) } else { Told::Answer(status) };
                assert_eq!(told, expected, "{form}, {status}");
                sleep(s(20)).await;
                let kept = repeats.then(|| "o2".to_owned());
                assert_eq!(
                    refused_but_placed(&rig),
                    [("o1".to_owned(), kept)],
                    "{form}, {status}, {lag}, {repeats}"
                );
                sleep(s(4_000)).await;
                assert_eq!(refused_but_placed(&rig).len(), 1, "{form}, {status}: once");
                rig.audit();
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn o05_an_order_refused_for_good_without_a_name_is_reported_in_another_form() {
    for (form, edit) in FORMS {
        let rig = Rig::new();
        rig.gateway.will([documented(403).placed().edit(edit)]);
        assert_eq!(rig.place("a", ORDER).await, Told::Answer(403));
        rig.tracker.shutdown().await;
        assert_eq!(refused_but_placed(&rig), [("o1".to_owned(), None)], "{form}");
    }
}

/// A stranger may have placed it.
#[tokio::test(start_paused = true)]
async fn o05_a_shared_account_reports_no_refused_order_in_another_form() {
    for (form, edit) in FORMS {
        let mut rig = Rig::with(Settings::default().account_mode(AccountMode::Shared));
        // The second order is told by no event.
        rig.unchecked = true;
        rig.gateway.will([documented(429).placed_after(s(3)).edit(edit)]);
        assert_eq!(rig.place("a", ORDER).await, Told::Placed("o2".into()));
        sleep(s(4_000)).await;
        assert_eq!(refused_but_placed(&rig), [], "{form}");
    }
}
