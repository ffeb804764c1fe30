//! How long a cancel waits when all other lanes use everything they can.

use std::{num::NonZeroU32, time::Duration};

use steadfast_limit::{Lane, MINUTE, Nanos, Profile, SECOND};
use steadfast_sandbox::enforce::Kind;

use crate::{
    drive::{MS, S, general},
    wire::{Dice, Line, START, Wire},
};

const LIMITS: &[(u32, Duration)] = &[(10, SECOND), (400, MINUTE)];
const RTT: Nanos = 40 * MS;

/// Returns a wire with endless polls and verifications, at a gateway where `profile` promises no 429. An adaptive
/// zone has a few at one that interpolates.
fn besieged(profile: Profile, seed: u64) -> Wire {
    let kind = match profile {
        Profile::Universal => Kind::SlidingCounter { phase: Duration::from_millis(370) },
        _ => Kind::SlidingLog,
    };
    let mut wire = Wire::new(general().profile(profile), kind, LIMITS, Line::Const(20 * MS), seed);
    wire.greedy(Lane::Bulk, 12, 0);
    wire.greedy(Lane::Verification, 12, 0);
    wire
}

const PROFILES: [Profile; 3] =
    [Profile::WindowLog, Profile::Universal, Profile::Adaptive { burst: NonZeroU32::MIN }];

/// Adds twelve cancels a minute on average.
fn sparse_cancels(wire: &mut Wire, seed: u64, seconds: u64) {
    let mut dice = Dice::new(seed);
    let mut at = START + 90 * S;
    while at < START + seconds * S {
        wire.ask(at, Lane::Critical);
        at += dice.about(5 * S);
    }
}

/// Returns the wait that `how` of a thousand waits do not exceed.
fn at_most(waits: &[Nanos], how: usize) -> Nanos {
    waits[(waits.len() * how / 1_000).min(waits.len() - 1)]
}

/// Returns the waits of sparse cancels in `seeds` runs, the sends per minute, and the refusals.
fn waits(profile: Profile, seeds: u64, resets: f64) -> (Vec<Nanos>, f64, usize) {
    let seconds = if is_deep() { 900 } else { 360 };
    let (mut waits, mut sent, mut refused) = (Vec::new(), 0, 0);
    for seed in 0..seeds {
        let mut wire = besieged(profile, seed);
        wire.resets = resets;
        sparse_cancels(&mut wire, seed, seconds);
        wire.run(START + seconds * S);
        waits.extend(wire.seen.waits_of(Lane::Critical));
        sent += wire.seen.sent.iter().filter(|(at, _)| *at > START + (seconds - 180) * S).count();
        refused += wire.seen.refused.len();
    }
    waits.sort_unstable();
    (waits, sent as f64 / (3 * seeds) as f64, refused)
}

fn is_deep() -> bool {
    std::env::var_os("STEADFAST_DEEP").is_some()
}

fn seeds() -> u64 {
    if is_deep() { 20 } else { 1 }
}

#[test]
fn a_cancel_hardly_waits_behind_polls_and_verifications_that_never_stop() {
    for profile in PROFILES {
        let (waits, sent, refused) = waits(profile, seeds(), 0.0);
        let (p99, most) = (at_most(&waits, 990), at_most(&waits, 1_000));
        println!("{profile:?}: {} cancels wait p99 {p99}, at most {most} ns; {sent} per minute", waits.len());
        assert!(p99 <= 50 * MS, "{profile:?}: {p99}");
        assert_eq!(refused, 0, "{profile:?}");
        assert!(sent >= 0.9 * 400.0, "{profile:?}: {sent} per minute");
    }
}

#[test]
fn a_storm_of_resets_does_not_hold_a_cancel_back() {
    for profile in PROFILES {
        let (waits, sent, refused) = waits(profile, seeds(), 0.033);
        let p99 = at_most(&waits, 990);
        println!("{profile:?}, 3.3 % reset: {} cancels wait p99 {p99} ns; {sent} per minute", waits.len());
        assert!(p99 <= 50 * MS, "{profile:?}: {p99}");
        assert_eq!(refused, 0, "{profile:?}: what is reset here has been counted before");
    }
}

#[test]
fn a_burst_of_cancels_is_out_within_a_second_and_a_trip_for_every_ten_and_one_more() {
    for profile in [Profile::WindowLog, Profile::Universal] {
        for k in [1_u64, 2, 5, 10, 11, 20] {
            for seed in 0..3 {
                let mut wire = besieged(profile, seed);
                let at = START + 100 * S + seed * 170 * MS;
                (0..k).for_each(|_| wire.ask(at, Lane::Critical));
                wire.run(START + 120 * S);
                let waits = wire.seen.waits_of(Lane::Critical);
                assert_eq!(waits.len(), k as usize);
                let bound = (k.div_ceil(10) + 1) * (S + RTT);
                assert!(waits[waits.len() - 1] <= bound, "{profile:?}, {k} at once: {waits:?}");
                assert_eq!(wire.seen.refused.len(), 0);
            }
        }
    }
}

#[test]
fn a_cancel_that_meets_a_pause_is_the_probe_that_ends_it() {
    for profile in [Profile::WindowLog, Profile::Universal] {
        for seed in 0..3 {
            let mut wire = besieged(profile, seed);
            // Another program has used up the quota for half a second.
            let outage = START + 100 * S;
            wire.outage = outage..outage + S / 2;
            let asked = outage + 300 * MS;
            (0..5).for_each(|_| wire.ask(asked, Lane::Critical));
            sparse_cancels(&mut wire, seed, 400);
            wire.run(START + 400 * S);
            let (stopped, refused) = (wire.seen.refused[0], wire.seen.refused.len());
            assert!(refused <= 6, "{profile:?}: {refused} refused, those on their way when the zone stopped");
            let cancels = |from: Nanos, to: Nanos| {
                wire.seen.waits.iter().filter(move |w| w.1 == Lane::Critical && (from..to).contains(&w.0))
            };
            // The probe is a cancel. After a pause of a second they leave one by one, each after an answer, behind one
            // that came before.
            let last = cancels(asked, asked + 1).map(|w| w.2).max().unwrap();
            assert!(asked + last <= stopped + S + 5 * RTT, "{profile:?}: the last waited {last}");
            let mut later: Vec<_> = cancels(outage + 3 * S, Nanos::MAX).map(|w| w.2).collect();
            later.sort_unstable();
            assert!(at_most(&later, 990) <= 50 * MS, "{profile:?}: {later:?}");
        }
    }
}
