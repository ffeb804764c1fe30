//! The layers of steadfast around a hyper client, and the typed client of the trading REST service.
//!
//! Programs that trade through the service's REST interface depend on this crate. It attaches the right `Authorization`
//! header, uses every zone's quota without exceeding it, retries only where that is safe, places no order twice after
//! an answer that proves nothing, and renews the token.
//!
//! - [`Client`] is the typed client.
//! - [`Stack`] puts all layers around a transport of your own; it is a tower layer itself.
//! - The layers themselves are in [`limit`], [`auth`], [`retry`] and [`dedup`], each useful alone in any tower stack.
//!
//! # Example
//!
//! ```no_run
//! use steadfast::{
//!     Access, Client, ErrorKind, OrderRequest, OrderType, Paths, Product, Side, TotpCredentials, Validity,
//! };
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let access = Access::totp(TotpCredentials {
//!     api_key: "apikey".into(),
//!     client_id: "client-id".into(),
//!     password: "password".into(),
//!     totp_secret: "BASE32SECRET".into(),
//! })?;
//! // Without paths no cancel and no change can leave.
//! let builder = Client::builder("https://api.example/tradeapi/v2".parse()?, access).paths(Paths::public());
//! let client = builder.build()?;
//!
//! let order = OrderRequest::builder()
//!     .sym_id("EQT_INFY_EQ_NSE".parse()?)
//!     .side(Side::Buy)
//!     .qty(10)
//!     .order_type(OrderType::Limit)
//!     .limit_price("1500.05")
//!     .product(Product::Delivery)
//!     .validity(Validity::Day)
//!     .build()?;
//! match client.place_order(&order).await {
//!     Ok(placed) => println!("order {}", placed.order_id),
//!     Err(error) if matches!(error.kind(), ErrorKind::InDoubt | ErrorKind::NotObserved) => {
//!         println!("look before you place again: {error}")
//!     }
//!     Err(error) => println!("not placed: {error}"),
//! }
//! client.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Order
//!
//! ```text
//! caller
//!   CallSpan        one span with the call's outcome
//!   Deadline        until when a call may wait, and until when it may leave
//!   Route           endpoint, zones, lane, class; refuses invalid requests
//!   Dedup           looks in the order list for an order without a clear answer, before it is sent again
//!   Retry           repeats what was not executed, or only reads: after 1, 2, 4, 8 s
//!   Refresh         waits for a usable token; one shared login on 401
//!   ------------------ below: once for every request on the wire ------------------
//!   RateLimit       waits for all zones at once; a cancel never waits behind polls
//!   AuthHeader      Authorization: Bearer <api_key>:<access_token>
//!   SendGuard       the last word on whether an order leaves
//!   Classify        what the answer proves
//!   AttemptTimeout  ends one send that takes too long
//!   Transport       hyper
//! ```
//!
//! Layers that can send more than once stand outside; what must hold for every send stands inside. [`Stack::describe`]
//! and [`Client::describe`] return the settings of each layer. Where layers are put together by hand, a debug build
//! panics at the first request that passes two of them in the wrong order ([`Place`](ext::Place)).
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `metrics` | `metrics`: durations, rates and gauges through the `metrics` facade, and `Client::record_metrics` |
//! | `redis` | `redis`: limits, token and orders shared with other processes of the account, through Redis or Valkey; `ClientBuilder::shared`, `Access::shared_store`, `ClientBuilder::shared_orders` |
//! | `reqwest` | `ReqwestTransport`: the stack over a client of `reqwest` 0.13; `ZoneLimiter::send`: the limiter alone |
//!
//! Pages to read: [adopting one layer at a time](guide::adopting), [every setting and its default](guide::defaults), and
//! [what the specification does not say](guide::unspecified).
//!
//! # What it does not do
//!
//! Without a [journal](ClientBuilder::journal) orders are not kept on disk: look by hand for those in doubt when a
//! process died. Without a [store](Access::store) each restart logs in again and counts wrong logins from zero. It has
//! no WebSocket client.

/// Makes `Debug` of errors read like `Display`, one line with all causes, because `main` shows an error by its `Debug`.
macro_rules! reads_like_display {
    ($($error:ty),+ $(,)?) => {
        $(impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        })+
    };
}

mod access;
mod client;
mod description;
mod error;
mod gate;
pub mod guide;
mod invalid_client;
mod layers;
#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(not(feature = "metrics"))]
#[path = "metrics/off.rs"]
mod metrics;
mod stack;
mod transport;

pub use steadfast_auth as auth;
pub use steadfast_call as call;
pub use steadfast_call::{BoxError, Outcome, ext};
pub use steadfast_dedup as dedup;
pub use steadfast_limit as limit;
#[cfg(feature = "redis")]
pub use steadfast_redis as redis;
pub use steadfast_retry as retry;
pub use steadfast_spec::{
    self as spec, BaseUrl, Decimal, Operation, OrderChange, OrderRecord, OrderRequest, OrderType, Paths,
    Product, Side, SymId, Validity,
};

#[cfg(feature = "reqwest")]
pub use crate::transport::{ReqwestFuture, ReqwestTransport};
pub use crate::{
    access::{Access, InvalidAccess, TotpCredentials},
    client::{
        Body, BrokenBody, Cancellation, Client, ClientBuilder, ClientService, MissedEvents, Placed, Record,
        Records,
    },
    description::{Description, LayerDescription, Setting},
    error::{Error, ErrorKind},
    gate::{LimiterGate, LoginPermit},
    invalid_client::InvalidClient,
    layers::{deadline, route, span},
    stack::{BoxedStack, RequestBody, ResponseBody, Stack},
    transport::{
        Connecting, Connector, HostBody, HostTransport, HyperFuture, HyperTransport, InvalidCertificates,
        InvalidProxy, Line, Proxy, StampedBody, TlsUnavailable, Transport, Unreachable,
    },
};

/// The README's examples are tests of this crate.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
