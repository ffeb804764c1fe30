use Lane::{Bulk, Critical, Trading};

use super::*;

const S: Nanos = 1_000_000_000;
const APART: Nanos = S / 10;

fn stopped(seconds: u64, after: After) -> Verdict {
    Verdict::Opened(Stop { pause: seconds * S, after })
}

fn asked(seconds: u64) -> Option<Duration> {
    Some(Duration::from_secs(seconds))
}

/// Returns the part of a request that the zone does not await.
fn plain(lane: Lane, at: Nanos) -> Share {
    Share { at, lane, awaited: false, optimistic: false }
}

/// Grants a request that the zone awaits.
fn awaited(breaker: &mut CircuitBreaker, lane: Lane, at: Nanos) -> Share {
    assert!(breaker.admits_at(lane) <= at, "{breaker:?}");
    assert!(breaker.granted(lane, APART, at), "{breaker:?}");
    Share { awaited: true, ..plain(lane, at) }
}

#[test]
fn pauses_double_up_to_eight_seconds_while_the_probes_fail() {
    for lane in [Bulk, Critical] {
        let mut breaker = CircuitBreaker::default();
        assert_eq!(breaker.refused(plain(Bulk, 9 * S), None, 10 * S), stopped(1, After::Nothing));
        for (last, pause) in [(1, 2), (2, 4), (4, 8), (8, 8)] {
            let now = breaker.admits_at(lane);
            let probe = awaited(&mut breaker, lane, now);
            let next = breaker.admits_at(lane);
            assert_eq!(next, now + last * S, "one probe at a time, for as long as the pause was");
            assert_eq!(breaker.refused(probe, None, now), stopped(pause, After::Pause));
        }
        let now = breaker.admits_at(lane);
        let probe = awaited(&mut breaker, lane, now);
        breaker.answered(probe);
        assert_eq!(breaker.admits_at(lane), 0);
        let verdict = breaker.refused(plain(Bulk, now + 1), None, now + 2);
        assert_eq!(verdict, stopped(1, After::Nothing), "a good probe forgets the count");
    }
}

#[test]
fn refusals_of_one_burst_are_one_cause() {
    let mut breaker = CircuitBreaker::default();
    let share = plain(Bulk, 9 * S);
    assert_eq!(breaker.refused(share, None, 10 * S), stopped(1, After::Nothing));
    for _ in 0..9 {
        assert_eq!(breaker.refused(share, None, 10 * S + 5), Verdict::Straggler);
    }
    assert_eq!(breaker.admits_at(Bulk), 11 * S);
    assert_eq!(breaker.refused(share, asked(3), 10 * S), Verdict::Straggler);
    assert_eq!(breaker.admits_at(Bulk), 13 * S, "but a longer pause asked for is kept");
    assert_eq!(breaker.admits_at(Critical), 11 * S);
    let cancel = plain(Critical, 9 * S);
    assert_eq!(breaker.refused(cancel, asked(30), 10 * S), Verdict::Straggler);
    assert_eq!((breaker.admits_at(Bulk), breaker.admits_at(Critical)), (40 * S, 11 * S));
    assert_eq!(breaker.refused(cancel, asked(8), 10 * S), Verdict::Straggler);
    assert_eq!((breaker.admits_at(Bulk), breaker.admits_at(Critical)), (40 * S, 18 * S));
}

#[test]
fn retry_after_wins_up_to_a_minute_and_zero_says_nothing() {
    let pause = |after| CircuitBreaker::default().refused(plain(Bulk, 0), asked(after), S);
    assert_eq!(pause(7), stopped(7, After::Nothing));
    assert_eq!(pause(3_600), stopped(60, After::Nothing));
    assert_eq!(pause(u64::MAX), stopped(60, After::Nothing));
    assert_eq!(pause(0), stopped(1, After::Nothing));
}

#[test]
fn a_pause_asked_of_others_does_not_lengthen_that_of_cancels() {
    for (asked_of_poll, cancels) in [(60, 1), (2, 1), (1, 1)] {
        let mut breaker = CircuitBreaker::default();
        breaker.refused(plain(Bulk, 0), asked(asked_of_poll), S);
        let admitted = [Critical, Lane::Verification, Trading, Bulk].map(|lane| breaker.admits_at(lane));
        let others = (1 + asked_of_poll) * S;
        assert_eq!(admitted, [(1 + cancels) * S, others, others, others]);
        assert_eq!(breaker.paused_until(Critical, S), Some((1 + cancels) * S));
        assert_eq!(breaker.paused_until(Trading, S), Some(others));
    }
}

#[test]
fn a_pause_asked_of_a_cancel_binds_cancels_if_it_is_no_longer_than_eight_seconds() {
    for (asked_of_cancel, cancels) in [(3, 3), (8, 8), (9, 1), (60, 1), (3_600, 1)] {
        let mut breaker = CircuitBreaker::default();
        breaker.refused(plain(Critical, 0), asked(asked_of_cancel), S);
        assert_eq!(breaker.admits_at(Critical), (1 + cancels) * S);
        assert_eq!(breaker.admits_at(Bulk), (1 + asked_of_cancel.min(60)) * S);
    }
}

#[test]
fn cancels_probe_in_a_pause_asked_of_others_and_leave_it_as_it_is() {
    let mut breaker = CircuitBreaker::default();
    breaker.refused(plain(Bulk, 0), asked(60), S);
    for (at, pause) in [(2, 2), (4, 4), (8, 8), (16, 8), (24, 8)] {
        assert_eq!(breaker.admits_at(Critical), at * S);
        let probe = awaited(&mut breaker, Critical, at * S);
        assert_eq!(breaker.refused(probe, None, at * S), stopped(61 - at, After::OwnPause));
        assert_eq!(breaker.admits_at(Critical), (at + pause) * S);
        assert_eq!(breaker.admits_at(Bulk), 61 * S);
    }
    let probe = awaited(&mut breaker, Critical, 32 * S);
    breaker.answered(probe);
    assert_eq!((breaker.admits_at(Critical), breaker.admits_at(Bulk)), (0, 61 * S));
    assert_eq!(breaker.paused_until(Critical, 33 * S), None);
    assert_eq!(breaker.paused_until(Bulk, 33 * S), Some(61 * S));
    assert!(!breaker.granted(Bulk, APART, 61 * S), "the cancel has already tried");
}

#[test]
fn a_shorter_pause_asked_later_does_not_end_a_longer_one() {
    let mut breaker = CircuitBreaker::default();
    breaker.refused(plain(Bulk, 0), asked(60), S);
    let probe = awaited(&mut breaker, Critical, 2 * S);
    breaker.refused(probe, asked(3), 2 * S);
    assert_eq!((breaker.admits_at(Critical), breaker.admits_at(Bulk)), (5 * S, 61 * S));
}

#[test]
fn after_a_pause_cancels_leave_one_by_one_for_a_minute() {
    let mut breaker = CircuitBreaker::default();
    breaker.refused(plain(Bulk, 0), None, S);
    let probe = awaited(&mut breaker, Critical, 2 * S);
    breaker.answered(probe);
    let mut now = 2 * S;
    for _ in 0..9 {
        let next = awaited(&mut breaker, Critical, now);
        assert_eq!(breaker.admits_at(Critical), now + APART, "it waits for the answer, but not for long");
        assert_eq!(breaker.admits_at(Bulk), 0, "other lanes are spread already");
        now += APART / 4;
        breaker.answered(next);
        assert!(breaker.admits_at(Critical) <= now);
    }
    let lost = awaited(&mut breaker, Critical, now);
    breaker.unanswered(lost, now + 1);
    assert!(breaker.admits_at(Critical) <= now + 1, "a lost one holds back none");
    awaited(&mut breaker, Critical, now + 1);
    assert!(!breaker.granted(Critical, APART, 61 * S));
}

#[test]
fn an_answer_to_a_request_from_before_the_pause_says_nothing_of_it() {
    let mut breaker = CircuitBreaker::default();
    breaker.refused(plain(Bulk, 0), None, S);
    let probe = awaited(&mut breaker, Critical, 2 * S);
    breaker.answered(probe);
    let slow = awaited(&mut breaker, Critical, 3 * S);
    breaker.refused(plain(Bulk, 3 * S), None, 4 * S);
    awaited(&mut breaker, Critical, 5 * S);
    breaker.answered(slow);
    breaker.unanswered(slow, 5 * S);
    assert_eq!(breaker.admits_at(Critical), 6 * S);
}

#[test]
fn a_probe_without_an_answer_is_followed_by_the_next() {
    let mut breaker = CircuitBreaker::default();
    breaker.refused(plain(Bulk, 0), None, S);
    let probe = awaited(&mut breaker, Bulk, 2 * S);
    breaker.unanswered(probe, 2 * S + 5);
    assert_eq!(breaker.admits_at(Bulk), 2 * S + 5);
    awaited(&mut breaker, Bulk, 2 * S + 5);
}

#[test]
fn a_probe_whose_answer_is_late_has_a_pause_for_itself() {
    let mut breaker = CircuitBreaker::default();
    breaker.refused(plain(Bulk, 0), None, S);
    let first = awaited(&mut breaker, Bulk, 2 * S);
    assert_eq!(breaker.admits_at(Bulk), 3 * S);
    let second = awaited(&mut breaker, Bulk, 3 * S);
    assert_eq!(breaker.admits_at(Bulk), 4 * S, "and then the next one probes");
    assert_eq!(breaker.refused(first, None, 3 * S + 5), stopped(2, After::Pause));
    assert_eq!(breaker.refused(second, None, 3 * S + 9), Verdict::Straggler, "probes of one pause");
    let third = awaited(&mut breaker, Bulk, 5 * S + 5);
    breaker.answered(third);
    assert_eq!(breaker.admits_at(Bulk), 0);
}

#[test]
fn a_refusal_from_before_the_pause_stops_nothing_once_it_is_over() {
    let mut breaker = CircuitBreaker::default();
    breaker.refused(plain(Bulk, 0), None, S);
    let probe = awaited(&mut breaker, Bulk, 2 * S);
    breaker.answered(probe);
    assert_eq!(breaker.refused(plain(Bulk, S), asked(60), 3 * S), Verdict::Straggler);
    assert_eq!((breaker.admits_at(Critical), breaker.admits_at(Bulk)), (0, 0));
}

#[test]
fn a_pause_is_forgotten_a_minute_after_its_end() {
    let mut breaker = CircuitBreaker::default();
    breaker.refused(plain(Bulk, 0), None, S);
    assert!(!breaker.is_over(61 * S));
    assert!(breaker.is_over(62 * S));
    let mut asked_for = CircuitBreaker::default();
    asked_for.refused(plain(Bulk, 0), asked(60), S);
    assert!(!asked_for.is_over(120 * S));
    let probe = awaited(&mut asked_for, Critical, 2 * S);
    asked_for.refused(plain(Bulk, 0), asked(60), 3 * S);
    asked_for.answered(probe);
    assert!(!asked_for.is_over(62 * S), "others are still asked to wait");
    assert!(asked_for.is_over(63 * S));
}
