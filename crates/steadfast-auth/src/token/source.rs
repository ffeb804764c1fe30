mod builder;
mod flight;
mod landing;
mod settings;
mod shared;
mod single_flight;
mod stored;

use std::{
    fmt,
    future::Future,
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::{HeaderMap, HeaderValue, Response, header::AGE};
use secrecy::SecretString;
use steadfast_call::ext::TokenGeneration;
use tokio::{
    sync::oneshot,
    time::{Instant, MissedTickBehavior},
};

pub use self::builder::TokenSourceBuilder;
use self::stored::Verdict;
pub(crate) use self::{shared::Shared, single_flight::Ended};
use super::{
    Renewal, Status, Token,
    state::{AfterRefusal, Tick},
};
use crate::{
    error::AuthError,
    login::{Login, Static},
    secret::{ApiKey, InvalidSecret, secret_places},
    store::StoreError,
    sync::Guard,
};

/// How often the background looks at the clocks; a suspension of the machine is noticed within this time.
const BETWEEN_LOOKS: Duration = Duration::from_secs(30);

/// Holds the freshest token of one account and fetches the next: one login for all requests that wait.
///
/// [`AuthHeaderLayer`](crate::AuthHeaderLayer) reads the token from it and [`RefreshLayer`](crate::RefreshLayer) keeps
/// it usable; both are made from the same source.
///
/// # Clone
///
/// Clones are the same source.
///
/// # Cancellation
///
/// A login runs in a task of its own. A caller that waits for it may be dropped at any point: the login goes on, its
/// one-time code is not wasted, and its token is there for the next request.
///
/// The task runs in the runtime of the caller that first needed the token, and ends with that runtime. Requests in
/// other runtimes then wait for the next login, half a minute later, if their deadline allows; the interrupted one may
/// have left.
#[derive(Clone)]
pub struct TokenSource {
    shared: Arc<Shared>,
}

impl TokenSource {
    /// Builds a source that fetches tokens for `api_key` by `login`.
    pub fn builder(api_key: ApiKey, login: impl Login) -> TokenSourceBuilder {
        TokenSourceBuilder::new(api_key, Some(Arc::new(login)))
    }

    /// Creates a source that holds one given token and never fetches another.
    ///
    /// # Errors
    ///
    /// [`InvalidSecret::Token`] if the token cannot stand in a header.
    pub fn fixed(api_key: ApiKey, token: impl Into<SecretString>) -> Result<Self, InvalidSecret> {
        let token = token.into();
        let source = Self::builder(api_key, Static::new(token.clone())).build();
        source.shared.given(token)?;
        Ok(source)
    }

    /// Creates a source without a login: only requests that need no token get through.
    #[must_use]
    pub fn not_configured(api_key: ApiKey) -> Self {
        TokenSourceBuilder::new(api_key, None).build()
    }

    /// Logs in now, or joins the current login. This starts a login that needs a person.
    ///
    /// # Errors
    ///
    /// [`AuthError`] if the login failed, is latched or is held back after failures.
    ///
    /// # Cancellation
    ///
    /// The login goes on if the future is dropped.
    pub async fn login(&self) -> Result<(), AuthError> {
        let ended = self.shared.ask()?;
        ended.await.unwrap_or_else(|_| Err(landing::interrupted()))
    }

    /// Takes over a newer token and the known failures from the store. True if there was a newer token.
    ///
    /// This also happens before each login, and every 30 s while [`keep_fresh`](TokenSource::keep_fresh) runs.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    pub async fn restore(&self) -> Result<bool, StoreError> {
        self.shared.look().await
    }

    /// Writes into the store that the service accepts the held token. For programs that have asked the service on their
    /// own; requests through [`RefreshLayer`](crate::RefreshLayer) are noted in the background.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the record cannot be written.
    pub async fn note_accepted(&self) -> Result<(), StoreError> {
        self.shared.note(Verdict::Accepted).await
    }

    /// Writes into the store that the service refuses the held token (401), so that no process takes it over any more.
    /// This source keeps using it, as do others that hold it already. Call this on behalf of a person who will act on
    /// it. Programs that log in by themselves do not need it.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the record cannot be written.
    pub async fn note_refused(&self) -> Result<(), StoreError> {
        self.shared.note(Verdict::Refused).await
    }

    /// Renews tokens ahead of time, as long as another clone of the source exists. Spawn it once.
    ///
    /// Without it, a renewal starts with the first request after it is due.
    pub fn keep_fresh(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        let source = Arc::downgrade(&self.shared);
        async move {
            let mut looks = tokio::time::interval(BETWEEN_LOOKS);
            looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                looks.tick().await;
                let Some(shared) = source.upgrade() else { return };
                // Take over what a login elsewhere has brought, or a reset by a person.
                if let Err(error) = shared.look().await {
                    tracing::warn!(error = %error, "token store cannot be read");
                }
                match shared.tick() {
                    Tick::Idle => {}
                    Tick::Renew => shared.launch(),
                    Tick::AskHuman => shared.ask_human(),
                }
            }
        }
    }

    /// Resets the latch and forgets failures, after a person has corrected the mistake. A token that was never accepted
    /// is dropped too if its refusals have opened the breaker. A shared store is told in the background.
    pub fn reset(&self) {
        self.shared.reset();
    }

    /// Returns the current status.
    #[must_use]
    pub fn status(&self) -> Status {
        self.shared.status()
    }

    /// Returns true if `text` shows the API key or the current token, or enough of it ([`secret_places`]). Such a text
    /// must not be logged.
    #[must_use]
    pub fn is_quoted_in(&self, text: &str) -> bool {
        !secret_places(text, &self.secrets()).is_empty()
    }

    /// Returns the API key and the current token, for a program that keeps them out of its own output.
    #[must_use]
    pub fn secrets(&self) -> Vec<SecretString> {
        let headers = [Some(self.shared.api_key.header()), self.token().map(|token| token.header())];
        let credentials = |header: HeaderValue| {
            let parts = header.to_str().ok()?.strip_prefix("Bearer ")?.splitn(2, ':');
            Some(parts.map(SecretString::from).collect::<Vec<_>>())
        };
        headers.into_iter().flatten().filter_map(credentials).flatten().collect()
    }

    /// Returns the current token. Takes no lock and allocates nothing.
    #[must_use]
    pub fn token(&self) -> Option<Arc<Token>> {
        self.shared.flight.load_full()
    }

    /// Learns the service's time from an answer to a request that left at `sent` and was answered at `answered`, by
    /// this machine's clock. Logins do this by themselves.
    pub fn observe_date(&self, headers: &HeaderMap, sent: SystemTime, answered: SystemTime) {
        self.shared.observe_date(headers, sent, answered);
    }

    /// Starts a sample of the service's clock with a request that leaves now, if one is due.
    pub(crate) fn sample(&self) -> Option<TimeSample> {
        let sent = self.shared.time_to_sample()?;
        Some(TimeSample { source: self.clone(), sent })
    }

    pub(crate) fn peek(&self) -> Guard<Option<Arc<Token>>> {
        self.shared.flight.load()
    }

    pub(crate) fn api_key_header(&self) -> HeaderValue {
        self.shared.api_key.header()
    }

    /// Returns whether a request may be passed down now, or what it has to wait for.
    pub(crate) fn admit(&self) -> Admitted {
        self.shared.admit()
    }

    /// True if there is a token whose time is not over, in doubt or not.
    pub(crate) fn has_unexpired(&self) -> bool {
        self.shared.has_unexpired()
    }

    /// Decides about a request whose login has ended.
    pub(crate) fn after_wait(&self, ended: Ended) -> Admitted {
        match ended {
            Ok(()) => self.admit(),
            Err(_) if self.shared.is_usable() => Admitted::Go,
            Err(_) if self.shared.resumes() => self.admit(),
            Err(error) => Admitted::Refused(error),
        }
    }

    /// Returns the renewal settings; `None` if tokens are not renewed.
    #[must_use]
    pub fn renewal(&self) -> Option<Renewal> {
        (self.shared.login.is_some() && !self.is_given()).then_some(self.shared.renewal)
    }

    /// True if the token was given, so it is never renewed.
    pub(crate) fn is_given(&self) -> bool {
        self.shared.is_given()
    }

    /// True while the next login is due after an interrupted one.
    pub(crate) fn resumes(&self) -> bool {
        self.shared.resumes()
    }

    /// True if there is a newer token than `sent`.
    pub(crate) fn is_newer_than(&self, sent: TokenGeneration) -> bool {
        self.peek().as_ref().is_some_and(|token| token.generation() > sent)
    }

    /// Notes that the service accepted the token. Only the first acceptance, and the first after a 401, takes a lock.
    pub(crate) fn accepted(&self, generation: TokenGeneration) {
        let token = self.peek();
        if let Some(token) =
            token.as_ref().filter(|t| t.generation() == generation && (!t.has_worked() || t.is_denied()))
        {
            token.note_worked();
            self.shared.accepted(generation);
        }
    }

    /// Decides what follows a 401 to a request that was sent with the token.
    pub(crate) fn refused(&self, generation: TokenGeneration, resent: bool) -> Refused {
        let (decision, ended, error) = self.shared.refused(generation, resent);
        match (decision, ended) {
            (AfterRefusal::Resend, _) => Refused::Resend,
            (AfterRefusal::ResendAt(at), _) => Refused::ResendAt(self.shared.instant(at)),
            (AfterRefusal::Join { .. }, Some(ended)) => Refused::Join(ended),
            (AfterRefusal::Ask, _) => Refused::Ask,
            (AfterRefusal::Join { .. } | AfterRefusal::Surface, _) => Refused::Surface(error),
        }
    }
}

/// A request whose answer is used as a sample of the service's time.
#[derive(Debug)]
pub(crate) struct TimeSample {
    source: TokenSource,
    sent: SystemTime,
}

impl TimeSample {
    /// Learns from the head of the answer. Only an answer of the service itself counts: not a cached one, and no error
    /// that another machine may have sent.
    pub(crate) fn end<B>(self, response: &Response<B>) {
        if response.status().is_success() && !response.headers().contains_key(AGE) {
            let answered = self.source.shared.clock.now();
            self.source.observe_date(response.headers(), self.sent, answered);
        }
    }
}

/// The answer to a request that asks for a usable token.
#[derive(Debug)]
pub(crate) enum Admitted {
    Go,
    Wait(oneshot::Receiver<Ended>),
    /// No login starts by itself before `until`; one that is asked for may end earlier.
    Rest {
        until: Instant,
        ended: oneshot::Receiver<Ended>,
        error: AuthError,
    },
    Refused(AuthError),
}

/// The action that follows a 401.
#[derive(Debug)]
pub(crate) enum Refused {
    Resend,
    ResendAt(Instant),
    Join(oneshot::Receiver<Ended>),
    Ask,
    Surface(Option<AuthError>),
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSource").field("status", &self.status()).finish()
    }
}
