//! Tests the end of a shutdown that could read no list.

use std::time::Duration;

use steadfast_call::{Call, ext};
use steadfast_dedup::{Event, ListShows, OrderEvent, OrdersScope, Settings};
use tokio::time::sleep;

use crate::{
    gateway::{Place, Read, ReadReply, Reply, ack, read},
    rig::{ORDER, Rig, Told, market, order},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// An order that is answered with an invented identifier and not placed.
fn invented(id: &'static str) -> Place {
    Place { apply: None, ..ack().reply(Reply::AckId(id)) }
}

/// Returns the identifiers that no list has confirmed, as reported.
fn unconfirmed(rig: &Rig) -> Vec<(u64, String)> {
    let told = rig.events().into_iter().filter_map(|event| match event {
        OrderEvent::AckUnconfirmed { intent, order_id, candidates, .. } => {
            assert_eq!(candidates, [""; 0]);
            Some((intent.0, order_id))
        }
        _ => None,
    });
    told.collect()
}

/// Regression: identifiers were invented, no list could be read, and a shutdown ended without a word.
#[tokio::test(start_paused = true)]
async fn o06_a_shutdown_that_reads_no_list_reports_what_was_acknowledged() {
    let hanging = Read { before: s(3_600), ..read(ReadReply::List) };
    let lists = [500, 429, 403, 401].map(|status| read(ReadReply::Http(status))).into_iter().chain([
        read(ReadReply::Aged),
        read(ReadReply::Cached("HIT")),
        read(ReadReply::Raw("<html>".into())),
        read(ReadReply::Raw(r#"{"s":"ok","d":[{"orderId""#.into())),
        read(ReadReply::Lost),
        hanging,
    ]);
    for list in lists {
        let rig = Rig::new();
        rig.gateway.always(list.clone());
        rig.gateway.will([invented("x"), invented("y")]);
        let named = async || {
            let mut request = rig.request("a", ORDER);
            Call::of_mut(request.extensions_mut()).set_intent(ext::IntentId::new("a"));
            rig.send(request).await
        };
        assert_eq!(named().await, Told::Placed("x".into()));
        assert_eq!(rig.place("b", &market()).await, Told::Placed("y".into()));
        rig.tracker.shutdown().await;
        assert_eq!(unconfirmed(&rig), [(0, "x".into()), (1, "y".into())], "{list:?}");
        assert_eq!((rig.tracker.tally().ack_unconfirmed, rig.tracker.in_doubt()), (2, 0));
        rig.tracker.shutdown().await;
        assert_eq!(unconfirmed(&rig).len(), 2, "once");
        // The identifier may be right, so a repeat of the name sends nothing.
        assert_eq!(named().await, Told::Attached("x".into()));
        assert_eq!(rig.gateway.posts(), 2);
    }
}

/// Only the orders that no list has shown are reported.
#[tokio::test(start_paused = true)]
async fn o06_an_order_that_a_list_has_shown_needs_no_other_list() {
    let rig = Rig::new();
    assert_eq!(rig.place("a", ORDER).await, Told::Placed("o1".into()));
    sleep(s(20)).await;
    rig.gateway.always(read(ReadReply::Http(500)));
    assert_eq!(rig.place("b", &order(3)).await, Told::Placed("o2".into()));
    rig.tracker.shutdown().await;
    assert_eq!(unconfirmed(&rig), [(1, "o2".into())]);
}

/// The first list lacks the order, and no second one can be read.
#[tokio::test(start_paused = true)]
async fn o06_an_order_that_one_list_lacks_is_unconfirmed() {
    let rig = Rig::new();
    rig.place("a", &order(3)).await;
    rig.gateway.will([invented("ghost")]);
    rig.place("b", ORDER).await;
    sleep(Duration::from_millis(16_500)).await;
    rig.gateway.always(read(ReadReply::Http(500)));
    rig.tracker.shutdown().await;
    assert_eq!(unconfirmed(&rig), [(1, "ghost".into())]);
}

/// Lists that lose orders neither confirm nor contradict one.
#[tokio::test(start_paused = true)]
async fn o06_lists_that_lose_orders_leave_an_order_unconfirmed() {
    let rig = Rig::new();
    rig.place("a", &order(3)).await;
    sleep(s(40)).await;
    rig.gateway.will([invented("ghost")]);
    rig.gateway.always(read(ReadReply::Without(vec!["o1"])));
    rig.place("b", ORDER).await;
    rig.tracker.shutdown().await;
    assert_eq!(unconfirmed(&rig), [(1, "ghost".into())]);
}

#[tokio::test(start_paused = true)]
async fn o06_lists_that_can_be_read_raise_no_alarm() {
    // Shown at once, late, or after reads that failed.
    for (lag, failing) in [(0, 0), (14_000, 0), (0, 4), (14_000, 4)] {
        let rig = Rig::new();
        rig.gateway.will([Place { lag: Duration::from_millis(lag), ..ack() }]);
        rig.place("a", ORDER).await;
        rig.gateway.reads((0..failing).map(|_| read(ReadReply::Http(500))));
        rig.tracker.shutdown().await;
        assert_eq!(unconfirmed(&rig), [], "{lag} {failing}");
    }
    // Contradicted, which is an event of its own; and an order that may have ended at once.
    for order in [ORDER, &market()] {
        let rig = Rig::new();
        rig.gateway.will([invented("ghost")]);
        rig.place("a", order).await;
        rig.tracker.shutdown().await;
        assert_eq!(unconfirmed(&rig), []);
    }
    // Lists that hide some orders are not asked.
    let rig = Rig::with(Settings::default().list_shows(ListShows::SomeStatuses));
    rig.gateway.always(read(ReadReply::Http(500)));
    rig.place("a", ORDER).await;
    rig.tracker.shutdown().await;
    assert_eq!(unconfirmed(&rig), []);
}

/// The list of a new session does not show the orders of the one before.
#[tokio::test(start_paused = true)]
async fn o06_a_session_that_is_over_raises_no_alarm_while_lists_can_be_read() {
    for (list, told) in [(ReadReply::List, &[][..]), (ReadReply::Http(500), &[(0, "o1"), (1, "o2")])] {
        let rig = Rig::with(Settings::default().orders_scope(OrdersScope::Session));
        rig.gateway.0.lock().by_session = true;
        rig.between.authorizes();
        rig.place("a", &order(3)).await;
        rig.between.token(1);
        rig.place("b", ORDER).await;
        rig.gateway.always(read(list));
        rig.tracker.shutdown().await;
        let seen = unconfirmed(&rig);
        let seen: Vec<_> = seen.iter().map(|(intent, id)| (*intent, id.as_str())).collect();
        assert_eq!(seen, told);
    }
}

/// An order that is acknowledged while the shutdown goes on is the next shutdown's.
#[tokio::test(start_paused = true)]
async fn o06_an_order_placed_during_a_shutdown_is_the_next_ones() {
    let rig = Rig::new();
    rig.gateway.always(read(ReadReply::Http(500)));
    rig.place("a", ORDER).await;
    let later = async {
        sleep(s(10)).await;
        rig.place("b", &order(3)).await
    };
    let ((), told) = tokio::join!(rig.tracker.shutdown(), later);
    assert_eq!((told, unconfirmed(&rig)), (Told::Placed("o2".into()), vec![(0, "o1".into())]));
    rig.tracker.shutdown().await;
    assert_eq!(unconfirmed(&rig), [(0, "o1".into()), (1, "o2".into())]);
    let looks = rig.tracker.trace(None).iter().filter(|step| matches!(step.event, Event::LastLook)).count();
    assert_eq!(looks, 2);
}
