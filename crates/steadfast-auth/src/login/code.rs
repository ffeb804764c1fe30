use std::{fmt, future::Future, time::Duration};

use secrecy::{ExposeSecret, SecretString};
use steadfast_call::BoxError;

use super::LoginFailure;

/// A code that works once: from a message, from a person, or from the redirect of a browser login.
#[derive(Clone)]
pub struct OneTimeCode(SecretString);

impl OneTimeCode {
    /// A code as it was received; surrounding white space is dropped.
    #[must_use]
    pub fn new(code: impl Into<SecretString>) -> Self {
        Self(code.into().expose_secret().trim().into())
    }

    pub(crate) fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for OneTimeCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OneTimeCode([REDACTED])")
    }
}

/// A source of one-time codes: a prompt, a command, a channel, a browser.
///
/// Closures that return such a future are sources.
pub trait CodeSource: Send + Sync + 'static {
    /// Fetches one fresh code. It may wait for a person, up to five minutes.
    ///
    /// An error ends the login without a request; its text must not hold secrets.
    fn code(&self) -> impl Future<Output = Result<OneTimeCode, BoxError>> + Send;
}

impl<F, Fut> CodeSource for F
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<OneTimeCode, BoxError>> + Send,
{
    fn code(&self) -> impl Future<Output = Result<OneTimeCode, BoxError>> + Send {
        self()
    }
}

/// Limits the wait for a person, who may have gone away; the next login must not wait for ever.
const PATIENCE: Duration = Duration::from_secs(300);

/// Asks for a code and waits up to five minutes for it.
pub(crate) async fn ask(source: &impl CodeSource) -> Result<OneTimeCode, LoginFailure> {
    let code = tokio::time::timeout(PATIENCE, source.code()).await;
    code.map_err(|elapsed| LoginFailure::NoCode(elapsed.into()))?.map_err(LoginFailure::NoCode)
}
