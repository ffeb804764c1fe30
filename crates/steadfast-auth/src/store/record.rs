mod wire;

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::{
    failures::{BUDGET, Failures},
    identity::Fingerprint,
};

/// State of one account that outlives a process: the token, and everything that limits the next login.
///
/// Opaque to stores: they keep [`encode`](Record::encode)d bytes and compare [`revision`](Record::revision)s. Times are
/// milliseconds since the Unix epoch by the service's clock.
#[derive(Clone, Default)]
pub struct Record {
    pub(super) revision: u64,
    pub(crate) account: Option<Fingerprint>,
    pub(crate) token: Option<StoredToken>,
    pub(crate) failures: Failures,
    /// Attempts of the account since the last success whose end is unknown.
    pub(crate) unknown: Vec<i64>,
    /// The reason of the last of them.
    pub(crate) unknown_why: Option<String>,
    /// Logins in a row that were answered with 429.
    pub(crate) throttled: Option<StoredThrottled>,
    /// The last time steps whose codes have been submitted.
    pub(crate) steps: Vec<u64>,
    /// The label of the user, whose wrong logins with all API keys are counted together in another record. If set, the
    /// account's count in this record is only a copy of that one.
    pub(crate) user: Option<String>,
    /// Sessions opened within a day.
    pub(crate) sessions: Vec<i64>,
    /// When a refused young token last caused a login.
    pub(crate) suspected: Option<i64>,
}

/// A token that any process of the account may use.
#[derive(Clone)]
pub(crate) struct StoredToken {
    /// Grows with each login of the account.
    pub(crate) serial: u64,
    pub(crate) secret: SecretString,
    pub(crate) issued: i64,
    pub(crate) life: Option<Duration>,
    /// True if the service has accepted it.
    pub(crate) worked: bool,
    /// True if a program found that the service refuses it.
    pub(crate) refused: bool,
    /// When it was refused last, if a program has noted the time.
    pub(crate) refused_at: Option<i64>,
    /// When a login because of that may follow, if a program that logs in by itself has noted it.
    pub(crate) next_login: Option<i64>,
}

/// Logins in a row that were answered with 429.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredThrottled {
    pub(crate) count: u32,
    /// When the last of them was answered.
    pub(crate) at_ms: i64,
    /// How long the next one waits from then on.
    pub(crate) wait_ms: u64,
}

/// A record without its secrets, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// When the token was issued, by the service's clock; `None` if there is no token.
    pub issued_at: Option<SystemTime>,
    /// When the token ends, by the service's clock; `None` if there is none, or only the service knows.
    pub expires_at: Option<SystemTime>,
    /// True once the service has accepted the token.
    pub has_worked: bool,
    /// True if the service has refused the token since, as far as a program has
    /// [noted](crate::TokenSource::note_refused) it. No process takes it over then.
    pub is_refused: bool,
    /// When it was refused last, by the service's clock, as far as a program has noted that.
    pub refused_at: Option<SystemTime>,
    /// When a login by itself may follow that, by the service's clock, if a program with such a login has noted it. That
    /// program goes on with the refused token until then.
    pub renewed_at: Option<SystemTime>,
    /// Logins of the account since the last success that were wrong, or have an unknown end: three latch the account.
    pub failures: u32,
    /// The same for the credentials that were used last: two latch them.
    pub failures_of_credentials: u32,
    /// True if logins with the credentials that were used last are latched, by the default budgets.
    pub latched: bool,
    /// True if logins with any credentials are latched: even changed ones need a [`reset`](super::TokenStore::reset).
    pub needs_reset: bool,
    /// Logins of the account since the last success with an unknown end: each may have been wrong.
    pub unknown: u32,
    /// The reason of the last of these.
    pub unknown_why: Option<String>,
    /// Logins in a row that were answered with 429. They count as no failure.
    pub throttled: u32,
    /// When the next login with the last used credentials may leave after these two kinds, by the service's clock;
    /// `None` if there are none.
    pub next_login_at: Option<SystemTime>,
    /// When sessions were opened. Those of the last day count (§5).
    pub sessions: Vec<SystemTime>,
}

/// How many time steps are kept. Two clocks that differ by a quarter of an hour still see each other's steps.
const STEPS: usize = 64;

impl Record {
    /// Returns the number of writes; a record replaces only the one it was made from.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Makes this record the successor of the one with revision `over`.
    pub(crate) fn advance(&mut self, over: u64) {
        self.revision = over.saturating_add(1);
    }

    pub(crate) fn serial(&self) -> u64 {
        self.token.as_ref().map_or(0, |token| token.serial)
    }

    pub(crate) fn note_step(&mut self, step: u64) {
        self.steps.push(step);
        let surplus = self.steps.len().saturating_sub(STEPS);
        self.steps.drain(..surplus);
    }

    /// Takes over the user's record: what logins with all API keys have in common. Failures that were counted here
    /// before that record existed are added.
    pub(crate) fn take_over(&mut self, user: &Self, label: &str) {
        let is_copy = self.user.as_deref() == Some(label);
        self.failures.account = match self.failures.account {
            _ if is_copy => user.failures.account,
            own => user.failures.account.saturating_add(own),
        };
        for &step in &user.steps {
            if !self.steps.contains(&step) {
                self.note_step(step);
            }
        }
        if is_copy {
            self.unknown.clone_from(&user.unknown);
        } else {
            self.unknown.extend(&user.unknown);
            self.unknown.sort_unstable();
        }
        if is_copy || user.unknown_why.is_some() {
            self.unknown_why.clone_from(&user.unknown_why);
        }
    }

    /// Updates a user's record from `record` of one of the API keys. True if anything changed.
    pub(crate) fn follow(&mut self, record: &Self) -> bool {
        let is_news = self.failures.account != record.failures.account
            || self.steps != record.steps
            || self.unknown != record.unknown
            || self.unknown_why != record.unknown_why;
        self.failures.account = record.failures.account;
        self.steps.clone_from(&record.steps);
        self.unknown.clone_from(&record.unknown);
        self.unknown_why.clone_from(&record.unknown_why);
        is_news
    }

    /// Forgets all failures. Without a token the record then belongs to no user.
    pub(crate) fn forgive(&mut self) {
        self.failures = Failures::default();
        self.know();
        self.suspected = None;
        if !self.holds_token() {
            self.account = None;
        }
    }

    /// True unless there is no token, or it was forgotten.
    pub(crate) fn holds_token(&self) -> bool {
        self.token.as_ref().is_some_and(|token| !token.secret.expose_secret().is_empty())
    }

    /// Clears the logins with an unknown end, and those that were answered with 429.
    pub(crate) fn know(&mut self) {
        self.throttled = None;
        self.unknown.clear();
        self.unknown_why = None;
    }

    /// Forgets the token. The record then belongs to no user, but keeps its failures.
    pub(super) fn forget_token(&mut self) {
        self.account = None;
        // The serial is kept: a process that holds the token must not take an older one for newer.
        if let Some(token) = &mut self.token {
            token.secret = SecretString::default();
            token.life = Some(Duration::ZERO);
        }
    }

    pub(super) fn summary(&self) -> Summary {
        let at = |ms: i64| {
            SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(u64::try_from(ms).unwrap_or_default()))
        };
        let (last, needs_reset) = (&self.failures.last, self.failures.account > BUDGET);
        let unknown = u32::try_from(self.unknown.len()).unwrap_or(u32::MAX);
        let pause = last.seen(self.failures.account).pause(unknown);
        let doubted = self.unknown.iter().max().and_then(|&ms| at(ms)?.checked_add(pause));
        let throttled = self.throttled.and_then(|last| {
            let ended = at(last.at_ms)?;
            ended.checked_add(Duration::from_millis(last.wait_ms))
        });
        let token = self.token.as_ref().filter(|token| !token.secret.expose_secret().is_empty());
        Summary {
            issued_at: token.and_then(|token| at(token.issued)),
            expires_at: token.and_then(|token| at(token.expires()?)),
            has_worked: token.is_some_and(|token| token.worked),
            is_refused: token.is_some_and(|token| token.refused),
            refused_at: token.and_then(|token| at(token.refused_at?)),
            renewed_at: token.and_then(|token| at(token.next_login?)),
            failures: self.failures.account,
            failures_of_credentials: last.spent,
            latched: needs_reset || last.latched || last.spent >= BUDGET,
            needs_reset,
            unknown,
            unknown_why: self.unknown_why.clone(),
            throttled: self.throttled.map_or(0, |throttled| throttled.count),
            next_login_at: doubted.max(throttled),
            sessions: self.sessions.iter().filter_map(|&ms| at(ms)).collect(),
        }
    }
}

impl StoredToken {
    /// Returns when it ends, by the service's clock.
    pub(crate) fn expires(&self) -> Option<i64> {
        let life = i64::try_from(self.life?.as_millis()).unwrap_or(i64::MAX);
        Some(self.issued.saturating_add(life))
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("revision", &self.revision)
            .field("serial", &self.serial())
            .field("failures", &self.failures.account)
            .field("latched", &self.failures.last.latched)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
