use std::time::Duration;

use steadfast_limit::{Decision, Lane, Loss, Profile, Quota, Refusal, SECOND, Scope, Zone, ZoneLimiter};

use crate::drive::{Core, HELD_MINUTE, HELD_SECOND, MS, S, general, granted, per_second, queued, refused};

const ORDER: Zone = Zone::PLACE_ORDER;

#[test]
fn a_slot_opens_a_second_after_the_answer_and_not_after_the_send() {
    let mut core = Core::of(per_second(ORDER, 2));
    let (first, second) = (core.granted(ORDER, Lane::Trading), core.granted(ORDER, Lane::Trading));
    let third = core.queued(ORDER, Lane::Trading);
    assert_eq!(core.alarm(third), None, "while nothing is answered nothing is known");

    core.now += 300 * MS;
    core.answer(first);
    let answered = core.now;
    assert_eq!(core.woken(), [third], "it has a timer to keep now");
    assert_eq!(core.alarm(third), Some(answered + HELD_SECOND));
    core.now += 100 * MS;
    core.answer(second);
    assert_eq!(core.woken(), [], "the second answer changes nothing for it");

    core.now = answered + HELD_SECOND - 1;
    assert!(matches!(core.poll(third), Decision::Queued { .. }));
    core.now += 1;
    let _ = granted(core.poll(third));
}

#[test]
fn the_longer_window_holds_when_the_shorter_has_room() {
    let mut core = Core::of(general());
    let first = core.now;
    for _ in 0..40 {
        core.spend(Zone::GENERAL, Lane::Critical, 10);
        core.now += HELD_SECOND;
    }
    let waiter = core.queued(Zone::GENERAL, Lane::Critical);
    assert_eq!(core.alarm(waiter), Some(first + HELD_MINUTE));
}

#[test]
fn of_two_zones_neither_is_spent_while_the_other_refuses() {
    let builder = ZoneLimiter::builder()
        .zone(per_second(Zone::OTP, 1).scope(Scope::ClientIp))
        .zone(per_second(Zone::API_KEY, 2));
    let mut core = Core::new(builder);
    let login = [Zone::OTP, Zone::API_KEY];
    let grant = granted(core.ask(&login, Lane::Critical));
    let waiter = queued(core.ask(&login, Lane::Critical));
    let used = |core: &mut Core| -> Vec<_> {
        let snapshot = core.limiter.snapshot(core.now);
        snapshot.zones.iter().map(|zone| (zone.zone, zone.in_flight)).collect()
    };
    assert_eq!(used(&mut core), [(Zone::OTP, 1), (Zone::API_KEY, 1)], "the one that waits has spent nothing");
    core.cancel(waiter);
    core.answer(grant);
    assert_eq!(used(&mut core), [(Zone::OTP, 0), (Zone::API_KEY, 0)]);
}

#[test]
fn one_that_waits_for_another_zone_keeps_its_slot_here_and_stops_nobody() {
    let builder = ZoneLimiter::builder().zone(per_second(Zone::OTP, 1)).zone(per_second(Zone::API_KEY, 3));
    let mut core = Core::new(builder);
    let login = [Zone::OTP, Zone::API_KEY];
    let first = granted(core.ask(&login, Lane::Critical));
    let second = queued(core.ask(&login, Lane::Critical));
    // One slot of three is spent, and one is kept for the login that waits for its other zone.
    let exchange = core.granted(Zone::API_KEY, Lane::Critical);
    let waiting = core.queued(Zone::API_KEY, Lane::Critical);
    core.answer(exchange);
    assert_eq!(core.woken(), [waiting], "it keeps the timer of this zone although it is not the foremost");
    core.now += HELD_SECOND;
    let exchange = granted(core.poll(waiting));
    core.limiter.refund(first, core.now);
    assert_eq!(core.woken(), [second], "the login goes as soon as its other zone lets it");
    let second = granted(core.poll(second));
    core.answer(second);
    core.answer(exchange);
}

#[test]
fn logins_in_opposite_orders_do_not_wait_for_each_other() {
    let builder = ZoneLimiter::builder().zone(per_second(Zone::OTP, 1)).zone(per_second(Zone::API_KEY, 1));
    let mut core = Core::new(builder);
    let first = granted(core.ask(&[Zone::OTP, Zone::API_KEY], Lane::Critical));
    let there = queued(core.ask(&[Zone::OTP, Zone::API_KEY], Lane::Critical));
    let back = queued(core.ask(&[Zone::API_KEY, Zone::OTP], Lane::Critical));
    core.limiter.refund(first, core.now);
    let there = granted(core.poll(there));
    core.limiter.refund(there, core.now);
    let back = granted(core.poll(back));
    core.answer(back);
}

#[test]
fn keys_share_nothing() {
    let mut core = Core::of(per_second(ORDER, 1));
    let zone = core.limiter.zone_id(ORDER).unwrap();
    for key in 0..50 {
        let zones = [(zone, key)];
        let ask =
            steadfast_limit::Ask { zones: &zones, lane: Lane::Trading, send_by: None, head_of_lane: false };
        let grant = granted(core.limiter.acquire(&ask, core.now));
        core.answer(grant);
    }
}

#[test]
fn a_deadline_that_cannot_be_met_is_refused_at_once_with_the_earliest_instant() {
    let mut core = Core::of(per_second(ORDER, 2));
    core.spend(ORDER, Lane::Trading, 2);
    let (held, second) = (HELD_SECOND, Duration::from_nanos(HELD_SECOND));
    let missed = |earliest| Refusal::WouldMissDeadline { zone: ORDER, earliest };
    assert_eq!(core.refused(ORDER, Lane::Trading, core.now + held - 1), missed(second));

    // With two ahead, the third waiter goes a whole window later.
    let deadline = Some(core.now + held);
    let waiters: Vec<_> =
        (0..2).map(|_| queued(core.ask_by(&[ORDER], Lane::Trading, deadline, false))).collect();
    assert_eq!(core.refused(ORDER, Lane::Trading, core.now + 2 * held - 1), missed(2 * second));

    // The refusals spent nothing: both go in time.
    core.now += held;
    for waiter in waiters {
        let grant = granted(core.poll(waiter));
        core.answer(grant);
    }
}

#[test]
fn a_waiter_is_refused_when_its_deadline_comes_before_an_answer() {
    let mut core = Core::of(per_second(ORDER, 1));
    let unanswered = core.granted(ORDER, Lane::Trading);
    let deadline = core.now + 2 * S;
    let waiter = queued(core.ask_by(&[ORDER], Lane::Trading, Some(deadline), false));
    assert_eq!(core.alarm(waiter), Some(deadline));
    core.now = deadline;
    assert!(matches!(refused(core.poll(waiter)), Refusal::WouldMissDeadline { zone: ORDER, .. }));
    core.answer(unanswered);
}

#[test]
fn a_full_queue_refuses_at_once() {
    let builder = ZoneLimiter::builder().zone(per_second(ORDER, 1)).queue_bound(Lane::Trading, 2);
    let mut core = Core::new(builder);
    core.spend(ORDER, Lane::Trading, 1);
    core.queued(ORDER, Lane::Trading);
    core.queued(ORDER, Lane::Trading);
    let full = refused(core.ask(&[ORDER], Lane::Trading));
    assert_eq!(full, Refusal::QueueFull { zone: ORDER, lane: Lane::Trading });
    core.queued(ORDER, Lane::Critical);
}

#[test]
fn a_request_under_no_zone_or_too_many_is_refused() {
    let zones: Vec<_> = ["a", "b", "c", "d", "e"].map(Zone::new).to_vec();
    let builder = zones.iter().fold(ZoneLimiter::builder(), |b, zone| b.zone(per_second(*zone, 1)));
    let mut core = Core::new(builder);
    assert_eq!(refused(core.ask(&[], Lane::Normal)), Refusal::NoZone);
    assert_eq!(refused(core.ask(&zones, Lane::Normal)), Refusal::TooManyZones { most: 4 });
    let _ = granted(core.ask(&zones[..4], Lane::Normal));
}

#[test]
fn headroom_and_late_counting_are_kept() {
    let mut core = Core::of(per_second(ORDER, 3).headroom(1).settle(Duration::from_millis(200)));
    core.spend(ORDER, Lane::Trading, 2);
    let waiter = core.queued(ORDER, Lane::Trading);
    assert_eq!(core.alarm(waiter), Some(core.now + HELD_SECOND + 200 * MS));
}

#[test]
fn paced_requests_go_one_by_one_after_their_burst() {
    let burst = std::num::NonZeroU32::new(2).unwrap();
    let quota = Quota::new(ORDER, Scope::AuthToken).limit(10, SECOND).profile(Profile::Paced { burst });
    let mut core = Core::of(quota);
    let interval = HELD_SECOND.div_ceil(8);
    let burst: Vec<_> = (0..2).map(|_| core.granted(ORDER, Lane::Trading)).collect();
    burst.into_iter().for_each(|grant| core.answer(grant));
    for i in 1..=14 {
        let waiter = core.queued(ORDER, Lane::Trading);
        let alarm = core.alarm(waiter).unwrap();
        // The first waiter waits a millisecond more, and the others inherit that. Stamps are rounded up to the
        // microsecond.
        let apart = if i == 1 { interval + MS } else { interval };
        assert!((apart..apart + 1_000).contains(&(alarm - core.now)), "request {i}: {}", alarm - core.now);
        core.now = alarm;
        let grant = granted(core.poll(waiter));
        core.answer(grant);
    }
}

/// Two of three slots were answered at different times, one is on its way. Each request waits for the next one.
#[test]
fn the_earliest_instant_is_that_of_the_slot_that_those_ahead_leave_and_a_deadline_then_is_met() {
    let mut core = Core::of(per_second(ORDER, 3));
    let start = core.now;
    core.spend(ORDER, Lane::Trading, 1);
    core.now += 200 * MS;
    core.spend(ORDER, Lane::Trading, 1);
    core.now += 200 * MS;
    let _on_its_way = core.granted(ORDER, Lane::Trading);
    let zones = [core.zone(ORDER)];
    for after in [0, 200 * MS, 400 * MS, HELD_SECOND] {
        let earliest = start + HELD_SECOND + after;
        assert_eq!(core.limiter.earliest(&zones, Lane::Trading, core.now), Ok(earliest));
        let missed =
            Refusal::WouldMissDeadline { zone: ORDER, earliest: Duration::from_nanos(earliest - core.now) };
        assert_eq!(core.refused(ORDER, Lane::Trading, earliest - 1), missed);
        queued(core.ask_by(&[ORDER], Lane::Trading, Some(earliest), false));
    }
}

/// Regression: the product of the waiters and a long period overflowed.
#[test]
fn the_turn_of_a_request_behind_thousands_in_a_long_window_is_the_end_of_time() {
    let months = Duration::from_secs(60 * 86_400);
    let quota = || Quota::new(ORDER, Scope::AuthToken).limit(1, months).profile(Profile::WindowLog);
    for is_lost in [false, true] {
        let mut core = Core::new(ZoneLimiter::builder().zone(quota()).queue_bound(Lane::Trading, 4_000));
        let grant = core.granted(ORDER, Lane::Trading);
        if is_lost {
            core.lose(grant, core.now, Loss::GivenUp)
        } else {
            core.answer(grant)
        }
        for _ in 0..4_000 {
            core.queued(ORDER, Lane::Trading);
        }
        let zones = [core.zone(ORDER)];
        assert_eq!(core.limiter.earliest(&zones, Lane::Trading, core.now), Ok(u64::MAX / 2), "{is_lost}");
    }
}
