//! Properties of every kind, over random histories.

use std::time::Duration;

use proptest::prelude::*;

use super::{scenario::*, trace::*, *};

/// Returns the most that the kind admits in any half-open interval of one period, as the module
/// promises.
fn most_in_one_period(kind: Kind, limit: usize) -> usize {
    match kind {
        Kind::FixedWindow { .. } | Kind::WholeSecond => 2 * limit,
        Kind::SlidingLog => limit,
        Kind::FirstHit | Kind::SlidingCounter { .. } | Kind::CountingRejects { .. } | Kind::TokenBucket => {
            2 * limit - 1
        }
        Kind::LeakyBucket { burst } => limit + burst as usize + 1,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn verdicts_are_those_of_a_recount(scenario in scenarios()) {
        let mut enforcer = scenario.enforcer();
        let mut counted = Vec::new();
        for (at, elsewhere) in &scenario.requests {
            let now = counted.last().copied().unwrap_or(0).max(*at);
            let expected = recount::admits(scenario.kind, scenario.window, &counted, now);
            prop_assert_eq!(request(&mut enforcer, ns(*at), *elsewhere), expected, "at {} after {:?}", at, counted);
            if (expected && !elsewhere) || scenario.counts_rejects() {
                counted.push(now);
            }
        }
    }

    #[test]
    fn retry_after_is_the_first_instant_admitted(
        scenario in scenarios(),
        clock in clocks(),
        probe in 0.0..2.0_f64,
        beyond in 0..10_000_000_000_u64,
    ) {
        let mut enforcer = scenario.enforcer().clock(clock);
        play(&mut enforcer, &scenario.requests, 0);
        let after_last = scenario.window.period().mul_f64(probe);
        for now in [ns(scenario.last()), ns(scenario.last()) + after_last, Duration::ZERO] {
            let wait = enforcer.retry_after(now);
            prop_assert!(enforcer.admits(now + wait));
            prop_assert!(enforcer.admits(now + wait + ns(beyond)));
            if wait > Duration::ZERO {
                prop_assert!(!enforcer.admits(now + wait - ns(1)));
                prop_assert!(!enforcer.admits(now));
            }
        }
    }

    #[test]
    fn no_period_holds_more_than_promised(
        scenario in scenarios().prop_filter("the leaky bucket counts in milliseconds", |scenario| {
            scenario.window.nanos().is_multiple_of(1_000_000) || !matches!(scenario.kind, Kind::LeakyBucket { .. })
        })
    ) {
        let length = scenario.window.nanos();
        let mut enforcer = scenario.enforcer();
        let mut admitted = Vec::new();
        let mut now = 0;
        for (at, elsewhere) in &scenario.requests {
            now = now.max(*at);
            if request(&mut enforcer, ns(now), *elsewhere) && !elsewhere {
                admitted.push(now);
            }
        }
        let most = most_in_one_period(scenario.kind, scenario.window.limit() as usize);
        let held = recount::most_in_any(length, &admitted);
        prop_assert!(held <= most, "{} of {} in {:?}", held, most, admitted);
    }

    #[test]
    fn only_the_phase_ties_a_gateway_to_the_time(scenario in scenarios(), shift in 0..10_000_000_000_u64) {
        let whole = |unit: u64| shift / unit * unit;
        let (kind, shift) = match scenario.kind {
            Kind::FixedWindow { phase } => (Kind::FixedWindow { phase: phase + ns(shift) }, shift),
            Kind::SlidingCounter { phase } => (Kind::SlidingCounter { phase: phase + ns(shift) }, shift),
            Kind::CountingRejects { phase } => (Kind::CountingRejects { phase: phase + ns(shift) }, shift),
            Kind::WholeSecond => {
                let seconds = scenario.window.nanos().div_ceil(1_000_000_000);
                (scenario.kind, seconds * whole(1_000_000_000))
            }
            Kind::LeakyBucket { .. } => (scenario.kind, whole(1_000_000)),
            other => (other, shift),
        };
        let here = play(&mut scenario.enforcer(), &scenario.requests, 0);
        let there = Scenario { kind, ..scenario.clone() }.enforcer();
        prop_assert_eq!(&here, &play(&mut there.clone(), &scenario.requests, shift));
        let early = there.clock(GatewayClock::new().epoch(ns(shift)));
        prop_assert_eq!(&here, &play(&mut early.clone(), &scenario.requests, 0));
    }

    #[test]
    fn drift_stretches_the_time_that_is_counted_in(scenario in scenarios(), ppm: i16) {
        let drifting = scenario.enforcer().clock(GatewayClock::new().drift_ppm(ppm));
        let stretched = scenario.requests.iter().map(|(at, elsewhere)| {
            let at = i128::from(*at) * (1_000_000 + i128::from(ppm)) / 1_000_000;
            (u64::try_from(at).unwrap(), *elsewhere)
        });
        let stretched = stretched.collect::<Vec<_>>();
        prop_assert_eq!(
            play(&mut drifting.clone(), &scenario.requests, 0),
            play(&mut scenario.enforcer(), &stretched, 0)
        );
    }

    #[test]
    fn windows_decide_as_one(
        kinds in [kinds(1_000_000_000), kinds(60_000_000_000), kinds(60_000_000_000)],
        limits in [1..6_u32, 1..20, 1..20],
        arrivals in prop::collection::vec(0..3_000_000_000_u64, 1..60),
    ) {
        let window = |limit, seconds| Window::new(limit, Duration::from_secs(seconds)).unwrap();
        let zones = [window(limits[0], 1), window(limits[1], 60), window(limits[2], 60)];
        let mut enforcers = [0, 1, 2].map(|zone| Enforcer::new(kinds[zone], zones[zone]));
        let mut counted: [Vec<u64>; 3] = [vec![], vec![], vec![]];
        let mut now = 0;
        for step in arrivals {
            now += step;
            let full = |zone: &usize| !recount::admits(kinds[*zone], zones[*zone], &counted[*zone], now);
            let refusing = (0..3).find(full);
            let [first, second, third] = &mut enforcers;
            let decided = decide(&mut [first, second, third], ns(now));
            prop_assert_eq!(decided.err().map(|refusal| refusal.window), refusing);
            if let Err(Refusal { retry_after, .. }) = decided {
                let mut then = enforcers.clone();
                let [first, second, third] = &mut then;
                let mut asked = [first, second, third];
                prop_assert!(decide(&mut asked, ns(now) + retry_after - ns(1)).is_err());
                let mut then = enforcers.clone();
                let [first, second, third] = &mut then;
                prop_assert!(decide(&mut [first, second, third], ns(now) + retry_after).is_ok());
            }
            for zone in 0..3 {
                if refusing.is_none() || matches!(kinds[zone], Kind::CountingRejects { .. }) {
                    counted[zone].push(now);
                }
            }
        }
    }

    #[test]
    fn no_time_and_no_limit_panics(
        which in 0..Kind::ALL.len(),
        (phase, burst) in any::<(Duration, u32)>(),
        limit in prop_oneof![1..=1_000_u32, Just(u32::MAX)],
        period in prop_oneof![1..=u64::MAX, 1..=1_000_u64, Just(u64::MAX)],
        (epoch, ppm, counting) in any::<(u64, i16, bool)>(),
        times in prop::collection::vec(prop_oneof![any::<u64>(), 0..100_u64, u64::MAX - 100..=u64::MAX], 1..200),
    ) {
        let kind = match Kind::ALL[which] {
            Kind::FixedWindow { .. } => Kind::FixedWindow { phase },
            Kind::SlidingCounter { .. } => Kind::SlidingCounter { phase },
            Kind::CountingRejects { .. } => Kind::CountingRejects { phase },
            Kind::LeakyBucket { .. } => Kind::LeakyBucket { burst },
            other => other,
        };
        let clock = GatewayClock::new().epoch(ns(epoch)).drift_ppm(ppm);
        let window = Window::new(limit, ns(period)).unwrap();
        let enforcer = Enforcer::new(kind, window);
        let enforcer = if counting { enforcer.counting_rejects() } else { enforcer };
        for mut enforcer in [enforcer.clone(), enforcer.clock(clock)] {
            for now in times.iter().copied().map(ns).chain([Duration::MAX]) {
                let admits = enforcer.admits(now);
                prop_assert_eq!(admits, enforcer.retry_after(now) == Duration::ZERO);
                prop_assert_eq!(admits, request(&mut enforcer, now, false));
                enforcer.commit(now);
                let wait = enforcer.retry_after(now);
                prop_assert!(wait == Duration::MAX || enforcer.admits(now + wait));
            }
        }
    }
}

#[test]
fn clock_may_begin_and_end() {
    for kind in Kind::ALL {
        for (limit, period) in
            [(1, 1), (1, u64::MAX), (u32::MAX, 1), (u32::MAX, u64::MAX), (2, 1_000_000_000)]
        {
            let mut gateway = Enforcer::new(kind, Window::new(limit, ns(period)).unwrap()).counting_rejects();
            for now in [0, 0, 1, u64::MAX - 1, u64::MAX - 1, u64::MAX, u64::MAX, 0].map(ns) {
                let wait = gateway.retry_after(now);
                assert!(wait == Duration::MAX || gateway.admits(now + wait), "{kind} at {now:?}");
                request(&mut gateway, now, false);
            }
            if limit < 3 {
                assert_eq!(
                    gateway.retry_after(ns(u64::MAX)),
                    Duration::MAX,
                    "{kind}: no later instant is left"
                );
            }
        }
    }
}

#[test]
fn counting_rejects_is_the_sliding_counter_with_the_switch() {
    let knocking = (0..5_000).step_by(37).map(ms).collect::<Vec<_>>();
    let phase = ms(120);
    let mut named = per_second(10, Kind::CountingRejects { phase });
    let mut switched = per_second(10, Kind::SlidingCounter { phase }).counting_rejects();
    assert_eq!(named.verdicts(&knocking), switched.verdicts(&knocking));
    let mut free = per_second(10, Kind::SlidingCounter { phase });
    assert_ne!(named.verdicts(&knocking), free.verdicts(&knocking));
}

#[test]
fn any_kind_can_count_its_rejects() {
    // How many of 200 requests in ten seconds pass, and how many if rejected ones count.
    let knocking = (0..10_000).step_by(50).map(ms).collect::<Vec<_>>();
    let passed = Kind::ALL.map(|kind| {
        let mut counting = per_second(10, kind).counting_rejects();
        (kind.name(), per_second(10, kind).admitted(&knocking), counting.admitted(&knocking))
    });
    let expected = [
        ("fixed", 100, 100),
        ("first-hit", 100, 100),
        ("sliding-log", 100, 10),
        ("sliding-counter", 91, 10),
        ("counting-rejects", 10, 10),
        ("token-bucket", 109, 19),
        ("whole-second", 100, 100),
        ("leaky-bucket", 100, 1),
    ];
    assert_eq!(passed, expected);
}

#[test]
fn arrival_out_of_order_counts_at_the_latest_instant() {
    for kind in Kind::ALL {
        let mut gateway = per_second(1, kind);
        assert!(decide(&mut [&mut gateway], ms(5_300)).is_ok());
        assert!(
            !gateway.admits(ms(100)),
            "{kind}: the request at 5,300 ms counts for the earlier arrival too"
        );
        assert_eq!(
            ms(100) + gateway.retry_after(ms(100)),
            ms(5_300) + gateway.retry_after(ms(5_300)),
            "{kind}"
        );
        gateway.commit(ms(100));
        assert!(!gateway.admits(ms(5_300)), "{kind}");
    }
}

#[test]
fn slow_gateway_clock_makes_the_period_longer() {
    let log = |ppm| {
        let mut gateway = per_second(1, Kind::SlidingLog).clock(GatewayClock::new().drift_ppm(ppm));
        gateway.commit(ms(0));
        gateway.retry_after(ms(0))
    };
    assert_eq!(log(0), ns(1_000_000_000));
    assert_eq!(log(-500), ns(1_000_500_251));
    assert_eq!(log(500), ns(999_500_250));
}

#[test]
fn refusal_says_which_window_for_how_long_and_counts_nowhere() {
    let mut second = per_second(2, Kind::SlidingLog);
    let mut minute = Enforcer::new(Kind::SlidingLog, Window::new(3, ms(60_000)).unwrap());
    let mut ask = |at| decide(&mut [&mut second, &mut minute], ms(at));
    assert_eq!((ask(0), ask(0)), (Ok(()), Ok(())));
    assert_eq!(ask(400), Err(Refusal { window: 0, retry_after: ms(600) }));
    assert_eq!(ask(1_000), Ok(()));
    assert_eq!(ask(1_001), Err(Refusal { window: 1, retry_after: ms(58_999) }));
    assert_eq!(ask(60_000), Ok(()));
    assert_eq!(Refusal { window: 1, retry_after: ms(20) }.to_string(), "window 1 is exhausted for 20ms");
}

#[test]
fn no_window_refuses_nothing() {
    assert_eq!(decide(&mut [], ms(0)), Ok(()));
}

#[test]
fn promised_most_of_each_kind_is_reached() {
    let then = |first: &[Duration], later: &mut dyn Iterator<Item = u64>| {
        first.iter().copied().chain(later.map(ms)).collect::<Vec<_>>()
    };
    for kind in Kind::ALL {
        let arrivals = match kind {
            Kind::FixedWindow { .. } | Kind::WholeSecond => {
                then(&[ms(999); 10], &mut [1_000; 10].into_iter())
            }
            Kind::FirstHit => then(&[ms(0)], &mut [999; 9].into_iter().chain([1_000; 10])),
            Kind::SlidingLog => then(&[ms(0); 10], &mut (0..1_000)),
            Kind::SlidingCounter { .. } | Kind::CountingRejects { .. } => {
                then(&[ms(999); 10], &mut (1_100..1_999).step_by(100))
            }
            Kind::TokenBucket => then(&[ms(0); 10], &mut (100..1_000).step_by(100)),
            Kind::LeakyBucket { .. } => then(&[ns(999_999_999)], &mut (1_099..2_000).step_by(100)),
        };
        let verdicts = per_second(10, kind).verdicts(&arrivals);
        let admitted = arrivals.iter().zip(verdicts).filter(|(_, admitted)| *admitted);
        let admitted = admitted.map(|(at, _)| u64::try_from(at.as_nanos()).unwrap()).collect::<Vec<_>>();
        let held = recount::most_in_any(1_000_000_000, &admitted);
        assert_eq!(held, most_in_one_period(kind, 10), "{kind}");
    }
}

#[test]
fn million_requests_to_each_kind_use_the_quota_up() {
    // A request each millisecond for 1,000 s, where ten a second are allowed.
    let saturating = (0..1_000_000).map(ms).collect::<Vec<_>>();
    let expected = [
        ("fixed", 10_000),
        ("first-hit", 10_000),
        ("sliding-log", 10_000),
        // Nine requests of the previous second weigh so much that a tenth never fits.
        ("sliding-counter", 10 + 999 * 9),
        ("counting-rejects", 10),
        ("token-bucket", 10_009),
        ("whole-second", 10_000),
        ("leaky-bucket", 10_000),
    ];
    let passed = Kind::ALL.map(|kind| (kind.name(), per_second(10, kind).admitted(&saturating)));
    assert_eq!(passed, expected);
}
