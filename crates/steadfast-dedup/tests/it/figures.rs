//! Measures the figures that the design asks for, in simulated time; each test prints its own.

use std::time::Duration;

use steadfast_call::BootClock;
use steadfast_dedup::{Event, OrdersScope, ReadFault, ResendPolicy, Settings};
use tokio::time::{Instant, sleep};

use crate::{
    gateway::{ack, gw504},
    rig::{ORDER, Rig, Told, order},
};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// K6: ten thousand identical orders at once (a thousand without `STEADFAST_DEEP`), one in fifty of them in doubt, half
/// of those not placed.
#[tokio::test(start_paused = true)]
async fn k6_ten_thousand_identical_orders_are_ten_thousand_orders() {
    let count = if std::env::var_os("STEADFAST_DEEP").is_some() { 10_000 } else { 1_000 };
    // The real time that the test runs must not count as sleep, because paused time leaves it out.
    let start = Instant::now();
    let boot = BootClock::new(move || Some(start.elapsed()));
    let rig = Rig::with(Settings::default().boot_clock(boot));
    rig.place("warm", &order(1)).await;
    rig.gateway.will((0..count).map(|n| match n % 100 {
        0 => gw504().placed(),
        50 => gw504(),
        _ => ack(),
    }));
    let calls: Vec<_> = (0..count).map(|n| rig.start(&format!("i{n}"), ORDER)).collect();
    let mut doubts = 0;
    for call in calls {
        match call.await.unwrap() {
            Told::Placed(_) => {}
            Told::Recovered(_) | Told::Resent(_) => doubts += 1,
            told => panic!("{told:?}"),
        }
    }
    assert_eq!(rig.gateway.0.lock().orders.len(), count + 1);
    println!("{count} identical orders, {doubts} of them in doubt: {count} placed, 0 duplicated, 0 lost");
    rig.audit();
}

/// A token renewed in the middle of a doubt neither duplicates the order nor loses it.
#[tokio::test(start_paused = true)]
async fn a_renewal_in_the_middle_of_a_doubt_neither_duplicates_nor_strands_it() {
    let unresolved = Told::Unresolved("session_changed", vec![], 504);
    for (scope, placed, told) in [
        (OrdersScope::Session, true, Told::Recovered("o1".into())),
        (OrdersScope::Account, true, Told::Recovered("o1".into())),
        // Another session's list proves no absence.
        (OrdersScope::Session, false, unresolved),
        (OrdersScope::Account, false, Told::Resent("o1".into())),
    ] {
        let rig = Rig::with(Settings::default().orders_scope(scope));
        rig.gateway.will([if placed { gw504().placed_after(ms(9_000)) } else { gw504() }]);
        let call = rig.start("a", ORDER);
        sleep(ms(2_000)).await;
        rig.between.token(1);
        sleep(ms(3_000)).await;
        rig.between.token(2);
        assert_eq!(call.await.unwrap(), told, "{scope:?}, placed: {placed}");
        assert!(rig.gateway.0.lock().orders.len() <= 1);
        rig.audit();
    }
}

/// Ten orders a second are sent and appear 0.3 s after their acknowledgement, while some are searched for.
#[tokio::test(start_paused = true)]
async fn negative_reads_stay_valid_while_orders_flow() {
    let rig = Rig::with(Settings::default().resend(ResendPolicy::Never));
    rig.place("warm", &order(1)).await;
    let mut calls = Vec::new();
    for n in 0..1_200 {
        // One order in fifty is lost for good, and searched for.
        let place = if n % 50 == 0 { gw504() } else { ack() };
        rig.gateway.will([listed_late(place)]);
        calls.push(rig.start(&format!("i{n}"), &order(2 + n % 7)));
        sleep(ms(100)).await;
    }
    for call in calls {
        call.await.unwrap();
    }
    let trace = rig.tracker.trace(None);
    let reads =
        trace.iter().filter(|step| matches!(step.event, Event::ReadEnded { list: Ok(_), .. })).count();
    let failed = trace
        .iter()
        .filter(|step| matches!(step.event, Event::ReadEnded { list: Err(ReadFault::Failed), .. }));
    let (failed, spoilt) = (failed.count(), rig.tracker.tally().incomplete_lists);
    println!("{reads} reads while 10 orders/s flow, {spoilt} spoilt by younger orders, {failed} failed");
    assert!(reads >= 100 && failed == 0);
    assert!(spoilt * 100 <= reads as u64, "{spoilt} of {reads}");
}

fn listed_late(mut place: crate::gateway::Place) -> crate::gateway::Place {
    place.lag = ms(300);
    place
}

/// From the 504 to the recovered answer, with the order listed at once.
#[tokio::test(start_paused = true)]
async fn a_504_is_recovered_in_half_a_second_with_one_read() {
    let rig = Rig::with(Settings::default());
    rig.place("warm", &order(1)).await;
    let mut took = Vec::new();
    for n in 0..101 {
        sleep(ms(5_000)).await;
        rig.gateway.will([gw504().placed()]);
        let (before, gets) = (Instant::now(), rig.gateway.gets());
        assert!(matches!(rig.place(&format!("i{n}"), ORDER).await, Told::Recovered(_)));
        // Without the 50 ms that the gateway's answer took.
        took.push(before.elapsed() - ms(50));
        assert_eq!(rig.gateway.gets(), gets + 1, "one read");
    }
    took.sort();
    println!("504 to recovered: p50 {:?}, p99 {:?}, one GET each", took[50], took[99]);
    assert!(took[50] <= ms(600), "{took:?}");
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn ten_504s_at_once_need_one_read() {
    let rig = Rig::with(Settings::default());
    rig.place("warm", &order(1)).await;
    let gets = rig.gateway.gets();
    rig.gateway.will((0..10).map(|_| gw504().placed()));
    let calls: Vec<_> = (0..10).map(|n| rig.start(&format!("i{n}"), &order(10 + n))).collect();
    for call in calls {
        assert!(matches!(call.await.unwrap(), Told::Recovered(_)));
    }
    println!("10 simultaneous 504s: {} verification GET", rig.gateway.gets() - gets);
    assert_eq!(rig.gateway.gets(), gets + 1);
    rig.audit();
}
