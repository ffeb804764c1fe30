//! The lemmas at gateways with any way of counting: no profile meets a 429 where it promises none.

use std::{num::NonZeroU32, time::Duration};

use proptest::prelude::*;
use steadfast_limit::{Lane, Nanos, Profile, Quota, Scope, Zone};
use steadfast_sandbox::enforce::{GatewayClock, Kind};

use crate::{
    drive::{MS, S},
    wire::{Dice, LINES, Line, START, Wire},
};

const ZONE: Zone = Zone::new("any");

/// A quota, the line and the demand.
#[derive(Clone, Copy, Debug)]
struct Case {
    limit: u32,
    period: Nanos,
    line: Line,
    phase: Nanos,
    /// How fast the gateway's clock runs, in parts per million.
    drift: i16,
    seed: u64,
}

fn cases() -> impl Strategy<Value = Case> {
    let period = prop_oneof![Just(S), Just(10 * S), (300..2_000_u64).prop_map(|ms| ms * MS)];
    let line = prop_oneof![Just(LINES[0]), Just(LINES[1]), Just(LINES[2]), Just(LINES[3])];
    (2_u32..30, period, line, 0..10_000_u64, -500_i16..=500, any::<u64>()).prop_map(
        |(limit, period, line, phase, drift, seed)| Case {
            limit,
            period,
            line,
            phase: phase * MS,
            drift,
            seed,
        },
    )
}

/// Runs bursts, pauses and saturation for some windows. Returns how many requests were refused, and how many sent.
fn refused(case: Case, profile: Profile, kind: Kind) -> (usize, usize) {
    let limits = [(case.limit, Duration::from_nanos(case.period))];
    let quota = Quota::new(ZONE, Scope::ApiKey).limit(case.limit, limits[0].1).profile(profile);
    let mut wire = Wire::new(quota, kind, &limits, case.line, case.seed);
    let clock = GatewayClock::new().drift_ppm(case.drift);
    wire.gateway = wire.gateway.into_iter().map(|enforcer| enforcer.clock(clock)).collect();
    let mut dice = Dice::new(case.seed);
    let end = START + 12 * case.period;
    let mut at = START;
    while at < end {
        (0..=dice.below(2 * u64::from(case.limit))).for_each(|_| wire.ask(at, Lane::Trading));
        at += dice.below(2 * case.period);
    }
    wire.run(end);
    (wire.seen.refused.len(), wire.seen.sent.len())
}

/// Returns every kind of gateway except leaky buckets with a small burst.
fn kinds(case: Case) -> [Kind; 7] {
    Kind::of_whole_limits(Duration::from_nanos(case.phase))
}

/// True if the kind counts whole seconds and the period is no multiple of one: it then enforces another quota.
fn is_other_quota(kind: Kind, case: Case) -> bool {
    kind == Kind::WholeSecond && !case.period.is_multiple_of(S)
}

fn cases_each() -> ProptestConfig {
    let cases = if std::env::var_os("STEADFAST_DEEP").is_some() { 4_096 } else { 48 };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases_each())]

    #[test]
    fn the_log_at_the_answer_is_never_refused_where_windows_do_not_interpolate(case in cases()) {
        for kind in kinds(case).into_iter().filter(|kind| !kind.interpolates()) {
            if !is_other_quota(kind, case) {
                prop_assert_eq!(refused(case, Profile::WindowLog, kind).0, 0, "{:?}", kind);
            }
        }
    }

    #[test]
    fn the_universal_rule_is_never_refused_anywhere(case in cases()) {
        for kind in kinds(case) {
            if !is_other_quota(kind, case) {
                prop_assert_eq!(refused(case, Profile::Universal, kind).0, 0, "{:?}", kind);
            }
        }
    }

    #[test]
    fn a_bucket_of_burst_and_rate_within_the_limit_is_never_refused_anywhere(case in cases(), burst in 1_u32..15) {
        let burst = NonZeroU32::new(burst.min(case.limit / 2)).unwrap();
        for kind in kinds(case) {
            if !is_other_quota(kind, case) {
                prop_assert_eq!(refused(case, Profile::Paced { burst }, kind).0, 0, "{:?}", kind);
            }
        }
    }

    #[test]
    fn a_leaky_bucket_that_allows_the_burst_back_to_back_never_refuses(case in cases(), burst in 1_u32..15) {
        let burst = NonZeroU32::new(burst.min(case.limit / 2)).unwrap();
        // nginx's burst is one less than the number that may come at once.
        let kind = Kind::LeakyBucket { burst: burst.get() - 1 };
        let (refused, sent) = refused(case, Profile::Paced { burst }, kind);
        prop_assert_eq!(refused, 0);
        prop_assert!(sent > 5);
    }
}

#[test]
fn four_hundred_a_minute_do_not_drift_into_a_leaky_buckets_refusal() {
    for (limit, period, burst) in
        [(400, 60 * S, 1), (400, 60 * S, 3), (10, S, 1), (7, S, 2), (6_000, 60 * S, 1)]
    {
        for line in LINES {
            let limits = [(limit, Duration::from_nanos(period))];
            let profile = Profile::Paced { burst: NonZeroU32::new(burst).unwrap() };
            let quota = Quota::new(ZONE, Scope::ApiKey).limit(limit, limits[0].1).profile(profile);
            let mut wire = Wire::new(quota, Kind::LeakyBucket { burst: burst - 1 }, &limits, line, 5);
            wire.greedy(Lane::Trading, 3, 0);
            let time = if limit > 1_000 { 6 * S } else { 240 * S };
            wire.run(START + time);
            assert_eq!(wire.seen.refused.len(), 0, "{limit} in {period} with {burst}, {line:?}");
        }
    }
}

#[test]
fn these_gateways_do_refuse_what_is_not_safe_at_them() {
    let case = Case { limit: 10, period: S, line: LINES[0], phase: 300 * MS, drift: 0, seed: 1 };
    let phase = Duration::from_nanos(case.phase);
    assert!(refused(case, Profile::WindowLog, Kind::SlidingCounter { phase }).0 > 0);
    assert!(refused(case, Profile::WindowLog, Kind::LeakyBucket { burst: 0 }).0 > 0);
    assert!(refused(case, Profile::Universal, Kind::LeakyBucket { burst: 0 }).0 > 0);
    // And the promise is kept with the whole quota, not by sending next to nothing.
    assert!(refused(case, Profile::Universal, Kind::SlidingCounter { phase }).1 > 60);
}
