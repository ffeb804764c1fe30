//! Tests which intent owns an order when the record, the session or the time alone does not decide it. The simulation
//! found each of these as a wrong claim or a duplicate.

use std::time::Duration;

use serde_json::{Map, Value};
use steadfast_dedup::{OrderEvent, OrdersScope, Settings};
use tokio::time::sleep;

use crate::{
    gateway::{Reply, ack, gw504, http},
    rig::{ORDER, Rig, Told, market, order},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn without_prices(record: &mut Map<String, Value>) {
    record.remove("limitPrice");
}

/// A late order of a send taken for dead belongs to that send, is reported once, and bars no other.
#[tokio::test(start_paused = true)]
async fn a_late_duplicate_is_flagged_while_a_similar_order_is_in_doubt() {
    for other in [http(504, "Gateway timedout"), ack().reply(Reply::Cut)] {
        let rig = Rig::new();
        rig.gateway.will([gw504().placed_after(Duration::from_millis(15_241))]);
        assert_eq!(rig.place("a", &order(75)).await, Told::Resent("o2".into()));
        rig.gateway.will([crate::gateway::Place { apply: None, ..other.clone() }]);
        let told = rig.place("b", ORDER).await;
        let vetoed = matches!(&told, Told::Unresolved("near_match", ..));
        assert!(!vetoed, "another one's late order is no veto: {told:?}");
        assert_eq!(rig.flagged(), ["o1"]);
        let late = rig.events().into_iter().find_map(|event| match event {
            OrderEvent::LateDuplicate { order_id, kept, .. } => Some((order_id, kept)),
            _ => None,
        });
        assert_eq!(late, Some(("o1".into(), Some("o2".into()))));
        rig.audit();
    }
}

/// Two sends in doubt and one order: it goes to the caller with the order that cannot be sent again.
#[tokio::test(start_paused = true)]
async fn of_twins_the_one_that_is_not_sent_again_is_served_first() {
    let rig = Rig::new();
    rig.gateway.will([http(500, "Internal server error"), ack().reply(Reply::Cut)]);
    let (a, b) = (rig.start("a", ORDER), rig.start("b", ORDER));
    assert_eq!(b.await.unwrap(), Told::Recovered("o1".into()), "its absence would contradict the 200");
    assert_eq!(a.await.unwrap(), Told::Resent("o2".into()));
    rig.audit();
}

/// Neither is sent again, but only one of them would leave a contradiction.
#[tokio::test(start_paused = true)]
async fn of_twins_that_are_not_sent_again_the_one_that_was_accepted_is_served_first() {
    let rig = Rig::new();
    rig.gateway.will([http(0, "x").reply(Reply::Ended), ack().reply(Reply::Cut), gw504().placed()]);
    let (a, b) = (rig.start("a", &market()), rig.start("b", &market()));
    assert_eq!(b.await.unwrap(), Told::Recovered("o1".into()));
    let a = a.await.unwrap();
    assert!(matches!(a, Told::Unresolved("not_observed", ..)), "too old for a market order: {a:?}");
    assert_eq!(rig.place("c", &market()).await, Told::Recovered("o2".into()), "the key is not barred");
    rig.audit();
}

/// In any sequence, each takes the oldest order that it could own: one that the later intent cannot own is left to
/// the earlier.
#[tokio::test(start_paused = true)]
async fn whoever_is_served_first_takes_no_order_that_was_seen_before_it_was_sent() {
    let rig = Rig::new();
    let slow = gw504().placed().answered_after(s(4));
    rig.gateway.will([slow, gw504(), ack().reply(Reply::Cut)]);
    let a = rig.start("a", ORDER);
    sleep(Duration::from_millis(500)).await;
    // Another doubt causes a read while the first order is in flight: its order is known before the second leaves.
    let other = rig.start("other", &ORDER.replace("side=buy", "side=sell"));
    sleep(s(3)).await;
    let b = rig.start("b", ORDER);
    assert_eq!(a.await.unwrap(), Told::Recovered("o1".into()));
    assert_eq!(b.await.unwrap(), Told::Recovered("o2".into()));
    assert!(matches!(other.await.unwrap(), Told::Resent(_)));
    rig.audit();
}

/// In a list of all sessions, a late order of an earlier session may look like a changed order of this one. Its
/// caller gets it as a candidate, and it is reported as late all the same.
#[tokio::test(start_paused = true)]
async fn a_late_duplicate_that_another_caller_was_told_of_as_a_candidate_is_flagged() {
    let rig = Rig::new();
    rig.gateway.will([gw504().placed_after(s(72))]);
    assert_eq!(rig.place("a", &order(75)).await, Told::Resent("o2".into()));
    sleep(s(50)).await;
    rig.between.token(1);
    rig.gateway.will([gw504()]);
    let b = rig.start("b", ORDER);
    let told = b.await.unwrap();
    assert!(
        matches!(&told, Told::Unresolved("near_match", candidates, 504) if *candidates == ["o1"]),
        "{told:?}"
    );
    assert_eq!(rig.flagged(), ["o1"]);
    rig.audit();
}

/// A list without prices shows two orders of different price alike: the record identifies neither.
#[tokio::test(start_paused = true)]
async fn a_record_that_two_different_orders_share_is_nobodys() {
    let dear = ORDER.replace("limitPrice=100", "limitPrice=101");
    let rig = Rig::new();
    rig.gateway.will([ack().reply(Reply::Cut), gw504().placed().edit(without_prices)]);
    rig.gateway.0.lock().places[0].apply = None;
    let (a, b) = (rig.start("a", ORDER), rig.start("b", &dear));
    let (a, b) = (a.await.unwrap(), b.await.unwrap());
    assert!(matches!(&a, Told::Unresolved(_, candidates, 200) if *candidates == ["o1"]), "{a:?}");
    assert!(matches!(&b, Told::Unresolved("near_match", candidates, 504) if *candidates == ["o1"]), "{b:?}");
    assert_eq!(rig.gateway.posts(), 2, "nothing is sent again");
    rig.audit();
}

/// An order with an unknown owner may be the first twin's. An intent that may own it takes no later one: that is the
/// second twin's, which would be sent again without it.
#[tokio::test(start_paused = true)]
async fn whoever_an_older_order_may_belong_to_leaves_the_later_one_to_its_twin() {
    let dear = ORDER.replace("limitPrice=100", "limitPrice=101");
    let rig = Rig::new();
    rig.gateway.will([gw504(), gw504().placed().edit(without_prices), gw504().placed()]);
    let (a, b) = (rig.start("a", ORDER), rig.start("b", &dear));
    sleep(s(3)).await;
    let c = rig.start("c", &dear);
    assert_eq!(c.await.unwrap(), Told::Recovered("o2".into()));
    for told in [a.await.unwrap(), b.await.unwrap()] {
        assert!(
            matches!(&told, Told::Unresolved("near_match", candidates, 504) if *candidates == ["o1"]),
            "{told:?}"
        );
    }
    assert_eq!(rig.gateway.posts(), 3, "nothing is sent again");
    rig.audit();
}

/// The same, but an answer settles the owners.
#[tokio::test(start_paused = true)]
async fn an_answer_tells_apart_what_a_record_does_not() {
    let dear = ORDER.replace("limitPrice=100", "limitPrice=101");
    for answered_after in [s(3), s(20)] {
        let rig = Rig::new();
        let slow = ack().edit(without_prices).answered_after(answered_after);
        rig.gateway.will([gw504().placed().edit(without_prices), slow]);
        let (a, b) = (rig.start("a", ORDER), rig.start("b", &dear));
        assert_eq!(b.await.unwrap(), Told::Placed("o2".into()));
        assert_eq!(a.await.unwrap(), Told::Recovered("o1".into()), "what is left is the other's");
        rig.audit();
    }
}

/// An order that a session's list shows first belongs to an intent of that session.
#[tokio::test(start_paused = true)]
async fn an_order_of_the_new_session_is_not_an_old_ones() {
    let rig = Rig::new();
    rig.place("first", &order(3)).await;
    // The old session's order was applied, but no list of the new session shows it.
    rig.gateway.will([http(500, "Internal server error").placed_after(s(1_000_000))]);
    let old = rig.start("old", ORDER);
    sleep(s(1)).await;
    rig.between.token(1);
    sleep(s(4)).await;
    rig.gateway.will([gw504().placed()]);
    let new = rig.start("new", ORDER);
    let (old, new) = (old.await.unwrap(), new.await.unwrap());
    assert_eq!(new, Told::Recovered("o3".into()));
    assert!(matches!(old, Told::Unresolved("session_changed", ..)), "{old:?}");
    assert_eq!(rig.gateway.posts(), 3, "no resend of either");
    rig.audit();
}

/// If the list is the account's, sessions do not matter.
#[tokio::test(start_paused = true)]
async fn in_a_list_of_the_account_the_oldest_order_is_the_oldest_intents() {
    let rig = Rig::with(Settings::default().orders_scope(OrdersScope::Account));
    rig.place("first", &order(3)).await;
    rig.gateway.will([gw504().placed_after(s(6))]);
    let old = rig.start("old", ORDER);
    sleep(s(1)).await;
    rig.between.token(1);
    sleep(s(4)).await;
    rig.gateway.will([gw504().placed_after(s(3))]);
    let new = rig.start("new", ORDER);
    assert_eq!(old.await.unwrap(), Told::Recovered("o2".into()));
    assert_eq!(new.await.unwrap(), Told::Recovered("o3".into()));
    rig.audit();
}
