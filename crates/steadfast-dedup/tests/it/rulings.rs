//! Tests orders that ended without certainty, their effect on later ones, and how it is cleared.

use std::time::Duration;

use steadfast_call::ext;
use steadfast_dedup::{IntentNo, InvalidRuling, OrderEvent, Ruling};
use tokio::time::sleep;

use crate::{
    gateway::{Place, ReadReply, Reply, ack, gw504, read},
    policies::{day_with, unresolved},
    rig::{ORDER, Rig, Told, order},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Returns a rig whose first order ended without certainty, and that order's number.
async fn tainted() -> (Rig, IntentNo) {
    let rig = Rig::on(day_with(s(7_200)));
    rig.gateway.reads([read(ReadReply::Http(500))]);
    rig.gateway.will([gw504().placed()]);
    assert_eq!(rig.place("a", ORDER).await, unresolved("no_baseline", &["o1"]));
    let number = rig.events().into_iter().find_map(|event| match event {
        OrderEvent::Unresolved { intent, .. } => Some(intent),
        _ => None,
    });
    (rig, number.unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_tainted_key_lets_orders_flow_and_infers_nothing() {
    let (rig, _) = tainted().await;
    assert_eq!(rig.place("exit", &order(4)).await, Told::Placed("o2".into()), "nothing is blocked");
    rig.gateway.will([gw504().placed()]);
    assert_eq!(rig.place("b", ORDER).await, unresolved("tainted", &["o3"]), "no inference");
    rig.gateway.will([gw504()]);
    assert_eq!(rig.place("c", &order(6)).await, unresolved("not_observed", &[]), "no resend");
    rig.gateway.will([gw504()]);
    let other = rig.place("d", &ORDER.replace("buy", "sell")).await;
    assert_eq!(other, Told::Resent("o4".into()), "other keys are not concerned");
    rig.audit();
}

/// Returns the orders that appeared late, and the number of the order that each was reported for.
fn late(rig: &Rig) -> Vec<(u64, String)> {
    let told = rig.events().into_iter().filter_map(|event| match event {
        OrderEvent::LateDuplicate { intent, order_id, .. } => Some((intent.0, order_id)),
        _ => None,
    });
    told.collect()
}

/// Regression: the late order was taken for its own, and the candidate that its caller was told of for one too many.
#[tokio::test(start_paused = true)]
async fn a_late_order_beside_an_equal_candidate_settles_nothing() {
    let (rig, _) = tainted().await;
    rig.gateway.will([gw504().placed()]);
    assert_eq!(rig.place("b", ORDER).await, unresolved("tainted", &["o2"]));
    rig.gateway.foreign(ORDER, |_| {});
    sleep(s(90)).await;
    assert_eq!(late(&rig), [(1, "o3".to_owned())]);
    assert_eq!(rig.flagged(), ["o3"], "the caller knows of o2");
}

#[tokio::test(start_paused = true)]
async fn a_late_order_goes_first_to_an_order_without_a_candidate() {
    let (rig, _) = tainted().await;
    rig.gateway.will([gw504(), gw504().placed()]);
    assert_eq!(rig.place("b", ORDER).await, unresolved("not_observed", &[]));
    assert_eq!(rig.place("c", ORDER).await, unresolved("tainted", &["o2"]));
    rig.gateway.foreign(ORDER, |_| {});
    sleep(s(90)).await;
    assert_eq!(late(&rig), [(1, "o3".to_owned())]);
    assert_eq!(rig.flagged(), ["o3"]);
}

/// Regression: it went to the first of them, whose own order was listed before it, and after a restart the caller of the
/// last one was told that it is not there.
#[tokio::test(start_paused = true)]
async fn a_late_order_is_no_ones_whose_own_was_listed_before() {
    let (rig, first) = tainted().await;
    rig.gateway.will([gw504().placed(), gw504().placed_after(s(3))]);
    let (b, c) = (rig.start("b", ORDER), rig.start("c", ORDER));
    assert_eq!(b.await.unwrap(), unresolved("tainted", &["o2"]));
    assert_eq!(c.await.unwrap(), unresolved("tainted", &["o2"]));
    sleep(s(90)).await;
    let late = rig.events().into_iter().find_map(|event| match event {
        OrderEvent::LateDuplicate { intent, order_id, .. } if order_id == "o3" => Some(intent),
        _ => None,
    });
    assert!(late.is_some_and(|intent| intent != first), "{late:?} {:?}", rig.events());
}

#[tokio::test(start_paused = true)]
async fn a_ruling_clears_the_taint() {
    for ruling in [Ruling::Placed { order_id: "o1".into() }, Ruling::NotPlaced] {
        let (rig, intent) = tainted().await;
        let named: Vec<_> = rig.tracker.unresolved().iter().map(|order| order.intent).collect();
        assert_eq!((named, rig.tracker.in_doubt()), (vec![intent], 0), "it is looked for no more");
        rig.tracker.resolve(None, intent, ruling.clone()).unwrap();
        assert_eq!(rig.tracker.unresolved(), [], "{ruling:?}");
        rig.gateway.will([gw504().placed(), gw504()]);
        assert_eq!(rig.place("b", &order(3)).await, Told::Recovered("o2".into()), "{ruling:?}");
        assert_eq!(rig.place("c", &order(4)).await, Told::Resent("o3".into()), "{ruling:?}");
        rig.audit();
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_day_clears_the_taint() {
    let (rig, _) = tainted().await;
    sleep(s(8_000)).await;
    rig.gateway.will([gw504()]);
    assert_eq!(rig.place("c", &order(4)).await, Told::Resent("o2".into()));
}

#[tokio::test(start_paused = true)]
async fn a_ruling_that_contradicts_the_books_is_refused() {
    let (rig, intent) = tainted().await;
    rig.place("other", &order(3)).await;
    let placed = |id: &str| Ruling::Placed { order_id: id.into() };
    let resolve = |number, ruling| rig.tracker.resolve(None, number, ruling);
    assert_eq!(resolve(IntentNo(99), Ruling::NotPlaced), Err(InvalidRuling::UnknownIntent));
    let elsewhere = ext::Account::new("elsewhere");
    let ruled = rig.tracker.resolve(Some(&elsewhere), intent, Ruling::NotPlaced);
    assert_eq!(ruled, Err(InvalidRuling::UnknownIntent));
    assert_eq!(resolve(intent, placed("o2")), Err(InvalidRuling::OrderOwned));
    assert_eq!(InvalidRuling::OrderOwned.to_string(), "order id belongs to another order");
    assert_eq!(resolve(IntentNo(intent.0 + 1), Ruling::NotPlaced), Err(InvalidRuling::NotUnresolved));
    assert_eq!(resolve(intent, placed("o1")), Ok(()));
    assert_eq!(resolve(intent, placed("o1")), Err(InvalidRuling::NotUnresolved), "once is enough");
}

/// Regression: no ruling was possible, because the answer to another order had named the identifier.
#[tokio::test(start_paused = true)]
async fn o06_a_ruling_takes_a_candidate_from_an_order_that_got_it_by_an_answer() {
    let rig = Rig::new();
    rig.gateway.will([gw504().placed()]);
    let lost = rig.start("a", &order(3));
    sleep(Duration::from_millis(100)).await;
    // Not placed, and answered with the identifier of the lost one.
    rig.gateway.will([Place { apply: None, ..ack() }.reply(Reply::AckId("o1"))]);
    assert_eq!(rig.place("b", &order(7)).await, Told::Placed("o1".into()));
    let Told::Unresolved("near_match", candidates, 504) = lost.await.unwrap() else { panic!("decided") };
    assert_eq!(candidates, ["o1"]);
    let [lost, other] = [IntentNo(0), IntentNo(1)];
    let placed = |id: &str| Ruling::Placed { order_id: id.into() };
    assert_eq!(rig.tracker.resolve(None, lost, placed("o1")), Ok(()));
    let taken = |event: &OrderEvent| matches!(event, OrderEvent::AckMismatch { intent, order_id, .. } if (*intent, &**order_id) == (other, "o1"));
    assert_eq!(rig.events().iter().filter(|event| taken(event)).count(), 1);
    assert_eq!(rig.tracker.in_doubt(), 1, "the other is searched for");
    sleep(s(200)).await;
    let end = |event: &OrderEvent| matches!(event, OrderEvent::Unresolved { intent, .. } if *intent == other);
    assert!(rig.events().iter().any(end), "{:?}", rig.events());
    assert_eq!(rig.tracker.resolve(None, other, placed("o1")), Err(InvalidRuling::OrderOwned));
    assert_eq!((rig.flagged(), rig.gateway.posts()), (vec![], 2));
}
