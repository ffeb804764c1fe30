use std::{mem, time::Duration};

use serde::{Deserialize, Serialize};

use super::identity::{Fingerprint, Identity};

/// How much of the failure budgets is spent: the account's, and that of each set of credentials.
///
/// A service locks the account, not a password. So wrong logins of one program's credentials reduce what is left for
/// all others. A login is counted before it leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Failures {
    /// Logins with any credentials since the last success that were refused, or have an unknown end.
    pub(crate) account: u32,
    /// The credentials that were used last.
    pub(crate) last: Tried,
    /// Other credentials that have failed, latest last. A success of the last ones does not clear them.
    others: Vec<Tried>,
}

/// The failures of one set of credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tried {
    /// `None`: not known yet; the next credentials take it.
    credentials: Option<Fingerprint>,
    /// Their failed logins since their last success.
    pub(crate) spent: u32,
    pub(crate) latched: bool,
    /// Their logins with an unknown end that spent no budget. Not in versions 1 and 2.
    #[serde(default)]
    pub(crate) unknown: u32,
}

/// The spent budgets, from the view of one set of credentials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) own: u32,
    pub(crate) account: u32,
    /// These credentials are latched, whatever is left of the budgets.
    pub(crate) latched: bool,
    /// Logins of these credentials with an unknown end.
    pub(crate) unknown: u32,
}

/// The default number of wrong logins that latch one set of credentials. One more latches the account.
pub(crate) const BUDGET: u32 = 2;
/// The pause after the first unknown end, which a restart of the gateway may explain.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_secs(30);
const HOUR: Duration = Duration::from_secs(3_600);
/// The account's budget admits three sets of credentials between two successes. More than this only collect over years.
const MOST_OTHERS: usize = 16;

impl Failures {
    pub(crate) fn of(&self, identity: &Identity) -> Spent {
        let account = self.account;
        if self.last.is_of(identity) {
            return self.last.seen(account);
        }
        match self.others.iter().find(|tried| tried.is_of(identity)) {
            Some(tried) => tried.seen(account),
            None => Spent { account, ..Spent::default() },
        }
    }

    /// Makes the credentials of `identity` the last ones; the counts of others stay.
    pub(crate) fn turn_to(&mut self, identity: &Identity) {
        if self.last.is_of(identity) {
            identity.bind_credentials(&mut self.last.credentials);
            return;
        }
        let known = self.others.iter().position(|tried| tried.is_of(identity));
        let mut own = known.map(|place| self.others.remove(place)).unwrap_or_default();
        identity.bind_credentials(&mut own.credentials);
        let before = mem::replace(&mut self.last, own);
        if before.spent > 0 || before.latched || before.unknown > 0 {
            self.others.push(before);
            let surplus = self.others.len().saturating_sub(MOST_OTHERS);
            self.others.drain(..surplus);
        }
    }

    /// Notes a success of the last credentials. Other credentials do not get their own budgets back.
    pub(crate) fn succeeded(&mut self) {
        self.account = 0;
        (self.last.spent, self.last.latched, self.last.unknown) = (0, false, 0);
        self.others.retain_mut(|tried| {
            tried.latched = false;
            tried.spent > 0 || tried.unknown > 0
        });
    }

    /// Notes a reset by a person during an attempt, which by itself has spent `spent`.
    pub(crate) fn begin_anew(&mut self, spent: Spent) {
        self.account = spent.account;
        (self.last.spent, self.last.latched, self.last.unknown) = (spent.own, false, spent.unknown);
        self.others.clear();
    }
}

impl Tried {
    fn is_of(&self, identity: &Identity) -> bool {
        self.credentials.as_ref().is_none_or(|credentials| identity.has(credentials))
    }

    pub(super) fn seen(&self, account: u32) -> Spent {
        Spent { own: self.spent, account, latched: self.latched, unknown: self.unknown }
    }
}

impl Spent {
    /// Returns how long no login is sent after the last of `unknown` logins of the account with an unknown end.
    ///
    /// Two with the same credentials leave at once, and three of the account. Then the waits grow to a day. No wait is
    /// endless, because a service that was down for a night must be asked again in the morning.
    pub(crate) fn pause(self, unknown: u32) -> Duration {
        let own = self.own.saturating_add(self.unknown);
        // The account's budget is larger by one.
        let account = self.account.saturating_add(unknown).saturating_sub(1);
        match own.max(account) {
            0 | 1 => FIRST_PAUSE,
            2 => HOUR,
            3 => HOUR * 4,
            4 => HOUR * 8,
            _ => HOUR * 24,
        }
    }
}

/// A record of version 1 held only the failures of the last credentials.
impl From<Tried> for Failures {
    fn from(last: Tried) -> Self {
        Self { account: last.spent, last, others: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::ApiKey;

    fn who(password: &str) -> Identity {
        Identity::new("http://a", &ApiKey::new("k").unwrap(), "u").with(password)
    }

    fn fail(failures: &mut Failures, password: &str) {
        failures.turn_to(&who(password));
        failures.account += 1;
        failures.last.spent += 1;
    }

    fn spent(failures: &Failures, password: &str) -> (u32, u32) {
        let spent = failures.of(&who(password));
        (spent.own, spent.account)
    }

    #[test]
    fn each_set_of_credentials_has_its_count_and_the_account_has_all() {
        let mut failures = Failures::default();
        for password in ["a", "b", "a", "b"] {
            fail(&mut failures, password);
        }
        assert_eq!(["a", "b", "c"].map(|password| spent(&failures, password)), [(2, 4), (2, 4), (0, 4)]);
    }

    #[test]
    fn a_success_gives_back_the_accounts_budget_and_its_own() {
        let mut failures = Failures::default();
        fail(&mut failures, "a");
        fail(&mut failures, "b");
        failures.last.latched = true;
        failures.turn_to(&who("a"));
        failures.succeeded();
        assert_eq!((spent(&failures, "a"), spent(&failures, "b")), ((0, 0), (1, 0)));
        assert!(!failures.of(&who("b")).latched, "its count alone holds it back");
    }

    #[test]
    fn what_is_kept_of_other_credentials_has_a_bound() {
        let mut failures = Failures::default();
        for password in 0..100 {
            fail(&mut failures, &password.to_string());
            failures.succeeded();
            failures.last.spent = 1;
        }
        assert_eq!(failures.others.len(), MOST_OTHERS);
        assert_eq!((spent(&failures, "98").0, spent(&failures, "0").0), (1, 0), "the latest are kept");
    }
}
