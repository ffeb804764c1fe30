use proptest::prelude::*;

use super::*;
use crate::{login::LoginFailure, token::TokenPhase};

const HOUR: i64 = 3_600_000;
const DAY: Duration = Duration::from_secs(86_400);
const MINUTE: Duration = Duration::from_secs(60);

fn unheld(mode: LoginMode) -> TokenState {
    TokenState::new(Renewal::new().daily(None).jitter_seed(7), Some(mode))
}

/// All clocks at `ms`.
fn at(ms: i64) -> Now {
    Now { elapsed: Duration::from_millis(ms.unsigned_abs()), wall: ms, aging: ms }
}

/// The same, with a wall clock that was set ahead by `step` milliseconds.
fn stepped(ms: i64, step: i64) -> Now {
    Now { wall: ms + step, ..at(ms) }
}

/// A state with token 1, issued at 0, accepted once.
fn working() -> TokenState {
    let mut state = unheld(LoginMode::Unattended);
    assert_eq!(state.admit(at(0), true), Admission::Wait { start: true });
    assert_eq!(state.granted(0, Some(DAY), false, at(0)), 1);
    state.accepted(1);
    state
}

#[test]
fn the_phases_follow_a_tokens_age() {
    let mut state = unheld(LoginMode::Unattended);
    assert_eq!(state.phase(at(0)), TokenPhase::None);
    state.granted(0, Some(DAY), false, at(0));
    for (ms, phase) in [
        (0, TokenPhase::Valid),
        (22 * HOUR + 54 * 60_000, TokenPhase::Valid),
        (23 * HOUR, TokenPhase::Advisory),
        (24 * HOUR - 60_001, TokenPhase::Advisory),
        (24 * HOUR - 60_000, TokenPhase::Mandatory),
        (24 * HOUR - 1, TokenPhase::Mandatory),
        (24 * HOUR, TokenPhase::Expired),
    ] {
        assert_eq!(state.phase(at(ms)), phase, "at {ms}");
    }
}

#[test]
fn nothing_is_asked_before_a_renewal_is_due() {
    let state = working();
    let carefree = state.carefree_until();
    assert!(carefree > 22 * HOUR && carefree <= 23 * HOUR);
    assert_eq!(state.phase(at(carefree - 1)), TokenPhase::Valid);
    assert_eq!(state.phase(at(carefree)), TokenPhase::Advisory);
}

#[test]
fn instants_of_the_two_clocks_are_those_of_one_moment() {
    let now = Now { elapsed: Duration::from_secs(10), wall: 100_000, aging: 0 };
    assert_eq!(now.wall_at(Duration::from_secs(4)), 94_000);
    assert_eq!(now.elapsed_at(94_000), Duration::from_secs(4));
    assert_eq!(now.wall_at(Duration::from_secs(11)), 100_000, "one that lies ahead is taken for now");
}

#[test]
fn a_login_is_under_way_until_it_ends_and_says_when_its_token_was_issued() {
    let mut state = unheld(LoginMode::Unattended);
    assert_eq!((state.is_logging_in(), state.issued(), state.suspected()), (false, None, None));
    state.admit(at(0), true);
    assert!(state.is_logging_in());
    state.granted(7, Some(DAY), false, at(9));
    assert_eq!((state.is_logging_in(), state.issued()), (false, Some(7)));
    state.restore(&[], Some(Duration::from_secs(3)), at(9));
    assert_eq!(state.suspected(), Some(Duration::from_secs(3)));
}

#[test]
fn a_person_is_called_once_for_a_token_that_worked() {
    let mut state = unheld(LoginMode::Attended);
    state.granted(0, Some(DAY), false, at(0));
    assert!(!state.calls_for_help(1), "it never worked");
    state.accepted(1);
    assert!(!state.calls_for_help(2), "another token");
    assert!(state.calls_for_help(1));
    assert!(!state.calls_for_help(1), "once");
    assert!(!working().calls_for_help(1), "nobody is needed");
}

#[test]
fn only_an_old_token_of_another_process_is_taken_for_one_that_worked() {
    for (age, worked) in [(15 * 60_000, false), (15 * 60_000 + 1, true), (2 * HOUR, true)] {
        let mut state = unheld(LoginMode::Unattended);
        let token = sharing::Adopted { issued: 0, expires: Some(24 * HOUR), worked: false };
        state.adopted(&token, false, at(age));
        assert_eq!(state.held.map(|held| held.worked), Some(worked), "{age} ms");
    }
}

#[test]
fn an_expired_token_is_withdrawn_while_its_successor_is_fetched() {
    let mut state = working();
    assert_eq!(state.admit(at(24 * HOUR), true), Admission::Wait { start: true });
    assert_eq!(state.withdrawn(), Some(1));
    assert_eq!(state.admit(at(24 * HOUR), true), Admission::Wait { start: false });
    state.granted(24 * HOUR, Some(DAY), false, at(24 * HOUR));
    assert_eq!(state.withdrawn(), None);
    assert_eq!(state.admit(at(24 * HOUR), true), Admission::Go);
}

#[test]
fn a_401_for_an_older_token_says_nothing_of_the_current_one() {
    let mut state = working();
    state.granted(HOUR, Some(DAY), false, at(HOUR));
    assert_eq!(state.refused(1, false, at(HOUR)), AfterRefusal::Resend);
    assert_eq!(state.withdrawn(), None);
    assert_eq!(state.admit(at(HOUR), true), Admission::Go);
}

#[test]
fn a_401_within_the_last_minute_is_explained_by_age_and_casts_no_suspicion() {
    let mut state = working();
    let late = at(24 * HOUR - 30_000);
    assert_eq!(state.refused(1, false, late), AfterRefusal::Join { start: true });
    assert_eq!(state.suspected(), None);
}

#[test]
fn t27_a_wall_clock_that_is_set_ages_no_token() {
    let day = 24 * HOUR;
    for step in [day, -day, 30 * day] {
        let mut state = working();
        let carefree = state.carefree_until();
        assert_eq!(state.phase(stepped(HOUR, step)), TokenPhase::Valid, "{step}");
        assert_eq!(state.admit(stepped(HOUR, step), true), Admission::Go);
        assert_eq!(state.tick(stepped(HOUR, step), true), Tick::Idle);
        assert_eq!(state.left(stepped(HOUR, step)), DAY - DAY / 24);
        assert_eq!(state.phase(stepped(carefree, step)), TokenPhase::Advisory, "nor makes it younger");
        assert_eq!(state.admit(stepped(day, step), true), Admission::Wait { start: true });
        // The life of the new token counts by the clock as it is now.
        assert_eq!(state.granted(day + step, Some(DAY), false, stepped(day, step)), 2);
        assert_eq!(state.left(stepped(day, step)), DAY);
        assert_eq!(state.carefree_until() / HOUR, day / HOUR + 22);
    }
}

#[test]
fn t27_the_rest_after_a_login_counts_the_time_of_a_suspended_machine() {
    let asleep = |seconds: i64| Now { elapsed: Duration::from_secs(5), ..at(seconds * 1_000) };
    for (slept, starts) in [(29, false), (30, true), (3 * 3_600, true)] {
        let mut state = unheld(LoginMode::Unattended);
        state.granted(0, Some(Duration::from_secs(10)), false, at(0));
        let admitted = state.admit(asleep(slept), true);
        assert_eq!(admitted == Admission::Wait { start: true }, starts, "{slept}: {admitted:?}");
    }
}

#[test]
fn t27_a_401_for_a_token_that_only_the_wall_clock_calls_dead_casts_no_suspicion() {
    for (step, explained) in [(24 * HOUR, true), (0, false), (-24 * HOUR, false)] {
        let mut state = working();
        assert_eq!(state.refused(1, false, stepped(HOUR, step)), AfterRefusal::Join { start: true });
        assert_eq!(state.suspected().is_none(), explained, "{step}");
    }
}

/// Regression: after the login that a stray 401 caused, no login followed for 15 minutes, although the token had ended.
#[test]
fn a_token_that_ends_soon_after_a_stray_401_is_followed_by_another() {
    let mut state = working();
    assert_eq!(state.refused(1, false, at(0)), AfterRefusal::Join { start: true });
    state.granted(0, Some(DAY), false, at(0));
    state.accepted(2);
    assert_eq!(state.refused(2, false, at(59_999)), AfterRefusal::Surface);
    assert_eq!(state.next_login(at(62_000)), Some(at(62_000).elapsed));
    assert_eq!(state.refused(2, false, at(180_000)), AfterRefusal::Join { start: true });
}

/// Asks once a second for `seconds`, and takes in a token for each login. `works`: the service accepts each token once.
/// `same`: each login brings the same token. Returns the logins' times in seconds.
fn logins_in(seconds: i64, works: bool, same: bool) -> Vec<i64> {
    let (mut state, mut logins) = (working(), Vec::new());
    for second in 1..=seconds {
        let now = at(second * 1_000);
        if !matches!(state.admit(now, true), Admission::Go) {
            continue;
        }
        let generation = state.generation;
        if state.refused(generation, false, now) == (AfterRefusal::Join { start: true }) {
            logins.push(second);
            state.granted(now.wall, Some(DAY), same, now);
            if works {
                state.accepted(state.generation);
            }
        }
    }
    logins
}

#[test]
fn logins_that_do_not_help_for_long_follow_each_other_ever_more_slowly() {
    let minutes = [0, 1, 3, 7, 15, 30, 45, 60].map(|minute: i64| 1 + minute * 60);
    assert_eq!(logins_in(3_700, true, true), minutes, "the same token, refused again and again");
    // With seven sessions in a day, the last three are spent sparingly.
    assert_eq!(logins_in(3_700, true, false), minutes, "a new token each time");
    assert_eq!(logins_in(3_600, false, false), [1], "a service that accepts no token gets one login");
}

#[test]
fn with_many_sessions_each_login_after_a_401_waits_for_15_minutes() {
    for (sessions, pause) in [(MANY_SESSIONS - 2, 60_000), (MANY_SESSIONS - 1, 900_000)] {
        let mut state = working();
        state.restore(&vec![0; sessions], None, at(0));
        assert_eq!(state.refused(1, false, at(0)), AfterRefusal::Join { start: true });
        state.granted(0, Some(DAY), false, at(0));
        state.accepted(2);
        assert_eq!(state.refused(2, false, at(pause - 5_000)), AfterRefusal::Surface, "{sessions}");
        assert_eq!(state.refused(2, false, at(pause - 1)), AfterRefusal::Surface, "{sessions}");
        assert_eq!(state.refused(2, false, at(pause)), AfterRefusal::Join { start: true }, "{sessions}");
    }
}

/// No login cures a 401 to orders alone.
#[test]
fn a_token_that_is_accepted_for_other_requests_waits_for_15_minutes() {
    let mut state = working();
    assert_eq!(state.refused(1, false, at(0)), AfterRefusal::Join { start: true });
    state.granted(0, Some(DAY), false, at(0));
    for minute in 0..15 {
        state.accepted(2);
        assert_eq!(state.refused(2, false, at(minute * 60_000)), AfterRefusal::Surface, "{minute}");
    }
    state.accepted(2);
    assert_eq!(state.refused(2, false, at(900_000)), AfterRefusal::Join { start: true });
}

/// A failed login opens no session, and its own pauses hold the next one back.
#[test]
fn a_login_that_fails_makes_the_next_one_after_a_401_wait_no_longer() {
    let mut state = working();
    for minute in [0, 1, 2] {
        let now = at(minute * 60_000);
        assert_eq!(state.refused(1, false, now), AfterRefusal::Join { start: true }, "{minute}");
        state.failed();
    }
}

#[test]
fn a_refused_session_is_told_until_the_service_accepts_the_token_or_a_login_follows() {
    let second_login = || {
        let mut state = working();
        state.refused(1, false, at(0));
        state.granted(0, Some(DAY), false, at(0));
        state.accepted(2);
        assert_eq!(state.refused(2, false, at(10_000)), AfterRefusal::Surface);
        state
    };
    let mut state = second_login();
    let told =
        |state: &TokenState, ms| (state.phase(at(ms)), state.is_unusable(at(ms)), state.next_login(at(ms)));
    assert_eq!(told(&state, 11_999), (TokenPhase::Valid, false, None), "one 401 may be a mistake");
    assert_eq!(told(&state, 12_000), (TokenPhase::Suspect, true, Some(MINUTE)));
    assert_eq!(state.admit(at(12_000), true), Admission::Go, "it is still tried");
    assert_eq!((state.tells_denial(at(12_000)), state.tells_denial(at(12_000))), (true, false), "once");
    state.accepted(2);
    assert_eq!(told(&state, 12_000), (TokenPhase::Valid, false, None));
    // Callers that were told may have stopped, so no further 401 would start the login.
    let mut silent = second_login();
    assert_eq!(silent.tick(at(59_999), false), Tick::Idle);
    assert_eq!(silent.tick(at(60_000), false), Tick::Renew);
    assert_eq!(silent.admit(at(60_000), true), Admission::Wait { start: false });
    silent.failed();
    assert_eq!(
        told(&silent, 61_000),
        (TokenPhase::Suspect, true, Some(2 * MINUTE)),
        "the failure cured nothing"
    );
    silent.granted(61_000, Some(DAY), false, at(61_000));
    assert_eq!(told(&silent, 70_000), (TokenPhase::Valid, false, None));
}

#[test]
fn a_401_while_a_renewal_is_under_way_joins_it() {
    let mut state = working();
    assert_eq!(state.admit(at(23 * HOUR), true), Admission::GoAndRenew);
    assert_eq!(state.refused(1, false, at(23 * HOUR)), AfterRefusal::Join { start: false });
    assert_eq!(state.withdrawn(), Some(1));
    state.failed();
    assert_eq!(state.withdrawn(), None, "the token is as good as it was");
}

#[test]
fn a_401_while_a_person_logs_in_holds_nobody_else_up() {
    let mut state = unheld(LoginMode::Attended);
    assert_eq!(state.ask(at(0)), Ok(true));
    state.granted(0, Some(DAY), false, at(0));
    assert!(!state.calls_for_help(1), "it has not worked, so another login may not help");
    state.accepted(1);
    assert_eq!(state.ask(at(HOUR)), Ok(true));
    assert_eq!(state.refused(1, false, at(HOUR)), AfterRefusal::Join { start: false });
    assert_eq!(state.admit(at(HOUR), true), Admission::Go);
    assert_eq!(state.admit(at(24 * HOUR - 1), true), Admission::Go, "not even in the last minute");
    assert_eq!(state.admit(at(24 * HOUR), true), Admission::Wait { start: false });
}

#[test]
fn the_second_401_of_a_request_waits_for_no_login() {
    for flying in [false, true] {
        let mut state = working();
        if flying {
            state.admit(at(23 * HOUR), true);
        }
        assert_eq!(state.refused(1, true, at(23 * HOUR)), AfterRefusal::Surface);
        assert_eq!(state.refused(0, true, at(23 * HOUR)), AfterRefusal::Resend, "there is a newer token");
        assert_eq!(state.withdrawn(), None);
    }
}

#[test]
fn o10_a_new_token_refused_to_a_second_send_is_tried_once_more() {
    let mut state = working();
    state.admit(at(23 * HOUR), true);
    assert_eq!(state.granted(23 * HOUR, Some(DAY), false, at(23 * HOUR)), 2);
    let later = AfterRefusal::ResendAt(at(23 * HOUR + 2_000).elapsed);
    assert_eq!(state.refused(2, true, at(23 * HOUR)), later);
    assert_eq!(state.refused(2, true, at(23 * HOUR + 2_000)), AfterRefusal::Surface, "never accepted");
    assert_eq!(state.phase(at(23 * HOUR + 2_000)), TokenPhase::Suspect, "and the breaker is open");
    let told = [0, 0].map(|_| state.tells_denial(at(23 * HOUR + 2_000)));
    assert_eq!(told, [true, false], "the store hears of it once");
    state.accepted(2);
    assert!(!state.tells_denial(at(23 * HOUR + 2_000)));
}

#[test]
fn o10_a_token_that_works_for_others_is_tried_once_more_while_it_is_young() {
    let adopted = Adopted { issued: 0, expires: Some(24 * HOUR), worked: true };
    for (age, young) in [(0, true), (30_000, true), (30_001, false)] {
        let mut state = working().sharing();
        state.adopted(&adopted, false, at(age));
        let decision = state.refused(2, true, at(age));
        let later = AfterRefusal::ResendAt(at(age + 2_000).elapsed);
        assert_eq!(decision, if young { later } else { AfterRefusal::Surface }, "at {age}");
        let after = state.refused(2, false, at(age + 2_000));
        assert_eq!(after, AfterRefusal::Join { start: true }, "ended, not late");
    }
    let mut state = working().sharing();
    state.adopted(&adopted, false, at(0));
    state.accepted(2);
    assert_eq!(state.refused(2, true, at(0)), AfterRefusal::Surface, "accepted from here");
}

#[test]
fn a_login_that_needs_a_person_starts_only_when_asked_for() {
    let mut state = unheld(LoginMode::Attended);
    let refusal = Refusal { kind: AuthErrorKind::NeverLoggedIn, ready: None };
    assert_eq!(state.admit(at(0), true), Admission::Refuse(refusal));
    assert_eq!(state.ask(at(0)), Ok(true));
    assert_eq!(state.ask(at(0)), Ok(false), "one at a time");
    assert_eq!(state.admit(at(0), true), Admission::Wait { start: false });
    state.granted(0, Some(DAY), false, at(0));
    assert_eq!(state.tick(at(22 * HOUR), true), Tick::Idle);
    assert_eq!(state.tick(at(23 * HOUR), true), Tick::AskHuman);
    assert_eq!(state.tick(at(23 * HOUR), true), Tick::Idle, "said once");
    assert_eq!(state.phase(at(24 * HOUR)), TokenPhase::NeedsHuman);
}

#[test]
fn a_given_token_is_never_fetched_twice() {
    let mut state = unheld(LoginMode::Once);
    assert_eq!(state.admit(at(0), true), Admission::Wait { start: true });
    state.granted(0, Some(Duration::from_secs(60)), false, at(0));
    let refusal = Refusal { kind: AuthErrorKind::Expired, ready: None };
    assert_eq!(state.admit(at(60_000), true), Admission::Refuse(refusal));
    assert_eq!(state.refused(1, false, at(60_000)), AfterRefusal::Surface);
    assert_eq!(state.sessions(), 0);
}

/// Regression: one stray 401 closed the source for half a minute, and the token was good.
#[test]
fn a_given_token_that_is_refused_once_is_tried_once_more() {
    let mut state = unheld(LoginMode::Once);
    assert_eq!(state.admit(at(0), true), Admission::Wait { start: true });
    state.granted(0, None, false, at(0));
    assert_eq!(state.refused(1, false, at(0)), AfterRefusal::Surface);
    assert_eq!((state.admit(at(2_000), true), state.phase(at(2_000))), (Admission::Go, TokenPhase::Valid));
    state.accepted(1);
    assert_eq!((state.admit(at(2_000), true), state.phase(at(2_000))), (Admission::Go, TokenPhase::Valid));
    let mut dead = unheld(LoginMode::Once);
    dead.admit(at(0), true);
    dead.granted(0, None, false, at(0));
    dead.refused(1, false, at(0));
    assert_eq!(dead.refused(1, false, at(2_000)), AfterRefusal::Surface);
    assert_eq!(dead.phase(at(2_000)), TokenPhase::Suspect);
}

#[test]
fn the_background_renews_in_the_last_minute_even_while_an_order_is_in_doubt() {
    let mut state = working();
    assert_eq!(state.tick(at(23 * HOUR), false), Tick::Idle);
    assert_eq!(state.tick(at(24 * HOUR - 60_000), false), Tick::Renew);
    assert_eq!(state.tick(at(24 * HOUR - 60_000), false), Tick::Idle, "under way");
}

#[test]
fn the_background_neither_logs_in_first_nor_past_an_open_breaker() {
    let mut fresh = unheld(LoginMode::Unattended);
    assert_eq!(fresh.tick(at(0), true), Tick::Idle);
    fresh.granted(0, Some(DAY), false, at(0));
    fresh.refused(1, false, at(23 * HOUR));
    fresh.refused(1, true, at(23 * HOUR + 2_000));
    assert_eq!(fresh.phase(at(23 * HOUR + 2_000)), TokenPhase::Suspect);
    assert_eq!(fresh.tick(at(23 * HOUR + 2_000), true), Tick::Idle);
}

#[test]
fn an_open_breaker_lets_one_request_through_in_30_seconds() {
    let mut state = unheld(LoginMode::Unattended);
    state.granted(0, Some(DAY), false, at(0));
    state.refused(1, false, at(0));
    state.refused(1, true, at(2_000));
    let refused = |ms| {
        Admission::Refuse(Refusal { kind: AuthErrorKind::Rejected, ready: Some(Duration::from_millis(ms)) })
    };
    assert_eq!(state.admit(at(31_999), true), refused(32_000));
    assert_eq!(state.admit(at(32_000), true), Admission::Go);
    assert_eq!(state.admit(at(32_000), true), refused(62_000), "one at a time, answered or not");
    assert_eq!(state.admit(at(62_000), true), Admission::Go);
}

#[test]
fn concurrent_first_refusals_share_one_pause_and_do_not_open_the_breaker() {
    let mut state = unheld(LoginMode::Unattended);
    state.granted(0, Some(DAY), false, at(0));
    let until = AfterRefusal::ResendAt(Duration::from_millis(3_000));
    assert_eq!(state.refused(1, false, at(1_000)), until);
    assert_eq!(state.refused(1, false, at(1_500)), until);
    assert_eq!(state.refused(1, true, at(2_999)), until, "one that was sent again with it as well");
    assert_eq!(state.admit(at(2_999), true), Admission::Go, "too early to judge");
    state.accepted(1);
    assert_eq!(state.refused(1, true, at(3_000)), AfterRefusal::Surface);
    assert_eq!(state.admit(at(3_000), true), Admission::Go, "it has worked since");
}

#[test]
fn the_same_token_again_keeps_its_generation_and_its_record() {
    let mut state = working();
    assert_eq!(state.granted(23 * HOUR, Some(DAY), true, at(23 * HOUR)), 1);
    assert_eq!(state.expires(), Some(47 * HOUR));
    assert_eq!(state.sessions(), 1, "no other session");
    assert!(
        matches!(state.refused(1, false, at(24 * HOUR)), AfterRefusal::Join { start: true }),
        "it had worked"
    );
}

/// The events that a source can see.
#[derive(Clone, Debug)]
enum Event {
    Admit { may_renew: bool },
    Refused { back: u64, resent: bool },
    Accepted { back: u64 },
    Granted { life_s: u64, same: bool },
    Failed(u8),
    Interrupted,
    Tick,
    Ask,
    Reset,
    Pass { ms: i64 },
    Suspend { ms: i64 },
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => any::<bool>().prop_map(|may_renew| Event::Admit { may_renew }),
        4 => (0_u64..3, any::<bool>()).prop_map(|(back, resent)| Event::Refused { back, resent }),
        2 => (0_u64..3).prop_map(|back| Event::Accepted { back }),
        3 => (1_u64..90_000, any::<bool>()).prop_map(|(life_s, same)| Event::Granted { life_s, same }),
        2 => (0_u8..4).prop_map(Event::Failed),
        1 => Just(Event::Interrupted),
        1 => Just(Event::Tick),
        1 => Just(Event::Ask),
        1 => Just(Event::Reset),
        4 => (0_i64..4_000_000).prop_map(|ms| Event::Pass { ms }),
        1 => (0_i64..90_000_000).prop_map(|ms| Event::Suspend { ms }),
    ];
    prop::collection::vec(event, 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_happens_the_promises_hold(events in events()) {
        let mut state = unheld(LoginMode::Unattended);
        let mut now = at(0);
        let mut flying = false;
        let mut suspicions: Vec<Duration> = Vec::new();
        for event in events {
            let generation = state.generation;
            let usable = state.is_usable(now);
            let mut started = false;
            match event {
                Event::Admit { may_renew } => match state.admit(now, may_renew) {
                    Admission::Wait { start } => {
                        prop_assert!(start || flying, "somebody waits for nothing");
                        started = start;
                    }
                    Admission::GoAndRenew => {
                        prop_assert!(may_renew && usable);
                        started = true;
                    }
                    Admission::Go => prop_assert!(state.withdrawn().is_none(), "sent with a withdrawn token"),
                    Admission::Rest { at, .. } => prop_assert!(!usable && now.elapsed < at),
                    Admission::Refuse(refusal) => {
                        prop_assert!(!usable || refusal.kind == AuthErrorKind::Rejected);
                    }
                },
                Event::Refused { back, resent } => {
                    let sent = generation.saturating_sub(back);
                    let before = state.suspected();
                    let decision = state.refused(sent, resent, now);
                    let waits = matches!(decision, AfterRefusal::Join { .. } | AfterRefusal::Ask);
                    prop_assert!(!(resent && waits), "a second login for one request");
                    prop_assert!(decision != AfterRefusal::Resend || sent < generation, "the same token again");
                    if sent < generation {
                        prop_assert_eq!(state.is_usable(now), usable, "a late 401 touched the newer token");
                    }
                    if let AfterRefusal::Join { start } = decision {
                        prop_assert!(start || flying);
                        started = start;
                        if state.suspected() != before {
                            suspicions.push(now.elapsed);
                        }
                    }
                }
                Event::Accepted { back } => state.accepted(generation.saturating_sub(back)),
                Event::Granted { life_s, same } if flying => {
                    let life_of = Some(Duration::from_secs(life_s));
                    let next = state.granted(now.wall, life_of, same && generation > 0, now);
                    prop_assert!(next == generation || next == generation + 1);
                    flying = false;
                }
                Event::Failed(end) if flying => {
                    let failure = match end {
                        0 => LoginFailure::Refused,
                        1 => LoginFailure::NotSent("x".into()),
                        2 => LoginFailure::RateLimited { retry_after: None },
                        _ => LoginFailure::Unknown("x".into()),
                    };
                    state.policy.failed(&failure, LoginMode::Unattended, now.elapsed);
                    state.failed();
                    flying = false;
                    prop_assert!(state.is_usable(now) || !usable, "a failed login displaced a token");
                    prop_assert_eq!(state.withdrawn(), None);
                }
                Event::Interrupted if flying => {
                    state.interrupted(now);
                    flying = false;
                    prop_assert!(state.is_usable(now) || !usable, "an interrupted login displaced a token");
                    prop_assert!(state.withdrawn().is_none() || state.resumes_at(now).is_some());
                }
                Event::Granted { .. } | Event::Failed(_) | Event::Interrupted => {}
                Event::Tick => {
                    let before = state.suspected();
                    started = state.tick(now, true) == Tick::Renew;
                    if state.suspected() != before {
                        suspicions.push(now.elapsed);
                    }
                }
                Event::Ask => started = state.ask(now) == Ok(true),
                Event::Reset => {
                    state.reset();
                    suspicions.clear();
                }
                Event::Pass { ms } => {
                    now.elapsed += Duration::from_millis(ms.unsigned_abs());
                    now.wall += ms;
                }
                Event::Suspend { ms } => now.wall += ms,
            }
            prop_assert!(!(started && flying), "two logins at once");
            flying |= started;
            prop_assert!(state.generation >= generation);
            if now.wall < state.carefree_until() {
                prop_assert_eq!(state.phase(now), TokenPhase::Valid, "the fast path passes a token that is not valid");
            }
        }
        for pair in suspicions.windows(2) {
            prop_assert!(pair[1] - pair[0] >= MINUTE, "{:?}", pair);
        }
    }
}

#[test]
fn whoever_waits_for_a_person_looks_for_a_stored_token_at_most_every_5_seconds() {
    let mut state = unheld(LoginMode::Attended).sharing();
    for look in [0, 5_000, 10_000] {
        assert_eq!(state.admit(at(look), true), Admission::Wait { start: true }, "at {look}");
        assert!(state.looked(at(look)).is_err(), "nobody has logged in");
        for early in [look, look + 4_999] {
            assert!(matches!(state.admit(at(early), true), Admission::Refuse(_)), "at {early}");
        }
    }
}
