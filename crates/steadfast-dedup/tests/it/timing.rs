//! A. Core and timing.

use std::time::Duration;

use steadfast_call::{Call, Fate};
use steadfast_dedup::{ResendPolicy, Settings};
use tokio::time::{Instant, sleep};

use crate::{
    gateway::{ReadReply, Reply, ack, gw504, http, read},
    rig::{ORDER, Rig, Told, market},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn unresolved(reason: &'static str, status: u16) -> Told {
    Told::Unresolved(reason, vec![], status)
}

#[tokio::test(start_paused = true)]
async fn s01_happy_ack() {
    let rig = Rig::new();
    assert_eq!(rig.place("a", ORDER).await, Told::Placed("o1".into()));
    assert_eq!(rig.place("b", ORDER).await, Told::Placed("o2".into()));
    sleep(s(3_600)).await;
    // The baseline, and one audit of both orders.
    assert_eq!((rig.gateway.posts(), rig.gateway.gets()), (2, 2));
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s02_gw504_placed_visible() {
    let rig = Rig::new();
    rig.gateway.will([gw504().placed()]);
    let start = Instant::now();
    assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o1".into()));
    assert!(start.elapsed() < ms(650) + ms(20), "took {:?}", start.elapsed());
    assert_eq!((rig.gateway.posts(), rig.gateway.gets()), (1, 2), "the baseline and one read");
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s03_gw504_not_placed() {
    let rig = Rig::new();
    rig.gateway.will([gw504()]);
    let start = Instant::now();
    assert_eq!(rig.place("a", ORDER).await, Told::Resent("o1".into()));
    assert!(start.elapsed() >= s(15));
    assert_eq!(rig.gateway.posts(), 2);
    let reads = rig.gateway.gets();
    sleep(s(65)).await;
    assert_eq!(
        rig.gateway.gets(),
        reads + 3,
        "the first attempt is watched at 30 s and at 1 min, the second one looked at at 16 s"
    );
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s04_gw504_twice_absent() {
    let rig = Rig::new();
    rig.gateway.will([gw504(), gw504()]);
    assert_eq!(rig.place("a", ORDER).await, unresolved("resends_exhausted", 504));
    assert_eq!(rig.gateway.posts(), 2);
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s05_late_inside_w() {
    let rig = Rig::new();
    rig.gateway.will([gw504().placed_after(ms(15_000))]);
    assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o1".into()));
    assert_eq!(rig.gateway.posts(), 1);
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s06_late_after_resend() {
    let rig = Rig::new();
    rig.gateway.will([gw504().placed_after(s(40))]);
    assert_eq!(rig.place("a", ORDER).await, Told::Resent("o2".into()));
    assert_eq!(rig.flagged(), Vec::<String>::new());
    sleep(s(120)).await;
    assert_eq!(rig.flagged(), ["o1"]);
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s08_evidence_in_limiter_queue() {
    let rig = Rig::new();
    rig.between.queue(Duration::ZERO, s(10));
    rig.gateway.will([gw504().placed_after(s(17))]);
    assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o1".into()));
    assert_eq!(rig.gateway.posts(), 1, "the resend was withheld at its body poll");
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s09_timeout_in_queue() {
    let rig = Rig::new();
    rig.between.queue(s(5), Duration::ZERO);
    let mut request = rig.request("a", ORDER);
    Call::of_mut(request.extensions_mut()).set_deadline((Instant::now() + s(3)).into_std());
    assert!(matches!(rig.send(request).await, Told::NotSent(_)));
    let mut request = rig.request("b", ORDER);
    Call::of_mut(request.extensions_mut()).set_send_by((Instant::now() + s(3)).into_std());
    assert_eq!(rig.send(request).await, Told::NotSent("time to send the order has passed".into()));
    assert_eq!((rig.gateway.posts(), rig.gateway.gets()), (0, 1));
    assert_eq!(rig.tracker.in_doubt(), 0);
}

#[tokio::test(start_paused = true)]
async fn who_stops_waiting_is_told_what_has_been_seen_so_far() {
    let rig = Rig::new();
    let changed = gw504().placed().edit(|record| drop(record.insert("qty".into(), 20.into())));
    rig.gateway.will([changed]);
    let mut request = rig.request("a", ORDER);
    Call::of_mut(request.extensions_mut()).set_deadline((Instant::now() + s(3)).into_std());
    assert_eq!(rig.send(request).await, Told::Unresolved("deadline", vec!["o1".into()], 504));
}

#[tokio::test(start_paused = true)]
async fn s10_connect_refused() {
    let rig = Rig::new();
    rig.gateway.will([ack().reply(Reply::NotPolled), ack().reply(Reply::NotPolled).answered_after(s(3))]);
    assert_eq!(rig.place("a", ORDER).await, Told::Placed("o1".into()));
    assert_eq!((rig.gateway.posts(), rig.gateway.gets()), (1, 1));
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s11_reset_after_write() {
    let rig = Rig::new();
    rig.gateway.will([gw504().reply(Reply::Ended)]);
    let start = Instant::now();
    assert_eq!(rig.place("a", ORDER).await, Told::Resent("o1".into()));
    assert!(start.elapsed() >= s(45), "resent after {:?}", start.elapsed());
    assert_eq!(rig.gateway.posts(), 2);
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s11b_client_timeout_applied_at_t_gw() {
    let rig = Rig::new();
    let timeout = gw504().reply(Reply::Ended).answered_after(s(10));
    rig.gateway.will([timeout.placed_after(s(29))]);
    assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o1".into()));
    assert_eq!(rig.gateway.posts(), 1);
    rig.audit();
}

/// The gateway may have taken it just before its connection ended, and works on it from then.
#[tokio::test(start_paused = true)]
async fn o01_a_lost_send_settles_from_the_end_of_its_connection() {
    for (applied, posts, told) in
        [(54_900, 1, Told::Recovered("o1".into())), (100_000, 2, Told::Resent("o2".into()))]
    {
        let rig = Rig::new();
        rig.gateway.will([gw504().reply(Reply::Ended).answered_after(s(10)).placed_after(ms(applied))]);
        assert_eq!(rig.place("a", ORDER).await, told, "{applied}");
        assert_eq!(rig.gateway.posts(), posts, "{applied}");
        sleep(s(120)).await;
        rig.audit();
    }
}

/// A kernel goes on sending after an orderly close, and a proxy on a connection of its own.
#[tokio::test(start_paused = true)]
async fn o01_what_may_still_arrive_is_verified_and_never_resent() {
    let lost = || gw504().reply(Reply::Lost(Fate::Lost { ended: None }));
    let rig = Rig::new();
    rig.gateway.will([lost().placed_after(s(44))]);
    assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o1".into()));
    rig.gateway.will([lost().placed_after(s(58))]);
    assert_eq!(rig.place("b", ORDER).await, unresolved("not_observed", 0));
    assert_eq!(rig.gateway.posts(), 2);
    sleep(s(120)).await;
    assert_eq!(rig.flagged(), ["o2"], "it is watched all the same");
    rig.audit();

    // An answer cut before its status could be read proves no more.
    let rig = Rig::new();
    rig.gateway.will([gw504().reply(Reply::Lost(Fate::Answered))]);
    assert_eq!(rig.place("a", ORDER).await, unresolved("not_observed", 0));
    assert_eq!(rig.gateway.posts(), 1);
}

/// The layer that lost the answer need not have ended the connection: then the guard does.
#[tokio::test(start_paused = true)]
async fn o01_the_guard_ends_a_connection_that_nobody_has_ended() {
    let rig = Rig::new();
    rig.gateway.0.lock().promises = true;
    rig.gateway.will([gw504().reply(Reply::Lost(Fate::Lost { ended: None }))]);
    assert_eq!(rig.place("a", ORDER).await, Told::Resent("o1".into()));
    assert_eq!(rig.gateway.aborted(), 1);
    rig.audit();
}

/// To the millisecond: an order listed at the end of the bound is in time, with or without an answer.
#[tokio::test(start_paused = true)]
async fn what_is_listed_at_the_last_instant_of_the_bound_is_found() {
    let lost = |after| gw504().reply(Reply::Ended).answered_after(ms(after));
    for (place, listed) in [
        (gw504(), [15_049, 15_050]),
        (lost(50), [45_049, 45_050]),
        (lost(10_000), [54_999, 55_000]),
        (lost(40_000), [84_999, 85_000]),
    ] {
        for at in listed {
            let rig = Rig::new();
            rig.gateway.will([place.clone().placed_after(ms(at))]);
            assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o1".into()), "{at}");
            assert_eq!(rig.gateway.posts(), 1, "{at}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn s12_body_cut_on_200() {
    let rig = Rig::new();
    rig.gateway.will([ack().reply(Reply::Cut)]);
    assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o1".into()));
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s13_body_cut_absent() {
    let rig = Rig::new();
    rig.gateway.will([gw504().reply(Reply::Cut)]);
    assert_eq!(rig.place("a", ORDER).await, unresolved("accepted_unknown_id", 200));
    assert_eq!(rig.gateway.posts(), 1);
}

#[tokio::test(start_paused = true)]
async fn s14_ok200_s_error() {
    let rig = Rig::new();
    rig.gateway.will([http(200, "who knows")]);
    assert_eq!(rig.place("a", ORDER).await, unresolved("not_observed", 200));
    assert_eq!(rig.gateway.posts(), 1);
    rig.audit();

    let rig = Rig::new();
    rig.gateway.will([http(200, "who knows").placed_after(s(14))]);
    assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o1".into()));
    assert_eq!(rig.gateway.posts(), 1);
    rig.audit();
}

/// By the service's word and by its list no order of it exists, so the next one is not barred.
#[tokio::test(start_paused = true)]
async fn a_200_that_says_error_bars_no_later_order_of_its_key() {
    let rig = Rig::new();
    rig.gateway.will([http(200, "who knows"), gw504().placed(), gw504()]);
    assert_eq!(rig.place("a", ORDER).await, unresolved("not_observed", 200));
    assert_eq!(rig.place("b", ORDER).await, Told::Recovered("o1".into()));
    assert_eq!(rig.place("c", ORDER).await, Told::Resent("o2".into()));
    rig.audit();
}

/// The service said that it took the order, and its list says that it did not: nothing is concluded about that key
/// any more.
#[tokio::test(start_paused = true)]
async fn a_200_without_an_id_that_is_never_listed_bars_later_orders_of_its_key() {
    let rig = Rig::new();
    rig.gateway.will([gw504().reply(Reply::Cut), gw504()]);
    assert_eq!(rig.place("a", ORDER).await, unresolved("accepted_unknown_id", 200));
    assert_eq!(rig.place("b", ORDER).await, unresolved("not_observed", 504));
    assert_eq!(rig.gateway.posts(), 2);
}

#[tokio::test(start_paused = true)]
async fn s15_resend_refused_margin() {
    let rig = Rig::new();
    rig.gateway.will([gw504().placed_after(s(20)), http(403, "Forbidden")]);
    assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o1".into()));
    assert_eq!(rig.gateway.posts(), 2);
    rig.audit();

    let rig = Rig::new();
    rig.gateway.will([gw504(), http(403, "Forbidden")]);
    assert_eq!(rig.place("a", ORDER).await, unresolved("not_observed", 504));
    assert_eq!(rig.gateway.posts(), 2, "what was reopened is not sent a third time");
}

#[tokio::test(start_paused = true)]
async fn s16_max_age_market() {
    let rig = Rig::new();
    rig.gateway.will([gw504().reply(Reply::Ended).answered_after(s(10))]);
    assert_eq!(rig.place("a", &market()).await, unresolved("not_observed", 0));
    let granted = |event: &_| matches!(event, steadfast_dedup::OrderEvent::Absent { .. });
    assert!(!rig.events().iter().any(granted), "it was too old before anybody asked for a permit");
    assert_eq!(rig.gateway.posts(), 1);
    rig.audit();
}

/// `docs/guarantees.md` has these times, under "When an order is sent again".
#[tokio::test(start_paused = true)]
async fn an_order_is_sent_again_while_its_first_send_is_young() {
    let market = market();
    for (order, lost, in_time, too_late) in [
        (ORDER, gw504(), Some(40), 46),
        (&market, gw504(), Some(4), 6),
        (ORDER, gw504().reply(Reply::Ended), Some(10), 16),
        (&market, gw504().reply(Reply::Ended), None, 0),
    ] {
        let ends = in_time.map(|after| (after, 2)).into_iter().chain([(too_late, 1)]);
        for (after, posts) in ends {
            let rig = Rig::new();
            rig.gateway.will([lost.clone().answered_after(s(after))]);
            rig.place("a", order).await;
            assert_eq!(rig.gateway.posts(), posts, "{:?} after {after} s: {order}", lost.reply);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn s17_caller_deadline() {
    let rig = Rig::new();
    rig.gateway.will([gw504().placed_after(s(10))]);
    let mut request = rig.request("a", ORDER);
    let deadline = Instant::now() + s(5);
    Call::of_mut(request.extensions_mut()).set_deadline(deadline.into_std());
    assert_eq!(rig.send(request).await, unresolved("deadline", 504));
    assert_eq!(Instant::now(), deadline);
    assert_eq!(rig.tracker.in_doubt(), 1, "it is still looked for");
    rig.tracker.shutdown().await;
    assert_eq!(rig.tracker.in_doubt(), 0);
    let recovered = |event: &_| matches!(event, steadfast_dedup::OrderEvent::Recovered { order_id, .. } if order_id == "o1");
    assert!(rig.events().iter().any(recovered));
    assert_eq!(rig.gateway.posts(), 1);
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn never_resend_never_resends() {
    let rig = Rig::with(Settings::default().resend(ResendPolicy::Never));
    rig.gateway.will([gw504()]);
    assert_eq!(rig.place("a", ORDER).await, unresolved("not_observed", 504));
    sleep(s(7_200)).await;
    assert_eq!(rig.gateway.posts(), 1);
}

#[tokio::test(start_paused = true)]
async fn bounds_without_end_are_waited_for_without_end() {
    let unbounded = [
        Settings::new().lateness(Duration::MAX),
        Settings::new().gateway_timeout(Duration::MAX),
        Settings::new().verification_budget(Duration::MAX),
        Settings::new()
            .verification_budget(Duration::MAX)
            .lateness(Duration::MAX)
            .gateway_timeout(Duration::MAX),
    ];
    for settings in unbounded {
        let rig = Rig::with(settings);
        // Acknowledged and never listed: whether the list is stale depends on the bound, too.
        assert_eq!(rig.place("a", &market()).await, Told::Placed("o1".into()));
        rig.gateway.always(read(ReadReply::Without(vec!["o1"])));
        rig.gateway.will([gw504().reply(Reply::Ended).placed_after(s(10))]);
        assert_eq!(rig.place("b", ORDER).await, Told::Recovered("o2".into()));
        // Answered, and in doubt for as long as the caller allows.
        rig.gateway.will([gw504()]);
        let mut request = rig.request("c", ORDER);
        Call::of_mut(request.extensions_mut()).set_deadline((Instant::now() + s(10)).into_std());
        assert_eq!(rig.send(request).await, unresolved("deadline", 504));
        rig.audit();
    }
}
