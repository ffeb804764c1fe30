//! Puts the freshest token on every request and renews it once for all.
//!
//! A token of this service lives 24 hours and dies without a word; there is no refresh token, so each renewal is a full
//! login with a one-time code; one bare 401 stands for at least six causes; a user has ten sessions; and wrong logins
//! lock accounts. Two layers and a source deal with that:
//!
//! * [`AuthHeaderLayer`] reads the current token and attaches it, once for each send;
//! * [`RefreshLayer`] waits until there is a usable token, and answers a 401 with one shared renewal;
//! * [`TokenSource`] holds the token, and makes one [`Login`] for everybody who waits, with a budget that no restart
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
//! # fn stack<L, S>(leaf: L, http: S) -> Result<(), Box<dyn std::error::Error>>
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
//! // `leaf` sends a login as it is: no Refresh, no AuthHeader.
//! let login = IndividualLogin::totp(leaf, &base, api_key.clone(), credentials, secret)?;
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
//! Tokens age by the clock that runs on in a suspended machine ([`BootClock`](steadfast_spec::BootClock)), and from the instant
//! *before* the login was sent: a wall clock that is set ends none, and keeps none alive. The wall clock
//! ([`WallClock`](steadfast_spec::WallClock)) tells where there is no such clock, how old a stored token is when it is taken over,
//! and, where the service has refused a token, whether that was because of its age. Times are kept in the service's time, which
//! [`SkewEstimator`] learns from `Date` headers, and so are the time steps of one-time codes. Pauses and limits are
//! monotonic. The offset is not stored: a clock is most likely to be set where a process starts, and an offset of before
//! would then spend one of two logins on a wrong code. Any success of a business call tells it anew, once a minute.
//!
//! # Restarts
//!
//! A [`TokenStore`] keeps the token and every reason to be careful with the next login: in memory unless one is given,
//! in a [`FileStore`] for all processes of a machine. Whoever logs in holds its lease during the whole login, and the
//! others take the token over. In a file an attempt is counted before it leaves, so that neither `kill -9` nor a supervisor that
//! restarts for ever makes more than the budget's two with one set of credentials, and no number of programs more than three for
//! an account without a success between them. A success gives back the account's three and its credentials' two, a reset all;
//! changed credentials have two of their own, as far as the account has any left. Once a login was refused, one whose end
//! nobody knows counts like the next refusal.
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
mod code;
mod destination;
mod docket;
mod doubt;
mod error;
mod gate;
mod header;
mod life;
mod login;
mod policy;
mod refresh;
mod renewal;
mod secret;
mod skew;
mod source;
mod status;
mod store;
mod sync;
mod token;
mod totp;

/// The response futures of the layers, to be named.
pub mod future {
    pub use crate::{header::ResponseFuture as AuthHeaderFuture, refresh::ResponseFuture as RefreshFuture};
}

pub use crate::{
    cause::Cause,
    code::{CodeSource, OneTimeCode},
    destination::RefusedHeader,
    doubt::UnknownEnds,
    error::{AuthError, AuthErrorKind, Unrenewed},
    gate::{Gate, GatePermit, OpenGate},
    header::{AuthHeader, AuthHeaderLayer, CallersHeader},
    login::{
        Attempt, BrowserLogin, CodeExchange, Grant, IndividualLogin, InvalidRedirect, Login, LoginFailure,
        LoginFields, LoginMode, LoginRefused, NoPaste, Otp, Static, Stored, Totp, UnexpectedStatus,
    },
    refresh::{Refresh, RefreshLayer},
    renewal::{DailyAt, Renewal},
    secret::{ApiKey, Credentials, InvalidSecret},
    skew::SkewEstimator,
    source::{TokenSource, TokenSourceBuilder},
    status::{HumanNeeded, Status, TokenState},
    store::{
        FileLease, FileStore, Identity, MemoryLease, MemoryStore, Record, StoreError, StoreLease, Summary,
        TokenStore,
    },
    token::Token,
    totp::TotpSecret,
};
