use std::fmt;

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretSlice};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::ApiKey;

/// Whose logins these are, and by which credentials: a store is bound to the first, the failure budget to both.
///
/// Only salted hashes of it are ever kept, and each covers the API key, which is long and random: a password cannot
/// be guessed from them without the key.
#[derive(Clone)]
pub struct Identity {
    account: SecretSlice<u8>,
    credentials: SecretSlice<u8>,
}

impl Identity {
    /// The account of `user` at `base`; `user` is empty where the login does not know it.
    #[must_use]
    pub fn new(base: &str, api_key: &ApiKey, user: &str) -> Self {
        let mut account = Vec::new();
        for part in [base, api_key.expose(), user] {
            append(&mut account, part.as_bytes());
        }
        Self { credentials: account.clone().into(), account: account.into() }
    }

    /// Adds what the service may refuse the login for: a password, a secret, the form's field names. When it
    /// changes, the failure budget is whole again.
    #[must_use]
    pub fn with(self, part: impl AsRef<[u8]>) -> Self {
        let mut credentials = self.credentials.expose_secret().to_vec();
        append(&mut credentials, part.as_ref());
        Self { credentials: credentials.into(), ..self }
    }

    pub(crate) fn account(&self) -> Fingerprint {
        Fingerprint::of(&self.account)
    }

    pub(crate) fn credentials(&self) -> Fingerprint {
        Fingerprint::of(&self.credentials)
    }

    pub(crate) fn is_of(&self, account: &Fingerprint) -> bool {
        account.matches(&self.account)
    }

    pub(crate) fn has(&self, credentials: &Fingerprint) -> bool {
        credentials.matches(&self.credentials)
    }

    /// The first half of a hash without salt, in hex: tells one account's files from another's.
    #[must_use]
    pub fn label(&self) -> String {
        let hash = hash(&[0; SALT], self.account.expose_secret());
        HEXLOWER.encode(&hash[..6])
    }
}

/// Parts cannot run into each other.
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
        // Without randomness the hash is still a hash, and binds as well; only its salt is known.
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
