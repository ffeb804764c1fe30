mod attempt;
mod browser;
mod exchange;
mod failure;
mod fixed;
mod individual;
mod oauth;
mod stored;

use std::{
    fmt,
    future::Future,
    pin::Pin,
    time::{Duration, SystemTime},
};

use secrecy::SecretString;

pub use self::{
    attempt::Attempt,
    browser::{BrowserLogin, InvalidRedirect, LoginRefused, NoPaste},
    failure::{LoginFailure, UnexpectedStatus},
    fixed::Static,
    individual::{IndividualLogin, LoginFields, Otp, Totp},
    oauth::CodeExchange,
    stored::Stored,
};
use crate::Identity;

/// Fetches a token.
///
/// One call is one attempt. When to call, how often, and when never again is decided by the
/// [`TokenSource`](crate::TokenSource): a login repeats nothing by itself.
///
/// # Cancellation
///
/// Attempts run in a task of their own, which outlives the request that caused them.
pub trait Login: Send + Sync + 'static {
    /// Who is needed for it.
    fn mode(&self) -> LoginMode;

    /// Whose login it is, and by which credentials. A store is bound to it; `None` binds it to the API key alone.
    fn identity(&self) -> Option<Identity> {
        None
    }

    /// Makes one attempt. Right before its request leaves it calls
    /// [`about_to_send`](Attempt::about_to_send), so that the attempt counts even if the process ends meanwhile.
    fn attempt(&self, attempt: &Attempt) -> impl Future<Output = Result<Grant, LoginFailure>> + Send;
}

/// Who is needed for a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoginMode {
    /// Nobody: it starts whenever a token is needed.
    Unattended,
    /// A person: it starts only when asked for, see [`TokenSource::login`](crate::TokenSource::login).
    Attended,
    /// Nobody, and it works once: the token was given.
    Once,
}

/// What a successful attempt brought.
#[derive(Clone)]
#[must_use]
pub struct Grant {
    pub(crate) token: SecretString,
    pub(crate) sent: SystemTime,
    pub(crate) life: Option<Duration>,
}

impl Grant {
    /// A token, and the instant *before* the login was sent, from which its life counts.
    pub fn new(token: impl Into<SecretString>, sent: SystemTime) -> Self {
        Self { token: token.into(), sent, life: None }
    }

    /// How long the token is valid; without it, only the service's 401 ends it.
    pub fn valid_for(self, life: Duration) -> Self {
        Self { life: Some(life), ..self }
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant").field("life", &self.life).finish_non_exhaustive()
    }
}

/// [`Login`] as an object: a source is not generic over its login. It runs once a day, so a box costs nothing.
pub(crate) trait AnyLogin: Send + Sync {
    fn mode(&self) -> LoginMode;
    fn identity(&self) -> Option<Identity>;
    fn attempt<'a>(&'a self, attempt: &'a Attempt) -> AttemptFuture<'a>;
}

type AttemptFuture<'a> = Pin<Box<dyn Future<Output = Result<Grant, LoginFailure>> + Send + 'a>>;

impl<L: Login> AnyLogin for L {
    fn mode(&self) -> LoginMode {
        Login::mode(self)
    }

    fn identity(&self) -> Option<Identity> {
        Login::identity(self)
    }

    fn attempt<'a>(&'a self, attempt: &'a Attempt) -> AttemptFuture<'a> {
        Box::pin(Login::attempt(self, attempt))
    }
}
