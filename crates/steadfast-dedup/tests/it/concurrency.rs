//! E. Concurrency.

use std::time::Duration;

use http::{HeaderValue, header};
use steadfast_call::{Call, ext};
use tokio::time::{Instant, sleep};

use crate::{
    gateway::{ReadReply, Reply, ack, gw504, read},
    rig::{ORDER, Rig, Told},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Returns a rig with a known list.
async fn warm() -> Rig {
    let rig = Rig::new();
    rig.place("warm", &ORDER.replace("INFY", "TCS")).await;
    rig
}

#[tokio::test(start_paused = true)]
async fn s60_twins_one_504() {
    let rig = warm().await;
    rig.gateway.will([gw504().placed(), ack()]);
    let (a, b) = (rig.start("a", ORDER), rig.start("b", ORDER));
    let told = [a.await.unwrap(), b.await.unwrap()];
    assert_eq!(told, [Told::Recovered("o2".into()), Told::Placed("o3".into())]);
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s61_twin_in_flight_owner() {
    // One new order and two possible owners. The one in flight is waited for first.
    for (b_owns_it, told) in [(true, Told::Resent("o3".into())), (false, Told::Recovered("o2".into()))] {
        let rig = warm().await;
        let (a, b) = if b_owns_it { (gw504(), ack()) } else { (gw504().placed(), ack()) };
        rig.gateway.will([a, b.answered_after(s(5))]);
        let (a, b) = (rig.start("a", ORDER), rig.start("b", ORDER));
        sleep(s(4)).await;
        assert!(!a.is_finished(), "it waits for the answer of the one in flight");
        assert_eq!(b.await.unwrap(), Told::Placed(if b_owns_it { "o2" } else { "o3" }.into()));
        assert_eq!(a.await.unwrap(), told);
        rig.audit();
    }
}

#[tokio::test(start_paused = true)]
async fn s62_twins_both_504_one_placed() {
    let rig = warm().await;
    rig.gateway.will([gw504(), gw504().placed()]);
    let (a, b) = (rig.start("a", ORDER), rig.start("b", ORDER));
    let mut told = [a.await.unwrap(), b.await.unwrap()];
    told.sort_by_key(|told| matches!(told, Told::Resent(_)));
    assert_eq!(told, [Told::Recovered("o2".into()), Told::Resent("o3".into())]);
    assert_eq!(rig.gateway.posts(), 4);
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s63_twins_both_504_both_placed() {
    let rig = warm().await;
    rig.gateway.will([gw504().placed(), gw504().placed()]);
    let (a, b) = (rig.start("a", ORDER), rig.start("b", ORDER));
    let told = [a.await.unwrap(), b.await.unwrap()];
    assert_eq!(told, [Told::Recovered("o2".into()), Told::Recovered("o3".into())]);
    assert_eq!(rig.gateway.posts(), 3);
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s64_cohort_unsettled() {
    let rig = warm().await;
    // The first order is lost to a timeout and applied at the last moment; meanwhile it claims the record of the
    // second. The second settles first, and must not be sent again before the first has settled too.
    let lost = gw504().reply(Reply::Ended).answered_after(s(1));
    rig.gateway.will([lost.placed_after(s(29)), gw504().placed()]);
    let a = rig.start("a", ORDER);
    sleep(s(2)).await;
    let b = rig.start("b", ORDER);
    let told = [a.await.unwrap(), b.await.unwrap()];
    assert_eq!(told, [Told::Recovered("o3".into()), Told::Recovered("o2".into())]);
    assert_eq!(rig.gateway.posts(), 3);
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s65_oldest_first() {
    let rig = warm().await;
    // While a third twin is in flight there are no claims. The first order is listed before the second is sent, the
    // second's after: the first must take the older record, the only one that the second may not have.
    rig.gateway.will([ack().answered_after(s(5)), gw504().placed(), gw504().placed()]);
    let c = rig.start("c", ORDER);
    sleep(Duration::from_millis(10)).await;
    let a = rig.start("a", ORDER);
    sleep(s(2)).await;
    let b = rig.start("b", ORDER);
    let told = [a.await.unwrap(), b.await.unwrap(), c.await.unwrap()];
    let recovered = |id: &str| Told::Recovered(id.into());
    assert_eq!(told, [recovered("o3"), recovered("o4"), Told::Placed("o2".into())]);
    assert_eq!(rig.gateway.posts(), 4, "nobody had to send again");
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s67_storm_600() {
    let rig = warm().await;
    rig.gateway.will((0..600).map(|n| match n % 3 {
        0 => gw504().placed(),
        1 => gw504().placed_after(s(n % 14)),
        _ => gw504(),
    }));
    let mut calls = Vec::new();
    for n in 0..600 {
        let form = ORDER.replace("INFY", ["INFY", "TCS", "WIPRO", "SBIN"][n % 4]);
        calls.push(rig.start(&format!("i{n}"), &form));
        sleep(Duration::from_millis(100)).await;
    }
    for call in calls {
        let told = call.await.unwrap();
        assert!(matches!(told, Told::Recovered(_) | Told::Resent(_)), "{told:?}");
    }
    let gets = rig.gateway.0.lock().gets.clone();
    for pair in gets[1..].windows(2) {
        assert!(pair[1] - pair[0] >= s(1), "I18");
    }
    assert_eq!(rig.tracker.in_doubt(), 0);
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn ten_at_once_need_one_read() {
    let rig = warm().await;
    let reads = rig.gateway.gets();
    rig.gateway.will((0..10).map(|_| gw504().placed()));
    let calls: Vec<_> = (0..10).map(|n| rig.start(&format!("i{n}"), ORDER)).collect();
    for call in calls {
        assert!(matches!(call.await.unwrap(), Told::Recovered(_)));
    }
    assert_eq!(rig.gateway.gets() - reads, 1);
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s68_key_isolation() {
    let rig = warm().await;
    rig.gateway.will([gw504()]);
    let a = rig.start("a", ORDER);
    sleep(s(1)).await;
    let start = Instant::now();
    for (n, form) in
        [ORDER.replace("buy", "sell"), ORDER.replace("INFY", "SBIN"), ORDER.into()].iter().enumerate()
    {
        assert!(matches!(rig.place(&format!("other{n}"), form).await, Told::Placed(_)));
    }
    assert_eq!(start.elapsed(), Duration::from_millis(150), "nobody is held up");
    assert!(matches!(a.await.unwrap(), Told::Resent(_)));
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s69_two_accounts() {
    let rig = Rig::new();
    rig.gateway.0.lock().by_session = true;
    let with = |intent: &str, account: &'static str| {
        let mut request = rig.request(intent, ORDER);
        Call::of_mut(request.extensions_mut()).set_account(ext::Account::new(account));
        request.headers_mut().insert(header::AUTHORIZATION, HeaderValue::from_static(account));
        request
    };
    rig.gateway.will([gw504(), ack()]);
    let (a, b) = tokio::join!(rig.send(with("a", "one")), rig.send(with("b", "two")));
    assert_eq!(b, Told::Placed("o1".into()));
    // An order of the other account does not resolve a doubt of this one.
    assert_eq!(a, Told::Resent("o2".into()));
    let of_whom = |token: &str| rig.gateway.0.lock().tokens.iter().filter(|of| *of == token).count();
    assert_eq!(of_whom("two"), 1, "its baseline, and no read for the other's doubt");
    assert!(of_whom("one") >= 3, "a baseline, and what its absence takes");
}

#[tokio::test(start_paused = true)]
async fn a_read_that_hangs_does_not_end_all_reads() {
    let rig = warm().await;
    let mut hang = read(ReadReply::List);
    hang.before = s(86_400);
    rig.gateway.reads([hang]);
    rig.gateway.will([gw504().placed()]);
    assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o2".into()));
    rig.audit();
}
