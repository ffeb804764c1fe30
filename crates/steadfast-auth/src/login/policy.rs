use std::{collections::VecDeque, time::Duration};

use super::{LoginFailure, LoginMode, throttled::Throttled, unknown_ends};
use crate::{
    error::AuthErrorKind,
    store::{FIRST_PAUSE, Spent},
};

/// The pauses after an attempt that never left.
const PAUSES: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(8)];
/// The pause after the first attempt with an unknown end. More of them make it longer.
const AFTER_UNKNOWN: Duration = FIRST_PAUSE;
/// The pause after a denial that another login does not cure.
const AFTER_DENIAL: Duration = Duration::from_secs(15 * 60);
/// The most unknown ends that are kept; more would change nothing.
const MOST_UNKNOWN: usize = 64;
/// Two unattended logins are at least this far apart, even where tokens live for seconds.
pub(crate) const BETWEEN_LOGINS: Duration = Duration::from_secs(30);

/// Decides what follows an attempt to log in, so that no sequence of failures locks the account.
///
/// Pure: takes the time since some start and the end of an attempt, and returns a decision.
#[derive(Clone, Debug)]
pub(crate) struct LoginPolicy {
    // The budget of these credentials; the account's is larger by one.
    budget: u32,
    // Wrong logins of these credentials since their last success, and whether these alone are latched.
    refusals: u32,
    latched: bool,
    // Wrong logins of all credentials of the account since the last success.
    account: u32,
    // Attempts that never left, in a row.
    pauses: usize,
    // Attempts that were answered with 429, in a row.
    throttled: Throttled,
    // When the account's logins with an unknown end left, since the last success. A later wrong login replaces the last
    // of these times. Each may have been wrong, so the wait for the next login grows with them.
    unknown: VecDeque<Duration>,
    // How many of them are of these credentials.
    own_unknown: u32,
    // The reason of the last one.
    why: Option<String>,
    // The earliest next login after failures; also applies to a person.
    not_before: Duration,
    // The earliest next login after a success; applies only to logins that start by themselves.
    rest_until: Duration,
    // The last login ended with its runtime. The next one is due at this time.
    interrupted_until: Option<Duration>,
}

/// The action that follows a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Try again, not before `at`; by the other clock if this clock may have made the code wrong.
    Again { at: Duration, other_clock: bool },
    /// Give up this login.
    GiveUp(Refusal),
}

/// Why no login may start or continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) kind: AuthErrorKind,
    /// When the next one may start by itself.
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
            throttled: Throttled::default(),
            unknown: VecDeque::new(),
            own_unknown: 0,
            why: None,
            not_before: Duration::ZERO,
            rest_until: Duration::ZERO,
            interrupted_until: None,
        }
    }

    /// Returns an error unless a login may start by itself.
    pub(crate) fn may_start(&self, now: Duration) -> Result<(), Refusal> {
        self.may_be_asked(now)?;
        Self::not_until(self.rest_until, now)
    }

    /// Returns an error unless a login may start on request.
    pub(crate) fn may_be_asked(&self, now: Duration) -> Result<(), Refusal> {
        if self.is_latched() {
            return Err(Refusal { kind: AuthErrorKind::Latched, ready: None });
        }
        let doubted = self.doubted_until().unwrap_or_default();
        Self::not_until(self.not_before.max(doubted).max(self.throttled.until()), now)
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

    /// Takes over what the record of the account says, whichever process wrote it.
    pub(crate) fn restore(&mut self, spent: Spent, unknown: VecDeque<Duration>, now: Duration) {
        self.refusals = spent.own;
        self.account = spent.account;
        self.latched = spent.latched || spent.own >= self.budget;
        self.own_unknown = spent.unknown;
        self.unknown = unknown.into_iter().map(|at| at.min(now)).collect();
    }

    /// Returns when the next login may leave after those with an unknown end; `None` if there are none.
    pub(crate) fn doubted_until(&self) -> Option<Duration> {
        Some(*self.unknown.back()? + self.doubt_pause())
    }

    fn doubt_pause(&self) -> Duration {
        self.spent().pause(u32::try_from(self.unknown.len()).unwrap_or(u32::MAX))
    }

    /// Returns the last logins in a row that were answered with 429.
    pub(crate) fn throttled(&self) -> Throttled {
        self.throttled
    }

    /// As [`restore`](LoginPolicy::restore).
    pub(crate) fn restore_throttled(&mut self, throttled: Throttled) {
        self.throttled = throttled;
    }

    /// Returns the reason of the last login with an unknown end.
    pub(crate) fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// As [`restore`](LoginPolicy::restore).
    pub(crate) fn restore_why(&mut self, why: Option<String>) {
        self.why = why;
    }

    /// Returns the logins since the last success that were wrong, or may have been after one was.
    pub(crate) fn spent(&self) -> Spent {
        Spent { own: self.refusals, account: self.account, latched: self.latched, unknown: self.own_unknown }
    }

    /// Returns the attempts since the last success whose end is unknown.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = Duration> {
        self.unknown.iter().copied()
    }

    /// Notes a successful login.
    pub(crate) fn granted(&mut self, now: Duration) {
        self.refusals = 0;
        self.account = 0;
        self.pauses = 0;
        self.throttled = Throttled::default();
        self.unknown.clear();
        self.own_unknown = 0;
        self.why = None;
        self.interrupted_until = None;
        self.not_before = Duration::ZERO;
        self.rest_until = now + BETWEEN_LOGINS;
    }

    /// Forgets all failures, on a person's word that the configuration is right.
    pub(crate) fn reset(&mut self) {
        *self = Self::new(self.budget);
    }

    /// Decides what follows a failed attempt.
    pub(crate) fn failed(&mut self, failure: &LoginFailure, mode: LoginMode, now: Duration) -> Next {
        let give_up = |kind, ready| Next::GiveUp(Refusal { kind, ready });
        self.interrupted_until = None;
        if failure.is_answer() {
            self.throttled = Throttled::default();
        }
        match failure {
            // ## Attempting => (Attempting | Latched)
            //
            // A few wrong logins lock an account. So the budgets count all wrong logins since the last success: those
            // of these credentials, and those of any credentials.
            LoginFailure::Refused => {
                self.pauses = 0;
                self.refusals = self.refusals.saturating_add(1);
                self.account = self.account.saturating_add(1);
                self.latched |= self.refusals >= self.budget;
                if self.is_latched() {
                    return give_up(AuthErrorKind::Latched, None);
                }
                // The earlier ones with an unknown end may have been wrong too. So this counts as one more of them,
                // with the same wait.
                match self.unknown.back_mut() {
                    Some(last) => {
                        *last = now;
                        self.after_doubt(now, true)
                    }
                    None => Next::Again { at: now, other_clock: true },
                }
            }
            // ## Attempting => NeedsHuman
            //
            // An authorization code was refused, which proves nothing about the password. A person fetches a new one.
            LoginFailure::CodeRefused => give_up(AuthErrorKind::Rejected, None),
            LoginFailure::NoCode(_) => give_up(AuthErrorKind::Unavailable, None),
            // ## Attempting => Latched
            //
            // The same request would always be refused for the same reason.
            LoginFailure::Misconfigured(_) => {
                self.latched = true;
                give_up(AuthErrorKind::Latched, None)
            }
            // ## Attempting => (Attempting | Unavailable)
            //
            // The service did not look at the credentials, so no budget is spent.
            // A program that starts again must not ask as often as it starts, so the store knows of them.
            LoginFailure::RateLimited { retry_after } => {
                self.pauses = 0;
                self.throttled = self.throttled.and(*retry_after, now);
                let at = self.throttled.until();
                if self.throttled.is_repeated() {
                    Next::Again { at, other_clock: false }
                } else {
                    give_up(AuthErrorKind::Unavailable, Some(at))
                }
            }
            LoginFailure::NotSent(_) => self.pause(now),
            // ## Attempting => Unavailable
            //
            // An attempt that cannot be counted is not sent.
            LoginFailure::Store(_) => self.give_up_until(now + PAUSES[3]),
            // ## Attempting => (Unavailable | Latched)
            //
            // Denied because of the address, the app, the eleventh session or a path that is temporarily missing. All
            // of these are cured elsewhere, so it is tried again, but rarely. A denial does not prove that the
            // credentials were right.
            LoginFailure::Denied(_) => match self.in_doubt(failure, LoginMode::Attended, now) {
                Next::GiveUp(Refusal { kind: AuthErrorKind::Unavailable, ready }) => {
                    self.not_before = now + AFTER_DENIAL;
                    give_up(AuthErrorKind::Rejected, ready.max(Some(self.not_before)))
                }
                next => next,
            },
            // ## Attempting => (Attempting | Unavailable)
            //
            // The login may have been executed: its code is spent, and one of ten session slots may be gone.
            LoginFailure::Unknown(_) => self.in_doubt(failure, mode, now),
        }
    }

    /// Notes an attempt whose task ended without an answer.
    pub(crate) fn unanswered(&mut self, now: Duration) {
        // The task that would try again is gone, so this login gives up in any case.
        let failure = LoginFailure::Unknown("it was interrupted".into());
        self.in_doubt(&failure, LoginMode::Attended, now);
    }

    /// As [`unanswered`](LoginPolicy::unanswered), for a task whose runtime has gone: the next login may succeed.
    pub(crate) fn interrupted(&mut self, now: Duration) {
        self.unanswered(now);
        let next = now + AFTER_UNKNOWN;
        // Requests wait for the next login only after the short pause, not for an hour.
        self.interrupted_until = (!self.is_latched() && self.doubted_until() == Some(next)).then_some(next);
    }

    /// Returns when the next login may follow an interrupted one, if nothing else holds it back.
    pub(crate) fn resumes_at(&self, now: Duration) -> Option<Duration> {
        self.interrupted_until.filter(|&at| now < at && !self.is_latched())
    }

    fn pause(&mut self, now: Duration) -> Next {
        let pause = PAUSES.get(self.pauses).copied();
        self.pauses += 1;
        match pause {
            Some(pause) => Next::Again { at: now + pause, other_clock: false },
            None => {
                self.pauses = 0;
                self.give_up_until(now + PAUSES[3])
            }
        }
    }

    fn in_doubt(&mut self, failure: &LoginFailure, mode: LoginMode, now: Duration) -> Next {
        self.pauses = 0;
        self.why = Some(unknown_ends::reason(failure));
        self.unknown.push_back(now);
        self.own_unknown = self.own_unknown.saturating_add(1);
        let surplus = self.unknown.len().saturating_sub(MOST_UNKNOWN);
        self.unknown.drain(..surplus);
        // ## Attempting => Latched
        //
        // After a wrong login, this one may have been wrong too. A service that counts wrong logins may then have seen
        // as many as the budget allows.
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
        match self.after_doubt(now, false) {
            // Do not ask a person for a second code without a request.
            Next::Again { at, .. } if mode == LoginMode::Attended => Self::doubted(at),
            next => next,
        }
    }

    /// Decides whether the next login follows soon.
    fn after_doubt(&self, now: Duration, other_clock: bool) -> Next {
        let at = self.doubted_until().unwrap_or(now);
        if self.doubt_pause() > AFTER_UNKNOWN { Self::doubted(at) } else { Next::Again { at, other_clock } }
    }

    // `not_before` is not set, because the list of unknown ends already yields the time. So a reset elsewhere, or
    // another process's success, ends the wait.
    fn doubted(at: Duration) -> Next {
        Next::GiveUp(Refusal { kind: AuthErrorKind::Unavailable, ready: Some(at) })
    }

    fn give_up_until(&mut self, at: Duration) -> Next {
        self.not_before = at;
        Next::GiveUp(Refusal { kind: AuthErrorKind::Unavailable, ready: Some(at) })
    }
}

#[cfg(test)]
mod tests;
