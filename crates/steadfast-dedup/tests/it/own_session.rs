//! Tests orders in doubt in a past session: their own token is used as long as it is accepted.

use std::time::Duration;

use steadfast_call::{Call, ext};
use steadfast_dedup::{Event, OrderEvent};
use tokio::time::sleep;

use crate::{
    gateway::{ReadReply, documented, gw504, http, read},
    rig::{ORDER, Rig, Told, order},
};

const OLD: &str = "Bearer key:token-0";
const NEW: &str = "Bearer key:token-1";

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Returns a rig with requests that carry their token's header, and lists of one session.
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

/// S36, with the old token still accepted: its list counts, and nothing is sent again in another session.
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

/// S36, with the old token refused: it is tried once, and the current one is used from then on.
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

/// Regression: after a 429 for a placed order, another session's list lacked the order and confirmed the refusal.
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

fn reported(rig: &Rig) -> Vec<&'static str> {
    let told = rig.events().into_iter().filter_map(|event| match event {
        OrderEvent::RefusedButPlaced { order_id, .. } if order_id == "o1" => Some("refused but placed"),
        OrderEvent::LateDuplicate { order_id, .. } if order_id == "o1" => Some("late"),
        OrderEvent::RefusalUnconfirmed { intent, .. } if intent.0 == 0 => Some("unconfirmed"),
        OrderEvent::Unresolved { unresolved, .. } => Some(unresolved.reason.as_str()),
        _ => None,
    });
    told.collect()
}

/// The caller was told at once, and the list of the next session does not show the order.
#[tokio::test(start_paused = true)]
async fn o05_a_refused_order_is_looked_for_in_its_own_session() {
    for (status, lag) in [(429, 0), (429, 14), (401, 10)] {
        let rig = rig();
        rig.between.repeats_nothing();
        rig.gateway.will([crate::gateway::documented(status).placed_after(s(lag))]);
        assert_eq!(rig.place("a", ORDER).await, Told::Answer(status));
        rig.between.token(1);
        assert_eq!(rig.place("b", &order(75)).await, Told::Placed("o2".into()));
        sleep(s(40)).await;
        let found: Vec<_> = rig.events().into_iter().filter_map(refused_but_placed).collect();
        assert_eq!(found, ["o1"], "{status}, {lag}");
        let own = tokens(&rig).iter().rev().take_while(|token| *token != NEW).count();
        assert!(own <= 1, "the current session's list is read as well");
        assert_eq!(rig.gateway.posts(), 2);
        rig.audit();
    }
}

fn refused_but_placed(event: OrderEvent) -> Option<String> {
    match event {
        OrderEvent::RefusedButPlaced { order_id, .. } => Some(order_id),
        _ => None,
    }
}

/// The same result as without a renewal.
#[tokio::test(start_paused = true)]
async fn o05_an_order_that_is_late_shows_in_its_own_session() {
    let rig = rig();
    rig.gateway.will([gw504().placed_after(s(200))]);
    let a = rig.start("a", ORDER);
    sleep(s(3)).await;
    rig.between.token(1);
    assert_eq!(a.await.unwrap(), unresolved("not_observed"));
    sleep(s(400)).await;
    assert_eq!(reported(&rig), ["not_observed", "late"]);
}

/// The last look reads the lists of all sessions.
#[tokio::test(start_paused = true)]
async fn o05_a_shutdown_looks_into_the_lists_of_sessions_that_are_over() {
    let rig = rig();
    rig.between.repeats_nothing();
    rig.gateway.will([http(429, "Too many requests").placed()]);
    assert_eq!(rig.place("a", ORDER).await, Told::Answer(429));
    rig.between.token(1);
    assert_eq!(rig.place("b", &order(75)).await, Told::Placed("o2".into()));
    rig.tracker.shutdown().await;
    assert_eq!(reported(&rig), ["refused but placed"]);
}

/// Its session was over before any of its lists could be read, and no other session's list shows it.
#[tokio::test(start_paused = true)]
async fn o05_a_429_that_no_list_will_ever_confirm_is_told() {
    for placed in [true, false] {
        let rig = rig();
        rig.between.repeats_nothing();
        let refusal = http(429, "Too many requests");
        rig.gateway.will([if placed { refusal.placed() } else { refusal }]);
        assert_eq!(rig.place("a", ORDER).await, Told::Answer(429));
        rig.between.token(1);
        rig.gateway.0.lock().dead.push(OLD);
        assert!(matches!(rig.place("b", &order(75)).await, Told::Placed(_)));
        sleep(s(40)).await;
        assert_eq!(reported(&rig), ["unconfirmed", "session_changed"], "once");
        assert_eq!(rig.tracker.in_doubt(), 0);
        rig.tracker.shutdown().await;
        assert_eq!(reported(&rig).len(), 2);
        assert_eq!(rig.gateway.posts(), 2);
    }
}

/// Regression: W counted from the send, but the gateway passed the order on when it answered.
#[tokio::test(start_paused = true)]
async fn o05_a_429_that_came_late_is_confirmed_only_w_after_its_answer() {
    let rig = rig();
    rig.between.repeats_nothing();
    rig.gateway.will([http(429, "Too many requests").answered_after(s(14)).placed_after(s(24))]);
    let a = rig.start("a", ORDER);
    sleep(Duration::from_millis(100)).await;
    assert!(matches!(rig.place("z", &order(3)).await, Told::Placed(_)));
    assert_eq!(a.await.unwrap(), Told::Answer(429));
    sleep(s(4)).await;
    let gets = rig.gateway.0.lock().gets.clone();
    assert!(gets.iter().any(|get| get.elapsed() < s(3)), "a list is read W after the send: {gets:?}");
    rig.between.token(1);
    rig.gateway.0.lock().dead.push(OLD);
    assert!(matches!(rig.place("b", &order(75)).await, Told::Placed(_)));
    sleep(s(40)).await;
    assert_eq!(reported(&rig), ["unconfirmed", "session_changed"]);
}

/// The process may end after a shutdown that could read no list.
#[tokio::test(start_paused = true)]
async fn o05_a_429_that_a_shutdown_cannot_confirm_is_told() {
    for (list, told) in [(ReadReply::Http(503), 1), (ReadReply::List, 0)] {
        let rig = rig();
        rig.between.repeats_nothing();
        assert!(matches!(rig.place("a", &order(75)).await, Told::Placed(_)));
        rig.gateway.will([http(429, "Too many requests")]);
        rig.gateway.always(read(list));
        assert_eq!(rig.place("b", ORDER).await, Told::Answer(429));
        rig.tracker.shutdown().await;
        let unconfirmed = |event: &OrderEvent| matches!(event, OrderEvent::RefusalUnconfirmed { .. });
        assert_eq!(rig.events().iter().filter(|event| unconfirmed(event)).count(), told);
        rig.tracker.shutdown().await;
        assert_eq!(rig.events().iter().filter(|event| unconfirmed(event)).count(), told, "once");
    }
}

/// A 401 means that the session is over, which a refused read confirms; a 429 is confirmed by one list, late enough.
#[tokio::test(start_paused = true)]
async fn o05_a_refusal_that_was_confirmed_is_not_doubted() {
    for (status, wait) in [(401, 0), (429, 20)] {
        let rig = rig();
        rig.between.repeats_nothing();
        rig.gateway.will([crate::gateway::documented(status)]);
        assert_eq!(rig.place("a", ORDER).await, Told::Answer(status));
        sleep(s(wait)).await;
        rig.between.token(1);
        rig.gateway.0.lock().dead.push(OLD);
        assert!(matches!(rig.place("b", &order(75)).await, Told::Placed(_)));
        sleep(s(130)).await;
        rig.tracker.shutdown().await;
        assert_eq!(reported(&rig), [""; 0], "{status}");
    }
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

/// With orders of two sessions in doubt, both lists are read in turn, at most one a second.
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
    // A session's list is read at once before an order leaves in it; the other reads keep their distance.
    let close = gets.windows(2).filter(|pair| pair[1] - pair[0] < s(1)).count();
    assert!(close <= 2, "{gets:?}");
    rig.audit();
}

/// Once its last order is decided, a token is not used for reads any more.
#[tokio::test(start_paused = true)]
async fn a_token_goes_with_the_last_order_of_its_session() {
    let rig = rig();
    let kept = || !rig.tracker.trace(None).iter().any(|step| matches!(step.event, Event::SessionLost(_)));
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

/// Regression: the list of the next session cannot show the order, and it released the repeat all the same.
#[tokio::test(start_paused = true)]
async fn o05_a_name_refused_for_good_is_not_released_by_the_list_of_another_session() {
    for (by_session, placed) in [(true, true), (true, false), (false, true), (false, false)] {
        let rig = rig();
        rig.gateway.0.lock().by_session = by_session;
        let named = || {
            let mut request = rig.request("a", ORDER);
            Call::of_mut(request.extensions_mut()).set_intent(ext::IntentId::new("n"));
            request
        };
        assert!(matches!(rig.place("z", &order(3)).await, Told::Placed(_)));
        let refusal = documented(403);
        rig.gateway.will([if placed { refusal.placed() } else { refusal }]);
        assert_eq!(rig.send(named()).await, Told::Answer(403));
        rig.between.token(1);
        rig.gateway.0.lock().dead.push(OLD);
        assert!(matches!(rig.place("b", &order(75)).await, Told::Placed(_)));
        sleep(s(20)).await;
        let told = rig.send(named()).await;
        let expected = match (by_session, placed) {
            (true, _) => (Told::Unresolved("unverifiable", vec![], 0), 3),
            // Its lists show the orders of the session before.
            (false, true) => (Told::Attached("o2".into()), 3),
            (false, false) => (Told::Placed("o3".into()), 4),
        };
        assert_eq!((told, rig.gateway.posts()), expected, "{by_session}, {placed}");
    }
}
