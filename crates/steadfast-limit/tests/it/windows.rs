//! The promise itself: no window of the gateway ever holds more than its limit, whatever happens on the way.
//!
//! A simulated gateway counts every request at its own instant between send and answer. The requests are checked
//! against the definition of the limit, pair by pair.

use std::{cmp::Reverse, collections::BinaryHeap};

use proptest::prelude::*;
use steadfast_limit::{
    Answer, Ask, Builder, Ceilings, Decision, Grant, Lane, Limiter, Loss, Nanos, Profile, Quota, Scope,
    WaiterId, Zone, ZoneLimiter,
};

use crate::drive::{MS, S};

const FAST: Zone = Zone::new("fast");
const SLOW: Zone = Zone::new("slow");

/// The fate of one request, drawn before it is made.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// The time after the previous one.
    gap: Nanos,
    lane: Lane,
    zones: &'static [Zone],
    end: End,
    /// The time from the grant to the end.
    takes: Nanos,
    /// Where the gateway counts it, in thousandths of the range between the first and the last possible instant.
    counted: u64,
    /// How long it waits before it gives up.
    patience: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Answered,
    Reset,
    TimedOut,
    NeverLeft,
}

/// When a response is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stamp {
    AtTheAnswer,
    /// As most limiters do.
    AtTheSend,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Arrival(usize),
    Alarm(usize),
    Impatience(usize),
    End(usize),
}

struct World<'a> {
    limiter: Limiter,
    plans: &'a [Plan],
    stamp: Stamp,
    happenings: BinaryHeap<Reverse<(Nanos, Happening)>>,
    waiting: Vec<Option<WaiterId>>,
    granted: Vec<Option<(Grant, Nanos)>>,
    /// When the gateway counted each request.
    counted: Vec<(Nanos, usize)>,
}

/// Longer than any queue here can last.
const PATIENT: Nanos = 600 * S;

const GATEWAY_TIMEOUT: Nanos = 3 * S;

impl<'a> World<'a> {
    fn new(builder: Builder, plans: &'a [Plan], stamp: Stamp) -> Self {
        let builder =
            builder.strict_critical().arrives_within(std::time::Duration::from_nanos(GATEWAY_TIMEOUT));
        let mut at = 1_000 * S;
        let mut happenings = BinaryHeap::new();
        for (i, plan) in plans.iter().enumerate() {
            at += plan.gap;
            happenings.push(Reverse((at, Happening::Arrival(i))));
        }
        Self {
            limiter: builder.build_core().unwrap(),
            plans,
            stamp,
            happenings,
            waiting: plans.iter().map(|_| None).collect(),
            granted: plans.iter().map(|_| None).collect(),
            counted: Vec::new(),
        }
    }

    fn run(mut self) -> Vec<(Nanos, usize)> {
        while let Some(Reverse((now, happening))) = self.happenings.pop() {
            match happening {
                Happening::Arrival(i) => {
                    let plan = &self.plans[i];
                    let zones: Vec<_> =
                        plan.zones.iter().map(|zone| (self.limiter.zone_id(*zone).unwrap(), 1)).collect();
                    let ask = Ask { zones: &zones, lane: plan.lane, send_by: None, head_of_lane: i % 7 == 0 };
                    let decision = self.limiter.acquire(&ask, now);
                    self.happenings.push(Reverse((now + plan.patience, Happening::Impatience(i))));
                    self.follow(i, decision, now);
                }
                Happening::Alarm(i) => self.poll(i, now),
                Happening::Impatience(i) => {
                    if let Some(waiter) = self.waiting[i].take() {
                        assert!(
                            self.plans[i].patience < PATIENT,
                            "somebody was not woken when there was room"
                        );
                        self.limiter.cancel(waiter, now);
                    }
                }
                Happening::End(i) => self.end(i, now),
            }
            for waiter in self.limiter.take_woken() {
                let i = self.waiting.iter().position(|w| *w == Some(waiter)).expect("a woken waiter waits");
                self.happenings.push(Reverse((now, Happening::Alarm(i))));
            }
        }
        assert!(self.waiting.iter().all(Option::is_none), "somebody was forgotten in a queue");
        let left = self.limiter.snapshot(1_000_000 * S);
        assert_eq!(left.zones, [], "something was left behind");
        self.counted.sort_unstable();
        self.counted
    }

    fn poll(&mut self, i: usize, now: Nanos) {
        if let Some(waiter) = self.waiting[i] {
            let decision = self.limiter.poll(waiter, now).expect("a waiter is known until it is granted");
            self.follow(i, decision, now);
        }
    }

    fn follow(&mut self, i: usize, decision: Decision, now: Nanos) {
        self.waiting[i] = None;
        match decision {
            Decision::Granted(grant) => {
                if self.stamp == Stamp::AtTheSend {
                    self.limiter.settle(grant, Answer::Accepted, now);
                    self.count(i, now, now + self.plans[i].takes);
                } else {
                    self.granted[i] = Some((grant, now));
                    self.happenings.push(Reverse((now + self.plans[i].takes, Happening::End(i))));
                }
            }
            Decision::Queued { waiter, alarm } => {
                self.waiting[i] = Some(waiter);
                if let Some(alarm) = alarm {
                    self.happenings.push(Reverse((alarm.max(now), Happening::Alarm(i))));
                }
            }
            Decision::Refused(_) => {}
        }
    }

    fn end(&mut self, i: usize, now: Nanos) {
        let Some((grant, sent)) = self.granted[i].take() else { return };
        match self.plans[i].end {
            End::Answered => {
                self.count(i, sent, now);
                self.limiter.settle(grant, Answer::Accepted, now);
            }
            End::Reset => {
                self.count(i, sent, now + S);
                self.limiter.lose(grant, sent, Loss::Reset, now);
            }
            End::TimedOut => {
                self.count(i, sent, now.max(sent + GATEWAY_TIMEOUT));
                self.limiter.lose(grant, sent, Loss::GivenUp, now);
            }
            End::NeverLeft => self.limiter.refund(grant, now),
        }
    }

    fn count(&mut self, i: usize, from: Nanos, to: Nanos) {
        self.counted.push((from + (to - from) * self.plans[i].counted / 1_000, i));
    }
}

/// Returns the most requests of `zone` in any half-open stretch of `period`.
fn fullest(counted: &[(Nanos, usize)], plans: &[Plan], zone: Zone, period: Nanos) -> usize {
    let of_zone: Vec<_> = in_zone(counted, plans, zone);
    let within = |start: Nanos| of_zone.iter().filter(|at| (start..start + period).contains(*at)).count();
    of_zone.iter().map(|start| within(*start)).max().unwrap_or(0)
}

/// True if an interpolating gateway, with windows of any phase, finds `limit` exceeded at any request.
fn interpolated_exceeds(
    counted: &[(Nanos, usize)],
    plans: &[Plan],
    zone: Zone,
    limit: u64,
    period: Nanos,
) -> bool {
    let of_zone = in_zone(counted, plans, zone);
    let boundaries: Vec<_> = of_zone.iter().flat_map(|at| [*at, at + period]).collect();
    of_zone.iter().enumerate().any(|(last, at)| {
        let seen = &of_zone[..=last];
        boundaries.iter().filter(|b| (at - period + 1..=*at).contains(*b)).any(|b| {
            let earlier = seen.iter().filter(|x| **x + period >= *b && **x < *b).count() as u64;
            let since = seen.iter().filter(|x| **x >= *b).count() as u64;
            earlier * (period - (at - b)) + since * period > limit * period
        })
    })
}

fn in_zone(counted: &[(Nanos, usize)], plans: &[Plan], zone: Zone) -> Vec<Nanos> {
    counted.iter().filter(|(_, i)| plans[*i].zones.contains(&zone)).map(|(at, _)| *at).collect()
}

fn zones(profile: Profile) -> Builder {
    let second = std::time::Duration::from_secs(1);
    let fast = Quota::new(FAST, Scope::AuthToken).limit(4, second).limit(9, 5 * second).profile(profile);
    let slow =
        Quota::new(SLOW, Scope::ApiKey).limit(3, second).ceilings(Ceilings::standard()).profile(profile);
    ZoneLimiter::builder().zone(fast.ceilings(Ceilings::standard())).zone(slow)
}

/// Draws requests beyond the quota, with answers of any length.
fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let zones = prop_oneof![Just(&[FAST][..]), Just(&[SLOW][..]), Just(&[FAST, SLOW][..])];
    let end = prop_oneof![
        12 => Just(End::Answered),
        1 => Just(End::Reset),
        1 => Just(End::TimedOut),
        1 => Just(End::NeverLeft),
    ];
    let takes = prop_oneof![Just(0), 1..50 * MS, 1..1_500 * MS];
    let gap = prop_oneof![3 => Just(0), 3 => 0..400 * MS, 1 => 0..4 * S];
    let patience = prop_oneof![4 => Just(PATIENT), 1 => 0..3 * S];
    let counted = prop_oneof![Just(0), Just(1_000), 0_u64..=1_000];
    let plan = (gap, 0..5_usize, zones, end, takes, counted, patience).prop_map(
        |(gap, lane, zones, end, takes, counted, patience)| {
            let lane = Lane::ALL[lane];
            Plan { gap, lane, zones, end, takes, counted, patience }
        },
    );
    prop::collection::vec(plan, 1..80)
}

/// Returns a busy client's trace on a jittery line, on which the wrong variants must fail.
fn saturated() -> Vec<Plan> {
    (0..120)
        .map(|i| Plan {
            gap: 20 * MS,
            lane: Lane::Critical,
            zones: &[FAST],
            end: End::Answered,
            // Every fourth answer is late, and is counted late.
            takes: if i % 4 == 0 { 700 * MS } else { 5 * MS },
            counted: 1_000,
            patience: PATIENT,
        })
        .collect()
}

proptest! {
    #[test]
    fn no_window_of_the_gateway_ever_holds_more_than_its_limit(plans in plans()) {
        let counted = World::new(zones(Profile::WindowLog), &plans, Stamp::AtTheAnswer).run();
        prop_assert!(fullest(&counted, &plans, FAST, S) <= 4);
        prop_assert!(fullest(&counted, &plans, FAST, 5 * S) <= 9);
        prop_assert!(fullest(&counted, &plans, SLOW, S) <= 3);
    }

    #[test]
    fn universal_zones_satisfy_gateways_that_interpolate_too(plans in plans()) {
        let counted = World::new(zones(Profile::Universal), &plans, Stamp::AtTheAnswer).run();
        prop_assert!(fullest(&counted, &plans, FAST, S) <= 4);
        prop_assert!(fullest(&counted, &plans, FAST, 5 * S) <= 9);
        for (zone, limit, period) in [(FAST, 4, S), (FAST, 9, 5 * S), (SLOW, 3, S)] {
            prop_assert!(!interpolated_exceeds(&counted, &plans, zone, limit, period));
        }
    }

    #[test]
    fn paced_zones_satisfy_gateways_that_interpolate_too(plans in plans()) {
        let profile = Profile::Paced { burst: std::num::NonZeroU32::MIN };
        let counted = World::new(zones(profile), &plans, Stamp::AtTheAnswer).run();
        for (zone, limit, period) in [(FAST, 4, S), (FAST, 9, 5 * S), (SLOW, 3, S)] {
            prop_assert!(fullest(&counted, &plans, zone, period) <= limit as usize);
            prop_assert!(!interpolated_exceeds(&counted, &plans, zone, limit, period));
        }
    }
}

#[test]
fn the_same_check_finds_what_a_log_at_the_send_does_wrong() {
    let plans = saturated();
    let at_send = World::new(zones(Profile::WindowLog), &plans, Stamp::AtTheSend).run();
    assert!(fullest(&at_send, &plans, FAST, S) > 4, "{}", fullest(&at_send, &plans, FAST, S));
    let at_answer = World::new(zones(Profile::WindowLog), &plans, Stamp::AtTheAnswer).run();
    assert!(fullest(&at_answer, &plans, FAST, S) <= 4);
    assert_eq!(at_answer.len(), plans.len(), "and all of them went out");
}

#[test]
fn the_same_check_finds_what_a_plain_log_does_wrong_at_a_gateway_that_interpolates() {
    let plans = saturated();
    let plain = World::new(zones(Profile::WindowLog), &plans, Stamp::AtTheAnswer).run();
    assert!(interpolated_exceeds(&plain, &plans, FAST, 4, S));
    let universal = World::new(zones(Profile::Universal), &plans, Stamp::AtTheAnswer).run();
    assert!(!interpolated_exceeds(&universal, &plans, FAST, 4, S));
    assert_eq!(universal.len(), plans.len(), "and all of them went out");
}
