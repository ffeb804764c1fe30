//! Prints the cost of the pure core; `cargo test --release -- --nocapture figures`.

use std::hint::black_box;

use steadfast_limit::{Answer, Ask, Decision, Lane, Profile, Zone, ZoneLimiter};
use tokio::time::Instant;

use crate::drive::{MS, S, general};

#[test]
fn figures_of_the_core() {
    for (name, profile) in [("log", Profile::WindowLog), ("universal", Profile::Universal)] {
        let mut limiter = ZoneLimiter::builder().zone(general().profile(profile)).build_core().unwrap();
        let zones = [(limiter.zone_id(Zone::GENERAL).unwrap(), 0x9E37_79B9_7F4A_7C15)];
        let ask = Ask { zones: &zones, lane: Lane::Critical, deadline: None, head_of_lane: false };
        // Without optimisation the figures mean nothing, so the run is short.
        let rounds = if cfg!(debug_assertions) { 5_000_u32 } else { 100_000 };

        // Far from the limit: one request every 400 ms.
        let mut now = 1_000 * S;
        let start = Instant::now();
        for _ in 0..rounds {
            now += 400 * MS;
            match limiter.acquire(black_box(&ask), now) {
                Decision::Granted(grant) => limiter.settle(grant, Answer::Accepted, now),
                other => panic!("{other:?}"),
            }
        }
        println!("{name}: acquire + settle, 150 of 400 used: {:?}", start.elapsed() / rounds);

        // At the limit: every request waits for its instant.
        let (mut sent, start) = (0_u32, Instant::now());
        while sent < rounds / 5 {
            match limiter.acquire(black_box(&ask), now) {
                Decision::Granted(grant) => {
                    limiter.settle(grant, Answer::Accepted, now);
                    sent += 1;
                }
                Decision::Queued { waiter, alarm } => {
                    now = alarm.unwrap();
                    limiter.cancel(waiter, now);
                }
                other => panic!("{other:?}"),
            }
        }
        println!("{name}: acquire + queue + settle, saturated: {:?}", start.elapsed() / sent);
    }
}
