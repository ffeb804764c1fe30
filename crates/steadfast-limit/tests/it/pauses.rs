use std::time::Duration;

use steadfast_limit::{Answer, Ceilings, Event, Lane, Refusal, Zone};

use crate::drive::{Core, HELD_MINUTE, HELD_SECOND, S, general, granted, per_second, queued, refused};

const GENERAL: Zone = Zone::GENERAL;

#[test]
fn a_429_stops_every_lane_and_then_one_tries() {
    let mut core = Core::of(per_second(GENERAL, 10).ceilings(Ceilings::standard()));
    let grant = core.granted(GENERAL, Lane::Bulk);
    core.answer_429(grant);
    let (order, other) = (core.queued(GENERAL, Lane::Trading), core.queued(GENERAL, Lane::Critical));
    let cancel = core.queued(GENERAL, Lane::Critical);
    assert_eq!(core.alarm(other), Some(core.now + S));
    core.now += S;
    let probe = granted(core.poll(other));
    assert_eq!(core.alarm(cancel), Some(core.now + S), "one tries, the others wait for its answer");
    assert_eq!(core.alarm(order), None);
    core.now += S / 2;
    core.answer(probe);
    let second = granted(core.poll(cancel));
    core.answer(second);
    // All lanes but cancels are spread from now on.
    assert!(core.alarm(order).is_some_and(|at| at > core.now && at < core.now + S / 4));
}

/// A lost answer is noticed only after the attempt's timeout, half a minute later.
#[test]
fn a_probe_without_an_answer_holds_a_cancel_no_longer_than_the_pause_did() {
    let mut core = Core::of(per_second(GENERAL, 10));
    let grant = core.granted(GENERAL, Lane::Bulk);
    core.answer_429(grant);
    let (first, second) = (core.queued(GENERAL, Lane::Critical), core.queued(GENERAL, Lane::Critical));
    core.now += S;
    let lost = granted(core.poll(first));
    assert_eq!(core.alarm(second), Some(core.now + S));
    core.now += S;
    let probe = granted(core.poll(second));
    core.answer(probe);
    let third = core.granted(GENERAL, Lane::Critical);
    core.answer_429(lost);
    core.answer(third);
    let behind = core.queued(GENERAL, Lane::Critical);
    assert_eq!(core.alarm(behind), Some(core.now + S), "a late 429 stops the zone as any other");
}

#[test]
fn the_foremost_request_probes_if_no_cancel_waits() {
    let mut core = Core::of(per_second(GENERAL, 10));
    let grant = core.granted(GENERAL, Lane::Bulk);
    core.answer_429(grant);
    let poll = core.queued(GENERAL, Lane::Bulk);
    let order = core.queued(GENERAL, Lane::Trading);
    core.now += S;
    let probe = granted(core.poll(order));
    let beyond = core.now + HELD_SECOND..core.now + S + S / 4;
    assert!(core.alarm(poll).is_some_and(|at| beyond.contains(&at)), "the next one waits for its answer");
    core.answer(probe);
    assert!(core.alarm(poll).is_some_and(|at| at < core.now + S / 4));
}

/// Regression: a `Retry-After` given to a poll held back cancels as well.
#[test]
fn a_pause_asked_of_a_poll_holds_cancels_for_the_breakers_own_steps() {
    let mut core = Core::of(general());
    let poll = core.granted(GENERAL, Lane::Bulk);
    let minute = Answer::TooManyRequests { retry_after: Some(Duration::from_secs(60)) };
    core.limiter.settle(poll, minute, core.now);
    let told = core.now;
    let (order, cancel) = (core.queued(GENERAL, Lane::Trading), core.queued(GENERAL, Lane::Critical));
    assert_eq!(core.alarm(cancel), Some(told + S));
    assert_eq!(core.alarm(order), None, "the cancel's alarm comes first");
    core.now = told + S;
    let mut probe = granted(core.poll(cancel));
    assert_eq!(core.alarm(order), Some(told + 60 * S), "others wait as long as they were told");
    for pause in [2, 4, 8, 8] {
        let refused_at = core.now;
        core.limiter.settle(probe, minute, core.now);
        let cancel = core.queued(GENERAL, Lane::Critical);
        assert_eq!(core.alarm(cancel), Some(refused_at + pause * S));
        core.now = refused_at + pause * S;
        probe = granted(core.poll(cancel));
    }
    core.answer(probe);
    let (last_refused, now) = (told + 15 * S, core.now);
    assert_eq!(core.alarm(order), Some(last_refused + 60 * S), "told again with the cancel's last refusal");
    let cancel = core.granted(GENERAL, Lane::Critical);
    core.answer(cancel);
    assert_eq!(core.now, now, "cancels go on");
    let mismatches = core.limiter.take_events();
    let mismatches = mismatches.iter().filter(|event| matches!(event, Event::ModelMismatch { .. }));
    assert_eq!(mismatches.count(), 1, "cancels that try early teach the others nothing");
}

/// The minute counts as spent after a failed probe, but not because a cancel tried before the time that polls were told.
#[test]
fn a_cancel_that_tries_early_does_not_lengthen_the_pause_of_others() {
    let mut core = Core::of(general());
    let poll = core.granted(GENERAL, Lane::Bulk);
    let told = core.now;
    let answer = Answer::TooManyRequests { retry_after: Some(Duration::from_secs(20)) };
    core.limiter.settle(poll, answer, core.now);
    core.now += S;
    let probe = core.granted(GENERAL, Lane::Critical);
    core.answer_429(probe);
    let order = core.queued(GENERAL, Lane::Trading);
    assert_eq!(core.alarm(order), Some(told + 20 * S));
}

#[test]
fn a_pause_asked_of_a_cancel_is_kept_if_it_is_short() {
    for (asked, kept) in [(5, 5), (8, 8), (9, 1), (60, 1)] {
        let mut core = Core::of(per_second(GENERAL, 10));
        let cancel = core.granted(GENERAL, Lane::Critical);
        let answer = Answer::TooManyRequests { retry_after: Some(Duration::from_secs(asked)) };
        core.limiter.settle(cancel, answer, core.now);
        let cancel = core.queued(GENERAL, Lane::Critical);
        assert_eq!(core.alarm(cancel), Some(core.now + kept * S), "{asked}");
    }
}

/// Regression: nine left at once after the probe, and a gateway with little quota left refused them together.
#[test]
fn after_a_pause_cancels_leave_one_by_one_and_wait_for_no_answer_long() {
    let mut core = Core::of(per_second(GENERAL, 10));
    let poll = core.granted(GENERAL, Lane::Bulk);
    core.answer_429(poll);
    let cancels: Vec<_> = (0..5).map(|_| core.queued(GENERAL, Lane::Critical)).collect();
    core.now += S;
    let probe = granted(core.poll(cancels[0]));
    core.now += S / 50;
    core.answer(probe);
    let answered = granted(core.poll(cancels[1]));
    assert_eq!(core.alarm(cancels[2]), Some(core.now + HELD_SECOND / 10));
    core.now += S / 50;
    core.answer(answered);
    let _without_answer = granted(core.poll(cancels[2]));
    core.now += HELD_SECOND / 10;
    let dropped = granted(core.poll(cancels[3]));
    assert_eq!(core.alarm(cancels[4]), Some(core.now + HELD_SECOND / 10));
    core.limiter.refund(dropped, core.now);
    let _ = granted(core.poll(cancels[4]));
}

#[test]
fn a_minute_after_a_pause_cancels_leave_at_once_again() {
    let mut core = Core::of(per_second(GENERAL, 10));
    let poll = core.granted(GENERAL, Lane::Bulk);
    core.answer_429(poll);
    core.now += S;
    core.spend(GENERAL, Lane::Critical, 1);
    core.now += 59 * S;
    core.spend(GENERAL, Lane::Critical, 10);
}

/// A cancel whose deadline lies in the pause of the others is not refused.
#[test]
fn a_pause_asked_of_others_makes_no_cancel_late() {
    let mut core = Core::of(general());
    let poll = core.granted(GENERAL, Lane::Bulk);
    let blocks = (0..9).map(|_| core.granted(GENERAL, Lane::Critical)).collect::<Vec<_>>();
    let by = Some(core.now + 5 * S);
    let cancel = queued(core.ask_by(&[GENERAL], Lane::Critical, by, false));
    let order = queued(core.ask_by(&[GENERAL], Lane::Trading, by, false));
    let answer = Answer::TooManyRequests { retry_after: Some(Duration::from_secs(60)) };
    core.limiter.settle(poll, answer, core.now);
    assert!(matches!(refused(core.poll(order)), Refusal::WouldMissDeadline { .. }));
    blocks.into_iter().for_each(|cancel| core.answer(cancel));
    let later = queued(core.ask_by(&[GENERAL], Lane::Critical, by, false));
    core.now += S + HELD_SECOND;
    let probe = granted(core.poll(cancel));
    core.answer(probe);
    let _ = granted(core.poll(later));
}

#[test]
fn a_second_429_takes_the_minute_for_spent_but_cancels_go_on_trying() {
    let mut core = Core::of(general());
    let grant = core.granted(GENERAL, Lane::Normal);
    core.answer_429(grant);
    core.now += S;
    let probe = core.granted(GENERAL, Lane::Critical);
    core.answer_429(probe);
    let refused_again = core.now;
    let order = core.queued(GENERAL, Lane::Trading);
    assert_eq!(core.alarm(order), Some(refused_again + HELD_MINUTE));
    let cancel = core.queued(GENERAL, Lane::Critical);
    assert_eq!(core.alarm(cancel), Some(refused_again + 2 * S));
    core.now = refused_again + 2 * S;
    let probe = granted(core.poll(cancel));
    core.answer(probe);
    let last = core.granted(GENERAL, Lane::Critical);
    core.answer(last);
    assert_eq!(core.alarm(order), Some(refused_again + HELD_MINUTE));
}

#[test]
fn waiters_that_the_pause_makes_late_are_told_at_once() {
    let mut core = Core::of(per_second(GENERAL, 1));
    let grant = core.granted(GENERAL, Lane::Normal);
    let late = queued(core.ask_by(&[GENERAL], Lane::Normal, Some(core.now + 5 * S), false));
    let patient = queued(core.ask_by(&[GENERAL], Lane::Normal, Some(core.now + 90 * S), false));
    let answer = Answer::TooManyRequests { retry_after: Some(Duration::from_secs(30)) };
    core.limiter.settle(grant, answer, core.now);
    assert_eq!(core.woken()[0], late);
    let refusal = refused(core.poll(late));
    assert_eq!(
        refusal,
        Refusal::WouldMissDeadline { zone: GENERAL, earliest: Duration::from_secs(30) },
        "not before the pause is over"
    );
    assert_eq!(core.alarm(patient), Some(core.now + 30 * S));
}

#[test]
fn a_probe_that_is_dropped_or_lost_is_followed_by_the_next() {
    let mut core = Core::of(per_second(GENERAL, 10));
    let grant = core.granted(GENERAL, Lane::Normal);
    core.answer_429(grant);
    core.now += 2 * S;
    let first = core.granted(GENERAL, Lane::Critical);
    let waiter = core.queued(GENERAL, Lane::Critical);
    core.limiter.refund(first, core.now);
    let second = granted(core.poll(waiter));
    let waiter = core.queued(GENERAL, Lane::Critical);
    core.lose(second, core.now, steadfast_limit::Loss::Reset);
    let _ = granted(core.poll(waiter));
}
