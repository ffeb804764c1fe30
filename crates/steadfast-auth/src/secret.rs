mod escapes;
mod finder;
mod quoted;
mod spelled;

use std::{error::Error, fmt};

use bytes::Bytes;
use http::HeaderValue;
use secrecy::{ExposeSecret, SecretString};

pub use self::{
    finder::{Found, SecretFinder},
    quoted::{secret_places, shows_secret},
};

/// The app's API key (§5).
///
/// Its `Debug` does not show the key, and there is no `Display`.
#[derive(Clone)]
pub struct ApiKey {
    key: SecretString,
    // `Bearer <api_key>`, marked sensitive.
    header: HeaderValue,
}

impl ApiKey {
    /// Takes a key as the Apps section of the service shows it.
    ///
    /// # Errors
    ///
    /// [`InvalidSecret`] if the key is empty, or holds a byte that would change its header, such as the colon that
    /// separates key and token. The error does not show the key.
    pub fn new(key: impl Into<SecretString>) -> Result<Self, InvalidSecret> {
        let key = key.into();
        let text = key.expose_secret();
        if text.contains(':') || !stands_in_a_header(text) {
            return Err(InvalidSecret::ApiKey);
        }
        let header = bearer(&[text]).ok_or(InvalidSecret::ApiKey)?;
        Ok(Self { key, header })
    }

    /// Returns `Bearer <api_key>`, for endpoints that take only the key (§5).
    #[must_use]
    pub fn header(&self) -> HeaderValue {
        self.header.clone()
    }

    /// Returns `Bearer <api_key>:<access_token>`, for every protected endpoint (§5).
    pub(crate) fn header_with(&self, token: &SecretString) -> Result<HeaderValue, InvalidSecret> {
        let token = token.expose_secret();
        if token.contains(':') || !stands_in_a_header(token) {
            return Err(InvalidSecret::Token);
        }
        bearer(&[self.key.expose_secret(), ":", token]).ok_or(InvalidSecret::Token)
    }

    /// The key, for the form field `client_id` of the code exchange (§4.2).
    pub(crate) fn expose(&self) -> &str {
        self.key.expose_secret()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey([REDACTED])")
    }
}

/// A user's identifier and password (§4.3).
#[derive(Clone)]
pub struct Credentials {
    pub(crate) client_id: SecretString,
    pub(crate) password: SecretString,
}

impl Credentials {
    /// Takes the two parts that every login with a one-time code needs.
    #[must_use]
    pub fn new(client_id: impl Into<SecretString>, password: impl Into<SecretString>) -> Self {
        Self { client_id: client_id.into(), password: password.into() }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials([REDACTED])")
    }
}

/// Why a secret cannot be used. The error does not show the secret.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidSecret {
    /// The API key is empty, or cannot stand in a header.
    ApiKey,
    /// The token is empty, contains a colon (the separator after the key), or cannot stand in a header.
    Token,
    /// The TOTP secret is not base32, or empty.
    TotpSecret,
    /// The client's identifier or the password is empty.
    Empty,
}

impl fmt::Display for InvalidSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ApiKey => "api_key is empty, or holds a colon or a byte that cannot stand in a header",
            Self::Token => "access_token is empty, or holds a colon or a byte that cannot stand in a header",
            Self::TotpSecret => "totp secret is empty or not base32",
            Self::Empty => "it is empty",
        })
    }
}

steadfast_call::debug_in_one_line!(InvalidSecret);

impl Error for InvalidSecret {}

fn stands_in_a_header(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic())
}

/// Returns `Bearer ` and the parts, marked sensitive so that it is never printed.
fn bearer(parts: &[&str]) -> Option<HeaderValue> {
    let text: Bytes = ["Bearer ", &parts.concat()].concat().into();
    // The first clone of bytes made from a vector allocates their shared count. Do it here, not when the first request
    // goes out.
    let mut value = HeaderValue::from_maybe_shared(text.clone()).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_secret_is_said_without_it() {
        assert_eq!(InvalidSecret::TotpSecret.to_string(), "totp secret is empty or not base32");
    }

    #[test]
    fn the_header_has_two_parts_separated_by_a_colon() {
        let key = ApiKey::new("K3y").unwrap();
        let header = key.header_with(&"t0k.en".into()).unwrap();
        assert_eq!(header.as_bytes(), b"Bearer K3y:t0k.en");
        assert!(header.is_sensitive());
        assert_eq!(key.header().as_bytes(), b"Bearer K3y");
        assert!(key.header().is_sensitive());
    }

    #[test]
    fn what_would_change_the_header_is_refused_without_an_echo() {
        for key in ["", "q9:x", "q9 x", "q9\r\nx: y", "q9ü", "q9\u{0}"] {
            let error = ApiKey::new(key).unwrap_err();
            assert_eq!(error, InvalidSecret::ApiKey, "{key:?}");
            assert!(!error.to_string().contains("q9"));
        }
        let key = ApiKey::new("k").unwrap();
        for token in ["", "a b", "a\n", "é", "a:b", ":"] {
            assert_eq!(key.header_with(&token.into()), Err(InvalidSecret::Token), "{token:?}");
        }
    }
}
