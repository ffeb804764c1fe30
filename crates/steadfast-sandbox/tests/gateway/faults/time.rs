use std::time::Duration;

use steadfast_sandbox::Fault;
use tokio::time::Instant;

use crate::world::{MARKET, World};

pub(super) fn faults() -> Vec<Fault> {
    Fault::ALL.iter().copied().filter(|fault| fault.group() == "time").collect()
}

#[tokio::test(start_paused = true)]
async fn a_leg_takes_its_time_before_the_request_arrives_or_after() {
    for fault in faults() {
        let world = World::with_fault(fault.as_str(), 1.0);
        let sent = Instant::now();
        assert_eq!(world.place(MARKET).await.status(), 200, "{fault}");
        let took = sent.elapsed();
        assert!(took > Duration::ZERO && took <= Duration::from_secs(10), "{fault}: {took:?}");
        let arrived = Duration::from_nanos(world.truth().arrivals[0].at_ns);
        let is_up = fault.as_str().starts_with("time.up-");
        // The runtime's timers end at whole milliseconds.
        assert!(if is_up { arrived == took } else { arrived.is_zero() }, "{fault}: {arrived:?} of {took:?}");
        assert_eq!(world.struck(fault.as_str()), 1, "{fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn both_legs_of_one_request_are_struck() {
    let world = World::with_fault("time.up-constant", 1.0);
    world.strike_always("time.down-constant");
    let sent = Instant::now();
    world.place(MARKET).await;
    assert_eq!(sent.elapsed(), Duration::from_millis(40));
}

#[tokio::test(start_paused = true)]
async fn a_reordered_request_arrives_after_those_that_were_sent_behind_it() {
    let world = World::with_script("[[fault]]\nname = 'time.up-reordered'\nintent = 'first'");
    tokio::join!(world.place_for("first"), world.place_for("second"), world.place_for("third"));
    let arrivals = world.truth().arrivals.into_iter().map(|arrival| arrival.intent.expect("an intent"));
    assert_eq!(arrivals.collect::<Vec<_>>(), ["second", "third", "first"]);
}
