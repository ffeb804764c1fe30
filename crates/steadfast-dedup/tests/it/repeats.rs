//! Tests repeats, under the same name, of orders that the service refused.

use std::time::Duration;

use http::Request;
use serde_json::json;
use steadfast_call::{Call, ext};
use steadfast_dedup::{ResendPolicy, Settings};
use tokio::time::{Instant, sleep, timeout};

use crate::{
    combined::look,
    gateway::{Body, Place, ReadReply, ack, documented, gw504, http, read},
    policies::day_with,
    rig::{ORDER, Rig, Told, order},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn named(rig: &Rig, name: &str, form: &str) -> Request<Body> {
    let mut request = rig.request(name, form);
    Call::of_mut(request.extensions_mut()).set_intent(ext::IntentId::new(name));
    request
}

/// Regression: a list that showed it in a form of its own released the repeat, and a second order left.
#[tokio::test(start_paused = true)]
async fn o05_a_refused_name_is_not_sent_again_if_the_order_is_listed_loosely() {
    let edits: [fn(Place) -> Place; 3] = [
        |place| place.edit(|record| drop(record.remove("qty"))),
        |place| place.edit(|record| drop(record.insert("limitPrice".into(), json!("99.5")))),
        |place| place.edit(|record| drop(record.insert("side".into(), json!("B")))),
    ];
    for (n, edit) in edits.into_iter().enumerate() {
        // A list that is read before the repeat drops the record, because no order in doubt can own it.
        for listed_before in [true, false] {
            let rig = Rig::new();
            assert_eq!(rig.place("z", &order(3)).await, Told::Placed("o1".into()));
            rig.gateway.will([edit(documented(400).placed())]);
            assert_eq!(rig.send(named(&rig, "n", ORDER)).await, Told::Answer(400));
            sleep(s(5)).await;
            let posts = if listed_before {
                rig.gateway.will([gw504().placed()]);
                let other = ORDER.replace("INFY", "TCS");
                assert_eq!(rig.place("b", &other).await, Told::Recovered("o3".into()));
                3
            } else {
                2
            };
            sleep(s(15)).await;
            let told = rig.send(named(&rig, "n", ORDER)).await;
            let unresolved = Told::Unresolved("near_match", vec!["o2".into()], 0);
            assert_eq!((told, rig.gateway.posts()), (unresolved, posts), "{n}, {listed_before}");
            rig.audit();
        }
    }
}

/// Regression: a hundred orders of others took the room in which it would have been seen.
#[tokio::test(start_paused = true)]
async fn o05_a_refused_name_is_not_sent_again_if_strangers_hide_the_order() {
    let rig = Rig::new();
    // A hundred are kept as strange ones, and leave no room for others of the same key.
    for _ in 0..200 {
        rig.gateway.foreign(&order(7), |_| {});
    }
    assert_eq!(rig.place("z", &order(3)).await, Told::Placed("o201".into()));
    let refusal = documented(400).placed_after(s(8)).answered_after(s(5));
    rig.gateway.will([refusal.edit(|record| drop(record.remove("qty"))), gw504().placed()]);
    // A list is read before its answer: after the answer, the next one shows all records again.
    let other = ORDER.replace("INFY", "TCS");
    let (refused, other) = tokio::join!(rig.send(named(&rig, "n", ORDER)), rig.place("b", &other));
    assert_eq!((refused, other), (Told::Answer(400), Told::Recovered("o203".into())));
    let told = rig.send(named(&rig, "n", ORDER)).await;
    let unresolved = Told::Unresolved("near_match", vec!["o202".into()], 0);
    assert_eq!((told, rig.gateway.posts()), (unresolved, 3));
}

/// Regression: the next day forgot the order, and its list released the repeat.
#[tokio::test(start_paused = true)]
async fn o05_a_name_rejected_before_midnight_and_repeated_after_it_is_in_doubt() {
    for placed in [true, false] {
        let rig = Rig::on(day_with(s(100)));
        rig.gateway.0.lock().midnight = Some(Instant::now() + s(100));
        assert_eq!(rig.place("z", &order(3)).await, Told::Placed("o1".into()));
        sleep(s(97)).await;
        let refusal = documented(400);
        rig.gateway.will([if placed { refusal.placed_after(s(8)) } else { refusal }]);
        assert_eq!(rig.send(named(&rig, "n", ORDER)).await, Told::Answer(400));
        sleep(s(5)).await;
        let told = rig.send(named(&rig, "n", ORDER)).await;
        assert_eq!((told, rig.gateway.posts()), (Told::Unresolved("epoch_changed", vec![], 0), 2));
        rig.audit();
    }
}

/// Regression: an equal order of the day before was a candidate for the listed one, so that the list of the next day
/// released the repeat.
#[tokio::test(start_paused = true)]
async fn o05_a_repeat_that_waits_at_midnight_is_in_doubt() {
    let rig = Rig::on(day_with(s(100)));
    sleep(s(90)).await;
    rig.gateway.will([ack(), documented(403).placed()]);
    assert_eq!(rig.place("z", ORDER).await, Told::Placed("o1".into()));
    assert_eq!(rig.send(named(&rig, "n", ORDER)).await, Told::Answer(403));
    let told = rig.send(named(&rig, "n", ORDER)).await;
    assert_eq!((told, rig.gateway.posts()), (Told::Unresolved("epoch_changed", vec![], 0), 2));
}

#[tokio::test(start_paused = true)]
async fn a_name_rejected_on_the_day_before_is_free_once_midnight_is_over() {
    let rig = Rig::on(day_with(s(100)));
    assert_eq!(rig.place("z", &order(3)).await, Told::Placed("o1".into()));
    rig.gateway.will([documented(400)]);
    assert_eq!(rig.send(named(&rig, "n", ORDER)).await, Told::Answer(400));
    sleep(s(1_000)).await;
    let asked = Instant::now();
    assert_eq!(rig.send(named(&rig, "n", ORDER)).await, Told::Placed("o2".into()));
    assert!(asked.elapsed() < s(5), "it waits for no list");
}

/// Regression: the order was forgotten before its name, so that no list could show it.
#[tokio::test(start_paused = true)]
async fn o05_a_refused_name_outlives_a_thousand_later_refusals() {
    let rig = Rig::new();
    rig.gateway.will([documented(400).placed()]);
    rig.gateway.will((0..1_001).map(|_| documented(400).answered_after(Duration::ZERO)));
    assert_eq!(rig.send(named(&rig, "n", ORDER)).await, Told::Answer(400));
    for other in 0..1_001 {
        let name = format!("n{other}");
        assert_eq!(rig.send(named(&rig, &name, &order(3))).await, Told::Answer(400));
    }
    sleep(s(15)).await;
    let told = rig.send(named(&rig, "n", ORDER)).await;
    assert_eq!((told, rig.gateway.posts()), (Told::Attached("o1".into()), 1_002));
}

/// Regression: it waited for ever, and so did a shutdown.
#[tokio::test(start_paused = true)]
async fn o05_a_repeat_waits_no_longer_than_a_search_for_a_valid_list() {
    for status in [403, 500] {
        let rig = Rig::new();
        rig.gateway.always(read(ReadReply::Http(status)));
        rig.gateway.will([documented(400)]);
        assert_eq!(rig.send(named(&rig, "n", ORDER)).await, Told::Answer(400));
        let start = Instant::now();
        let told = timeout(s(600), rig.send(named(&rig, "n", ORDER))).await.expect("it ends");
        assert_eq!((told, rig.gateway.posts()), (Told::Unresolved("unverifiable", vec![], 0), 1));
        assert!(start.elapsed() <= s(106), "{:?}", start.elapsed());
        timeout(s(60), rig.tracker.shutdown()).await.expect("so does a shutdown");
    }
}

/// Regression: it waited without a bound, while the list was read once a second.
#[tokio::test(start_paused = true)]
async fn o05_a_name_refused_before_midnight_and_repeated_after_it_is_in_doubt() {
    let rig = Rig::on(day_with(s(100)));
    rig.between.repeats_nothing();
    assert_eq!(rig.place("z", &order(3)).await, Told::Placed("o1".into()));
    sleep(s(60)).await;
    rig.gateway.will([http(429, "Too many requests")]);
    assert_eq!(rig.send(named(&rig, "n", ORDER)).await, Told::Answer(429));
    sleep(s(100)).await;
    let gets = rig.gateway.gets();
    let told = timeout(s(60), rig.send(named(&rig, "n", ORDER))).await.expect("it ends");
    assert_eq!((told, rig.gateway.posts()), (Told::Unresolved("epoch_changed", vec![], 0), 2));
    sleep(s(60)).await;
    assert!(rig.gateway.gets() - gets < 5, "{}", rig.gateway.gets() - gets);
    rig.audit();
}

/// Regression: the list gave it to an equal order that was given up before, and released the repeat.
#[tokio::test(start_paused = true)]
async fn o05_a_refused_name_is_not_sent_again_if_an_equal_order_got_what_is_listed() {
    let rig = Rig::with(Settings::default().resend(ResendPolicy::Never));
    assert_eq!(rig.place("z", &order(3)).await, Told::Placed("o1".into()));
    rig.gateway.will([gw504()]);
    assert_eq!(rig.place("a", ORDER).await, Told::Unresolved("not_observed", vec![], 504));
    rig.gateway.will([documented(403).placed()]);
    assert_eq!(rig.send(named(&rig, "n", ORDER)).await, Told::Answer(403));
    let told = rig.send(named(&rig, "n", ORDER)).await;
    let unresolved = Told::Unresolved("near_match", vec!["o2".into()], 0);
    assert_eq!((told, rig.gateway.posts()), (unresolved, 3));
}

/// Regression: the list's order was reported as the late one of an equal order that was sent again, and released the
/// repeat.
#[tokio::test(start_paused = true)]
async fn o05_a_refused_name_is_not_sent_again_if_what_is_listed_counts_as_an_equal_orders_late_one() {
    let rig = Rig::new();
    assert_eq!(rig.place("z", &order(3)).await, Told::Placed("o1".into()));
    rig.gateway.will([gw504()]);
    assert_eq!(rig.place("a", ORDER).await, Told::Resent("o2".into()));
    rig.gateway.will([documented(403).placed()]);
    assert_eq!(rig.send(named(&rig, "n", ORDER)).await, Told::Answer(403));
    let told = rig.send(named(&rig, "n", ORDER)).await;
    let unresolved = Told::Unresolved("near_match", vec!["o3".into()], 0);
    assert_eq!((told, rig.gateway.posts()), (unresolved, 4));
}

/// Regression: a caller's list showed its order while the answer was awaited, and the next list did not show it again.
#[tokio::test(start_paused = true)]
async fn o05_a_refused_name_is_not_sent_again_if_a_callers_list_showed_its_order_before_the_answer() {
    let rig = Rig::new();
    assert_eq!(rig.place("z", ORDER).await, Told::Placed("o1".into()));
    rig.gateway.will([documented(403).placed().answered_after(s(2))]);
    let refused = rig.send(named(&rig, "n", ORDER));
    let (told, ()) = tokio::join!(refused, async {
        sleep(s(1)).await;
        look(&rig).await.unwrap();
    });
    assert_eq!(told, Told::Answer(403));
    let told = rig.send(named(&rig, "n", ORDER)).await;
    let unresolved = Told::Unresolved("near_match", vec!["o2".into()], 0);
    assert_eq!((told, rig.gateway.posts()), (unresolved, 2));
}

/// Regression: an order left under a name that the journal wrote and could not read again, so that the next process knew nothing
/// of it.
#[tokio::test(start_paused = true)]
async fn an_order_whose_name_the_journal_could_not_hold_is_not_sent() {
    let rig = Rig::new();
    let told = rig.send(named(&rig, &"n".repeat(1_025), ORDER)).await;
    assert!(matches!(&told, Told::NotSent(why) if why.contains("longer than 1,024 bytes")), "{told:?}");
    assert_eq!(rig.gateway.posts(), 0);
    assert_eq!(rig.send(named(&rig, &"n".repeat(1_024), ORDER)).await, Told::Placed("o1".into()));
    rig.audit();
}

/// Regression: a corrected order was told as placed under the id of the one before, whose terms it no longer had.
#[tokio::test(start_paused = true)]
async fn o05_another_order_under_the_name_of_a_rejected_one_that_exists_is_withheld() {
    for (from, to) in [("qty=10", "qty=33"), ("side=buy", "side=sell"), ("INFY", "TCS")] {
        let rig = Rig::new();
        assert_eq!(rig.place("z", &order(3)).await, Told::Placed("o1".into()));
        rig.gateway.will([documented(400).placed_after(s(4))]);
        assert_eq!(rig.send(named(&rig, "n", ORDER)).await, Told::Answer(400));
        let corrected = ORDER.replace(from, to);
        assert_ne!(corrected, ORDER);
        let told = rig.send(named(&rig, "n", &corrected)).await;
        assert_eq!(told, Told::NotSent("intent id \"n\" stands for another order".into()), "{to}");
        assert_eq!(rig.gateway.posts(), 2);
    }
}
