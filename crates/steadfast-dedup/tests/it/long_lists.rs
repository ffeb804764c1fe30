//! Tests lists with more orders than real accounts place.

use std::{fmt::Write as _, time::Duration};

use steadfast_dedup::{Event, OrderEvent, Reason, Settings};

use crate::{
    gateway::{ReadReply, ack, gw504, read},
    rig::{ORDER, Rig, Told, order},
};

/// Returns a list of so many orders, numbered from `first`, with these fields beside their identifiers.
fn list(first: usize, count: usize, fields: &str) -> String {
    let mut body = String::from(r#"{"s":"ok","d":["#);
    for n in first..first + count {
        let comma = if n > first { "," } else { "" };
        write!(body, r#"{comma}{{"orderId":"x{n}"{fields}}}"#).unwrap();
    }
    body + "]}"
}

const SAME: &str = r#","symId":"EQT_INFY_EQ_NSE","side":"buy","qty":10,"type":"limit","limitPrice":100,"product":"delivery","validity":"day""#;
/// Legs made by the service, which veto nothing.
const EXIT: &str = r#","symId":"EQT_INFY_EQ_NSE","side":"buy","qty":10,"legType":"target""#;
const NEAR: &str = r#","symId":"EQT_INFY_EQ_NSE","side":"buy","qty":11"#;

fn candidates(told: &Told) -> usize {
    match told {
        Told::Unresolved(_, candidates, _) => candidates.len(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn o08_a_hundred_candidates_are_told_and_no_more() {
    for fields in ["", NEAR, r#","symId":"EQT_TCS_EQ_NSE","side":"buy","qty":10"#] {
        let rig = Rig::new();
        rig.gateway.will([gw504()]);
        rig.gateway.reads([read(ReadReply::List)]);
        rig.gateway.always(read(ReadReply::Raw(list(0, 3_000, fields))));
        let told = rig.place("a", ORDER).await;
        assert_eq!(candidates(&told), 100, "{fields}");
        assert!(matches!(told, Told::Unresolved("near_match", ..)), "{told:?}");
        assert_eq!(rig.gateway.posts(), 1);
    }
}

/// Orders without room are not absent, and ours find room.
#[tokio::test(start_paused = true)]
async fn o08_an_order_behind_many_like_it_is_found_and_nothing_is_sent_again() {
    let rig = Rig::new();
    rig.gateway.will([gw504(), gw504()]);
    rig.gateway.reads([read(ReadReply::List)]);
    let ours = format!(r#",{{"orderId":"ours"{SAME}}}]}}"#);
    let body = list(0, 3_000, NEAR).replace("]}", &ours);
    rig.gateway.always(read(ReadReply::Raw(body)));
    let (a, b) = (rig.start("a", ORDER), rig.start("b", &order(3)));
    assert_eq!(a.await.unwrap(), Told::Recovered("ours".into()));
    assert!(matches!(b.await.unwrap(), Told::Unresolved("near_match", ..)));
    assert_eq!(rig.gateway.posts(), 2);
}

/// A long list is taken in a few records at a time; all of it counts from when it was complete.
#[tokio::test(start_paused = true)]
async fn o08_a_list_in_parts_counts_as_one() {
    let rig = Rig::new();
    assert_eq!(rig.place("warm", &order(5)).await, Told::Placed("o1".into()));
    rig.gateway.will([gw504()]);
    for n in 0..1_000 {
        let bracket = order(20 + n % 7).replace("delivery", "bracket");
        rig.gateway.foreign(&bracket, |record| drop(record.insert("legType".into(), "target".into())));
    }
    assert!(matches!(rig.place("a", ORDER).await, Told::Resent(_)), "a thousand exit legs are not it");
    let trace = rig.tracker.trace(None);
    let parts = trace.iter().filter(|step| matches!(step.event, Event::ReadPart { .. })).count();
    assert!(parts >= 6, "{parts}");
    let starts: Vec<_> = trace.iter().filter(|step| matches!(step.event, Event::ReadPart { .. })).collect();
    assert!(
        starts.iter().all(|step| step.effects.iter().all(|effect| {
            !matches!(effect, steadfast_dedup::Effect::Decided(_) | steadfast_dedup::Effect::Report(_))
        })),
        "nothing is concluded of a part"
    );
    rig.check();
    rig.gateway.will([ack()]);
    assert!(matches!(rig.place("b", &order(3)).await, Told::Placed(_)));
}

#[tokio::test(start_paused = true)]
async fn o08_a_list_of_more_orders_than_a_day_has_is_no_evidence() {
    // In one list, and by new orders in each.
    let unverifiable = [Reason::Unverifiable];
    // After the second list there is no room for the third; by then the list lacks what the first one showed.
    let lost = [Reason::Unverifiable, Reason::ListNotMonotone];
    for (count, times, reasons) in [(200_001, 0, &unverifiable[..]), (70_000, 4, &lost)] {
        let rig = Rig::with(
            Settings::default().lateness(Duration::from_secs(1)).verification_budget(Duration::from_secs(4)),
        );
        rig.gateway.will([gw504()]);
        rig.gateway.reads([read(ReadReply::List)]);
        rig.gateway.reads((0..times).map(|n| read(ReadReply::Raw(list(n * count, count, EXIT)))));
        rig.gateway.always(read(ReadReply::Raw(list(times * count, 200_001, EXIT))));
        rig.place("a", ORDER).await;
        let ended = rig.events().into_iter().find_map(|event| match event {
            OrderEvent::Unresolved { unresolved, .. } => Some(unresolved.reason),
            _ => None,
        });
        assert!(ended.is_some_and(|reason| reasons.contains(&reason)), "{ended:?}");
        assert_eq!(rig.gateway.posts(), 1);
    }
}
