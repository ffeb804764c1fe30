//! Holds each request until every rate-limit zone it falls under admits it.
//!
//! The service answers 429 to whoever asks too often (§8), and a 429 costs more than the request: it costs the
//! back-off after it, in which a cancel cannot leave either. This crate keeps the limits on this side, so that the
//! quota is used nearly to the full and no 429 comes back, on lines with any delay, and so that a cancel never
//! waits behind polls.
//!
//! [`RateLimitLayer`] is the tower layer. [`ZoneLimiter`] hands out the same permits without tower, and
//! [`Limiter`] is the pure core of both, for simulations.
//!
//! # Example
//!
//! ```
//! use http::{Request, Response};
//! use steadfast_limit::{BoxError, Zone, ZoneLimiter};
//! use steadfast_spec::{Failure, ext};
//! use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), BoxError> {
//! let limiter = ZoneLimiter::builder()
//!     .preset()
//!     .adjust(Zone::GENERAL, |general| general.headroom(1))
//!     .build()?;
//! let mut service = ServiceBuilder::new()
//!     .layer(limiter.layer())
//!     .service(service_fn(|_: Request<String>| async { Ok::<_, BoxError>(Response::new("placed")) }));
//!
//! // Ten orders leave at once; the eleventh would have to wait for a second and says that it cannot.
//! for n in 0..11 {
//!     let mut order = Request::post("http://example.com/v2/api/oms/place-order").body(String::new())?;
//!     let soon = tokio::time::Instant::now() + std::time::Duration::from_millis(200);
//!     order.extensions_mut().insert(ext::SendBy(soon.into_std()));
//!     match service.ready().await?.call(order).await {
//!         Ok(placed) => assert_eq!(placed.into_body(), "placed"),
//!         Err(error) => {
//!             assert_eq!(n, 10);
//!             assert!(Failure::find(&*error).is_some_and(Failure::is_refusal), "nothing was sent");
//!         }
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # The rule
//!
//! 1. **A slot is spent from the permit until a window after the answer.** When the gateway counted a request is
//!    not known, only that it was after the send and before the answer. If fewer than `N` requests are on their way
//!    or were answered within the last `T`, one more cannot be the `N + 1`st of any stretch of `T` at the gateway,
//!    whatever the line did to them. A limiter that counts from the send is squeezed by every late packet.
//! 2. **Clocks differ.** Periods are held 500 ppm and a millisecond longer than they are.
//! 3. **All zones or none.** A request under two zones takes a slot in both at the same instant, or in neither.
//! 4. **What never left costs nothing**: a request refused, cancelled or failed before it left gives its slots back.
//! 5. **What was lost costs more**: after a reset the slots are held for a second and a window, after a timeout
//!    until the gateway has given up as well. Cancels and verifications are held back for a window only, because
//!    getting out of a position comes before a 429 ([`Builder::strict_critical`] changes that).
//! 6. **Lanes.** A freed slot goes to the highest [`Lane`] that waits, and within a lane to whoever came first.
//!    Priority alone is not enough: polls that nobody contests would spend the minute's quota in 40 seconds. So
//!    the lower lanes leave a few slots of each window alone ([`Ceilings`]), and in windows of ten seconds or more
//!    that have ceilings, normal and bulk requests are spread evenly.
//! 7. **No wait in vain.** A request that could not leave before its deadline, or that finds its lane's queue full,
//!    is refused at once with a [`Refusal`].
//! 8. **A 429 all the same**, from another program on the same token, stops its zone for 1, 2, 4, then 8 seconds, or
//!    for what `Retry-After` says up to a minute. Then one request tries, the foremost, before all others go on. If
//!    it is refused too, the windows that are longer than the pause count as spent, except for cancels and
//!    verifications, which go on trying after each pause.
//!
//! [`Profile`] says how much is assumed of the gateway's way of counting. The preset keeps `place_order`
//! [adaptive](Profile::Adaptive), because bursts matter most there, and the other zones
//! [universal](Profile::Universal).
//!
//! # Order
//!
//! Outside of the layer: everything that may send a request more than once (retry, resend, renewal of the token).
//! Inside: what must be fresh when the request leaves, and the transport. Every physical send takes a permit.
//!
//! # Clone
//!
//! Clones of a layer, its services and its limiter share one state. Two limiters share nothing, so one token should
//! be used through one limiter.
//!
//! # Cancellation
//!
//! Any future may be dropped at any point. A waiter leaves its queues; a permit that it had been granted, or whose
//! request has not been passed on, goes to the next in line at once; after that its slots are held as rule 5 says
//! and end by themselves.
//!
//! # Fairness and wake-ups
//!
//! A slot that becomes free is given to a waiter under the lock, so it cannot be taken by whoever comes next, and
//! only that waiter is woken. Of all that wait for a key, only the foremost keeps a timer for the next slot; when it
//! goes, the next is woken to keep it. The others keep one for their own deadline at most. A future that is held but
//! not polled when it is woken therefore holds up those behind it, as with any fair lock, until some other request
//! of its zone comes or ends.
//!
//! # What it does not do
//!
//! * It cannot see others that use the same token, key or address; it only reacts to their 429s, and reports an
//!   [`Event::ModelMismatch`], which looks the same when the gateway counts in a way that the profile excludes.
//! * It promises nothing for a gateway that counts a request later than its answer, unless [`Quota::settle`] says
//!   by how much.
//! * It does not share quota between processes and writes no file. [`ZoneLimiter::export`] returns what is spent as
//!   data, and [`ZoneLimiter::import`] takes it back after a restart.
//! * It does not move a request from one zone to another, and it does not retry.

mod acquire;
mod builder;
mod ceilings;
mod decision;
mod event;
mod freeze;
mod future;
mod invalid;
mod keys;
mod ladder;
mod layer;
mod ledger;
mod limiter;
mod log;
mod lost;
mod paced;
mod pacer;
mod permit;
mod profile;
mod queue;
mod quota;
mod refusal;
mod rules;
mod service;
mod snapshot;
mod spent;
mod stamps;
mod time;
mod universal;
mod zone_limiter;
mod zones_of;

pub use steadfast_spec::{BoxError, Lane, Scope, Zone, ext::Account};

pub use crate::{
    acquire::Acquire,
    builder::Builder,
    ceilings::{Ceilings, Reserve},
    decision::{Answer, Ask, Decision, Grant, Loss, WaiterId, ZoneId},
    event::Event,
    future::ResponseFuture,
    invalid::InvalidLimiter,
    keys::ScopeKeys,
    layer::RateLimitLayer,
    limiter::Limiter,
    permit::Permit,
    profile::Profile,
    quota::{MINUTE, Quota, SECOND},
    refusal::Refusal,
    service::RateLimit,
    snapshot::{LaneSnapshot, Snapshot, WindowUse, ZoneSnapshot},
    spent::Spent,
    time::Nanos,
    zone_limiter::ZoneLimiter,
    zones_of::{ByRoute, RouteZones, ZonesOf},
};
