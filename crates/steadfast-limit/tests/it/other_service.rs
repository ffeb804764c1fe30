//! A made-up weather service at five a second and a hundred a minute: ten minutes at six ways of counting.

use std::{num::NonZeroU32, time::Duration};

use steadfast_limit::{Lane, MINUTE, Profile, Quota, SECOND, Scope, Zone, ZoneLimiter};
use steadfast_sandbox::enforce::Kind;

use crate::{
    drive::S,
    wire::{LINES, Line, START, Wire},
};

const WEATHER: Zone = Zone::new("weather");
const MINUTES: u64 = 10;

#[test]
fn six_gateways_refuse_nothing_and_ninety_seven_hundredths_of_the_quota_are_used() {
    let phase = Duration::from_millis(300);
    for kind in [
        Kind::FixedWindow { phase },
        Kind::FirstHit,
        Kind::SlidingLog,
        Kind::TokenBucket,
        Kind::SlidingCounter { phase },
        Kind::CountingRejects { phase },
    ] {
        for line in LINES {
            let limits = [(5, SECOND), (100, MINUTE)];
            let quota = Quota::new(WEATHER, Scope::Shared).limit(5, SECOND).limit(100, MINUTE);
            let mut wire = Wire::new(quota, kind, &limits, line, 7);
            wire.greedy(Lane::Normal, 8, 0);
            wire.run(START + MINUTES * 60 * S);
            assert_eq!(wire.seen.refused.len(), 0, "{kind}, {line:?}");
            let used = wire.seen.sent.len();
            assert!(used >= 970, "{used} of {}, {kind}, {line:?}", MINUTES * 100);
        }
    }
}

#[test]
fn the_sustained_rate_of_a_window_is_measured() {
    let paced = |burst| Profile::Paced { burst: NonZeroU32::new(burst).unwrap() };
    for (limit, period) in [(1, SECOND), (2, SECOND), (5, SECOND), (10, SECOND), (100, SECOND), (400, MINUTE)]
    {
        let bursts = if limit > 1 { vec![paced(1), paced(limit / 2)] } else { Vec::new() };
        for profile in [Profile::Universal, Profile::WindowLog].into_iter().chain(bursts) {
            let quota = Quota::new(WEATHER, Scope::Shared).limit(limit, period).profile(profile);
            let limiter = ZoneLimiter::builder().zone(quota.clone()).build().unwrap();
            let window = limiter.settings()[0].windows[0];
            let mut wire = Wire::new(quota, Kind::SlidingLog, &[(limit, period)], Line::Const(0), 7);
            wire.greedy(Lane::Normal, 500, 0);
            let (warm, measured) = (4, 40);
            let nanos = period.as_nanos() as u64;
            wire.run(START + (warm + measured) * nanos);
            let from = START + warm * nanos;
            let sent = wire.seen.sent.iter().filter(|(at, _)| *at >= from).count() as f64;
            let periods = window.sustained_in.as_secs_f64() / period.as_secs_f64();
            let (rate, sustained) = (sent / measured as f64, f64::from(window.sustained) / periods);
            // A window is held half a thousandth and a millisecond longer than it is.
            // `sustained` is a whole number, and a bucket of an even burst lets half a request more through.
            let expected = 0.9 * sustained..=1.03 * sustained + if limit > 1 { 0.5 } else { 0.0 };
            assert!(expected.contains(&rate), "{limit} in {period:?}, {profile}: {rate:.3} of {sustained}");
        }
    }
}
