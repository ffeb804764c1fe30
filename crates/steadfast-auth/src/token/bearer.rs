use std::{fmt, sync::atomic::Ordering};

use http::HeaderValue;
use secrecy::{ExposeSecret, SecretString};
use steadfast_call::ext::TokenGeneration;

use crate::sync::AtomicBool;

/// An access token, with its request header made once for each login.
///
/// The token appears neither in `Debug` nor anywhere else.
pub struct Token {
    generation: TokenGeneration,
    secret: SecretString,
    header: HeaderValue,
    worked: AtomicBool,
    withdrawn: AtomicBool,
    denied: AtomicBool,
}

impl Token {
    pub(crate) fn new(secret: SecretString, header: HeaderValue, generation: TokenGeneration) -> Self {
        let [worked, withdrawn, denied] = [(); 3].map(|()| AtomicBool::new(false));
        Self { generation, secret, header, worked, withdrawn, denied }
    }

    /// Returns the token's generation, which grows by one with each new token.
    #[must_use]
    pub fn generation(&self) -> TokenGeneration {
        self.generation
    }

    /// True once the service has accepted the token.
    #[must_use]
    pub fn has_worked(&self) -> bool {
        self.worked.load(Ordering::Relaxed)
    }

    /// True while nothing may be sent with the token: it was refused or has expired, and a login for its successor is
    /// on its way.
    #[must_use]
    pub fn is_withdrawn(&self) -> bool {
        self.withdrawn.load(Ordering::Acquire)
    }

    /// Returns `Bearer <api_key>:<access_token>`; a clone shares the bytes.
    pub(crate) fn header(&self) -> HeaderValue {
        self.header.clone()
    }

    pub(crate) fn is(&self, secret: &SecretString) -> bool {
        self.secret.expose_secret() == secret.expose_secret()
    }

    pub(crate) fn note_worked(&self) {
        self.worked.store(true, Ordering::Relaxed);
    }

    /// True if the service has refused the token since it accepted it last.
    pub(crate) fn is_denied(&self) -> bool {
        self.denied.load(Ordering::Relaxed)
    }

    pub(crate) fn set_denied(&self, denied: bool) {
        self.denied.store(denied, Ordering::Relaxed);
    }

    pub(crate) fn set_withdrawn(&self, withdrawn: bool) {
        self.withdrawn.store(withdrawn, Ordering::Release);
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("generation", &self.generation.0)
            .field("worked", &self.has_worked())
            .field("withdrawn", &self.is_withdrawn())
            .finish_non_exhaustive()
    }
}
