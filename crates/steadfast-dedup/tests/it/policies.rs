//! Tests the settings that change what is sent, read or believed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, UNIX_EPOCH},
};

use steadfast_call::{Call, WallClock};
use steadfast_dedup::{
    Baseline, Cause, Confidence, KeyPolicy, ListShows, Reason, ResendPolicy, Settings, VerifyOn,
};
use tokio::time::{Instant, sleep};

use crate::{
    gateway::{Place, ReadReply, Reply, ack, gw504, http, read},
    rig::{ORDER, Rig, Told, order},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) fn unresolved(reason: &'static str, candidates: &[&str]) -> Told {
    Told::Unresolved(reason, candidates.iter().map(ToString::to_string).collect(), 504)
}

/// Returns settings with a trading day that ends after `left` on tokio's clock.
pub(crate) fn day_with(left: Duration) -> Settings {
    let start = Instant::now();
    let clock = WallClock::new(move || UNIX_EPOCH + s(86_400 * 10) - left + start.elapsed());
    Settings::default().trading_day(clock, 0)
}

#[tokio::test(start_paused = true)]
async fn serialized_orders_of_a_key_leave_one_after_the_other() {
    let rig = Rig::with(Settings::default().key_policy(KeyPolicy::Serialize));
    rig.gateway.will([gw504().placed_after(s(9))]);
    let start = Instant::now();
    let calls = [rig.start("a", ORDER), rig.start("b", &order(3)), rig.start("c", ORDER)];
    sleep(s(5)).await;
    assert_eq!(rig.gateway.posts(), 1, "the first is in doubt");
    assert_eq!(rig.place("d", &ORDER.replace("buy", "sell")).await, Told::Placed("o2".into()));
    assert_eq!(start.elapsed().as_secs(), 5, "another side is not held up");
    let [a, b, c] = calls;
    assert_eq!(a.await.unwrap(), Told::Recovered("o1".into()));
    assert_eq!(b.await.unwrap(), Told::Placed("o3".into()));
    assert_eq!(c.await.unwrap(), Told::Placed("o4".into()));
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn who_waits_in_line_beyond_his_deadline_was_not_sent() {
    let rig = Rig::with(Settings::default().key_policy(KeyPolicy::Serialize));
    rig.gateway.will([gw504()]);
    let a = rig.start("a", ORDER);
    sleep(s(1)).await;
    let mut late = rig.request("b", &order(3));
    Call::of_mut(late.extensions_mut()).set_deadline((Instant::now() + s(5)).into_std());
    let told = rig.send(late).await;
    assert_eq!(told, Told::NotSent("orders of the same instrument and side took until the deadline".into()));
    // A caller that leaves the line makes room for the next one.
    let gone = rig.start("c", &order(4));
    sleep(s(1)).await;
    gone.abort();
    assert_eq!(a.await.unwrap(), Told::Resent("o1".into()));
    assert_eq!(rig.place("d", &order(5)).await, Told::Placed("o2".into()));
    assert_eq!(rig.gateway.posts(), 3);
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn spec_minimal_verifies_a_504_alone() {
    let minimal = || Rig::with(Settings::default().verify_on(VerifyOn::SpecMinimal));
    let rig = minimal();
    rig.gateway.will([gw504().placed(), gw504()]);
    assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o1".into()));
    assert_eq!(rig.place("b", &order(3)).await, Told::Resent("o2".into()));
    rig.audit();

    let lost = |place: Place| place.placed_after(s(20));
    for (place, status) in [
        (lost(http(500, "Internal server error")), 500),
        (lost(http(502, "<html>")), 502),
        (lost(http(503, "Service unavailable")), 503),
        (lost(http(400, "Internal Error occurred. Kindly try again.")), 400),
        (lost(http(400, "timed out, check the order book")), 400),
        (lost(http(409, "x")), 409),
        (lost(ack().reply(Reply::Cut)), 200),
        (lost(ack().reply(Reply::Ended)), 0),
    ] {
        let rig = minimal();
        rig.gateway.will([place]);
        let start = Instant::now();
        let told = rig.place("a", ORDER).await;
        assert_eq!(told, Told::Unresolved("not_verified", vec![], status));
        assert!(start.elapsed() < s(1), "told at once");
        assert_eq!((rig.gateway.posts(), rig.gateway.gets()), (1, 1), "no read but the baseline");
        // It is not verified, but still watched for.
        sleep(s(31)).await;
        assert_eq!(rig.flagged(), ["o1"], "{status}");
        assert_eq!(rig.gateway.posts(), 1);
        rig.audit();
    }
}

#[tokio::test(start_paused = true)]
async fn always_reads_the_list_before_every_order_and_shares_the_read() {
    let rig = Rig::with(Settings::default().baseline(Baseline::Always));
    for n in 1..=3 {
        rig.place(&format!("i{n}"), &order(n)).await;
        assert_eq!(rig.gateway.gets() as u32, n);
        sleep(s(1)).await;
    }
    let calls: Vec<_> = (0..5).map(|n| rig.start(&format!("j{n}"), ORDER)).collect();
    for call in calls {
        assert!(matches!(call.await.unwrap(), Told::Placed(_)));
    }
    assert_eq!(rig.gateway.gets(), 4);
    rig.audit();
}

/// Orders that come during a read wait for the next one, and delay none that waits for this one.
#[tokio::test(start_paused = true)]
async fn a_flow_of_orders_does_not_starve_their_baselines() {
    let rig = Rig::with(Settings::default().baseline(Baseline::Always));
    let mut slow = read(ReadReply::List);
    slow.after = Duration::from_millis(100);
    rig.gateway.always(slow);
    let mut calls = Vec::new();
    for n in 0..40 {
        let call = rig.start(&format!("i{n}"), ORDER);
        calls.push(tokio::spawn(async move {
            let start = Instant::now();
            (call.await.unwrap(), start.elapsed())
        }));
        sleep(Duration::from_millis(30)).await;
    }
    for call in calls {
        let (told, took) = call.await.unwrap();
        assert!(
            matches!(told, Told::Placed(_)) && took <= Duration::from_millis(260),
            "{told:?} after {took:?}"
        );
    }
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn a_list_within_its_age_is_not_read_again() {
    // There are no audits of acknowledged orders.
    let settings = Settings::default().list_shows(ListShows::SomeStatuses);
    let rig = Rig::with(settings.baseline(Baseline::MaxAge(s(10))));
    for (wait, gets) in [(0, 1), (4, 1), (5, 1), (2, 2), (9, 2), (1_000, 3)] {
        sleep(s(wait)).await;
        rig.place(&format!("i{gets}-{wait}"), &order(3)).await;
        assert_eq!(rig.gateway.gets(), gets, "after {wait} s more");
    }
}

/// A stranger's twin between the last list and the send looks new, unless the list is fresh.
#[tokio::test(start_paused = true)]
async fn a_fresh_baseline_knows_the_twin_that_a_cold_one_takes_for_ours() {
    for (baseline, told) in [
        (Baseline::Cold, Told::Recovered("o2".into())),
        (Baseline::MaxAge(s(5)), Told::Resent("o3".into())),
        (Baseline::Always, Told::Resent("o3".into())),
    ] {
        let rig = Rig::with(Settings::default().baseline(baseline));
        rig.place("first", &order(3)).await;
        sleep(s(60)).await;
        rig.gateway.foreign(ORDER, |_| {});
        rig.gateway.will([gw504()]);
        assert_eq!(rig.service_told("a", ORDER).await, told, "{baseline:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_fresh_baseline_that_cannot_be_had_degrades_claims() {
    let rig = Rig::with(Settings::default().baseline(Baseline::Always));
    rig.place("first", &order(3)).await;
    sleep(s(2)).await;
    rig.gateway.reads([read(ReadReply::Http(500))]);
    rig.gateway.will([gw504().placed()]);
    assert_eq!(rig.place("a", ORDER).await, unresolved("no_baseline", &["o2"]));
    assert_eq!(rig.gateway.posts(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_ended_without_certainty_is_looked_for_before_the_day_ends() {
    // The watch of an order given up at 16 s reads at 31, 76, 136, 316 and 916 s, then every half hour.
    let rig = Rig::on(day_with(s(2_000)).resend(ResendPolicy::Never));
    rig.gateway.will([gw504().placed_after(s(1_500))]);
    assert_eq!(rig.place("a", ORDER).await, unresolved("not_observed", &[]));
    sleep(s(1_930) - s(16)).await;
    assert!(rig.flagged().is_empty());
    sleep(s(20)).await;
    assert_eq!(rig.flagged(), ["o1"], "a minute before the list starts anew");
    let gets = rig.gateway.gets();
    sleep(s(40)).await;
    assert_eq!(rig.gateway.gets(), gets, "once");
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_is_set_forward_brings_the_last_look_forward() {
    let (start, ahead) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let set = ahead.clone();
    let clock = WallClock::new(move || {
        UNIX_EPOCH + s(86_400 * 10) - s(10_000) + s(ahead.load(Ordering::SeqCst)) + start.elapsed()
    });
    let rig = Rig::on(Settings::default().trading_day(clock, 0).resend(ResendPolicy::Never));
    rig.gateway.will([gw504().placed_after(s(1_500))]);
    assert_eq!(rig.place("a", ORDER).await, unresolved("not_observed", &[]));
    // The last read was at 916 s, the next one is half an hour later.
    sleep(s(1_600)).await;
    assert!(rig.flagged().is_empty());
    set.store(10_000 - start.elapsed().as_secs() - 300, Ordering::SeqCst);
    sleep(s(245)).await;
    assert_eq!(rig.flagged(), ["o1"], "a minute before the list starts anew");
}

/// A list that was requested yesterday holds yesterday's orders, whenever it arrives.
#[tokio::test(start_paused = true)]
async fn a_read_across_midnight_is_no_evidence() {
    let rig = Rig::on(day_with(s(100)));
    rig.place("a", &order(3)).await;
    rig.gateway.foreign(ORDER, |_| {});
    sleep(s(98)).await;
    // A verification read leaves before midnight and arrives after the new day's order has left.
    rig.gateway.will([gw504(), gw504().answered_after(s(1))]);
    let mut slow = read(ReadReply::List);
    slow.after = s(4);
    rig.gateway.reads([slow]);
    let yesterday = rig.start("b", &ORDER.replace("buy", "sell"));
    sleep(Duration::from_millis(2_500)).await;
    let today = rig.start("c", ORDER);
    sleep(s(1)).await;
    // The new day's list starts empty.
    rig.gateway.0.lock().orders.clear();
    assert_eq!(yesterday.await.unwrap(), unresolved("epoch_changed", &[]));
    let told = today.await.unwrap();
    assert!(!matches!(told, Told::Recovered(_)), "yesterday's twin is not today's order: {told:?}");
}

#[tokio::test(start_paused = true)]
async fn the_shortest_time_between_reads_is_a_setting() {
    let rig = Rig::with(Settings::default().read_spacing(s(3)));
    rig.gateway.will([gw504()]);
    rig.place("a", ORDER).await;
    let gets = rig.gateway.0.lock().gets.clone();
    assert!(gets[1..].windows(2).all(|pair| pair[1] - pair[0] >= s(3)), "{gets:?}");
}

/// S86: processes that do not share their knowledge must run `Shared`.
#[tokio::test(start_paused = true)]
async fn s86_peer_in_flight_unknown() {
    let peers = |settings: Settings| {
        let mut one = Rig::with(settings.clone());
        let mut other = Rig::over(one.gateway.clone(), settings);
        // Neither history alone explains the gateway's book.
        (one.unchecked, other.unchecked) = (true, true);
        (one, other)
    };
    let shared = || Settings::default().account_mode(steadfast_dedup::AccountMode::Shared);
    let (one, other) = peers(shared());
    one.place("first", &order(3)).await;
    other.place("second", &order(4)).await;
    // Both send the same order; one is placed, and neither may take it.
    one.gateway.will([gw504().placed(), gw504()]);
    let (a, b) = (one.start("a", ORDER), other.start("b", ORDER));
    assert_eq!(a.await.unwrap(), unresolved("ambiguous_owner", &["o3", "o2"]), "nor tell the peer's apart");
    assert_eq!(b.await.unwrap(), unresolved("ambiguous_owner", &["o3"]));
    assert_eq!(one.gateway.posts(), 4, "and neither sends again");

    // In exclusive mode both take the one order. The other order is missing: the price of a false `Exclusive`.
    let (one, other) = peers(Settings::default());
    one.place("first", &order(3)).await;
    other.place("second", &order(4)).await;
    one.gateway.will([gw504().placed(), gw504()]);
    let (a, b) = (one.start("a", ORDER), other.start("b", ORDER));
    assert_eq!(a.await.unwrap(), Told::Recovered("o3".into()));
    assert_eq!(b.await.unwrap(), Told::Recovered("o3".into()));
    assert_eq!(one.gateway.posts(), 4, "never a duplicate");
}

#[tokio::test(start_paused = true)]
async fn what_happens_is_counted_without_names() {
    let rig = Rig::new();
    rig.gateway.will([
        gw504().placed(),
        ack().reply(Reply::Ended),
        http(503, "Service unavailable"),
        http(503, "Service unavailable"),
        ack().reply(Reply::Cut).placed().edit(|record| drop(record.remove("product"))),
    ]);
    rig.place("a", ORDER).await;
    rig.place("b", &ORDER.replace("INFY", "TCS")).await;
    rig.place("c", &ORDER.replace("INFY", "SBIN")).await;
    rig.place("d", &ORDER.replace("INFY", "ITC")).await;
    let tally = rig.tracker.tally();
    assert_eq!(tally.ambiguous(Cause::GatewayTimeout), 1);
    assert_eq!(tally.ambiguous(Cause::NoAnswer), 1);
    assert_eq!(tally.ambiguous(Cause::ServerError), 2);
    assert_eq!(tally.ambiguous(Cause::UnreadableSuccess), 1);
    assert_eq!(tally.recovered(Confidence::Exact), 2);
    assert_eq!(tally.recovered(Confidence::Partial), 1);
    assert_eq!(tally.unresolved(Reason::ResendsExhausted), 1);
    assert_eq!((tally.resent, tally.late_duplicate, tally.uncalibrated), (1, 0, 0));
    assert_eq!(tally.visibility_lag.count(), 3);
    assert_eq!(tally.visibility_lag.lateness_risk(s(15)), Some(1.0));
    assert_eq!(rig.tracker.downgrade().tally(), tally);
    // Twins in doubt together are interchangeable.
    rig.gateway.will([gw504().placed(), gw504().placed()]);
    let twins = [rig.start("e", &order(5)), rig.start("f", &order(5))];
    for twin in twins {
        assert!(matches!(twin.await.unwrap(), Told::Recovered(_)));
    }
    assert_eq!(
        rig.tracker.tally().recovered(Confidence::Interchangeable),
        1,
        "the second is the last of its kind"
    );
}
