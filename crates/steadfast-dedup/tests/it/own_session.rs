//! Orders in doubt whose session ended: their own token is read with as long as it is accepted.

use std::time::Duration;

use steadfast_dedup::Event;
use tokio::time::sleep;

use crate::{
    gateway::{gw504, http},
    rig::{ORDER, Rig, Told, order},
};

const OLD: &str = "Bearer key:token-0";
const NEW: &str = "Bearer key:token-1";

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A rig whose requests carry the header of their token, and whose lists are those of the session.
fn rig() -> Rig {
    let rig = Rig::new();
    rig.between.authorizes();
    rig.gateway.0.lock().by_session = true;
    rig
}

fn unresolved(reason: &'static str) -> Told {
    Told::Unresolved(reason, vec![], 504)
}

fn tokens(rig: &Rig) -> Vec<String> {
    rig.gateway.0.lock().tokens.clone()
}

/// S36, where the token of before is still accepted: its list counts, and nothing is sent again in another session.
#[tokio::test(start_paused = true)]
async fn s36_an_absence_in_the_session_of_the_send_is_an_absence_after_a_renewal() {
    let rig = rig();
    rig.gateway.will([gw504()]);
    let a = rig.start("a", ORDER);
    sleep(s(3)).await;
    rig.between.token(1);
    assert_eq!(a.await.unwrap(), unresolved("not_observed"));
    assert_eq!(rig.gateway.posts(), 1);
    let tokens = tokens(&rig);
    let first = tokens.iter().position(|token| token == NEW).unwrap();
    assert!(tokens[first..].chunks(2).all(|pair| pair[0] == NEW && pair.get(1).is_none_or(|own| own == OLD)));
    rig.audit();
}

/// S36, where it is not: it is tried once, and the current one is read with from then on.
#[tokio::test(start_paused = true)]
async fn s36_a_token_that_is_refused_is_tried_once() {
    let rig = rig();
    rig.gateway.will([gw504()]);
    let a = rig.start("a", ORDER);
    sleep(s(3)).await;
    rig.between.token(1);
    rig.gateway.0.lock().dead.push(OLD);
    assert_eq!(a.await.unwrap(), unresolved("session_changed"));
    let tokens = tokens(&rig);
    let first = tokens.iter().position(|token| token == NEW).unwrap();
    assert_eq!(tokens[first..].iter().filter(|token| *token == OLD).count(), 1, "{tokens:?}");
    rig.audit();
}

/// A 429 after placement: the list of another session does not show the order, and proved that it was not executed.
#[tokio::test(start_paused = true)]
async fn o05_a_429_whose_session_is_over_leaves_its_order_in_doubt() {
    let rig = rig();
    rig.gateway.will([http(429, "Too many requests").placed()]);
    let a = rig.start("a", ORDER);
    sleep(Duration::from_millis(300)).await;
    rig.between.token(1);
    rig.gateway.0.lock().dead.push(OLD);
    assert_eq!(a.await.unwrap(), Told::Unresolved("session_changed", vec![], 0));
    assert_eq!(rig.gateway.posts(), 1);
}

/// Only its own session's list shows it.
#[tokio::test(start_paused = true)]
async fn a_renewal_does_not_strand_an_order_that_is_listed_in_its_own_session() {
    let rig = rig();
    rig.gateway.will([gw504().placed_after(s(9))]);
    let a = rig.start("a", ORDER);
    sleep(s(3)).await;
    rig.between.token(1);
    assert_eq!(a.await.unwrap(), Told::Recovered("o1".into()));
    assert_eq!(rig.gateway.posts(), 1);
    rig.audit();
}

/// With orders of two sessions in doubt both lists are read in turn, no more than one a second.
#[tokio::test(start_paused = true)]
async fn orders_of_two_sessions_in_doubt_are_read_for_in_turn() {
    let rig = rig();
    rig.gateway.will([gw504(), gw504().placed_after(s(12))]);
    let a = rig.start("a", ORDER);
    sleep(s(2)).await;
    rig.between.token(1);
    let b = rig.start("b", &order(75));
    assert_eq!(b.await.unwrap(), Told::Recovered("o1".into()));
    assert_eq!(a.await.unwrap(), unresolved("not_observed"));
    let gets = rig.gateway.0.lock().gets.clone();
    // A session's list is read at once before an order leaves in it; the others keep their distance.
    let close = gets.windows(2).filter(|pair| pair[1] - pair[0] < s(1)).count();
    assert!(close <= 2, "{gets:?}");
    rig.audit();
}

/// What is not in doubt any more has no token that anybody reads with.
#[tokio::test(start_paused = true)]
async fn a_token_goes_with_the_last_order_of_its_session() {
    let rig = rig();
    let kept = || !rig.ledger.trace(None).iter().any(|step| matches!(step.event, Event::SessionLost(_)));
    rig.place("a", ORDER).await;
    rig.between.token(1);
    assert!(kept());
    rig.gateway.will([gw504()]);
    assert!(matches!(rig.place("b", &order(75)).await, Told::Resent(_)));
    assert!(!kept(), "nothing of the session that is over is kept");
    let tokens = tokens(&rig);
    assert_eq!(tokens.iter().filter(|token| *token == OLD).count(), 1, "the baseline: {tokens:?}");
    rig.audit();
}
