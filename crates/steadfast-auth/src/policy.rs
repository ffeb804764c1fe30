use std::{collections::VecDeque, time::Duration};

use steadfast_spec::Planted;

use crate::{AuthErrorKind, LoginFailure, LoginMode, store::Spent};

/// The pauses after a 429 and after an attempt that never left.
const PAUSES: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(8)];
/// A `Retry-After` counts up to here.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);
/// After an attempt whose end is unknown, the service is left alone for this long.
const AFTER_UNKNOWN: Duration = Duration::from_secs(30);
/// After a denial that no login mends.
const AFTER_DENIAL: Duration = Duration::from_secs(15 * 60);
/// Each of these may have cost one of the user's ten sessions.
const UNKNOWN_PER_HOUR: usize = 3;
const HOUR: Duration = Duration::from_secs(3_600);
/// Two unattended logins are at least this far apart, even where tokens live for seconds.
pub(crate) const BETWEEN_LOGINS: Duration = Duration::from_secs(30);

/// Decides what follows an attempt to log in, so that no sequence of failures locks the account.
///
/// Pure: the time since some start and the end of an attempt in, a decision out.
#[derive(Clone, Debug)]
pub(crate) struct LoginPolicy {
    // Of these credentials; the account has one more.
    budget: u32,
    // Wrong logins of these credentials since their last success, and whether these alone are latched.
    refusals: u32,
    latched: bool,
    // Wrong logins of all credentials of the account since the last success.
    account: u32,
    // 429s and attempts that never left, in a row.
    pauses: usize,
    unknown: VecDeque<Duration>,
    // After failures; binds a person too.
    not_before: Duration,
    // After a success; binds only logins that start by themselves.
    rest_until: Duration,
    // The last login ended with its runtime: until then the next one is waited for.
    interrupted_until: Option<Duration>,
}

/// What follows an attempt that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Try again, not before `at`; with the other clock if the code may have been wrong because of this one.
    Again { at: Duration, other_clock: bool },
    /// This login is over.
    GiveUp(Refusal),
}

/// Why no login starts, or none goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) kind: AuthErrorKind,
    /// When the next may start by itself.
    pub(crate) ready: Option<Duration>,
}

impl LoginPolicy {
    pub(crate) fn new(budget: u32) -> Self {
        Self {
            budget,
            refusals: 0,
            latched: false,
            account: 0,
            pauses: 0,
            unknown: VecDeque::new(),
            not_before: Duration::ZERO,
            rest_until: Duration::ZERO,
            interrupted_until: None,
        }
    }

    /// Whether a login may start by itself.
    pub(crate) fn may_start(&self, now: Duration) -> Result<(), Refusal> {
        self.may_be_asked(now)?;
        Self::not_until(self.rest_until, now)
    }

    /// Whether a login may start because somebody asks for it.
    pub(crate) fn may_be_asked(&self, now: Duration) -> Result<(), Refusal> {
        if self.is_latched() {
            return Err(Refusal { kind: AuthErrorKind::Latched, ready: None });
        }
        Self::not_until(self.not_before, now)
    }

    fn not_until(at: Duration, now: Duration) -> Result<(), Refusal> {
        if now < at {
            return Err(Refusal { kind: AuthErrorKind::Unavailable, ready: Some(at) });
        }
        Ok(())
    }

    /// True if no login of these credentials may start, because of them or because of the account.
    pub(crate) fn is_latched(&self) -> bool {
        self.latched || self.account > self.budget
    }

    /// Takes over what the record of the account says, whoever wrote it.
    pub(crate) fn restore(&mut self, spent: Spent, unknown: VecDeque<Duration>, now: Duration) {
        self.refusals = spent.own;
        self.account = spent.account;
        self.latched = spent.latched || spent.own >= self.budget;
        self.unknown = unknown;
        self.unknown.retain(|&at| now < at + HOUR);
        if let (Some(&oldest), Some(&newest)) = (self.unknown.front(), self.unknown.back()) {
            let rest = newest + AFTER_UNKNOWN;
            let spent = self.unknown.len() >= UNKNOWN_PER_HOUR;
            self.not_before = self.not_before.max(if spent { rest.max(oldest + HOUR) } else { rest });
        }
    }

    /// Logins since the last success that were wrong, or may have been after one was.
    pub(crate) fn spent(&self) -> Spent {
        Spent { own: self.refusals, account: self.account, latched: self.latched }
    }

    /// Attempts of the last hour whose end is unknown.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = Duration> {
        self.unknown.iter().copied()
    }

    /// A token came.
    pub(crate) fn granted(&mut self, now: Duration) {
        self.refusals = 0;
        self.account = 0;
        self.pauses = 0;
        self.interrupted_until = None;
        self.not_before = Duration::ZERO;
        self.rest_until = now + BETWEEN_LOGINS;
    }

    /// Somebody vouches for the configuration.
    pub(crate) fn reset(&mut self) {
        *self = Self::new(self.budget);
    }

    /// An attempt failed.
    pub(crate) fn failed(&mut self, failure: &LoginFailure, mode: LoginMode, now: Duration) -> Next {
        let give_up = |kind, ready| Next::GiveUp(Refusal { kind, ready });
        self.interrupted_until = None;
        match failure {
            // ## Attempting => (Attempting | Latched)
            //
            // A few wrong logins lock an account, so the budgets count them over all logins since the last success: those
            // of these credentials, and those of whatever credentials.
            LoginFailure::Refused => {
                self.pauses = 0;
                self.refusals = self.refusals.saturating_add(1);
                self.account = self.account.saturating_add(1);
                self.latched |= self.refusals >= self.budget;
                if !self.is_latched() {
                    return Next::Again { at: now, other_clock: true };
                }
                give_up(AuthErrorKind::Latched, None)
            }
            // ## Attempting => NeedsHuman
            //
            // An authorization code was refused, which says nothing of the password: a person fetches a new one.
            LoginFailure::CodeRefused => give_up(AuthErrorKind::Rejected, None),
            LoginFailure::NoCode(_) => give_up(AuthErrorKind::Unavailable, None),
            // ## Attempting => Latched
            //
            // The same request would be refused for the same reason for ever.
            LoginFailure::Misconfigured(_) => {
                self.latched = true;
                give_up(AuthErrorKind::Latched, None)
            }
            // ## Attempting => (Attempting | Unavailable)
            //
            // The service did not look at the credentials, so the budget stays.
            LoginFailure::RateLimited { retry_after } => {
                self.pause(retry_after.unwrap_or_default().min(LONGEST_RETRY_AFTER), now)
            }
            LoginFailure::NotSent(_) => self.pause(Duration::ZERO, now),
            // ## Attempting => Unavailable
            //
            // What cannot be counted is not sent.
            LoginFailure::Store(_) => self.give_up_until(now + PAUSES[3]),
            // ## Attempting => Unavailable
            //
            // Denied for the address, the app, the eleventh session or a path that is not there for now. All of these
            // are mended elsewhere, so it is looked at again, but rarely.
            LoginFailure::Denied(_) => {
                self.pauses = 0;
                let ready = now + AFTER_DENIAL;
                self.not_before = ready;
                give_up(AuthErrorKind::Rejected, Some(ready))
            }
            // ## Attempting => (Attempting | Unavailable)
            //
            // The login may have been executed: its code is spent, and one of ten session slots may be gone.
            LoginFailure::Unknown(_) => self.in_doubt(mode, now),
        }
    }

    /// The attempt's task ended without an answer.
    pub(crate) fn unanswered(&mut self, now: Duration) {
        // Nobody is left to try again, so this one gives up in any case.
        self.in_doubt(LoginMode::Attended, now);
    }

    /// As [`unanswered`](LoginPolicy::unanswered), because the task's runtime has gone: the next one may fare better.
    pub(crate) fn interrupted(&mut self, now: Duration) {
        self.unanswered(now);
        let next = now + AFTER_UNKNOWN;
        // An hour is nothing to wait for.
        self.interrupted_until = (!self.is_latched() && self.not_before == next).then_some(next);
    }

    /// When the next login may follow one that was interrupted, and failed for no other reason.
    pub(crate) fn resumes_at(&self, now: Duration) -> Option<Duration> {
        self.interrupted_until.filter(|&at| now < at && !self.is_latched())
    }

    fn pause(&mut self, at_least: Duration, now: Duration) -> Next {
        let pause = PAUSES.get(self.pauses).copied();
        self.pauses += 1;
        match pause {
            Some(pause) => Next::Again { at: now + pause.max(at_least), other_clock: false },
            None => {
                self.pauses = 0;
                self.give_up_until(now + PAUSES[3].max(at_least))
            }
        }
    }

    fn in_doubt(&mut self, mode: LoginMode, now: Duration) -> Next {
        self.pauses = 0;
        self.unknown.retain(|&at| now < at + HOUR);
        self.unknown.push_back(now);
        // ## Attempting => Latched
        //
        // Once one login was wrong, this one may have been the next: a service that counts them has then seen as many
        // as the budget allows.
        if self.account > 0 {
            self.account = self.account.saturating_add(1);
        }
        if self.refusals > 0 {
            self.refusals = self.refusals.saturating_add(1);
            self.latched |= self.refusals >= self.budget;
        }
        if self.is_latched() {
            return Next::GiveUp(Refusal { kind: AuthErrorKind::Latched, ready: None });
        }
        match self.unknown.front() {
            Some(&oldest) if self.unknown.len() >= UNKNOWN_PER_HOUR => {
                self.give_up_until((oldest + HOUR).max(now + AFTER_UNKNOWN))
            }
            // A person is not asked for a second code behind his back.
            _ if mode == LoginMode::Attended => self.give_up_until(now + AFTER_UNKNOWN),
            _ => Next::Again { at: now + AFTER_UNKNOWN, other_clock: false },
        }
    }

    fn give_up_until(&mut self, at: Duration) -> Next {
        self.not_before = if Planted::ErrorRemembered.is_on() { at + HOUR * 10_000 } else { at };
        Next::GiveUp(Refusal { kind: AuthErrorKind::Unavailable, ready: Some(at) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Duration = Duration::from_secs(100);

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
        policy.failed(&unknown(), LoginMode::Unattended, NOW);
        let first = policy.failed(&LoginFailure::Refused, LoginMode::Unattended, NOW);
        assert!(matches!(first, Next::Again { .. }), "one in doubt says nothing of the credentials");
        let second = policy.failed(&unknown(), LoginMode::Unattended, NOW);
        assert_eq!(second, Next::GiveUp(Refusal { kind: AuthErrorKind::Latched, ready: None }));
    }

    #[test]
    fn other_credentials_wrong_logins_leave_what_is_left_of_the_accounts_three() {
        for (account, left) in [(0, 2), (1, 2), (2, 1), (3, 0), (40, 0)] {
            let mut policy = policy();
            policy.restore(Spent { own: 0, account, latched: false }, VecDeque::new(), NOW);
            let mut wrong = 0;
            while policy.may_start(NOW).is_ok() {
                wrong += 1;
                policy.failed(&LoginFailure::Refused, LoginMode::Unattended, NOW);
            }
            assert_eq!(wrong, left, "after {account} wrong logins of the account");
        }
    }

    /// Of a login whose end nobody knows the service may have counted the account's third.
    #[test]
    fn after_wrong_logins_of_others_one_in_doubt_counts_for_the_account() {
        let mut policy = policy();
        policy.restore(Spent { own: 0, account: 2, latched: false }, VecDeque::new(), NOW);
        let next = policy.failed(&unknown(), LoginMode::Unattended, NOW);
        assert_eq!(next, Next::GiveUp(Refusal { kind: AuthErrorKind::Latched, ready: None }));
        assert_eq!(policy.spent(), Spent { own: 0, account: 3, latched: false });
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
        let next =
            policy.failed(&LoginFailure::RateLimited { retry_after: None }, LoginMode::Unattended, NOW);
        assert!(matches!(next, Next::GiveUp(Refusal { kind: AuthErrorKind::Unavailable, ready: Some(_) })));
        assert!(policy.may_start(NOW).is_err());
        assert!(policy.may_start(NOW + Duration::from_secs(8)).is_ok());
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

    #[test]
    fn logins_in_doubt_are_30_seconds_apart_and_at_most_3_an_hour() {
        let mut policy = policy();
        let second = again(policy.failed(&unknown(), LoginMode::Unattended, NOW));
        assert_eq!(second, NOW + Duration::from_secs(30));
        let third = again(policy.failed(&unknown(), LoginMode::Unattended, second));
        let end = policy.failed(&unknown(), LoginMode::Unattended, third);
        assert_eq!(end, Next::GiveUp(Refusal { kind: AuthErrorKind::Unavailable, ready: Some(NOW + HOUR) }));
        assert!(policy.may_start(NOW + HOUR - Duration::from_secs(1)).is_err());
        assert!(policy.may_start(NOW + HOUR).is_ok());
    }

    #[test]
    fn a_login_in_doubt_counts_for_an_hour_and_not_for_its_last_instant() {
        let mut policy = policy();
        policy.failed(&unknown(), LoginMode::Unattended, NOW);
        policy.failed(&unknown(), LoginMode::Unattended, NOW + HOUR / 2);
        let third = policy.failed(&unknown(), LoginMode::Unattended, NOW + HOUR);
        assert_eq!(again(third), NOW + HOUR + Duration::from_secs(30));
    }

    #[test]
    fn three_logins_in_doubt_end_half_a_minute_after_the_last_at_the_earliest() {
        let mut policy = policy();
        let last = NOW + HOUR - Duration::from_secs(10);
        for at in [NOW, NOW + HOUR / 2] {
            policy.failed(&unknown(), LoginMode::Unattended, at);
        }
        let Next::GiveUp(refusal) = policy.failed(&unknown(), LoginMode::Unattended, last) else {
            panic!("the third within an hour")
        };
        assert_eq!(refusal.ready, Some(last + Duration::from_secs(30)));
    }

    #[test]
    fn what_cannot_be_written_down_is_not_tried_for_eight_seconds() {
        let full = LoginFailure::Store(crate::StoreError::Other("disk full".into()));
        let ready = Some(NOW + Duration::from_secs(8));
        let end = Next::GiveUp(Refusal { kind: AuthErrorKind::Unavailable, ready });
        assert_eq!(policy().failed(&full, LoginMode::Unattended, NOW), end);
    }

    #[test]
    fn of_a_records_logins_in_doubt_those_of_the_last_hour_count() {
        let mut policy = policy();
        let (now, second) = (NOW + HOUR, Duration::from_secs(1));
        policy.restore(Spent::default(), [NOW - second, NOW, NOW + second].into(), now);
        assert_eq!(policy.unknown().collect::<Vec<_>>(), [NOW + second]);
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
        /// Whatever happens between them, at most two wrong logins leave without a success or a reset; those that may
        /// have been wrong count from the first one on that was.
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
                // Of a login whose end is unknown nobody can say that it was not wrong, too.
                refused += u32::from(end == 0 || (end == 4 && refused > 0));
                policy.failed(&failure, LoginMode::Unattended, now);
            }
            prop_assert!(refused <= 2);
        }

        #[test]
        fn at_most_3_logins_in_doubt_fall_into_any_hour(pauses in prop::collection::vec(0_u64..2_000, 1..60)) {
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
                prop_assert!(within <= UNKNOWN_PER_HOUR, "{within} from {from:?}");
            }
        }
    }
}
