mod builder;
mod flight;
mod landing;
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
use steadfast_spec::ext::TokenGeneration;
use tokio::{
    sync::oneshot,
    time::{Instant, MissedTickBehavior},
};

pub use self::builder::TokenSourceBuilder;
use self::stored::Verdict;
pub(crate) use self::{shared::Shared, single_flight::Ended};
use crate::{
    ApiKey, AuthError, Grant, InvalidSecret, Login, Renewal, Static, Status, StoreError, Token,
    life::{AfterRefusal, Tick},
    secret::stands_in,
    sync::Guard,
};

/// The background looks at the clocks this often; a suspended machine is noticed within it.
const BETWEEN_LOOKS: Duration = Duration::from_secs(30);

/// Holds the freshest token of one account and fetches the next: one login for everybody who waits.
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
/// A login runs in a task of its own. Whoever waits for it may be dropped at any point: the login goes on, its
/// one-time code is not wasted, and its token is there for the next request.
///
/// The task runs in the runtime of whoever needed the token first, and ends with it. Requests in other runtimes then wait
/// for the next login, half a minute later, if their deadline leaves time for it; the interrupted one may have left.
#[derive(Clone)]
pub struct TokenSource {
    shared: Arc<Shared>,
}

impl TokenSource {
    /// A source that fetches tokens for `api_key` by `login`.
    pub fn builder(api_key: ApiKey, login: impl Login) -> TokenSourceBuilder {
        TokenSourceBuilder::new(api_key, Some(Arc::new(login)))
    }

    /// A source that holds one given token, from now on, and never fetches another.
    ///
    /// # Errors
    ///
    /// [`InvalidSecret::Token`] if the token cannot stand in a header.
    pub fn fixed(api_key: ApiKey, token: impl Into<SecretString>) -> Result<Self, InvalidSecret> {
        let token = token.into();
        let source = Self::builder(api_key, Static::new(token.clone())).build();
        source.shared.granted(Grant::new(token, source.shared.clock.now()), 0)?;
        Ok(source)
    }

    /// A source without a login: only requests that need no token get through.
    #[must_use]
    pub fn not_configured(api_key: ApiKey) -> Self {
        TokenSourceBuilder::new(api_key, None).build()
    }

    /// Logs in now, or joins the login that is under way; the way to start a login that needs a person.
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

    /// Takes over a newer token, and what is known of failures, from the store. True if there was a newer token.
    ///
    /// It happens by itself before each login, and every 30 s while [`keep_fresh`](TokenSource::keep_fresh) runs.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    pub async fn restore(&self) -> Result<bool, StoreError> {
        self.shared.look().await
    }

    /// Writes into the store that the service accepts the token that is held: for a program that has asked the service by
    /// itself. What passes [`RefreshLayer`](crate::RefreshLayer) is noted in the background.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the record cannot be written.
    pub async fn note_accepted(&self) -> Result<(), StoreError> {
        self.shared.note(Verdict::Accepted).await
    }

    /// Writes into the store that the service refuses the token that is held (401): nobody takes it over from there any
    /// more. This source goes on with it, as do others that hold it already. To be called for a person, who then does
    /// something about it: programs that log in by themselves find out by themselves, and know when to stop.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the record cannot be written.
    pub async fn note_refused(&self) -> Result<(), StoreError> {
        self.shared.note(Verdict::Refused).await
    }

    /// Renews ahead of time as long as any other clone of the source exists; to be spawned once.
    ///
    /// Without it, renewals start with the first request that finds one due.
    pub fn keep_fresh(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        let source = Arc::downgrade(&self.shared);
        async move {
            let mut looks = tokio::time::interval(BETWEEN_LOOKS);
            looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                looks.tick().await;
                let Some(shared) = source.upgrade() else { return };
                // What a login elsewhere has brought, or a person has allowed again.
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

    /// Opens the latch and forgets failures: for somebody who has corrected what was wrong. A token that was never
    /// accepted is dropped too. A shared store learns of it in the background.
    pub fn reset(&self) {
        self.shared.reset();
    }

    /// The source at this moment.
    #[must_use]
    pub fn status(&self) -> Status {
        self.shared.status()
    }

    /// True if the API key or the current token stands in a text, as it is or percent-, base64- or hex-encoded: such a text
    /// must reach no log. One of less than eight characters counts only as it is, and where it is a word of its own, because
    /// short texts are parts of everything.
    #[must_use]
    pub fn is_quoted_in(&self, text: &str) -> bool {
        let quoted = |header: HeaderValue| {
            let credentials = header.to_str().ok().and_then(|header| header.strip_prefix("Bearer "));
            credentials.is_some_and(|parts| parts.splitn(2, ':').any(|part| stands_in(part, text)))
        };
        quoted(self.shared.api_key.header()) || self.token().is_some_and(|token| quoted(token.header()))
    }

    /// The current token. Takes no lock and allocates nothing.
    #[must_use]
    pub fn token(&self) -> Option<Arc<Token>> {
        self.shared.flight.load_full()
    }

    /// Learns the service's time from an answer to a request that left at `sent` and was answered at `answered`, by
    /// this machine's clock. Logins teach it by themselves.
    pub fn observe_date(&self, headers: &HeaderMap, sent: SystemTime, answered: SystemTime) {
        self.shared.observe_date(headers, sent, answered);
    }

    /// Begins a look at the service's clock with a request that leaves now, if one is due.
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

    /// Whether a request may go down now, or what it has to wait for.
    pub(crate) fn admit(&self) -> Admitted {
        self.shared.admit()
    }

    /// What a request does whose login has ended.
    pub(crate) fn after_wait(&self, ended: Ended) -> Admitted {
        match ended {
            Ok(()) => self.admit(),
            Err(_) if self.shared.is_usable() => Admitted::Go,
            Err(_) if self.shared.resumes() => self.admit(),
            Err(error) => Admitted::Refused(error),
        }
    }

    /// When tokens are renewed; `None` where nobody renews them.
    #[must_use]
    pub fn renewal(&self) -> Option<Renewal> {
        (self.shared.login.is_some() && !self.is_given()).then_some(self.shared.renewal)
    }

    /// True if the token was given, and nobody renews it.
    pub(crate) fn is_given(&self) -> bool {
        self.shared.is_given()
    }

    /// True while the next login is waited for, because the last one was interrupted.
    pub(crate) fn resumes(&self) -> bool {
        self.shared.resumes()
    }

    /// True if there is a newer token than `sent`.
    pub(crate) fn is_newer_than(&self, sent: TokenGeneration) -> bool {
        self.peek().as_ref().is_some_and(|token| token.generation() > sent)
    }

    /// The service accepted the token. Only its first acceptance takes a lock.
    pub(crate) fn accepted(&self, generation: TokenGeneration) {
        let token = self.peek();
        if let Some(token) = token.as_ref().filter(|t| t.generation() == generation && !t.has_worked()) {
            token.note_worked();
            self.shared.accepted(generation);
        }
    }

    /// The service answered 401 to a request that was sent with the token.
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

/// A request whose answer tells the service's time.
#[derive(Debug)]
pub(crate) struct TimeSample {
    source: TokenSource,
    sent: SystemTime,
}

impl TimeSample {
    /// The head of the answer came. Only the service itself is asked for the time: not a cache, and nobody who
    /// answers in its place.
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
    /// No login may start before `until`, but one that somebody asks for may end before.
    Rest {
        until: Instant,
        ended: oneshot::Receiver<Ended>,
        error: AuthError,
    },
    Refused(AuthError),
}

/// What follows a 401.
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
