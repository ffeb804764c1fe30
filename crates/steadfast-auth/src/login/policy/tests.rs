use proptest::prelude::*;

use super::*;

const NOW: Duration = Duration::from_secs(100);
const HOUR: Duration = Duration::from_secs(3_600);

fn policy() -> LoginPolicy {
    LoginPolicy::new(2)
}

fn unknown() -> LoginFailure {
    LoginFailure::Unknown("504".into())
}

fn again(next: Next) -> Duration {
    match next {
        Next::Again { at, .. } => at,
        Next::GiveUp(refusal) => panic!("gave up: {refusal:?}"),
    }
}

#[test]
fn the_second_wrong_login_latches_and_only_a_reset_opens_the_latch() {
    let mut policy = policy();
    let first = policy.failed(&LoginFailure::Refused, LoginMode::Unattended, NOW);
    assert_eq!(first, Next::Again { at: NOW, other_clock: true });
    let second = policy.failed(&LoginFailure::Refused, LoginMode::Unattended, NOW);
    assert_eq!(second, Next::GiveUp(Refusal { kind: AuthErrorKind::Latched, ready: None }));
    assert_eq!(policy.may_start(NOW + HOUR * 1_000).unwrap_err().kind, AuthErrorKind::Latched);
    policy.reset();
    assert_eq!(policy.may_start(NOW), Ok(()));
}

#[test]
fn after_a_wrong_login_one_in_doubt_counts_as_the_next() {
    let mut policy = policy();
    policy.failed(&LoginFailure::Refused, LoginMode::Unattended, NOW);
    let second = policy.failed(&unknown(), LoginMode::Unattended, NOW);
    assert_eq!(second, Next::GiveUp(Refusal { kind: AuthErrorKind::Latched, ready: None }));
}

#[test]
fn other_credentials_wrong_logins_leave_what_is_left_of_the_accounts_three() {
    for (account, left) in [(0, 2), (1, 2), (2, 1), (3, 0), (40, 0)] {
        let mut policy = policy();
        policy.restore(Spent { account, ..Spent::default() }, VecDeque::new(), NOW);
        let mut wrong = 0;
        while policy.may_start(NOW).is_ok() {
            wrong += 1;
            policy.failed(&LoginFailure::Refused, LoginMode::Unattended, NOW);
        }
        assert_eq!(wrong, left, "after {account} wrong logins of the account");
    }
}

/// The service may have counted a login with an unknown end as the account's third wrong one.
#[test]
fn after_wrong_logins_of_others_one_in_doubt_counts_for_the_account() {
    let mut policy = policy();
    policy.restore(Spent { account: 2, ..Spent::default() }, VecDeque::new(), NOW);
    let next = policy.failed(&unknown(), LoginMode::Unattended, NOW);
    assert_eq!(next, Next::GiveUp(Refusal { kind: AuthErrorKind::Latched, ready: None }));
    assert_eq!(policy.spent(), Spent { account: 3, unknown: 1, ..Spent::default() });
}

#[test]
fn a_success_gives_the_budget_back() {
    let mut policy = policy();
    for _ in 0..5 {
        let next = policy.failed(&LoginFailure::Refused, LoginMode::Unattended, NOW);
        assert!(matches!(next, Next::Again { .. }));
        policy.granted(NOW);
    }
}

#[test]
fn a_429_pauses_1_2_4_8_seconds_and_spends_no_budget() {
    let mut policy = policy();
    for seconds in [1, 2, 4, 8] {
        let next =
            policy.failed(&LoginFailure::RateLimited { retry_after: None }, LoginMode::Unattended, NOW);
        assert_eq!(again(next), NOW + Duration::from_secs(seconds));
    }
    let next = policy.failed(&LoginFailure::RateLimited { retry_after: None }, LoginMode::Unattended, NOW);
    assert!(matches!(next, Next::GiveUp(Refusal { kind: AuthErrorKind::Unavailable, ready: Some(_) })));
    assert!(policy.may_start(NOW).is_err());
    assert!(policy.may_start(NOW + Duration::from_secs(15)).is_err());
    assert!(policy.may_start(NOW + Duration::from_secs(16)).is_ok());
    let next = policy.failed(&LoginFailure::Refused, LoginMode::Unattended, NOW);
    assert!(matches!(next, Next::Again { .. }), "the budget is whole");
}

#[test]
fn retry_after_lengthens_the_pause_up_to_a_minute() {
    for (asked, paused) in [(0, 1), (7, 7), (9_999, 60)] {
        let failure = LoginFailure::RateLimited { retry_after: Some(Duration::from_secs(asked)) };
        let next = policy().failed(&failure, LoginMode::Unattended, NOW);
        assert_eq!(again(next), NOW + Duration::from_secs(paused));
    }
}

/// Returns when logins leave, in seconds, if one is wanted all the time for `hours` and each ends with `failure`.
fn all_that_leave(policy: &mut LoginPolicy, failure: &LoginFailure, from: Duration, hours: u32) -> Vec<u64> {
    let (mut now, mut left) = (from, Vec::new());
    while now < from + HOUR * hours {
        match policy.may_start(now) {
            Ok(()) => {
                left.push((now - from).as_secs());
                now = match policy.failed(failure, LoginMode::Unattended, now) {
                    Next::Again { at, .. } => at,
                    Next::GiveUp(refusal) => refusal.ready.expect("no latch"),
                };
            }
            Err(refusal) => now = refusal.ready.expect("no latch"),
        }
    }
    left
}

#[test]
fn t21_unknown_ends_leave_two_logins_at_once_and_then_ever_fewer() {
    let mut policy = policy();
    let left = all_that_leave(&mut policy, &unknown(), NOW, 24 * 4);
    assert_eq!(left, [0, 30, 3_630, 18_030, 46_830, 133_230, 219_630, 306_030]);
    // After the night, a success restores the budget.
    policy.granted(NOW + HOUR * 96);
    let left = all_that_leave(&mut policy, &unknown(), NOW + HOUR * 97, 2);
    assert_eq!(left, [0, 30, 3_630]);
}

#[test]
fn t21_a_denial_counts_like_an_unknown_end_and_rests_a_quarter_of_an_hour() {
    let denied = LoginFailure::Denied("403".into());
    let left = all_that_leave(&mut policy(), &denied, NOW, 24 * 2);
    assert_eq!(left, [0, 900, 4_500, 18_900, 47_700, 134_100]);
}

/// The service may have counted both, so this may have been the second wrong login.
#[test]
fn t21_a_wrong_login_after_an_unknown_end_is_not_repeated_at_once() {
    let mut policy = policy();
    policy.failed(&unknown(), LoginMode::Unattended, NOW);
    let second = policy.failed(&LoginFailure::Refused, LoginMode::Unattended, NOW + AFTER_UNKNOWN);
    let ready = NOW + AFTER_UNKNOWN + HOUR;
    assert_eq!(second, Next::GiveUp(Refusal { kind: AuthErrorKind::Unavailable, ready: Some(ready) }));
    assert!(policy.may_be_asked(ready - Duration::from_secs(1)).is_err());
    assert_eq!(policy.may_be_asked(ready), Ok(()));
    let third = policy.failed(&LoginFailure::Refused, LoginMode::Unattended, ready);
    assert_eq!(third, Next::GiveUp(Refusal { kind: AuthErrorKind::Latched, ready: None }));
}

/// The limits are those for wrong logins: two with the same credentials, three of the account.
#[test]
fn t21_after_unknown_ends_of_others_one_login_leaves_at_once() {
    let mut policy = policy();
    policy.restore(Spent::default(), [NOW, NOW].into(), NOW);
    let left = all_that_leave(&mut policy, &unknown(), NOW, 1);
    assert_eq!(left, [30]);
}

#[test]
fn what_cannot_be_written_down_is_not_tried_for_eight_seconds() {
    let full = LoginFailure::Store(crate::StoreError::Other("disk full".into()));
    let ready = Some(NOW + Duration::from_secs(8));
    let end = Next::GiveUp(Refusal { kind: AuthErrorKind::Unavailable, ready });
    assert_eq!(policy().failed(&full, LoginMode::Unattended, NOW), end);
}

#[test]
fn t21_unknown_ends_of_a_record_count_until_a_success() {
    let mut policy = policy();
    let now = NOW + HOUR * 40;
    policy.restore(Spent { unknown: 4, ..Spent::default() }, [NOW, NOW, NOW, now].into(), now);
    let refusal = policy.may_start(now).unwrap_err();
    assert_eq!(refusal, Refusal { kind: AuthErrorKind::Unavailable, ready: Some(now + HOUR * 8) });
    // Another process has logged in.
    policy.restore(Spent::default(), VecDeque::new(), now);
    assert_eq!(policy.may_start(now), Ok(()));
}

#[test]
fn a_person_is_not_asked_again_by_himself() {
    let next = policy().failed(&unknown(), LoginMode::Attended, NOW);
    assert!(matches!(next, Next::GiveUp(_)));
}

#[test]
fn logins_that_start_by_themselves_are_half_a_minute_apart_and_a_person_may_ask_earlier() {
    let mut policy = policy();
    policy.granted(NOW);
    let refusal = Refusal { kind: AuthErrorKind::Unavailable, ready: Some(NOW + BETWEEN_LOGINS) };
    assert_eq!(policy.may_start(NOW + Duration::from_secs(29)), Err(refusal));
    assert_eq!(policy.may_be_asked(NOW), Ok(()));
    assert_eq!(policy.may_start(NOW + Duration::from_secs(30)), Ok(()));
}

#[test]
fn a_refused_authorization_code_latches_nothing() {
    let mut policy = policy();
    for _ in 0..9 {
        let next = policy.failed(&LoginFailure::CodeRefused, LoginMode::Attended, NOW);
        assert_eq!(next, Next::GiveUp(Refusal { kind: AuthErrorKind::Rejected, ready: None }));
    }
    assert_eq!(policy.may_start(NOW), Ok(()));
}

proptest! {
    /// At most two wrong logins leave between successes or resets. From the first wrong one on, those with an
    /// unknown end count too.
    #[test]
    fn no_sequence_of_failures_spends_more_than_the_budget(ends in prop::collection::vec(0_u8..5, 1..200)) {
        let mut policy = policy();
        let (mut now, mut refused) = (NOW, 0);
        for end in ends {
            now += Duration::from_secs(4_000);
            if policy.may_start(now).is_err() {
                continue;
            }
            let failure = match end {
                0 => LoginFailure::Refused,
                1 => LoginFailure::RateLimited { retry_after: None },
                2 => LoginFailure::NotSent("connect".into()),
                3 => LoginFailure::CodeRefused,
                _ => unknown(),
            };
            // A login with an unknown end may have been wrong too.
            refused += u32::from(end == 0 || (end == 4 && refused > 0));
            policy.failed(&failure, LoginMode::Unattended, now);
        }
        prop_assert!(refused <= 2);
    }

    #[test]
    fn t21_unknown_ends_are_at_most_two_in_any_hour(pauses in prop::collection::vec(0_u64..20_000, 1..60)) {
        let mut policy = policy();
        let mut sent: Vec<Duration> = Vec::new();
        let mut now = NOW;
        for pause in pauses {
            now += Duration::from_secs(pause);
            if policy.may_start(now).is_err() {
                continue;
            }
            let mut next = Next::Again { at: now, other_clock: false };
            while let Next::Again { at, .. } = next {
                now = now.max(at);
                sent.push(now);
                next = policy.failed(&unknown(), LoginMode::Unattended, now);
            }
        }
        for (index, &from) in sent.iter().enumerate() {
            let within = sent[index..].iter().filter(|&&at| at < from + HOUR).count();
            prop_assert!(within <= 2, "{within} from {from:?}");
        }
    }
}
