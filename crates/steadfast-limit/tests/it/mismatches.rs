//! 429s that the limiter's own log does not explain, and those that are no surprise.

use std::{num::NonZeroU32, time::Duration};

use steadfast_limit::{
    Decision, Event, Lane, MINUTE, Profile, Quota, SECOND, Scope, TrustStep, Zone, ZoneLimiter,
};

use crate::drive::{Core, HELD_SECOND, MS, S, general, granted, per_second};

const GENERAL: Zone = Zone::GENERAL;

#[test]
fn a_429_that_the_log_does_not_explain_is_reported_with_the_log() {
    let mut core = Core::of(general());
    core.spend(GENERAL, Lane::Critical, 2);
    let grant = core.granted(GENERAL, Lane::Critical);
    core.answer_429(grant);
    let events = core.limiter.take_events();
    let [
        Event::ModelMismatch { zone, ours, .. },
        Event::Stepped { step: TrustStep::Spread, .. },
        Event::Paused { pause, again: false, .. },
    ] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!((*zone, *pause), (GENERAL, Duration::from_secs(1)));
    let used: Vec<_> = ours.iter().map(|window| (window.limit, window.period, window.used)).collect();
    assert_eq!(used, [(10, SECOND, 3), (400, MINUTE, 3)]);
}

#[test]
fn a_429_after_cancels_were_let_through_lost_slots_is_no_surprise() {
    let mut core = Core::of(per_second(GENERAL, 1));
    let grant = core.granted(GENERAL, Lane::Critical);
    core.lose(grant, core.now, steadfast_limit::Loss::GivenUp);
    core.now += 2 * S;
    let grant = core.granted(GENERAL, Lane::Critical);
    core.answer_429(grant);
    let events = core.limiter.take_events();
    assert!(matches!(events[..], [Event::Paused { .. }]), "{events:?}");
}

#[test]
fn an_adaptive_zone_learns_from_429s_and_recovers() {
    let burst = NonZeroU32::MIN;
    let quota = Quota::new(GENERAL, Scope::AuthToken).limit(10, SECOND).profile(Profile::Adaptive { burst });
    let mut core = Core::of(quota);
    let step = |core: &mut Core| core.limiter.snapshot(core.now).zones[0].step;
    core.spend(GENERAL, Lane::Normal, 9);
    let grant = core.granted(GENERAL, Lane::Normal);
    core.answer_429(grant);
    assert_eq!(step(&mut core), TrustStep::Spread);

    // In a spread zone requests go one at a time.
    core.now += 10 * S;
    let grant = core.granted(GENERAL, Lane::Normal);
    let waiter = core.queued(GENERAL, Lane::Normal);
    core.cancel(waiter);
    core.answer(grant);
    core.now += 51 * S;
    core.spend(GENERAL, Lane::Normal, 1);
    assert_eq!(step(&mut core), TrustStep::Universal);

    // On the universal step the eleventh request waits longer than a window.
    core.now += 10 * S;
    core.spend(GENERAL, Lane::Normal, 10);
    let waiter = core.queued(GENERAL, Lane::Normal);
    core.now += S + S / 20;
    assert!(matches!(core.poll(waiter), Decision::Queued { .. }), "the log alone would have let it go");
    core.now += S;
    let last = granted(core.poll(waiter));
    core.answer(last);
    core.now += 61 * S;
    core.spend(GENERAL, Lane::Normal, 1);
    assert_eq!(step(&mut core), TrustStep::OwnProfile);
    core.now += 10 * S;
    core.spend(GENERAL, Lane::Normal, 10);
}

/// If only patience admits a cancel at a hanging gateway, its 429 is expected.
#[test]
fn a_429_is_no_surprise_once_patience_has_passed_over_a_request_on_its_way() {
    let patience = 3 * S + HELD_SECOND;
    for (limit, lane, surprises) in [
        (1, Lane::Critical, false),
        (1, Lane::Verification, false),
        // The second slot was free for any lane.
        (2, Lane::Critical, true),
        (2, Lane::Trading, true),
    ] {
        let mut core = Core::of(per_second(GENERAL, limit));
        let _hangs = core.granted(GENERAL, Lane::Trading);
        // The penalty keeps the grant off the fast path.
        let (zone, key) = core.zone(GENERAL);
        core.limiter.assume_spent(zone, key, core.now).unwrap();
        core.now += patience;
        let grant = core.granted(GENERAL, lane);
        core.answer_429(grant);
        let events = core.limiter.take_events();
        let told = matches!(events[0], Event::ModelMismatch { .. });
        assert_eq!(told, surprises, "{lane}, a limit of {limit}: {events:?}");
    }
}

/// Regression: one lost request silenced what cancels and verifications learn, for minutes.
#[test]
fn a_429_of_a_cancel_is_a_surprise_if_the_lost_requests_would_not_have_held_back_an_order() {
    for (lost, surprises) in [(1, true), (8, true), (9, false)] {
        for lane in [Lane::Critical, Lane::Verification] {
            let mut core = Core::of(per_second(GENERAL, 10));
            let sent = core.now;
            let grants: Vec<_> = (0..lost).map(|_| core.granted(GENERAL, Lane::Trading)).collect();
            core.now += MS;
            grants.into_iter().for_each(|grant| core.lose(grant, sent, steadfast_limit::Loss::GivenUp));
            core.now += 2 * S;
            core.spend(GENERAL, lane, 1);
            let grant = core.granted(GENERAL, lane);
            core.answer_429(grant);
            let events = core.limiter.take_events();
            let told = matches!(events[0], Event::ModelMismatch { .. });
            assert_eq!(told, surprises, "{lost} lost, {lane}: {events:?}");
        }
    }
}

/// A lane that waits for lost requests gets no leniency, so its 429 is a surprise.
#[test]
fn a_429_of_an_order_beside_a_lost_one_is_a_surprise() {
    let mut core = Core::of(per_second(GENERAL, 2));
    let lost = core.granted(GENERAL, Lane::Trading);
    core.lose(lost, core.now, steadfast_limit::Loss::GivenUp);
    let grant = core.granted(GENERAL, Lane::Trading);
    core.answer_429(grant);
    let events = core.limiter.take_events();
    assert!(matches!(events[0], Event::ModelMismatch { .. }), "{events:?}");
}

const BOTH: [Zone; 2] = [GENERAL, Zone::PLACE_ORDER];

/// Returns a core with two learning zones. Every request needs both.
fn learning() -> Core {
    let quota = |zone| {
        let profile = Profile::Adaptive { burst: NonZeroU32::MIN };
        Quota::new(zone, Scope::AuthToken).limit(10, SECOND).profile(profile)
    };
    Core::new(ZoneLimiter::builder().zone(quota(BOTH[0])).zone(quota(BOTH[1])))
}

fn steps(core: &mut Core) -> Vec<TrustStep> {
    core.limiter.snapshot(core.now).zones.iter().map(|zone| zone.step).collect()
}

fn spend_both(core: &mut Core, n: usize) {
    let grants: Vec<_> = (0..n).map(|_| granted(core.ask(&BOTH, Lane::Normal))).collect();
    for grant in grants {
        core.answer(grant);
    }
}

/// Returns both zones' steps after two answers, each a clean minute after the one before.
fn two_minutes_later(core: &mut Core) -> Vec<TrustStep> {
    assert_eq!(steps(core), [TrustStep::Spread; 2]);
    for _ in 0..2 {
        core.now += 61 * S;
        spend_both(core, 1);
    }
    steps(core)
}

/// Delays after a full window: an interpolating gateway refuses the first, the log admits both.
const TOO_EARLY: u64 = S + S / 20;
const EARLY_ENOUGH: u64 = S + S / 2;

#[test]
fn a_429_that_any_count_would_admit_is_forgotten_in_two_minutes() {
    let mut core = learning();
    for _ in 0..3 {
        core.now += 10 * S;
        spend_both(&mut core, 10);
        core.now += EARLY_ENOUGH;
        let grant = granted(core.ask(&BOTH, Lane::Normal));
        core.answer_429(grant);
        assert_eq!(
            two_minutes_later(&mut core),
            [TrustStep::OwnProfile; 2],
            "it says nothing against the log"
        );
    }
}

#[test]
fn a_429_that_only_the_log_would_admit_is_remembered_the_second_time() {
    let mut core = learning();
    core.now += 10 * S;
    // A request that every count admits is on its way beside the probe, and is answered first.
    let plain = granted(core.ask(&BOTH, Lane::Normal));
    spend_both(&mut core, 9);
    core.now += TOO_EARLY;
    let tries = granted(core.ask(&BOTH, Lane::Normal));
    core.answer(plain);
    core.answer_429(tries);
    assert_eq!(two_minutes_later(&mut core), [TrustStep::OwnProfile; 2]);

    core.now += 10 * S;
    spend_both(&mut core, 10);
    core.now += TOO_EARLY;
    let tries = granted(core.ask(&BOTH, Lane::Normal));
    core.answer_429(tries);
    assert_eq!(two_minutes_later(&mut core), [TrustStep::Universal; 2]);
}

#[test]
fn an_optimistic_grant_that_was_answered_lost_or_never_left_explains_no_later_429() {
    for end in 0..3 {
        let mut core = learning();
        core.now += 10 * S;
        spend_both(&mut core, 10);
        core.now += TOO_EARLY;
        let tries = granted(core.ask(&BOTH, Lane::Normal));
        match end {
            0 => core.answer(tries),
            1 => core.lose(tries, core.now, steadfast_limit::Loss::Reset),
            _ => core.limiter.refund(tries, core.now),
        }
        for _ in 0..2 {
            // Early enough that the key is not yet forgotten.
            core.now += EARLY_ENOUGH;
            let grant = granted(core.ask(&BOTH, Lane::Normal));
            core.answer_429(grant);
            assert_eq!(two_minutes_later(&mut core), [TrustStep::OwnProfile; 2], "end {end}");
        }
    }
}
