//! Puts the freshest token on every request, and renews it once for all requests that wait.
//!
//! A token of this service lives 24 hours and ends without notice. There is no refresh token, so each renewal is a full
//! login with a one-time code. One bare 401 stands for at least six causes, a user has ten sessions, and wrong logins
//! lock accounts. Two layers and a source deal with that:
//!
//! * [`AuthHeaderLayer`] reads the current token and attaches it, once for each send;
//! * [`RefreshLayer`] waits until there is a usable token, and answers a 401 with one shared renewal;
//! * [`TokenSource`] holds the token, and makes one [`Login`] for all requests that wait, with a budget that no restart
//!   of a request can overdraw.
//!
//! # Example
//!
//! ```no_run
//! use bytes::Bytes;
//! use http::{Request, Response};
//! use http_body_util::Full;
//! use steadfast_auth::{
//!     ApiKey, AuthHeaderLayer, Credentials, IndividualLogin, RefreshLayer, TokenSource, TotpSecret,
//! };
//! use steadfast_spec::BaseUrl;
//! use tower::{Service, ServiceBuilder};
//!
//! # fn stack<L, S>(transport: L, http: S) -> Result<(), Box<dyn std::error::Error>>
//! # where
//! #     L: Service<Request<Full<Bytes>>, Response = Response<Full<Bytes>>> + Clone + Send + 'static,
//! #     L::Future: Send,
//! #     L::Error: Into<tower::BoxError>,
//! # {
//! let base = BaseUrl::new("https://api.example/tradeapi/v2")?;
//! let api_key = ApiKey::new(std::env::var("API_KEY")?)?;
//! let credentials = Credentials::new(std::env::var("CLIENT_ID")?, std::env::var("PASSWORD")?);
//! let secret = TotpSecret::new(std::env::var("TOTP_SECRET")?)?;
//!
//! // `transport` sends a login as it is: no Refresh, no AuthHeader.
//! let login = IndividualLogin::totp(transport, &base, api_key.clone(), credentials, secret)?;
//! let source = TokenSource::builder(api_key, login).build();
//! tokio::spawn(source.keep_fresh());
//!
//! let client = ServiceBuilder::new()
//!     .layer(RefreshLayer::new(source.clone()))
//!     .layer(AuthHeaderLayer::new(source).only_to(&base))
//!     .service(http);
//! # drop(client);
//! # Ok(())
//! # }
//! ```
//!
//! # Time
//!
//! Tokens age by the boot clock, which runs on in a suspended machine ([`BootClock`](steadfast_call::BootClock)), from
//! the instant *before* the login was sent. So setting the wall clock neither ends a token nor keeps one alive. The
//! wall clock ([`WallClock`](steadfast_call::WallClock)) is used where there is no boot clock, for the age of a token
//! taken over from a store, and to decide whether a refused token was too old. Token times and the time steps of
//! one-time codes are in the service's time, which [`SkewEstimator`] learns from `Date` headers. Pauses and limits are
//! monotonic. The clock offset is not stored: clocks are most often set around the start of a process, and an outdated
//! offset would spend one of two logins on a wrong code. Successful business calls give a new sample once a minute.
//!
//! # Restarts
//!
//! A [`TokenStore`] keeps the token and everything that limits the next login: in memory by default, in a [`FileStore`]
//! for all processes of a machine. A process that logs in holds the store's lease during the whole login; the others
//! take the token over. In a file, an attempt is counted before it leaves. So neither `kill -9` nor a supervisor that
//! restarts for ever makes more wrong logins than the budget: two with one set of credentials, and three for an account
//! over all programs, between successes. A success restores the account's three and its credentials' two; a reset
//! restores all. Changed credentials have two of their own, as far as the account has any left. After a refused login,
//! a login with an unknown end counts as the next refusal.
//!
//! # Secrets
//!
//! Keys, passwords, codes and tokens live in types whose `Debug` shows nothing, and header values are marked sensitive.
//! No error, span or event of this crate holds one.
//!
//! # What it does not do
//!
//! It opens no browser, and it revokes no session: the service shows no way to end one. Its [`FileStore`] trusts the
//! locks of a local file system and guards against other users of the machine, not against programs of the same user.

mod cause;
mod destination;
mod error;
mod header;
mod login;
mod refresh;
mod secret;
mod skew;
mod store;
mod sync;
mod token;

/// The response futures of the layers, so that they can be named.
pub mod future {
    pub use crate::{header::ResponseFuture as AuthHeaderFuture, refresh::ResponseFuture as RefreshFuture};
}

pub use crate::{
    cause::Cause,
    destination::RefusedHeader,
    error::{AuthError, AuthErrorKind, Unrenewed},
    header::{AuthHeader, AuthHeaderLayer, CallersHeader},
    login::{
        Attempt, BrowserLogin, CodeExchange, CodeSource, Gate, GatePermit, Grant, IndividualLogin,
        InvalidRedirect, Login, LoginFailure, LoginFields, LoginMode, LoginRefused, LoginWait, NoPaste,
        OneTimeCode, OpenGate, Otp, Static, Stored, Totp, TotpSecret, UnexpectedStatus, UnknownEnds,
    },
    refresh::{Refresh, RefreshLayer},
    secret::{ApiKey, Credentials, Found, InvalidSecret, SecretFinder, secret_places, shows_secret},
    skew::SkewEstimator,
    store::{
        FileLease, FileStore, Identity, MemoryLease, MemoryStore, Record, StoreError, StoreLease, Summary,
        TokenStore,
    },
    token::{DailyAt, HumanNeeded, Renewal, Status, Token, TokenPhase, TokenSource, TokenSourceBuilder},
};
