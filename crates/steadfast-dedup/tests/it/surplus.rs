//! Tests when a listed order counts as one too many, while an acknowledged one is not listed.

use std::time::Duration;

use steadfast_call::{Call, ext};
use steadfast_dedup::{IntentNo, OrderEvent, Reason, Ruling, Unresolved};
use tokio::time::sleep;
use tower::ServiceExt;

use crate::{
    gateway::{Place, Read, ReadReply, Reply, ack, documented, gw504, http, read},
    rig::{ORDER, Rig, Told, market, order},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// An order whose search reads the list, and which is no rival of the others.
fn other() -> String {
    ORDER.replace("INFY", "TCS")
}

/// Places an order that is answered with an invented identifier, and one whose search shows the first one's record.
async fn with_a_wrong_id(rig: &Rig, form: &str) {
    rig.gateway.will([ack().reply(Reply::AckId("ghost")), gw504().placed_after(s(3))]);
    assert_eq!(rig.place("a", form).await, Told::Placed("ghost".into()));
    assert_eq!(rig.place("b", &other()).await, Told::Recovered("o2".into()));
}

/// Returns the orders that no list has confirmed, as reported, with the candidates of each.
fn unconfirmed(rig: &Rig) -> Vec<(String, Vec<String>)> {
    let told = rig.events().into_iter().filter_map(|event| match event {
        OrderEvent::AckUnconfirmed { order_id, candidates, .. } => Some((order_id, candidates)),
        _ => None,
    });
    told.collect()
}

/// True if the first order was found under its right identifier.
fn is_corrected(rig: &Rig) -> bool {
    let is_found = |event: &OrderEvent| matches!(event, OrderEvent::Recovered { intent, order_id, .. } if intent.0 == 0 && order_id == "o1");
    rig.events().iter().any(is_found)
}

/// Regression: the order of a wrong answer was reported as one too many before it turned out to be its own.
#[tokio::test(start_paused = true)]
async fn o06_an_order_that_may_be_an_acknowledged_one_is_not_one_too_many() {
    let rig = Rig::new();
    // The list is read for another order, and shows the first one under an identifier that no answer named.
    with_a_wrong_id(&rig, ORDER).await;
    sleep(s(200)).await;
    assert_eq!(rig.flagged(), [""; 0]);
    assert!(is_corrected(&rig), "{:?}", rig.events());
    rig.check();
}

/// Regression: the order of a wrong answer was reported as a refused one that had been placed, and then as its own.
#[tokio::test(start_paused = true)]
async fn o06_an_order_that_may_be_an_acknowledged_one_was_not_refused() {
    for refused in [http(429, "Too many requests"), documented(403)] {
        let rig = Rig::new();
        rig.between.repeats_nothing();
        rig.gateway.will([refused]);
        assert!(matches!(rig.place("refused", ORDER).await, Told::Answer(_)));
        with_a_wrong_id(&rig, ORDER).await;
        sleep(s(200)).await;
        assert_eq!(rig.flagged(), [""; 0]);
        let is_found =
            |event: &OrderEvent| matches!(event, OrderEvent::Recovered { order_id, .. } if order_id == "o1");
        assert!(rig.events().iter().any(is_found), "{:?}", rig.events());
        rig.check();
    }
}

/// It is told once the acknowledged one is listed.
#[tokio::test(start_paused = true)]
async fn o06_a_refused_order_is_told_once_the_acknowledged_one_is_listed() {
    let rig = Rig::new();
    rig.between.repeats_nothing();
    rig.gateway.will([http(429, "Too many requests").placed_after(s(4))]);
    assert_eq!(rig.place("refused", ORDER).await, Told::Answer(429));
    rig.gateway.will([Place { lag: s(8), ..ack() }, gw504().placed_after(s(3))]);
    assert_eq!(rig.place("a", ORDER).await, Told::Placed("o2".into()));
    assert_eq!(rig.place("b", &other()).await, Told::Recovered("o3".into()));
    sleep(s(2)).await;
    assert_eq!(rig.flagged(), [""; 0], "it may be the acknowledged one");
    sleep(s(20)).await;
    assert_eq!(rig.flagged(), ["o1"]);
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn o06_an_order_too_many_is_told_once_the_acknowledged_one_is_listed() {
    let rig = Rig::new();
    rig.gateway.will([Place { lag: s(5), ..ack() }, gw504().placed_after(s(3))]);
    assert_eq!(rig.place("a", ORDER).await, Told::Placed("o1".into()));
    assert_eq!(rig.gateway.foreign(ORDER, |_| {}), "o2");
    assert_eq!(rig.place("b", &other()).await, Told::Recovered("o3".into()));
    assert_eq!(rig.flagged(), [""; 0], "it may be the first one's");
    sleep(s(20)).await;
    assert_eq!(rig.flagged(), ["o2"]);
    rig.audit();
}

/// Regression: the wait ended with the clock, while the lists that contradict the identifier were still being read.
#[tokio::test(start_paused = true)]
async fn o06_slow_lists_do_not_make_an_order_one_too_many() {
    for took in [1, 2, 3, 5, 8, 14, 25] {
        let rig = Rig::new();
        // All but the baseline.
        rig.gateway.reads([read(ReadReply::List)]);
        rig.gateway.always(Read { before: s(took), ..read(ReadReply::List) });
        with_a_wrong_id(&rig, ORDER).await;
        sleep(s(200)).await;
        assert_eq!(rig.flagged(), [""; 0], "{took} s");
        assert!(is_corrected(&rig), "{took} s: {:?}", rig.events());
        rig.check();
    }
}

/// Regression: the same, where no list could be read around the lateness bound.
#[tokio::test(start_paused = true)]
async fn o06_lists_that_fail_around_the_bound_do_not_make_an_order_one_too_many() {
    let ways = [ReadReply::Http(500), ReadReply::Http(429), ReadReply::Aged, ReadReply::Lost];
    for (from, until) in [(10, 15), (10, 20), (12, 17), (14, 30), (5, 300)] {
        for way in &ways {
            let rig = Rig::new();
            with_a_wrong_id(&rig, ORDER).await;
            sleep(s(from)).await;
            rig.gateway.always(read(way.clone()));
            sleep(s(until - from)).await;
            rig.gateway.0.lock().always = None;
            sleep(s(120)).await;
            assert_eq!(rig.flagged(), [""; 0], "{way:?} {from}..{until}");
            assert!(is_corrected(&rig), "{way:?} {from}..{until}: {:?}", rig.events());
            rig.check();
        }
    }
}

/// Regression: lists failed for good, and the order of a wrong answer was reported as one too many.
#[tokio::test(start_paused = true)]
async fn o06_a_shutdown_without_lists_names_the_order_as_a_candidate() {
    let rig = Rig::new();
    with_a_wrong_id(&rig, ORDER).await;
    rig.gateway.always(read(ReadReply::Http(500)));
    sleep(s(600)).await;
    assert_eq!((rig.flagged(), unconfirmed(&rig)), (vec![], vec![]));
    rig.tracker.shutdown().await;
    let told = [("ghost".to_owned(), vec!["o1".to_owned()])];
    assert_eq!((rig.flagged(), unconfirmed(&rig)), (vec![], told.to_vec()));
    rig.check();
    // The process goes on, and lists can be read again.
    rig.gateway.0.lock().always = None;
    sleep(s(120)).await;
    assert!(is_corrected(&rig), "{:?}", rig.events());
    assert_eq!((rig.flagged(), unconfirmed(&rig)), (vec![], told.to_vec()), "once");
}

/// A report that is held back is made before the process may end, although no list is read any more.
#[tokio::test(start_paused = true)]
async fn o06_a_shutdown_tells_of_an_order_too_many_that_was_held_back() {
    let rig = Rig::new();
    rig.gateway.will([Place { lag: s(5), ..ack() }, gw504().placed_after(s(3))]);
    assert_eq!(rig.place("a", ORDER).await, Told::Placed("o1".into()));
    rig.gateway.foreign(ORDER, |_| {});
    rig.place("b", &other()).await;
    rig.gateway.always(read(ReadReply::Http(503)));
    rig.tracker.shutdown().await;
    let told = [("o1".to_owned(), vec!["o2".to_owned()])];
    assert_eq!((rig.flagged(), unconfirmed(&rig)), (vec![], told.to_vec()));
    // A list shows the identifier after all, so the other one is one too many.
    rig.gateway.0.lock().always = None;
    sleep(s(60)).await;
    assert_eq!((rig.flagged(), unconfirmed(&rig)), (vec!["o2".to_owned()], told.to_vec()));
    rig.audit();
}

/// An acknowledged order that may not be listed, because it may have ended, is never contradicted.
#[tokio::test(start_paused = true)]
async fn o06_an_order_that_may_have_ended_is_named_beside_the_listed_one() {
    let rig = Rig::new();
    with_a_wrong_id(&rig, &market()).await;
    sleep(s(200)).await;
    assert_eq!(rig.flagged(), [""; 0]);
    assert_eq!(unconfirmed(&rig), [("ghost".to_owned(), vec!["o1".to_owned()])]);
    rig.check();
}

/// Regression: a second order was named only as a candidate of another one that was acknowledged and not listed.
#[tokio::test(start_paused = true)]
async fn o06_a_second_order_of_another_quantity_is_one_too_many() {
    let rig = Rig::new();
    let invented = Place { apply: None, ..ack().reply(Reply::AckId("ghost")) };
    rig.gateway.will([invented, Place { copies: 2, ..ack() }]);
    assert_eq!(rig.place("a", ORDER).await, Told::Placed("ghost".into()));
    assert_eq!(rig.place("b", &order(5)).await, Told::Placed("o1".into()));
    sleep(s(300)).await;
    assert_eq!(rig.flagged(), ["o2"]);
    let candidates = rig.events().into_iter().find_map(|event| match event {
        OrderEvent::Unresolved { intent, unresolved, .. } if intent.0 == 0 => Some(unresolved.candidates),
        _ => None,
    });
    assert_eq!(candidates, Some(vec!["o2".to_owned()]), "it may have been changed elsewhere");
    rig.check();
}

/// Regression: once a person had ruled, the candidates that were left were never reported.
#[tokio::test(start_paused = true)]
async fn o06_a_ruling_leaves_the_other_candidates_too_many() {
    let placed = Ruling::Placed { order_id: "o2".into() };
    for (ruling, left) in [(placed, &["o3"][..]), (Ruling::NotPlaced, &["o2", "o3"])] {
        let rig = Rig::new();
        // No list is known before the orders.
        rig.gateway.reads([read(ReadReply::Http(500)), read(ReadReply::Http(500))]);
        rig.gateway.will([ack(), Place { copies: 2, ..gw504().placed() }]);
        assert_eq!(rig.place("a", ORDER).await, Told::Placed("o1".into()));
        let candidates = vec!["o2".to_owned(), "o3".to_owned()];
        assert_eq!(rig.place("b", ORDER).await, Told::Unresolved("no_baseline", candidates, 504));
        assert_eq!(rig.flagged(), [""; 0]);
        rig.tracker.resolve(None, IntentNo(1), ruling).unwrap();
        // The next list shows them again.
        sleep(s(40)).await;
        assert_eq!(rig.flagged(), left);
        sleep(s(4_000)).await;
        assert_eq!(rig.flagged(), left, "once");
        rig.check();
    }
}

/// Regression: the result of an order that no list shows did not say which identifier its answer had named.
#[tokio::test(start_paused = true)]
async fn o06_an_order_that_no_list_shows_keeps_the_id_of_its_answer() {
    let rig = Rig::new();
    rig.gateway.will([Place { apply: None, ..ack().reply(Reply::AckId("ghost")) }]);
    let named = || {
        let mut request = rig.request("a", ORDER);
        Call::of_mut(request.extensions_mut()).set_intent(ext::IntentId::new("a"));
        request
    };
    assert_eq!(rig.send(named()).await, Told::Placed("ghost".into()));
    sleep(s(200)).await;
    let told = rig.service.clone().oneshot(named()).await.unwrap_err();
    let unresolved = Unresolved::find(&*told).unwrap();
    let is = (unresolved.reason, unresolved.answered.as_deref());
    assert_eq!(is, (Reason::AcceptedUnknownId, Some("ghost")));
    assert_eq!(rig.gateway.posts(), 1);
    rig.check();
}

/// Returns accounts in which an order in doubt was found and an equal one acknowledged, while one more comes later: the own
/// one of the order that was in doubt, twenty seconds after the page that answered it.
async fn with_one_too_many() -> Vec<Rig> {
    let refused = [http(429, "Too many requests").placed_after(s(8)), ack()];
    let applied_twice = [Place { copies: 2, lag: s(8), ..ack() }];
    let mut rigs = Vec::new();
    for equal in [refused.to_vec(), applied_twice.to_vec()] {
        let rig = Rig::new();
        rig.gateway.will([ack().reply(Reply::Answer(504, "<html>")).placed_after(s(20))]);
        let first = rig.start("a", ORDER);
        sleep(Duration::from_millis(500)).await;
        rig.gateway.will(equal);
        assert!(matches!(rig.place("b", ORDER).await, Told::Placed(_)));
        assert!(matches!(first.await.unwrap(), Told::Recovered(_)));
        assert_eq!(rig.tracker.in_doubt(), 0);
        rigs.push(rig);
    }
    rigs
}

/// Regression: the order was found, so no list was read any more that would have shown its own.
#[tokio::test(start_paused = true)]
async fn o09_an_order_too_many_is_told_although_none_is_in_doubt() {
    for rig in with_one_too_many().await {
        // T_gw and the lateness bound after the first one was sent, and five seconds.
        sleep(s(30 + 15 + 5)).await;
        assert_eq!(rig.gateway.0.lock().orders.len(), 3);
        assert_eq!(rig.flagged().len(), 1, "{:?}", rig.events());
        rig.audit();
    }
}

#[tokio::test(start_paused = true)]
async fn o09_a_shutdown_waits_for_an_order_too_many() {
    for rig in with_one_too_many().await {
        rig.tracker.shutdown().await;
        assert_eq!(rig.flagged().len(), 1, "{:?}", rig.events());
        rig.audit();
    }
}
