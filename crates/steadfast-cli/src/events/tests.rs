use steadfast::{dedup::IntentNo, ext::IntentId};

use super::*;

fn stands(told: Told) -> Seen {
    match told {
        Told::Stands(seen) => seen,
        other => panic!("{other:?}"),
    }
}

#[test]
fn c03_every_event_that_costs_money_stands_and_is_counted() {
    let (intent, order_id) = (IntentNo(7), "26".to_owned());
    let late = OrderEvent::LateDuplicate {
        intent,
        name: Some(IntentId::new("line-3")),
        order_id: order_id.clone(),
        kept: None,
    };
    let late = stands(Told::of(&late));
    assert_eq!((late.event.as_str(), late.name.as_deref()), ("late_order", Some("line-3")));
    let mut counts = EventCounts::default();
    counts.add(&late);
    counts.add(&stands(Told::of(&OrderEvent::Excess { intent, order_id: order_id.clone() })));
    let conflict = OrderEvent::Conflict { intent, name: None, other: None, order_id: order_id.clone() };
    let name = Some(IntentId::new("line-9"));
    let refused =
        OrderEvent::RefusedButPlaced { intent, name: name.clone(), order_id: order_id.clone(), kept: None };
    let unlisted = OrderEvent::AckNotListed { intent, name: name.clone(), order_id: order_id.clone() };
    let unconfirmed =
        OrderEvent::AckUnconfirmed { intent, name, order_id: order_id.clone(), candidates: Vec::new() };
    for event in [conflict, refused, unlisted, unconfirmed] {
        counts.add(&stands(Told::of(&event)));
    }
    counts.add(&stands(Told::missed(3)));
    assert_eq!((counts.late_orders, counts.excess, counts.conflicts, counts.other), (1, 1, 1, 1));
    assert_eq!((counts.refused_but_placed, counts.ack_not_listed, counts.ack_unconfirmed), (1, 1, 1));
    assert_eq!(counts.sum(), 7);
    let absent = OrderEvent::Absent { intent, name: None };
    assert_eq!(Told::of(&absent), Told::Elsewhere);
    assert!(matches!(Told::of(&OrderEvent::ListNotMonotone { order_id }), Told::Note(_)));
}

#[test]
fn c03_how_a_contradicted_order_ends_stands_too() {
    let recovered = |intent: u64| OrderEvent::Recovered {
        intent: IntentNo(intent),
        name: Some(IntentId::new(format!("line-{intent}"))),
        order_id: "31".to_owned(),
    };
    let mut contradicted = Contradicted::default();
    let nobody = |_: &str| false;
    assert_eq!(contradicted.tell(&recovered(2), nobody), Told::Elsewhere, "the row says it");
    let order_id = "26".to_owned();
    let (intent, name) = (IntentNo(2), Some(IntentId::new("line-2")));
    let conflict = OrderEvent::Conflict { intent, name, other: Some(IntentNo(3)), order_id };
    let seen = stands(contradicted.tell(&conflict, nobody));
    assert_eq!((seen.event.as_str(), seen.name.as_deref()), ("conflict", Some("line-2")));
    let seen = stands(contradicted.tell(&recovered(3), nobody));
    assert_eq!((seen.event.as_str(), seen.order_id.as_deref()), ("corrected", Some("31")));
    assert_eq!((seen.name.as_deref(), seen.intent), (Some("line-3"), Some(3)));
    let mut counts = EventCounts::default();
    counts.add(&seen);
    assert_eq!((counts.corrected, counts.sum()), (1, 1));
    assert_eq!(contradicted.tell(&recovered(2), |name| name == "line-2"), Told::Elsewhere);
    assert_eq!(contradicted.tell(&recovered(4), nobody), Told::Elsewhere, "another order");
    let refused = OrderEvent::RefusedButPlaced {
        intent: IntentNo(4),
        name: None,
        order_id: "27".to_owned(),
        kept: None,
    };
    let unlisted = OrderEvent::AckNotListed { intent: IntentNo(5), name: None, order_id: "28".to_owned() };
    for (event, intent) in [(refused, 4), (unlisted, 5)] {
        stands(contradicted.tell(&event, nobody));
        stands(contradicted.tell(&recovered(intent), nobody));
    }
}

#[test]
fn c03_an_event_of_a_later_version_is_shown_too() {
    let written = "OrderMoved { intent: IntentNo(4), name: Some(IntentId(\"line-9\")), order_id: \"77\" }";
    let seen = stands(Told::unknown(written));
    assert_eq!(seen.event, "order_moved");
    assert_eq!((seen.name.as_deref(), seen.order_id.as_deref()), (Some("line-9"), Some("77")));
    assert!(seen.msg.starts_with("OrderMoved"));
    let seen = stands(Told::unknown("SomethingNew { intent: IntentNo(1) }"));
    assert_eq!((seen.event.as_str(), seen.order_id), ("something_new", None));
    let mut counts = EventCounts::default();
    counts.add(&stands(Told::unknown(written)));
    counts.add(&stands(Told::unknown("SomethingNew")));
    assert_eq!(counts.other, 2);
}
