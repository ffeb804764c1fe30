//! The preset's zone for orders at gateways at which the plain log is not safe.

use std::{num::NonZeroU32, time::Duration};

use steadfast_limit::{Lane, Nanos, Profile, Quota, SECOND, Scope, Zone};
use steadfast_sandbox::enforce::Kind;

use crate::{
    drive::{MS, S},
    wire::{Dice, LINES, Line, START, Wire},
};

const TEN: &[(u32, Duration)] = &[(10, SECOND)];

fn orders() -> Quota {
    let profile = Profile::Adaptive { burst: NonZeroU32::MIN };
    Quota::new(Zone::PLACE_ORDER, Scope::AuthToken).limit(10, SECOND).profile(profile)
}

/// The requests that traders make.
#[derive(Clone, Copy, Debug)]
enum Demand {
    /// 45 orders at once, and again every 90 seconds.
    Bursts,
    /// More than the quota, all the time.
    Saturated,
    /// Nine at once in every second, which a log admits for longest.
    Nines,
    /// Three to fifteen at once, a second or so apart.
    Uneven,
}

impl Demand {
    const ALL: [Self; 4] = [Self::Bursts, Self::Saturated, Self::Nines, Self::Uneven];

    fn ask(self, wire: &mut Wire, seed: u64, seconds: u64) {
        let mut dice = Dice::new(seed);
        let mut at = START;
        match self {
            Self::Saturated => wire.greedy(Lane::Trading, 30, 0),
            Self::Bursts => {
                for i in 0..seconds.div_ceil(90) {
                    (0..45).for_each(|_| wire.ask(START + i * 90 * S, Lane::Trading));
                }
            }
            Self::Nines => {
                for i in 0..seconds {
                    (0..9).for_each(|_| wire.ask(START + i * (S + 2 * MS), Lane::Trading));
                }
            }
            Self::Uneven => {
                while at < START + seconds * S {
                    (0..3 + dice.below(13)).for_each(|_| wire.ask(at, Lane::Trading));
                    at += 800 * MS + dice.below(800) * MS;
                }
            }
        }
    }
}

fn interpolating(phase: Nanos) -> [Kind; 2] {
    let phase = Duration::from_nanos(phase);
    [Kind::SlidingCounter { phase }, Kind::CountingRejects { phase }]
}

/// The number of phases tried on all lines. A plain run has one, on the steadiest and the worst line.
fn phases() -> u64 {
    if std::env::var_os("STEADFAST_DEEP").is_some() { 100 } else { 1 }
}

#[test]
fn gateways_that_interpolate_refuse_at_most_four_in_ten_minutes_and_three_at_first() {
    let mut worst = (0, 0);
    for line in LINES.into_iter().step_by(if phases() > 1 { 1 } else { 3 }) {
        for demand in Demand::ALL {
            for phase in 0..phases() {
                for kind in interpolating(phase * S / phases() + 7 * MS) {
                    let seconds = 600;
                    let mut wire = Wire::new(orders(), kind, TEN, line, phase);
                    demand.ask(&mut wire, phase, seconds);
                    wire.run(START + seconds * S);
                    let refused = &wire.seen.refused;
                    let first = refused
                        .first()
                        .map_or(0, |first| refused.iter().filter(|at| **at < first + 30 * S).count());
                    assert!(first <= 3, "{line:?} {demand:?} {kind:?}: {first} at first");
                    assert!(refused.len() <= 4, "{line:?} {demand:?} {kind:?}: {}", refused.len());
                    worst = (worst.0.max(first), worst.1.max(refused.len()));
                }
            }
        }
    }
    println!("429s at gateways that interpolate: at most {} at first, {} in ten minutes", worst.0, worst.1);
    assert!(worst.1 > 0, "the plain log is not safe there, so this test must meet some");
}

#[test]
fn gateways_that_do_not_interpolate_refuse_nothing_and_cost_nothing() {
    let fixed = |ms| Kind::FixedWindow { phase: Duration::from_millis(ms) };
    let kinds = [
        fixed(0),
        fixed(330),
        fixed(770),
        Kind::SlidingLog,
        Kind::TokenBucket,
        Kind::FirstHit,
        Kind::WholeSecond,
    ];
    for line in LINES {
        for demand in Demand::ALL {
            for kind in kinds {
                let mut wire = Wire::new(orders(), kind, TEN, line, 3);
                demand.ask(&mut wire, 3, 60);
                wire.run(START + 60 * S);
                assert_eq!(wire.seen.refused.len(), 0, "{line:?} {demand:?} {kind:?}");
            }
        }
        let mut wire = Wire::new(orders(), Kind::SlidingLog, TEN, line, 3);
        Demand::Saturated.ask(&mut wire, 3, 60);
        wire.run(START + 61 * S);
        let rate = wire.seen.sent.iter().filter(|(at, _)| *at >= START + S).count() as f64 / 60.0;
        println!("{line:?}: {rate:.2} orders per second");
        let least = match line {
            Line::Lan => 9.8,
            Line::Cloud => 9.8,
            Line::Const(_) => 9.5,
            Line::Internet => 8.7,
        };
        assert!(rate >= least, "{line:?}: {rate}");
    }
}

#[test]
fn thirty_orders_take_two_seconds_and_six_answers() {
    for (kind, line, most) in [
        (Kind::SlidingLog, Line::Const(20 * MS), 2_250 * MS),
        (Kind::FixedWindow { phase: Duration::ZERO }, Line::Const(20 * MS), 2_250 * MS),
        (Kind::SlidingLog, Line::Lan, 2_020 * MS),
    ] {
        let mut wire = Wire::new(orders(), kind, TEN, line, 1);
        (0..30).for_each(|_| wire.ask(START, Lane::Trading));
        wire.run(START + 10 * S);
        assert_eq!(wire.seen.refused.len(), 0);
        let at_once = wire.seen.sent.iter().filter(|(at, _)| *at == START).count();
        assert_eq!(at_once, 10, "the first ten do not wait");
        let took = wire.seen.answered.last().unwrap() - START;
        println!("30 orders, {line:?}, {kind:?}: {:?}", Duration::from_nanos(took));
        assert!(took <= most, "{took}");
    }
}
