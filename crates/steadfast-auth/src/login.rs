mod attempt;
mod browser;
mod code;
mod exchange;
mod failure;
mod fixed;
mod gate;
mod individual;
mod oauth;
mod policy;
mod stored;
mod throttled;
mod totp;
mod unknown_ends;
mod wait;

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
    code::{CodeSource, OneTimeCode},
    failure::{LoginFailure, UnexpectedStatus},
    fixed::Static,
    gate::{Gate, GatePermit, OpenGate},
    individual::{IndividualLogin, LoginFields, Otp, Totp},
    oauth::CodeExchange,
    stored::Stored,
    totp::TotpSecret,
    unknown_ends::UnknownEnds,
    wait::LoginWait,
};
pub(crate) use self::{
    policy::{BETWEEN_LOGINS, LoginPolicy, Next, Refusal},
    throttled::{Throttled, ThrottledLogins},
    wait::OnLoginWait,
};
use crate::store::Identity;

/// Fetches a token.
///
/// One call is one attempt; a login never repeats it. The [`TokenSource`](crate::TokenSource) decides when to call, how
/// often, and when to stop.
///
/// # Cancellation
///
/// Attempts run in a task of their own, which outlives the request that caused them.
pub trait Login: Send + Sync + 'static {
    /// Says whether a person is needed.
    fn mode(&self) -> LoginMode;

    /// Returns the account and credentials of the login. A store is bound to them; `None` binds it to the API key
    /// alone.
    fn identity(&self) -> Option<Identity> {
        None
    }

    /// Makes one attempt. Right before its request leaves it calls [`about_to_send`](Attempt::about_to_send), so that
    /// the attempt counts even if the process ends meanwhile.
    fn attempt(&self, attempt: &Attempt) -> impl Future<Output = Result<Grant, LoginFailure>> + Send;
}

/// Whether a login needs a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoginMode {
    /// No person: it starts whenever a token is needed.
    Unattended,
    /// A person: it starts only on request, see [`TokenSource::login`](crate::TokenSource::login).
    Attended,
    /// No person, and it works once: the token was given.
    Once,
}

/// The result of a successful attempt.
#[derive(Clone)]
#[must_use]
pub struct Grant {
    pub(crate) token: SecretString,
    pub(crate) sent: SystemTime,
    pub(crate) life: Option<Duration>,
}

impl Grant {
    /// Takes a token and the instant *before* the login was sent, from which its life counts.
    pub fn new(token: impl Into<SecretString>, sent: SystemTime) -> Self {
        Self { token: token.into(), sent, life: None }
    }

    /// Sets how long the token is valid; without it, only the service's 401 ends it.
    pub fn valid_for(self, life: Duration) -> Self {
        Self { life: Some(life), ..self }
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant").field("life", &self.life).finish_non_exhaustive()
    }
}

/// [`Login`] as an object, so that a source is not generic over it. A login runs once a day, so the box costs nothing.
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
