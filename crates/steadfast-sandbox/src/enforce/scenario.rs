//! Random gateways, and the requests that reach them.

use std::time::Duration;

use proptest::{prelude::*, sample::select};

use super::{trace::*, *};

/// A gateway to build, and the requests that reach it.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) kind: Kind,
    pub(super) window: Window,
    pub(super) counting: bool,
    /// When each request arrives, and whether another zone refuses it.
    pub(super) requests: Vec<(u64, bool)>,
}

impl Scenario {
    pub(super) fn enforcer(&self) -> Enforcer {
        let enforcer = Enforcer::new(self.kind, self.window);
        if self.counting { enforcer.counting_rejects() } else { enforcer }
    }

    pub(super) fn counts_rejects(&self) -> bool {
        self.counting || matches!(self.kind, Kind::CountingRejects { .. })
    }

    pub(super) fn last(&self) -> u64 {
        self.requests.iter().map(|(at, _)| *at).max().unwrap_or(0)
    }
}

/// Puts one request to one enforcer, and returns whether it was within the limit.
pub(super) fn request(enforcer: &mut Enforcer, now: Duration, refused_elsewhere: bool) -> bool {
    let admits = enforcer.admits(now);
    if admits && !refused_elsewhere {
        enforcer.commit(now)
    } else {
        enforcer.reject(now)
    }
    admits
}

/// Puts all requests of the scenario to the enforcer, and returns which were within the limit.
pub(super) fn play(enforcer: &mut Enforcer, requests: &[(u64, bool)], shift: u64) -> Vec<bool> {
    requests.iter().map(|(at, elsewhere)| request(enforcer, ns(at + shift), *elsewhere)).collect()
}

fn windows() -> impl Strategy<Value = Window> {
    let periods = prop_oneof![
        2 => select(vec![1_000_000_000_u64, 60_000_000_000]),
        1 => 1..40_u64,
        1 => (1..5_000_u64).prop_map(|millis| millis * 1_000_000),
        1 => 1..3_000_000_000_u64,
    ];
    (1..=12_u32, periods).prop_map(|(limit, period)| Window::new(limit, ns(period)).unwrap())
}

pub(super) fn kinds(period: u64) -> impl Strategy<Value = Kind> {
    let phases = prop_oneof![Just(0), 0..=period * 2];
    (select(Kind::ALL.to_vec()), phases, 0..4_u32).prop_map(|(kind, phase, burst)| match kind {
        Kind::FixedWindow { .. } => Kind::FixedWindow { phase: ns(phase) },
        Kind::SlidingCounter { .. } => Kind::SlidingCounter { phase: ns(phase) },
        Kind::CountingRejects { .. } => Kind::CountingRejects { phase: ns(phase) },
        Kind::LeakyBucket { .. } => Kind::LeakyBucket { burst },
        other => other,
    })
}

/// Distances between arrivals at which rules differ: zero, whole periods and intervals plus or minus a
/// nanosecond, and values in between. Negative ones are arrivals out of order.
fn steps(window: Window) -> impl Strategy<Value = i64> {
    let period = window.nanos().cast_signed();
    let interval = (period / i64::from(window.limit())).max(1);
    prop_oneof![
        6 => Just(0),
        3 => 0..=interval,
        3 => (1..=3_i64, -1..=1_i64).prop_map(move |(n, off)| interval * n + off),
        2 => (1..=2_i64, -1..=1_i64).prop_map(move |(n, off)| period * n + off),
        2 => 0..=period,
        1 => 0..=period * 3,
        1 => -period..=0,
    ]
}

pub(super) fn scenarios() -> impl Strategy<Value = Scenario> {
    windows()
        .prop_flat_map(|window| {
            let requests = prop::collection::vec((steps(window), prop::bool::weighted(0.1)), 1..80);
            let start = 0..=window.nanos() * 2;
            (Just(window), kinds(window.nanos()), any::<bool>(), start, requests)
        })
        .prop_map(|(window, kind, counting, start, steps)| {
            let mut now = start;
            let requests = steps.into_iter().map(|(step, elsewhere)| {
                now = now.saturating_add_signed(step);
                (now, elsewhere)
            });
            Scenario { kind, window, counting, requests: requests.collect() }
        })
}

pub(super) fn clocks() -> impl Strategy<Value = GatewayClock> {
    let true_time = Just(GatewayClock::new());
    let other = (0..u64::MAX / 2, any::<i16>())
        .prop_map(|(epoch, ppm)| GatewayClock::new().epoch(ns(epoch)).drift_ppm(ppm));
    prop_oneof![true_time, other]
}
