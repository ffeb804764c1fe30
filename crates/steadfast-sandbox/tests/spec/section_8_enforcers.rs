//! §8 Limits: the meaning of "req/sec" under each of the eight enforcement kinds.
//!
//! The specification names no algorithm. Each kind may place the boundary of a second in its own way, but
//! none may refuse a client that stays below the limit, or admit one that does not.

use std::time::Duration;

use steadfast_sandbox::Sandbox;
use steadfast_spec::Zone;

use crate::world::{TWO_WINDOWS, World, ZONES, per_second};

/// The kinds that admit a whole burst, with phases other than zero where the kind has one.
const KINDS: [&str; 8] = [
    "fixed",
    "fixed:250ms",
    "first-hit",
    "sliding-log",
    "sliding-counter",
    "counting-rejects",
    "token-bucket",
    "whole-second",
];

#[tokio::test(start_paused = true)]
async fn spec_8_every_kind_admits_a_burst_after_idle() {
    for kind in KINDS {
        for (zone, limit) in ZONES {
            let world = enforcing(zone, kind);
            let probe = world.probe(zone);
            for round in 0..3 {
                let admitted = world.admitted_back_to_back(&probe, limit + 1).await;
                assert_eq!(admitted, limit, "{kind} on {zone:?}, round {round}");
                assert!(!probe.send().await.is_admitted(), "{kind} on {zone:?}, still within the window");
                // Each round begins at another point of the second.
                world.pass(TWO_WINDOWS + Duration::from_millis(333));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn spec_8_a_leaky_bucket_admits_its_burst() {
    for (zone, limit) in ZONES {
        let burst = limit - 1;
        let world = enforcing(zone, &format!("leaky-bucket:{burst}"));
        let probe = world.probe(zone);
        for round in 0..3 {
            // One more than the burst may pass, because the first request finds the bucket empty.
            let admitted = world.admitted_back_to_back(&probe, limit + 1).await;
            assert!((burst..=limit).contains(&admitted), "{admitted} on {zone:?}, round {round}");
            world.pass(TWO_WINDOWS);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn spec_8_no_kind_exceeds_the_rate_by_more_than_a_burst() {
    let zone = Zone::PLACE_ORDER;
    for kind in KINDS.into_iter().chain(["leaky-bucket:9"]) {
        let world = enforcing(zone, kind);
        let probe = world.probe(zone);
        let mut admitted = 0;
        // Four times the rate for ten seconds.
        for _ in 0..400 {
            admitted += usize::from(probe.send().await.is_admitted());
            world.pass(Duration::from_millis(25));
        }
        // Ten seconds touch eleven windows, and a bucket adds its depth once.
        assert!(admitted <= 11 * per_second(zone), "{kind} admitted {admitted}");
        assert!(admitted >= per_second(zone) - 1, "{kind} admitted {admitted}");
        assert_eq!(world.orders_in_the_book(), admitted, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn spec_8_no_kind_refuses_half_the_rate() {
    let zone = Zone::PLACE_ORDER;
    for kind in KINDS.into_iter().chain(["leaky-bucket:9", "leaky-bucket:1"]) {
        let world = enforcing(zone, kind);
        let probe = world.probe(zone);
        for sent in 0..100 {
            assert!(probe.send().await.is_admitted(), "{kind} refused request {sent}");
            world.pass(Duration::from_millis(200));
        }
        let admitted = world.admitted_back_to_back(&probe, 12).await;
        assert!(admitted < 12, "{kind} limits at all");
    }
}

#[tokio::test(start_paused = true)]
async fn spec_8_no_kind_exceeds_the_minute_ceiling_by_more_than_a_window() {
    for kind in KINDS.into_iter().chain(["leaky-bucket:9"]) {
        let world = enforcing(Zone::GENERAL, kind);
        let probe = world.probe(Zone::GENERAL);
        let mut admitted = 0;
        // Ten a second for three minutes, which touch four windows of a minute.
        for _ in 0..1_800 {
            admitted += usize::from(probe.send().await.is_admitted());
            world.pass(Duration::from_millis(100));
        }
        assert!(admitted <= 4 * 400, "{kind} admitted {admitted}");
    }
}

#[tokio::test(start_paused = true)]
async fn spec_8_no_kind_refuses_a_pace_below_both_ceilings() {
    for kind in KINDS.into_iter().chain(["leaky-bucket:9"]) {
        let world = enforcing(Zone::GENERAL, kind);
        let probe = world.probe(Zone::GENERAL);
        // Six a second for three minutes: 360 a minute.
        for sent in 0..1_080 {
            assert!(probe.send().await.is_admitted(), "{kind} refused request {sent}");
            world.pass(Duration::from_micros(166_667));
        }
        assert!(world.admitted_back_to_back(&probe, 12).await < 12, "{kind} limits at all");
    }
}

fn enforcing(zone: Zone, kind: &str) -> World {
    let sandbox = Sandbox::builder().seed(7).enforcer(zone, kind.parse().expect("a known kind"));
    World::of(sandbox.build().expect("a sandbox"))
}
