use std::fmt;

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretSlice};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::spelling;
use crate::secret::ApiKey;

/// The account and credentials of a login. A store is bound to the account, the failure budget to both.
///
/// Only salted hashes of it are stored. Each covers the API key, which is long and random, so a password cannot be
/// guessed from them without the key. Beside them is the [label of the user](Identity::user_label), a hash of the
/// service's host and port and of the user alone, by which wrong logins with several API keys are counted together.
///
/// All spellings of an account are one identity, because the service counts wrong logins in any spelling. The
/// comparison ignores case in scheme, host and user, the scheme's default port, a dot after the host, redundant slashes
/// and surrounding space; `localhost`, `127.0.0.1` and `[::1]` are one host.
#[derive(Clone)]
pub struct Identity {
    own: Names,
    /// The account without its user, as a store has it that does not name the user.
    unnamed: SecretSlice<u8>,
    /// True if the token is kept in such a store.
    is_unnamed: bool,
    /// Service and user, whatever the API key; `None` if the login does not know the user.
    user: Option<String>,
    /// The names as given, which version 0.1 used; `None` if they are not spelled differently.
    as_given: Option<Names>,
}

#[derive(Clone)]
struct Names {
    account: SecretSlice<u8>,
    credentials: SecretSlice<u8>,
}

impl Names {
    fn new(parts: [&str; 3]) -> Self {
        let mut account = Vec::new();
        parts.iter().for_each(|part| append(&mut account, part.as_bytes()));
        Self { credentials: account.clone().into(), account: account.into() }
    }

    fn with(self, part: &[u8]) -> Self {
        let mut credentials = self.credentials.expose_secret().to_vec();
        append(&mut credentials, part);
        Self { credentials: credentials.into(), ..self }
    }

    fn label(&self) -> String {
        let hash = hash(&[0; SALT], self.account.expose_secret());
        HEXLOWER.encode(&hash[..6])
    }
}

impl Identity {
    /// Names the account of `user` at `base`; `user` is empty if the login does not know it.
    #[must_use]
    pub fn new(base: &str, api_key: &ApiKey, user: &str) -> Self {
        let given = [base, api_key.expose(), user];
        let (base, user) = (spelling::of_base(base), spelling::of_user(user));
        let own = [&*base, api_key.expose().trim(), &*user];
        let unnamed = Names::new([own[0], own[1], ""]).account;
        let folded = spelling::without_blanks(&user);
        let label =
            (!folded.is_empty()).then(|| Names::new(["user", &spelling::of_service(&base), &folded]).label());
        let as_given = (own != given).then(|| Names::new(given));
        Self { own: Names::new(own), unnamed, is_unnamed: false, user: label, as_given }
    }

    /// The same, with its token in a store that does not name the user.
    pub(crate) fn unnamed(self) -> Self {
        Self { is_unnamed: true, ..self }
    }

    /// Adds a part for which the service may refuse the login: a password, a secret, the form's field names. A changed
    /// part restores the failure budget.
    #[must_use]
    pub fn with(self, part: impl AsRef<[u8]>) -> Self {
        let part = part.as_ref();
        Self { own: self.own.with(part), as_given: self.as_given.map(|names| names.with(part)), ..self }
    }

    pub(crate) fn account(&self) -> Fingerprint {
        Fingerprint::of(if self.is_unnamed { &self.unnamed } else { &self.own.account })
    }

    pub(crate) fn credentials(&self) -> Fingerprint {
        Fingerprint::of(&self.own.credentials)
    }

    pub(crate) fn is_of(&self, account: &Fingerprint) -> bool {
        self.names().any(|names| account.matches(&names.account))
    }

    /// True for the account of a store that does not name its user, who may be this one.
    pub(crate) fn may_be_of(&self, account: &Fingerprint) -> bool {
        account.matches(&self.unnamed)
    }

    pub(crate) fn has(&self, credentials: &Fingerprint) -> bool {
        self.names().any(|names| credentials.matches(&names.credentials))
    }

    /// Replaces the mark that an older version wrote for one spelling by the one for all spellings.
    pub(crate) fn bind_account(&self, account: &mut Option<Fingerprint>) {
        let is_bound = |account: &Fingerprint| {
            self.may_be_of(account) || !self.is_unnamed && account.matches(&self.own.account)
        };
        if account.as_ref().is_none_or(|account| !is_bound(account)) {
            *account = Some(self.account());
        }
    }

    /// As [`bind_account`](Self::bind_account).
    pub(crate) fn bind_credentials(&self, credentials: &mut Option<Fingerprint>) {
        if credentials.as_ref().is_none_or(|credentials| !credentials.matches(&self.own.credentials)) {
            *credentials = Some(self.credentials());
        }
    }

    fn names(&self) -> impl Iterator<Item = &Names> {
        std::iter::once(&self.own).chain(&self.as_given)
    }

    /// Returns the first half of an unsalted hash, in hex, to name the account's files.
    #[must_use]
    pub fn label(&self) -> String {
        self.own.label()
    }

    /// As [`label`](Self::label), for the user at the service with any API key, because a service locks the user.
    /// `None` if the login does not know the user.
    #[must_use]
    pub fn user_label(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Returns the label by which version 0.1 named the files, if it differs. Files with that name should be taken
    /// over.
    #[must_use]
    pub fn older_label(&self) -> Option<String> {
        self.as_given.as_ref().map(Names::label)
    }
}

/// Appends `part` with its length, so that parts cannot run into each other.
fn append(to: &mut Vec<u8>, part: &[u8]) {
    to.extend_from_slice(&(part.len() as u64).to_be_bytes());
    to.extend_from_slice(part);
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity([REDACTED])")
    }
}

const SALT: usize = 16;

/// A salted hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fingerprint {
    salt: String,
    hash: String,
}

impl Fingerprint {
    fn of(secret: &SecretSlice<u8>) -> Self {
        let mut salt = [0; SALT];
        // Without randomness the hash still binds; only its salt is known.
        if getrandom::fill(&mut salt).is_err() {
            tracing::warn!("no randomness for a salt");
        }
        let hash = hash(&salt, secret.expose_secret());
        Self { salt: HEXLOWER.encode(&salt), hash: HEXLOWER.encode(&hash) }
    }

    fn matches(&self, secret: &SecretSlice<u8>) -> bool {
        let Ok(salt) = HEXLOWER.decode(self.salt.as_bytes()) else { return false };
        HEXLOWER.encode(&hash(&salt, secret.expose_secret())) == self.hash
    }
}

fn hash(salt: &[u8], secret: &[u8]) -> [u8; 32] {
    #[expect(
        clippy::expect_used,
        reason = "hmac takes keys of every length; its error type is for block ciphers"
    )]
    let mut mac = Hmac::<Sha256>::new_from_slice(salt).expect("hmac takes a key of any length");
    mac.update(secret);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(base: &str, key: &str, user: &str) -> Identity {
        Identity::new(base, &ApiKey::new(key).unwrap(), user)
    }

    #[test]
    fn an_account_is_its_address_key_and_user_and_not_its_password() {
        let one = identity("http://a", "k", "u").with("password");
        let account = one.account();
        assert!(identity("http://a", "k", "u").with("other").is_of(&account));
        for other in
            [identity("http://b", "k", "u"), identity("http://a", "q", "u"), identity("http://a", "k", "v")]
        {
            assert!(!other.is_of(&account));
        }
        assert_ne!(account, one.account(), "salted");
    }

    #[test]
    fn t21_an_account_and_its_credentials_are_the_same_in_every_spelling() {
        let one = identity("http://a/v2", "k", "u").with("p");
        assert_eq!(one.older_label(), None);
        for other in [
            identity("http://A:80/v2", "k", "u"),
            identity("http://a./v2/", "k", "u"),
            identity("http://a//v2", "k", " U "),
        ] {
            let other = other.with("p");
            assert_eq!(one.label(), other.label());
            assert!(other.older_label().is_some_and(|label| label != one.label()));
            assert!(one.is_of(&other.account()) && other.is_of(&one.account()));
            assert!(one.has(&other.credentials()) && other.has(&one.credentials()));
            assert!(!one.has(&other.with("q").credentials()));
        }
    }

    #[test]
    fn t21_what_an_older_version_wrote_for_a_spelling_is_found_and_bound_anew() {
        let (one, same) =
            (identity("http://A/v2/", "k", "u").with("p"), identity("http://a/v2", "k", "u").with("p"));
        let older = Names::new(["http://A/v2/", "k", "u"]).with(b"p");
        assert_eq!(one.older_label(), Some(older.label()));
        let (mut account, mut credentials) =
            (Some(Fingerprint::of(&older.account)), Some(Fingerprint::of(&older.credentials)));
        assert!(!same.is_of(account.as_ref().unwrap()), "nobody knows how it was spelled");
        assert!(one.is_of(account.as_ref().unwrap()) && one.has(credentials.as_ref().unwrap()));
        one.bind_account(&mut account);
        one.bind_credentials(&mut credentials);
        assert!(same.is_of(account.as_ref().unwrap()) && same.has(credentials.as_ref().unwrap()));
        let bound = account.clone();
        same.bind_account(&mut account);
        assert_eq!(account, bound, "once");
    }

    #[test]
    fn t21_a_user_is_the_same_whatever_the_key_the_case_and_the_blanks() {
        let one = identity("http://a/v2", "k", "u1");
        let label = one.user_label().unwrap();
        for (base, key, user) in [
            ("http://a/v2", "q", "u1"),
            ("http://A:80/v2/", "q", " U1 "),
            ("http://a/v2", "k", "u 1"),
            ("http://a/x/v2", "k", "u1"),
            ("http://a/./v2", "k", "u1"),
        ] {
            let other = identity(base, key, user).with("p");
            assert_eq!(other.user_label(), Some(label), "{base} {key} {user}");
        }
        for (base, user) in [("http://b/v2", "u1"), ("http://a/v2", "u2")] {
            assert_ne!(identity(base, "k", user).user_label(), Some(label), "{base} {user}");
        }
        assert_eq!(identity("http://a/v2", "k", " ").user_label(), None, "nobody knows who it is");
    }

    #[test]
    fn credentials_are_the_account_and_every_part() {
        let credentials = identity("http://a", "k", "u").with("p").with("s").credentials();
        assert!(identity("http://a", "k", "u").with("p").with("s").has(&credentials));
        for other in [
            identity("http://a", "k", "u").with("p"),
            identity("http://a", "k", "u").with("ps"),
            identity("http://a", "k", "u").with("s").with("p"),
            identity("http://a", "k", "").with("up").with("s"),
        ] {
            assert!(!other.has(&credentials));
        }
    }
}
