use steadfast_limit::{Ceilings, Lane, SECOND, Zone, ZoneLimiter};

use crate::drive::{Core, HELD_SECOND, S, general, granted, per_second, queued};

const GENERAL: Zone = Zone::GENERAL;

#[test]
fn polls_leave_slots_for_orders_and_orders_for_cancels() {
    let mut core = Core::of(per_second(GENERAL, 10).ceilings(Ceilings::standard()));
    core.spend(GENERAL, Lane::Bulk, 8);
    let poll = core.queued(GENERAL, Lane::Bulk);
    let read = core.queued(GENERAL, Lane::Normal);
    // A later request in a higher lane still finds its own reserve.
    core.spend(GENERAL, Lane::Trading, 0);
    core.cancel(poll);
    core.cancel(read);
    core.spend(GENERAL, Lane::Trading, 1);
    let order = core.queued(GENERAL, Lane::Trading);
    core.cancel(order);
    core.spend(GENERAL, Lane::Critical, 1);
    core.queued(GENERAL, Lane::Critical);
}

#[test]
fn a_cancel_finds_its_reserve_although_polls_are_queued() {
    let mut core = Core::of(per_second(GENERAL, 10).ceilings(Ceilings::standard()));
    core.spend(GENERAL, Lane::Bulk, 8);
    for _ in 0..100 {
        core.queued(GENERAL, Lane::Bulk);
    }
    for _ in 0..2 {
        let _ = granted(core.ask(&[GENERAL], Lane::Critical));
    }
    core.queued(GENERAL, Lane::Critical);
}

#[test]
fn the_highest_lane_goes_first_and_within_a_lane_the_first_come() {
    let mut core = Core::of(per_second(GENERAL, 1));
    core.spend(GENERAL, Lane::Normal, 1);
    let lanes = [Lane::Bulk, Lane::Normal, Lane::Trading, Lane::Verification, Lane::Critical];
    let first: Vec<_> = lanes.iter().map(|lane| core.queued(GENERAL, *lane)).collect();
    let second: Vec<_> = lanes.iter().map(|lane| core.queued(GENERAL, *lane)).collect();
    let expected = (0..5).rev().flat_map(|i| [first[i], second[i]]);
    for waiter in expected {
        core.now += HELD_SECOND;
        let grant = granted(core.poll(waiter));
        core.answer(grant);
    }
}

#[test]
fn a_repeated_request_waits_at_the_head_of_its_lane_only() {
    let mut core = Core::of(per_second(GENERAL, 1));
    core.spend(GENERAL, Lane::Normal, 1);
    let order = core.queued(GENERAL, Lane::Trading);
    let cancel = core.queued(GENERAL, Lane::Critical);
    let resend = queued(core.ask_by(&[GENERAL], Lane::Trading, None, true));
    for waiter in [cancel, resend, order] {
        core.now += HELD_SECOND;
        let grant = granted(core.poll(waiter));
        core.answer(grant);
    }
}

#[test]
fn one_waiter_keeps_the_timer_and_one_is_woken_for_a_slot() {
    let mut core = Core::of(per_second(GENERAL, 1));
    let grant = core.granted(GENERAL, Lane::Normal);
    let waiters: Vec<_> = (0..100).map(|_| core.queued(GENERAL, Lane::Normal)).collect();
    core.answer(grant);
    assert_eq!(core.woken(), [waiters[0]], "only the foremost keeps a timer");
    let alarms: Vec<_> = waiters.iter().filter_map(|waiter| core.alarm(*waiter)).collect();
    assert_eq!(alarms, [core.now + HELD_SECOND]);
    core.now += HELD_SECOND;
    let grant = granted(core.poll(waiters[0]));
    assert_eq!(core.woken(), [], "nobody else has a slot or a timer");
    core.limiter.refund(grant, core.now);
    assert_eq!(core.woken(), [waiters[1]], "a slot given back belongs to the next, and only it is woken");
}

#[test]
fn a_freed_slot_belongs_to_the_waiter_and_not_to_whoever_comes_next() {
    let mut core = Core::of(per_second(GENERAL, 1));
    let grant = core.granted(GENERAL, Lane::Normal);
    let waiter = core.queued(GENERAL, Lane::Bulk);
    core.limiter.refund(grant, core.now);
    // The waiter has not been polled yet, and a cancel comes.
    let cancel = core.queued(GENERAL, Lane::Critical);
    let grant = granted(core.poll(waiter));
    core.limiter.refund(grant, core.now);
    let _ = granted(core.poll(cancel));
}

#[test]
fn a_dropped_waiter_passes_its_slot_and_its_timer_on() {
    let mut core = Core::of(per_second(GENERAL, 1));
    let grant = core.granted(GENERAL, Lane::Normal);
    let waiters: Vec<_> = (0..3).map(|_| core.queued(GENERAL, Lane::Normal)).collect();
    core.answer(grant);
    assert_eq!(core.woken(), [waiters[0]]);
    core.cancel(waiters[0]);
    assert_eq!(core.woken(), [waiters[1]], "the timer goes to the next");
    core.now += HELD_SECOND;
    let _ = core.limiter.poll(waiters[2], core.now).unwrap();
    assert_eq!(core.woken(), [waiters[1]], "granted, but not polled yet");
    core.cancel(waiters[1]);
    assert_eq!(core.woken(), [waiters[2]], "and what it was granted goes to the next");
    let _ = granted(core.poll(waiters[2]));
}

#[test]
fn polls_are_spread_over_the_minute_and_cancels_are_not() {
    let mut core = Core::of(general());
    core.spend(GENERAL, Lane::Bulk, 8);
    core.now += HELD_SECOND;
    // The burst is spent, and further requests go one every 158 ms.
    let sent = (0..8).take_while(|_| {
        let zones = [core.zone(GENERAL)];
        let ask =
            steadfast_limit::Ask { zones: &zones, lane: Lane::Bulk, send_by: None, head_of_lane: false };
        match core.limiter.acquire(&ask, core.now) {
            steadfast_limit::Decision::Granted(grant) => {
                core.limiter.settle(grant, steadfast_limit::Answer::Accepted, core.now);
                true
            }
            steadfast_limit::Decision::Queued { waiter, alarm } => {
                assert!(alarm.is_some_and(|at| at > core.now && at < core.now + S));
                core.limiter.cancel(waiter, core.now);
                false
            }
            refused => panic!("{refused:?}"),
        }
    });
    assert_eq!(sent.count(), 6);
    core.spend(GENERAL, Lane::Critical, 4);
}

#[test]
fn a_cancel_waits_at_most_a_moment_behind_greedy_polls() {
    let mut core = Core::of(general());
    let mut waiting: Vec<_> = Vec::new();
    let start = core.now;
    // Ten minutes of endless polls, and a cancel every five seconds.
    while core.now < start + 600 * S {
        core.now += 50 * 1_000_000;
        let elapsed = core.now - start;
        while waiting.len() < 20 {
            match core.ask(&[GENERAL], Lane::Bulk) {
                steadfast_limit::Decision::Granted(grant) => core.answer(grant),
                other => waiting.push(queued(other)),
            }
        }
        for waiter in std::mem::take(&mut waiting) {
            match core.poll(waiter) {
                steadfast_limit::Decision::Granted(grant) => core.answer(grant),
                _ => waiting.push(waiter),
            }
        }
        if elapsed.is_multiple_of(5 * S) {
            let grant = core.granted(GENERAL, Lane::Critical);
            core.answer(grant);
        }
    }
}

#[test]
fn withheld_slots_are_of_the_quota_that_headroom_leaves() {
    let quota = per_second(GENERAL, 12).headroom(2).ceilings(Ceilings::standard());
    let mut core = Core::new(ZoneLimiter::builder().zone(quota.limit(1_000, 60 * SECOND)));
    core.spend(GENERAL, Lane::Bulk, 8);
    core.queued(GENERAL, Lane::Bulk);
}

#[test]
fn a_poll_that_never_left_is_not_charged_by_the_pacer() {
    let mut core = Core::of(general());
    for _ in 0..100 {
        let poll = core.granted(GENERAL, Lane::Bulk);
        core.limiter.refund(poll, core.now);
    }
    core.spend(GENERAL, Lane::Bulk, 8);
    core.now += HELD_SECOND;
    // Refunds owe a burst at most, which the windows bound too.
    let sent = (0..20).take_while(|_| match core.ask(&[GENERAL], Lane::Bulk) {
        steadfast_limit::Decision::Granted(grant) => {
            core.answer(grant);
            true
        }
        other => {
            let waiter = queued(other);
            core.cancel(waiter);
            false
        }
    });
    assert!(sent.count() <= 8);
}

#[test]
fn verifications_are_spread_as_polls_are_and_orders_are_not() {
    let mut core = Core::of(general());
    core.spend(GENERAL, Lane::Verification, 8);
    let waiter = core.queued(GENERAL, Lane::Verification);
    assert!(
        core.alarm(waiter).is_some_and(|at| at < core.now + S / 5),
        "it waits for the smoother, not for a window"
    );
    core.cancel(waiter);
    core.spend(GENERAL, Lane::Critical, 2);
}

/// Regression: only the smoother held up a verification, and with it all orders behind it.
#[test]
fn an_order_passes_a_verification_that_only_the_pacer_holds_up() {
    let mut core = Core::of(general());
    core.spend(GENERAL, Lane::Verification, 8);
    core.now += HELD_SECOND;
    core.spend(GENERAL, Lane::Verification, 6);
    let verification = core.queued(GENERAL, Lane::Verification);
    let smoothed = core.alarm(verification);
    assert!(smoothed.is_some_and(|at| at < core.now + S / 5), "it waits for the smoother");
    // Of nine slots six are spent, and the verification keeps one.
    core.spend(GENERAL, Lane::Trading, 2);
    let order = core.queued(GENERAL, Lane::Trading);
    assert_eq!(core.alarm(verification), smoothed, "it keeps its timer");
    core.now = smoothed.unwrap();
    let grant = granted(core.poll(verification));
    core.answer(grant);
    assert!(core.alarm(order).is_some_and(|at| at > core.now), "the slot was the verification's");
}

/// Regression: of two repeated requests the later one went first.
#[test]
fn repeated_requests_go_in_the_order_in_which_they_came_back() {
    let mut core = Core::of(per_second(GENERAL, 1));
    core.spend(GENERAL, Lane::Normal, 1);
    let order = core.queued(GENERAL, Lane::Trading);
    let head = |core: &mut Core| queued(core.ask_by(&[GENERAL], Lane::Trading, None, true));
    let (first, second) = (head(&mut core), head(&mut core));
    let by = core.now + 2 * S;
    let third = core.ask_by(&[GENERAL], Lane::Trading, Some(by), true);
    assert!(matches!(third, steadfast_limit::Decision::Refused(_)), "two are ahead of it: {third:?}");
    for waiter in [first, second, order] {
        core.now += HELD_SECOND;
        let grant = granted(core.poll(waiter));
        core.answer(grant);
    }
}
