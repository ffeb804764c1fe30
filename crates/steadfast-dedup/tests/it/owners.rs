//! Whose an order is when the record, the session or the time does not say it alone. Each of these was found by the
//! simulation, as a wrong claim or a duplicate.

use std::time::Duration;

use serde_json::{Map, Value};
use steadfast_dedup::{OrderEvent, OrdersScope, Settings};
use tokio::time::sleep;

use crate::{
    gateway::{Reply, ack, gw504, http},
    rig::{ORDER, Rig, Told, order},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn without_prices(record: &mut Map<String, Value>) {
    record.remove("limitPrice");
}

/// A late order of a send that was taken for dead is that one's, told once, and in nobody else's way.
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

/// A list without prices shows two orders of different price alike: it shows neither.
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

/// The same, where an answer tells them apart after all.
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

/// An order that a session's list shows first belongs to what was sent in that session.
#[tokio::test(start_paused = true)]
async fn an_order_of_the_new_session_is_not_an_old_ones() {
    let rig = Rig::new();
    rig.place("first", &order(3)).await;
    // The old session's order was applied, and no list of the new session shows it.
    rig.gateway.will([http(500, "x").placed_after(s(1_000_000))]);
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

/// Where the list is the account's, sessions do not matter.
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
