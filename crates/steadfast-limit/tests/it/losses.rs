use std::num::NonZeroU32;

use steadfast_limit::{Account, Lane, Loss, Profile, SECOND, Zone, ZoneLimiter};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use crate::drive::{Core, HELD_SECOND, S, granted, per_second};

const ORDER: Zone = Zone::PLACE_ORDER;

#[test]
fn after_a_reset_the_slot_is_held_a_second_longer_than_the_window() {
    let mut core = Core::of(per_second(ORDER, 1));
    let grant = core.granted(ORDER, Lane::Trading);
    let sent = core.now;
    core.now += 2 * S;
    core.lose(grant, sent, Loss::Reset);
    let waiter = core.queued(ORDER, Lane::Trading);
    assert_eq!(core.alarm(waiter), Some(core.now + S + HELD_SECOND));
}

/// Regression: the slot was freed after the gateway's timeout, but the kernel sends the rest of a closed connection
/// for two minutes.
#[test]
fn o01_a_request_that_may_arrive_late_is_held_for_two_minutes_and_the_window() {
    for after in [0, 5 * S, 30 * S] {
        let mut core = Core::of(per_second(ORDER, 1));
        let grant = core.granted(ORDER, Lane::Trading);
        let sent = core.now;
        core.now += after;
        core.lose(grant, sent, Loss::GivenUp);
        let waiter = core.queued(ORDER, Lane::Trading);
        assert_eq!(core.alarm(waiter), Some(core.now + 120 * S + HELD_SECOND), "given up after {after}");
    }
}

#[test]
fn o01_how_late_a_request_may_arrive_is_a_setting() {
    let late = 7 * SECOND;
    let mut core = Core::new(ZoneLimiter::builder().zone(per_second(ORDER, 1)).arrives_within(late));
    let grant = core.granted(ORDER, Lane::Trading);
    core.lose(grant, core.now, Loss::GivenUp);
    let waiter = core.queued(ORDER, Lane::Trading);
    assert_eq!(core.alarm(waiter), Some(core.now + 7 * S + HELD_SECOND));
}

/// Regression: requests were refused because those ahead were thought to wait for the slots of lost requests, although
/// the slot that was left frees itself once a second.
#[test]
fn requests_ahead_take_turns_at_the_slots_that_no_lost_request_holds() {
    let mut core = Core::of(per_second(ORDER, 3));
    let lost = [core.granted(ORDER, Lane::Trading), core.granted(ORDER, Lane::Trading)];
    for grant in lost {
        core.lose(grant, core.now, Loss::GivenUp);
    }
    core.spend(ORDER, Lane::Trading, 1);
    let (zones, start) = ([core.zone(ORDER)], core.now);
    for ahead in 0..110 {
        let earliest = core.limiter.earliest(&zones, Lane::Trading, core.now).unwrap();
        let after = earliest - start;
        assert_eq!(after, (ahead + 1) * HELD_SECOND, "behind {ahead}");
        // A request is told the same.
        let refusal = core.refused(ORDER, Lane::Trading, earliest - 1);
        assert_eq!(refusal.zone(), Some(ORDER));
        core.queued(ORDER, Lane::Trading);
    }
    // From then on three requests leave each second.
    let later = |ahead: u64| {
        let mut core = Core::of(per_second(ORDER, 3));
        let lost = [core.granted(ORDER, Lane::Trading), core.granted(ORDER, Lane::Trading)];
        for grant in lost {
            core.lose(grant, core.now, Loss::GivenUp);
        }
        core.spend(ORDER, Lane::Trading, 1);
        for _ in 0..ahead {
            let _ = core.queued(ORDER, Lane::Trading);
        }
        core.limiter.earliest(&[core.zone(ORDER)], Lane::Trading, core.now).unwrap() - core.now
    };
    assert!(later(180) - later(150) < 12 * S, "{} {}", later(150), later(180));
}

#[test]
fn a_cancel_is_held_back_for_the_window_only_unless_it_is_to_be() {
    for lane in [Lane::Critical, Lane::Verification] {
        for strict in [false, true] {
            let mut builder = ZoneLimiter::builder().zone(per_second(Zone::GENERAL, 1));
            if strict {
                builder = builder.strict_critical();
            }
            let mut core = Core::new(builder);
            let grant = core.granted(Zone::GENERAL, Lane::Critical);
            core.lose(grant, core.now, Loss::GivenUp);
            let waiter = core.queued(Zone::GENERAL, lane);
            let hold = if strict { 120 * S + HELD_SECOND } else { HELD_SECOND };
            assert_eq!(core.alarm(waiter), Some(core.now + hold), "{lane}, strict: {strict}");
        }
    }
}

/// Otherwise ten requests without an answer would keep a cancel waiting until the last of them has timed out.
#[test]
fn a_gateway_that_hangs_holds_a_cancel_back_for_three_seconds_and_the_window_unless_it_is_to() {
    for (lane, strict) in [
        (Lane::Critical, false),
        (Lane::Verification, false),
        (Lane::Critical, true),
        (Lane::Trading, false),
        (Lane::Bulk, false),
    ] {
        let mut builder = ZoneLimiter::builder().zone(per_second(Zone::GENERAL, 1));
        if strict {
            builder = builder.strict_critical();
        }
        let mut core = Core::new(builder);
        let hangs = core.granted(Zone::GENERAL, Lane::Critical);
        let sent = core.now;
        let waiter = core.queued(Zone::GENERAL, lane);
        if strict || lane >= Lane::Trading {
            assert_eq!(core.alarm(waiter), None, "{lane}, strict: {strict}: only an answer makes room");
            core.answer(hangs);
            continue;
        }
        assert_eq!(core.alarm(waiter), Some(sent + 3 * S + HELD_SECOND), "{lane}");
        core.now = sent + 3 * S + HELD_SECOND;
        let second = granted(core.poll(waiter));
        // Its timeout does not hold requests back a second time.
        core.now = sent + 30 * S;
        core.lose(hangs, sent, Loss::GivenUp);
        let third = core.granted(Zone::GENERAL, Lane::Critical);
        core.answer(second);
        core.answer(third);
    }
}

#[tokio::test(start_paused = true)]
async fn cancels_leave_though_the_gateway_answers_nothing() {
    let limiter = ZoneLimiter::preset();
    let keys = limiter.keys("", &Account::default());
    let mut hang = Vec::new();
    for _ in 0..8 {
        let mut poll = limiter.acquire(&[Zone::GENERAL], keys, Lane::Bulk).await.unwrap();
        poll.sent();
        hang.push(poll);
    }
    let (start, mut cancels) = (Instant::now(), JoinSet::new());
    for _ in 0..20 {
        let limiter = limiter.clone();
        cancels.spawn(async move {
            let mut cancel = limiter.acquire(&[Zone::GENERAL], keys, Lane::Critical).await.unwrap();
            cancel.sent();
            (cancel, start.elapsed())
        });
    }
    let left =
        timeout(20 * SECOND, cancels.join_all()).await.expect("held back for as long as nothing answers");
    let mut waits: Vec<_> = left.into_iter().map(|(_, waited)| waited).collect();
    waits.sort_unstable();
    assert!(waits[1].is_zero(), "two slots are the cancels' own: {waits:?}");
    assert!(waits[9] < 5 * SECOND && waits[19] < 10 * SECOND, "{waits:?}");
}

/// Patience let these pass a hung request. Its end must not hold them back once more.
#[test]
fn a_hung_request_that_ends_in_a_reset_holds_no_cancel_back_again() {
    let mut core = Core::of(per_second(Zone::GENERAL, 1));
    let hangs = core.granted(Zone::GENERAL, Lane::Critical);
    let sent = core.now;
    core.now += 20 * S;
    core.lose(hangs, sent, Loss::Reset);
    let cancel = core.granted(Zone::GENERAL, Lane::Critical);
    core.answer(cancel);
}

/// A paced zone's bucket has room beside a request on its way, for a cancel as for other lanes.
#[test]
fn in_a_paced_zone_a_cancel_waits_for_no_answer_that_nobody_else_waits_for() {
    for lane in [Lane::Trading, Lane::Critical] {
        let burst = NonZeroU32::new(2).unwrap();
        let mut core = Core::of(per_second(Zone::GENERAL, 10).profile(Profile::Paced { burst }));
        core.spend(Zone::GENERAL, Lane::Trading, 2);
        core.now += S;
        let poll = core.granted(Zone::GENERAL, Lane::Trading);
        let second = core.granted(Zone::GENERAL, lane);
        core.answer(second);
        core.answer(poll);
    }
}

#[test]
fn an_answer_makes_room_for_a_cancel_before_patience_is_at_its_end() {
    let mut core = Core::of(per_second(Zone::GENERAL, 1));
    let first = core.granted(Zone::GENERAL, Lane::Critical);
    let waiter = core.queued(Zone::GENERAL, Lane::Critical);
    core.now += S / 10;
    core.answer(first);
    assert_eq!(core.alarm(waiter), Some(core.now + HELD_SECOND));
}

#[test]
fn a_share_of_lost_answers_does_not_stop_cancels() {
    let mut core = Core::of(per_second(Zone::GENERAL, 10));
    // Every answer is lost for ten seconds.
    for _ in 0..10 {
        for _ in 0..10 {
            let grant = core.granted(Zone::GENERAL, Lane::Critical);
            core.lose(grant, core.now, Loss::GivenUp);
        }
        core.now += HELD_SECOND;
    }
    let _ = core.granted(Zone::GENERAL, Lane::Critical);
    let order = core.queued(Zone::GENERAL, Lane::Trading);
    assert!(core.alarm(order).is_some_and(|at| at > core.now + 118 * S));
}

#[test]
fn what_never_left_is_free_again_at_once() {
    let mut core = Core::of(per_second(ORDER, 1));
    for _ in 0..100 {
        let grant = core.granted(ORDER, Lane::Trading);
        core.limiter.refund(grant, core.now);
    }
}

#[test]
fn a_renewed_token_starts_with_empty_windows_if_it_is_told_so() {
    let mut core = Core::of(per_second(ORDER, 2));
    core.spend(ORDER, Lane::Trading, 1);
    let in_flight = core.granted(ORDER, Lane::Trading);
    let waiter = core.queued(ORDER, Lane::Trading);
    let (zone, key) = core.zone(ORDER);
    core.limiter.reset(zone, key, core.now);
    let grant = granted(core.poll(waiter));
    core.queued(ORDER, Lane::Trading);
    core.answer(in_flight);
    core.answer(grant);
}

/// The new token has no window at the gateway for requests whose answers were lost.
#[test]
fn a_renewed_token_owes_nothing_for_answers_that_were_lost() {
    for lane in [Lane::Critical, Lane::Trading] {
        let mut core = Core::of(per_second(ORDER, 1));
        let grant = core.granted(ORDER, Lane::Trading);
        core.lose(grant, core.now, Loss::GivenUp);
        let waiter = core.queued(ORDER, lane);
        let (zone, key) = core.zone(ORDER);
        core.limiter.reset(zone, key, core.now);
        let _ = granted(core.poll(waiter));
    }
}

#[test]
fn a_grant_says_when_it_was_given_and_not_when_it_was_asked_for() {
    let mut core = Core::of(per_second(ORDER, 1));
    let grant = core.granted(ORDER, Lane::Trading);
    assert_eq!(grant.at(), core.now);
    core.answer(grant);
    let waiter = core.queued(ORDER, Lane::Trading);
    core.now += HELD_SECOND;
    assert_eq!(granted(core.poll(waiter)).at(), core.now);
}

/// Regression: a cancel counted a lost request from the report of the loss, and an order from the end of its
/// connection.
#[tokio::test(start_paused = true)]
async fn no_cancel_waits_for_a_lost_request_longer_than_an_order_does() {
    for lane in [Lane::Critical, Lane::Verification, Lane::Trading] {
        let limiter = ZoneLimiter::builder().zone(per_second(ORDER, 1)).build().unwrap();
        let keys = limiter.keys("", &Account::default());
        let mut permit = limiter.acquire(&[ORDER], keys, Lane::Trading).await.unwrap();
        permit.sent();
        let ended = Instant::now();
        sleep(SECOND * 29 / 10).await;
        permit.lose_ended(ended);
        limiter.acquire(&[ORDER], keys, lane).await.unwrap().refund();
        assert!(ended.elapsed() < SECOND * 31 / 10, "{lane} waited {:?}", ended.elapsed());
    }
}
