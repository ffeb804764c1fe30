//! Tests orders that the service refused as not executed (401, 429).

use std::time::Duration;

use steadfast_call::{Call, ext};
use steadfast_dedup::{OrderEvent, Settings};
use tokio::time::{Instant, sleep};

use crate::{
    gateway::{Place, Read, ReadReply, ack, documented, gw504, http, read},
    policies::{day_with, unresolved},
    rig::{ORDER, Rig, Told, market, order},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn refusals() -> [Place; 2] {
    [http(401, "Unauthorized"), http(429, "Too many requests")]
}

fn contradicted(rig: &Rig) -> Vec<String> {
    let found = rig.events().into_iter().filter_map(|event| match event {
        OrderEvent::RefusedButPlaced { order_id, .. } => Some(order_id),
        _ => None,
    });
    found.collect()
}

#[tokio::test(start_paused = true)]
async fn o05_an_order_placed_and_refused_is_recovered_and_not_repeated() {
    for refusal in refusals() {
        // Lists lag by up to a second.
        for lag in [0, 300, 900, 999] {
            let rig = Rig::new();
            rig.gateway.will([refusal.clone().placed_after(ms(lag))]);
            assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o1".into()), "{lag}");
            assert_eq!(rig.gateway.posts(), 1, "{lag}");
            rig.audit();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn o05_a_repeat_waits_for_a_list_read_a_second_after_the_refusal() {
    for refusal in refusals() {
        let rig = Rig::new();
        assert_eq!(rig.place("z", &order(3)).await, Told::Placed("o1".into()), "the list is known");
        let mut slow = read(ReadReply::List);
        slow.after = ms(400);
        rig.gateway.reads([slow]);
        rig.gateway.will([refusal]);
        let start = Instant::now();
        assert_eq!(rig.place("a", ORDER).await, Told::Placed("o2".into()));
        let book = rig.gateway.0.lock();
        let refused = start + ms(50);
        assert_eq!(book.gets.len(), 2);
        assert!(book.gets[1] >= refused + s(1) && book.gets[1] < refused + ms(1_100));
        assert!(book.posts[2].0 >= book.gets[1] + ms(400), "the list is in before the repeat leaves");
    }
}

/// A list that failed, or that proves nothing, confirms no refusal.
#[tokio::test(start_paused = true)]
async fn o05_a_failed_look_leaves_a_refused_order_in_doubt() {
    let failures = [ReadReply::Http(500), ReadReply::Lost, ReadReply::Aged, ReadReply::Raw("<html>".into())];
    for (refusal, failure) in
        refusals().into_iter().flat_map(|place| failures.clone().map(|read| (place.clone(), read)))
    {
        for placed in [Some(s(3)), None] {
            let rig = Rig::new();
            assert_eq!(rig.place("z", &order(3)).await, Told::Placed("o1".into()));
            rig.gateway.reads([read(failure.clone())]);
            let place = match placed {
                Some(after) => refusal.clone().placed_after(after),
                None => refusal.clone(),
            };
            rig.gateway.will([place]);
            let told = rig.place("a", ORDER).await;
            match placed {
                Some(_) => assert_eq!(told, Told::Recovered("o2".into()), "{failure:?}"),
                None => assert_eq!(told, Told::Unresolved("not_observed", vec![], 0), "{failure:?}"),
            }
            assert_eq!(rig.gateway.posts(), 2, "{failure:?}");
            rig.audit();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn o05_many_refusals_share_a_look() {
    let rig = Rig::new();
    assert_eq!(rig.place("z", &order(99)).await, Told::Placed("o1".into()));
    rig.gateway.will((0..10).map(|_| http(429, "Too many requests")));
    let calls: Vec<_> = (0..10).map(|n| rig.start(&format!("i{n}"), &order(n + 1))).collect();
    for call in calls {
        assert!(matches!(call.await.unwrap(), Told::Placed(_)));
    }
    assert_eq!((rig.gateway.posts(), rig.gateway.gets()), (21, 2));
    rig.audit();
}

/// As when the repeats are spent: the caller gets the refusal, and the order is watched for.
#[tokio::test(start_paused = true)]
async fn o05_a_returned_refusal_that_was_placed_is_reported() {
    for (refusal, status) in refusals().into_iter().zip([401, 429]) {
        for lag in [0, 20, 100] {
            let rig = Rig::new();
            rig.between.repeats_nothing();
            rig.gateway.will([refusal.clone().placed_after(s(lag))]);
            let start = Instant::now();
            let told = rig.place("a", ORDER).await;
            if (status, lag) == (401, 0) {
                assert_eq!(told, Told::Recovered("o1".into()), "the look shows it");
                continue;
            }
            assert_eq!(told, Told::Answer(status));
            let wait = if status == 401 { ms(1_200) } else { ms(200) };
            assert!(start.elapsed() < wait, "the caller is told at once, or after one look");
            assert_eq!(contradicted(&rig), Vec::<String>::new());
            sleep(s(130)).await;
            assert_eq!(contradicted(&rig), ["o1"], "{lag}");
            assert_eq!(rig.gateway.posts(), 1);
            rig.audit();
        }
    }
}

/// Regression: "not sent" was told of an order that had left, because its repeat was withheld.
#[tokio::test(start_paused = true)]
async fn o05_an_order_whose_repeat_is_withheld_is_never_called_not_sent() {
    for refusal in refusals() {
        // Before the list that confirms the refusal, and after it.
        for halted_after in [ms(100), ms(1_200)] {
            for placed in [true, false] {
                let rig = Rig::new();
                assert_eq!(rig.place("z", &order(3)).await, Told::Placed("o1".into()));
                let refusal = refusal.clone();
                let refusal = if placed { refusal.placed() } else { refusal };
                let mut slow = read(ReadReply::List);
                slow.after = ms(500);
                rig.gateway.reads([slow]);
                rig.gateway.will([refusal]);
                let call = rig.start("a", ORDER);
                sleep(halted_after).await;
                rig.tracker.halt();
                match (call.await.unwrap(), placed) {
                    (Told::Recovered(id), true) => assert_eq!(id, "o2"),
                    (Told::NotExecuted(why), false) => assert!(why.contains("did not leave again"), "{why}"),
                    (told, _) => panic!("{told:?}, placed {placed}"),
                }
                assert_eq!(rig.gateway.posts(), 2);
            }
        }
    }
}

/// The token is not renewed, and a failed read proves nothing.
#[tokio::test(start_paused = true)]
async fn o05_a_401_whose_look_fails_is_never_told_as_refused() {
    for placed in [true, false] {
        let rig = Rig::new();
        assert_eq!(rig.place("z", &order(3)).await, Told::Placed("o1".into()));
        rig.between.repeats_nothing();
        let refusal = http(401, "Unauthorized");
        rig.gateway.will([if placed { refusal.placed() } else { refusal }]);
        rig.gateway.always(read(ReadReply::Http(401)));
        let start = Instant::now();
        assert_eq!(rig.place("a", ORDER).await, Told::Unresolved("unverifiable", vec![], 401));
        assert!(start.elapsed() < s(2), "one look tells it");
        assert_eq!(rig.tracker.in_doubt(), 0);
        // At last the token is renewed.
        sleep(s(200)).await;
        rig.gateway.always(read(ReadReply::List));
        sleep(s(60)).await;
        assert_eq!(rig.flagged(), if placed { vec!["o2"] } else { vec![] });
        assert_eq!(rig.gateway.posts(), 2);
        rig.audit();
    }
}

/// A caller that does not wait for the check gets a doubt.
#[tokio::test(start_paused = true)]
async fn o05_a_deadline_before_the_look_leaves_a_401_in_doubt() {
    let rig = Rig::new();
    rig.between.repeats_nothing();
    rig.gateway.will([http(401, "Unauthorized").placed()]);
    let mut request = rig.request("a", ORDER);
    Call::of_mut(request.extensions_mut()).set_deadline((Instant::now() + ms(500)).into_std());
    assert_eq!(rig.send(request).await, Told::Unresolved("deadline", vec![], 401));
    sleep(s(130)).await;
    assert_eq!(contradicted(&rig), ["o1"]);
    assert_eq!(rig.gateway.posts(), 1);
}

/// The last read waits until the refused order can no longer be late.
#[tokio::test(start_paused = true)]
async fn o05_a_shutdown_right_after_a_refusal_still_reports_its_order() {
    let rig = Rig::new();
    rig.between.repeats_nothing();
    rig.gateway.will([http(429, "Too many requests").placed_after(ms(950))]);
    assert_eq!(rig.place("a", ORDER).await, Told::Answer(429));
    let start = Instant::now();
    rig.tracker.shutdown().await;
    assert!(start.elapsed() < s(18), "{:?}", start.elapsed());
    assert_eq!(contradicted(&rig), ["o1"]);
}

/// Although it is a candidate of a similar order, it is still reported to the caller of the refused one.
#[tokio::test(start_paused = true)]
async fn o05_a_candidate_of_another_order_that_was_refused_is_reported() {
    let rig = Rig::new();
    rig.between.repeats_nothing();
    rig.gateway.will([http(429, "Too many requests").placed(), gw504()]);
    assert_eq!(rig.place("a", ORDER).await, Told::Answer(429));
    let told = rig.place("b", &order(3)).await;
    assert_eq!(told, Told::Unresolved("near_match", vec!["o1".into()], 504));
    sleep(s(130)).await;
    assert_eq!(contradicted(&rig), ["o1"]);
    assert_eq!(rig.gateway.posts(), 2);
    rig.audit();
}

/// Reported at once, although a similar order is in doubt, which it goes on barring.
#[tokio::test(start_paused = true)]
async fn o05_a_refused_order_is_reported_while_others_are_in_doubt() {
    for refusal in refusals() {
        let rig = Rig::new();
        rig.between.repeats_nothing();
        // The check after a 401 comes too early for it.
        rig.gateway.will([refusal.placed_after(s(2)), gw504()]);
        assert!(matches!(rig.place("a", ORDER).await, Told::Answer(401 | 429)));
        let other = rig.start("b", &order(3));
        sleep(s(5)).await;
        assert!(!other.is_finished());
        assert_eq!(contradicted(&rig), ["o1"]);
        assert_eq!(other.await.unwrap(), Told::Unresolved("near_match", vec!["o1".into()], 504));
        sleep(s(130)).await;
        assert_eq!(contradicted(&rig), ["o1"], "once");
        assert_eq!(rig.gateway.posts(), 2, "what may be the other's is not sent again");
        rig.audit();
    }
}

/// Both orders of two prices are listed alike: one more than the search can own.
#[tokio::test(start_paused = true)]
async fn o05_a_refused_order_is_reported_where_lists_show_no_prices() {
    let rig = Rig::new();
    rig.between.repeats_nothing();
    let unpriced = |place: Place| place.edit(|record| drop(record.remove("limitPrice")));
    let refused = http(429, "Too many requests").placed_after(s(2));
    rig.gateway.will([unpriced(refused), unpriced(gw504().placed_after(s(2)))]);
    // There is no baseline, so nothing is claimed.
    rig.gateway.always(read(ReadReply::Http(500)));
    assert_eq!(rig.place("a", ORDER).await, Told::Answer(429));
    let other = rig.start("b", &ORDER.replace("100", "101"));
    sleep(s(20)).await;
    assert_eq!(rig.gateway.posts(), 2);
    rig.gateway.0.lock().always = None;
    assert_eq!(other.await.unwrap(), unresolved("near_match", &["o1", "o2"]));
    sleep(s(130)).await;
    assert_eq!(contradicted(&rig), ["o1"]);
    assert_eq!(rig.gateway.posts(), 2);
    rig.audit();
}

/// Refused and placed so shortly before midnight that it is listed on the next day.
#[tokio::test(start_paused = true)]
async fn o05_a_refused_order_that_shows_after_midnight_is_reported() {
    for refusal in refusals() {
        for (sent, after) in [(98, 4), (87, 15)] {
            let rig = Rig::on(day_with(s(100)));
            rig.between.repeats_nothing();
            rig.gateway.will([ack(), refusal.clone().placed_after(s(after)), gw504()]);
            assert_eq!(rig.place("z", &order(99)).await, Told::Placed("o1".into()));
            sleep(s(sent)).await;
            assert!(matches!(rig.place("a", ORDER).await, Told::Answer(401 | 429)));
            sleep(s(130)).await;
            assert_eq!(contradicted(&rig), ["o2"], "{sent}");
            assert_eq!(rig.gateway.posts(), 2);
            rig.audit();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn o05_a_refused_order_that_shows_later_than_a_second_is_reported() {
    let rig = Rig::new();
    rig.gateway.will([http(429, "Too many requests").placed_after(s(10))]);
    assert_eq!(rig.place("a", ORDER).await, Told::Placed("o2".into()), "it was not listed in time");
    // It is compared with the next list, whatever that is read for.
    sleep(s(20)).await;
    rig.gateway.will([gw504().placed()]);
    assert_eq!(rig.place("b", &order(3)).await, Told::Recovered("o3".into()));
    assert_eq!(contradicted(&rig), ["o1"]);
    rig.audit();
}

/// Regression: the process ended before the order was listed, and it was not reported.
#[tokio::test(start_paused = true)]
async fn o05_a_shutdown_waits_for_refused_orders_that_may_be_late() {
    for refusal in refusals() {
        let rig = Rig::new();
        assert_eq!(rig.place("z", &order(3)).await, Told::Placed("o1".into()));
        rig.gateway.will([refusal.placed_after(s(10))]);
        assert_eq!(rig.place("a", ORDER).await, Told::Placed("o3".into()), "it was not listed in time");
        rig.tracker.shutdown().await;
        assert_eq!(contradicted(&rig), ["o2"]);
    }
}

/// Regression: it left 78 s after it had been asked for, at the price of that moment.
#[tokio::test(start_paused = true)]
async fn o05_a_market_order_is_too_old_for_a_repeat_after_twenty_seconds() {
    // It had left before.
    let too_old =
        Told::NotExecuted("order was refused with 429, not executed, and did not leave again".into());
    for (form, told, posts) in [(market(), too_old, 3), (ORDER.to_owned(), Told::Placed("o1".into()), 4)] {
        let rig = Rig::new();
        // Repeated after 7, 15 and 25 s.
        rig.gateway.will((0..3).map(|_| http(429, "Too many requests").answered_after(s(6))));
        assert_eq!(rig.place("a", &form).await, told);
        assert_eq!(rig.gateway.posts(), posts);
    }
}

/// A repeat under the same name is the caller's; it waits for the same check as one of ours.
#[tokio::test(start_paused = true)]
async fn o05_a_name_that_was_refused_is_sent_again_when_a_list_agrees() {
    for (placed, told, posts) in
        [(true, Told::Recovered("o1".into()), 1), (false, Told::Placed("o1".into()), 2)]
    {
        let rig = Rig::new();
        rig.between.repeats_nothing();
        let named = || {
            let mut request = rig.request("a", ORDER);
            Call::of_mut(request.extensions_mut()).set_intent(ext::IntentId::new("n"));
            request
        };
        let refusal = http(429, "Too many requests");
        rig.gateway.will([if placed { refusal.placed_after(ms(900)) } else { refusal }]);
        assert_eq!(rig.send(named()).await, Told::Answer(429));
        assert_eq!(rig.send(named()).await, told);
        assert_eq!(rig.gateway.posts(), posts);
        assert!(matches!(rig.send(named()).await, Told::Attached(_)), "one name has one outcome");
        rig.audit();
    }
}

/// A listed order refutes no refusal while a twin is in flight: its answer may name it.
#[tokio::test(start_paused = true)]
async fn o05_a_twin_on_its_way_refutes_no_refusal() {
    let rig = Rig::new();
    assert_eq!(rig.place("z", &order(99)).await, Told::Placed("o1".into()));
    rig.gateway.will([http(429, "Too many requests"), ack().answered_after(s(3))]);
    let a = rig.start("a", ORDER);
    sleep(ms(10)).await;
    let b = rig.start("b", ORDER);
    assert_eq!(b.await.unwrap(), Told::Placed("o2".into()));
    assert_eq!(a.await.unwrap(), Told::Placed("o3".into()));
    rig.audit();
}

/// With an order in doubt and a refused twin, a listed order may belong to either.
#[tokio::test(start_paused = true)]
async fn o05_nobody_claims_what_may_be_a_refused_twins() {
    let rig = Rig::new();
    rig.gateway.will([http(429, "Too many requests").placed_after(ms(200)), gw504().placed_after(s(10))]);
    let a = rig.start("a", ORDER);
    sleep(ms(20)).await;
    let b = rig.start("b", ORDER);
    let told = [a.await.unwrap(), b.await.unwrap()];
    assert!(told.iter().all(|told| matches!(told, Told::Recovered(_))), "{told:?}");
    assert_eq!(rig.gateway.posts(), 2);
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn o05_a_refused_resend_is_looked_for_too() {
    let rig = Rig::new();
    rig.gateway.will([gw504(), http(429, "Too many requests").placed()]);
    assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o1".into()));
    assert_eq!(rig.gateway.posts(), 2);
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn o05_a_look_that_takes_too_long_gives_the_permit_back() {
    let rig = Rig::with(Settings::default());
    assert_eq!(rig.place("z", &order(3)).await, Told::Placed("o1".into()));
    let mut slow = read(ReadReply::List);
    slow.after = s(6);
    rig.gateway.reads([slow]);
    rig.gateway.will([http(429, "Too many requests")]);
    let start = Instant::now();
    assert_eq!(rig.place("a", ORDER).await, Told::Placed("o2".into()));
    assert!(start.elapsed() >= s(7));
    assert_eq!(rig.gateway.posts(), 3);
    rig.audit();
}

/// The twin was sent with the new token. A list there with one order does not decide its owner: it may show orders of
/// the earlier session.
#[tokio::test(start_paused = true)]
async fn o05_one_order_of_two_twins_leaves_a_refusal_of_the_session_before_in_doubt() {
    let rig = Rig::new();
    assert_eq!(rig.place("z", &order(99)).await, Told::Placed("o1".into()));
    rig.gateway.will([http(401, "Unauthorized"), gw504().placed()]);
    let a = rig.start("a", ORDER);
    sleep(ms(60)).await;
    rig.between.token(2);
    let b = rig.start("b", ORDER);
    assert_eq!(b.await.unwrap(), Told::Recovered("o2".into()));
    assert_eq!(a.await.unwrap(), Told::Unresolved("session_changed", vec![], 0));
    assert_eq!(rig.gateway.posts(), 3);
    rig.audit();
}

/// Regression: the list of the new session showed it, and another order in flight there took it.
#[tokio::test(start_paused = true)]
async fn o05_an_order_behind_a_401_is_no_other_one_of_the_new_session() {
    let rig = Rig::new();
    assert_eq!(rig.place("z", &order(99)).await, Told::Placed("o1".into()));
    rig.gateway.will([http(401, "Unauthorized").placed(), ack().answered_after(s(5))]);
    let a = rig.start("a", ORDER);
    sleep(ms(60)).await;
    rig.between.token(2);
    // It is sent before the new session's list is there.
    rig.gateway.reads([Read { after: ms(1_500), ..read(ReadReply::List) }]);
    let b = rig.start("b", &order(75));
    assert_eq!(b.await.unwrap(), Told::Placed("o3".into()));
    assert_eq!(a.await.unwrap(), Told::Recovered("o2".into()));
    assert_eq!(rig.gateway.posts(), 3);
    rig.audit();
}

/// A rejection is returned at once, without a read. Lists that are read anyway show that it was untrue.
#[tokio::test(start_paused = true)]
async fn o05_an_order_refused_for_good_and_placed_is_reported() {
    for status in [400, 403, 404, 405, 415] {
        for shuts_down in [false, true] {
            let rig = Rig::new();
            assert_eq!(rig.place("z", &order(3)).await, Told::Placed("o1".into()));
            sleep(s(60)).await;
            let named = || {
                let mut request = rig.request("a", ORDER);
                Call::of_mut(request.extensions_mut()).set_intent(ext::IntentId::new("n"));
                request
            };
            rig.gateway.will([documented(status).placed()]);
            let (start, gets) = (Instant::now(), rig.gateway.gets());
            assert_eq!(rig.send(named()).await, Told::Answer(status));
            assert!(start.elapsed() < s(1), "nothing holds its answer up");
            sleep(s(300)).await;
            assert_eq!((contradicted(&rig), rig.gateway.gets()), (vec![], gets), "nothing is read for it");
            if shuts_down {
                rig.tracker.shutdown().await;
            } else {
                // Any list that is read for another order shows it.
                rig.gateway.will([gw504().placed()]);
                assert!(matches!(rig.place("b", &order(7)).await, Told::Recovered(_)));
            }
            assert_eq!(contradicted(&rig), ["o2"], "{status}");
            rig.audit();
        }
    }
}

/// Regression: the last look came a second after the refusal, so that a list which lagged did not show its order.
#[tokio::test(start_paused = true)]
async fn o05_a_shutdown_looks_beyond_the_bound_for_orders_refused_for_good() {
    for status in [400, 403, 404, 405, 415] {
        for (age, lag, failing) in [(0, 3, 0), (0, 10, 0), (0, 14, 2), (4, 10, 0), (60, 0, 2)] {
            let rig = Rig::new();
            assert_eq!(rig.place("z", &order(3)).await, Told::Placed("o1".into()));
            sleep(s(40)).await;
            rig.gateway.will([documented(status).placed_after(s(lag))]);
            assert_eq!(rig.place("a", ORDER).await, Told::Answer(status));
            sleep(s(age)).await;
            rig.gateway.reads((0..failing).map(|_| read(ReadReply::Http(500))));
            let (start, gets) = (Instant::now(), rig.gateway.gets());
            rig.tracker.shutdown().await;
            assert_eq!(contradicted(&rig), ["o2"], "{status}, {age}, {lag}");
            assert!(start.elapsed() < s(20), "{:?}", start.elapsed());
            assert_eq!(rig.gateway.gets() - gets, 1 + failing, "{status}, {age}, {lag}");
            let start = Instant::now();
            rig.tracker.shutdown().await;
            assert!(start.elapsed() < s(1), "a list has shown it");
            rig.audit();
        }
    }
}

/// Lists that fail do not hold up the end of a shutdown for good.
#[tokio::test(start_paused = true)]
async fn o05_a_shutdown_after_a_refusal_for_good_ends_although_lists_fail() {
    for age in [0, 60] {
        let rig = Rig::new();
        rig.gateway.always(read(ReadReply::Http(500)));
        rig.gateway.will([documented(403)]);
        assert_eq!(rig.place("a", ORDER).await, Told::Answer(403));
        sleep(s(age)).await;
        let start = Instant::now();
        rig.tracker.shutdown().await;
        assert!(start.elapsed() < s(if age == 0 { 22 } else { 7 }), "{:?}", start.elapsed());
    }
}

/// Regression: the name was free at once, and lists lagged: the repeat placed a second order, and nothing said so.
#[tokio::test(start_paused = true)]
async fn o05_a_name_refused_for_good_is_sent_again_only_after_a_list_beyond_the_bound() {
    for status in [400, 403, 404, 405, 415] {
        for (lag, pause) in [(None, 0), (None, 20), (Some(5), 0), (Some(8), 3), (Some(14), 0)] {
            let rig = Rig::new();
            let refusal = documented(status);
            rig.gateway.will([match lag {
                Some(lag) => Place { lag: s(lag), ..refusal.placed() },
                None => refusal,
            }]);
            let named = |form: &str| {
                let mut request = rig.request("a", form);
                Call::of_mut(request.extensions_mut()).set_intent(ext::IntentId::new("n"));
                request
            };
            assert_eq!(rig.send(named(ORDER)).await, Told::Answer(status));
            let start = Instant::now();
            sleep(s(pause)).await;
            let again = rig.send(named(ORDER)).await;
            let what = format!("{status}, {lag:?}, {pause}: {again:?}");
            if lag.is_some() {
                assert_eq!(again, Told::Attached("o1".into()), "{what}");
                assert_eq!((rig.gateway.posts(), contradicted(&rig)), (1, vec!["o1".to_owned()]), "{what}");
            } else {
                assert_eq!((again, rig.gateway.posts()), (Told::Placed("o1".into()), 2), "{what}");
                assert!(start.elapsed() >= s(15) && start.elapsed() < s(pause.max(15) + 2), "{what}");
            }
            rig.audit();
        }
    }
}

/// Regression: a list that spells the instrument in its own way showed the order, which was sent again all the same.
#[tokio::test(start_paused = true)]
async fn o09_a_refused_order_under_another_name_is_not_sent_again() {
    let alias = |record: &mut serde_json::Map<_, _>| drop(record.insert("symId".into(), "NSE:INFY".into()));
    for refusal in [http(401, "Unauthorized"), http(429, "Too many requests"), documented(403)] {
        let rig = Rig::new();
        rig.gateway.will([refusal.placed().edit(alias)]);
        let named = || {
            let mut request = rig.request("a", ORDER);
            Call::of_mut(request.extensions_mut()).set_intent(ext::IntentId::new("n"));
            request
        };
        let told = rig.send(named()).await;
        let again = rig.send(named()).await;
        assert!(matches!(again, Told::Unresolved("near_match", ..)), "{told:?} {again:?}");
        assert_eq!(rig.gateway.posts(), 1, "{told:?}");
    }
}

/// Regression: a list showed the order without its quantity, and a user who ran once was told of the refusal alone.
#[tokio::test(start_paused = true)]
async fn o05_an_order_refused_for_good_that_may_be_listed_is_reported() {
    let rig = Rig::new();
    rig.gateway.will([documented(403).placed().edit(|record| drop(record.remove("qty")))]);
    let mut request = rig.request("a", ORDER);
    Call::of_mut(request.extensions_mut()).set_intent(ext::IntentId::new("n"));
    assert_eq!(rig.send(request).await, Told::Answer(403));
    rig.tracker.shutdown().await;
    let told = rig.events().into_iter().filter(|event| match event {
        OrderEvent::RefusalUnconfirmed { .. } => true,
        OrderEvent::Unresolved { unresolved, .. } => unresolved.candidates == ["o1"],
        _ => false,
    });
    assert_eq!(told.count(), 2, "{:?}", rig.events());
    assert_eq!(rig.gateway.posts(), 1);
}

/// Lists may lag for as long as the bound, but the check behind a believed refusal came after one second.
#[tokio::test(start_paused = true)]
async fn o05_a_refused_order_that_is_late_is_reported_within_the_bound_and_five_seconds() {
    for (status, repeats) in [(401, true), (401, false), (429, true), (429, false)] {
        let rig = Rig::new();
        if !repeats {
            rig.between.repeats_nothing();
        }
        rig.gateway.will([documented(status).placed_after(ms(14_900))]);
        let told = rig.place("a", ORDER).await;
        assert_eq!(told, if repeats { Told::Placed("o2".into()) } else { Told::Answer(status) });
        sleep(s(4)).await;
        // A list that shows the acknowledged order leaves no audit.
        rig.gateway.will([gw504().placed()]);
        assert!(matches!(rig.place("b", &order(3)).await, Told::Recovered(_)));
        sleep(s(15)).await;
        assert_eq!(contradicted(&rig), ["o1"], "{status}, {repeats}");
        rig.audit();
    }
}

#[tokio::test(start_paused = true)]
async fn o05_late_looks_are_shared() {
    let rig = Rig::new();
    rig.between.repeats_nothing();
    assert_eq!(rig.place("z", &order(99)).await, Told::Placed("o1".into()));
    rig.gateway.will((0..10).map(|_| http(429, "Too many requests")));
    for n in 0..10 {
        assert_eq!(rig.place(&format!("i{n}"), &order(n + 1)).await, Told::Answer(429));
    }
    sleep(s(25)).await;
    // The baseline, an audit, and one read for all refusals.
    assert!(rig.gateway.gets() <= 3, "{}", rig.gateway.gets());
    rig.audit();
}

/// A gateway whose lists lag by more than a second.
#[tokio::test(start_paused = true)]
async fn o05_a_refusal_is_confirmed_as_late_as_set() {
    for (status, repeats) in [(401, true), (429, true), (429, false)] {
        // The longest that counts is the lateness bound.
        for (set, lag) in [(s(4), ms(3_900)), (s(15), ms(14_900)), (s(60), ms(14_900))] {
            for placed in [true, false] {
                let rig = Rig::with(Settings::default().refusal_lag(set));
                let named = || {
                    let mut request = rig.request("a", ORDER);
                    Call::of_mut(request.extensions_mut()).set_intent(ext::IntentId::new("n"));
                    request
                };
                let refusal = documented(status);
                rig.gateway.will([if placed { refusal.placed_after(lag) } else { refusal }]);
                let start = Instant::now();
                if !repeats {
                    rig.between.repeats_nothing();
                    assert_eq!(rig.send(named()).await, Told::Answer(status));
                    assert!(start.elapsed() < s(1), "its caller is told at once");
                }
                let told = rig.send(named()).await;
                let what = format!("{status}, {repeats}, {set:?}");
                if placed {
                    assert_eq!((told, rig.gateway.posts()), (Told::Recovered("o1".into()), 1), "{what}");
                } else {
                    assert_eq!((told, rig.gateway.posts()), (Told::Placed("o1".into()), 2), "{what}");
                    assert!(start.elapsed() >= set.min(s(15)), "{what}");
                }
                rig.audit();
            }
        }
    }
}
