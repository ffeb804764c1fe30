//! The bytes of a record, and those of its earlier versions.

use std::time::Duration;

use secrecy::{ExposeSecret, SecretSlice};
use serde::{Deserialize, Serialize};

use super::{Record, StoredThrottled, StoredToken};
use crate::store::{
    StoreError,
    failures::{Failures, Tried},
    identity::Fingerprint,
};

/// The format that this program writes.
const VERSION: u64 = 6;
/// The version that did not know when a login follows a refusal.
const VERSION_OF_REFUSED: u64 = 5;
/// The version that did not know when a token was refused.
const VERSION_OF_THROTTLED: u64 = 4;
/// The version that did not know logins that were answered with 429.
const VERSION_OF_UNKNOWN: u64 = 3;
/// The version that counted the account's failures for each API key alone.
const VERSION_OF_KEYS: u64 = 2;
/// The version that held only the failures of the credentials that were used last.
const VERSION_OF_ONE: u64 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire<F> {
    version: u64,
    revision: u64,
    account: Option<Fingerprint>,
    token: Option<WireToken>,
    failures: F,
    unknown_ms: Vec<i64>,
    totp_steps: Vec<u64>,
    sessions_ms: Vec<i64>,
    suspected_ms: Option<i64>,
    // Not in versions 1 and 2.
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    unknown_why: Option<String>,
    // Not in versions 1 to 3.
    #[serde(default)]
    throttled: Option<StoredThrottled>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireToken {
    serial: u64,
    access_token: String,
    issued_ms: i64,
    life_ms: Option<u64>,
    worked: bool,
    // Not in version 1.
    #[serde(default)]
    refused: bool,
    // Not in versions 1 to 4.
    #[serde(default)]
    refused_ms: Option<i64>,
    // Not in versions 1 to 5.
    #[serde(default)]
    next_login_ms: Option<i64>,
}

#[derive(Deserialize)]
struct Version {
    version: u64,
}

impl Record {
    /// Returns the record as bytes, including its token: keep them secret.
    #[must_use]
    pub fn encode(&self) -> SecretSlice<u8> {
        let token = self.token.as_ref().map(|token| WireToken {
            serial: token.serial,
            access_token: token.secret.expose_secret().to_owned(),
            issued_ms: token.issued,
            life_ms: token.life.map(|life| u64::try_from(life.as_millis()).unwrap_or(u64::MAX)),
            worked: token.worked,
            refused: token.refused,
            refused_ms: token.refused_at,
            next_login_ms: token.next_login,
        });
        let wire = Wire {
            version: VERSION,
            revision: self.revision,
            account: self.account.clone(),
            token,
            failures: self.failures.clone(),
            unknown_ms: self.unknown.clone(),
            totp_steps: self.steps.clone(),
            sessions_ms: self.sessions.clone(),
            suspected_ms: self.suspected,
            user: self.user.clone(),
            unknown_why: self.unknown_why.clone(),
            throttled: self.throttled,
        };
        // It holds only numbers and texts, so serialization cannot fail.
        serde_json::to_vec(&wire).unwrap_or_default().into()
    }

    /// Reads the bytes of [`encode`](Record::encode); `place` names the store in errors.
    ///
    /// # Errors
    ///
    /// [`StoreError::Garbled`] or [`StoreError::UnknownVersion`]; they do not show the bytes.
    pub fn decode(bytes: &[u8], place: &str) -> Result<Self, StoreError> {
        let garbled = |_| StoreError::Garbled { place: place.to_owned() };
        let Version { version } = serde_json::from_slice(bytes).map_err(garbled)?;
        let wire: Wire<Failures> = match version {
            VERSION | VERSION_OF_REFUSED | VERSION_OF_THROTTLED | VERSION_OF_UNKNOWN | VERSION_OF_KEYS => {
                serde_json::from_slice(bytes).map_err(garbled)?
            }
            VERSION_OF_ONE => serde_json::from_slice::<Wire<Tried>>(bytes).map_err(garbled)?.into(),
            _ => return Err(StoreError::UnknownVersion { place: place.to_owned(), version }),
        };
        let token = wire.token.map(|token| StoredToken {
            serial: token.serial,
            secret: token.access_token.into(),
            issued: token.issued_ms,
            life: token.life_ms.map(Duration::from_millis),
            worked: token.worked,
            refused: token.refused,
            refused_at: token.refused_ms,
            next_login: token.next_login_ms,
        });
        Ok(Self {
            revision: wire.revision,
            account: wire.account,
            token,
            failures: wire.failures,
            unknown: wire.unknown_ms,
            steps: wire.totp_steps,
            sessions: wire.sessions_ms,
            suspected: wire.suspected_ms,
            user: wire.user,
            unknown_why: wire.unknown_why,
            throttled: wire.throttled,
        })
    }
}

impl From<Wire<Tried>> for Wire<Failures> {
    fn from(wire: Wire<Tried>) -> Self {
        Self {
            version: wire.version,
            revision: wire.revision,
            account: wire.account,
            token: wire.token,
            failures: wire.failures.into(),
            unknown_ms: wire.unknown_ms,
            totp_steps: wire.totp_steps,
            sessions_ms: wire.sessions_ms,
            suspected_ms: wire.suspected_ms,
            user: None,
            unknown_why: None,
            throttled: None,
        }
    }
}
