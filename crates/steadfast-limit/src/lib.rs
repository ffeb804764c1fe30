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
//! 5. **What was lost costs more**: if the connection ended abortively, the slots are held for a second and a window
//!    from that instant. If nobody promises that, for [two minutes](Builder::arrives_within) and a window, because an
//!    operating system goes on sending what a closed connection had still to send; so say it where it is
//!    [true](RateLimitLayer::ends_dropped_calls). Cancels and verifications are held back for a window only, and by a
//!    request that has no answer yet for three seconds and a window: getting out of a position comes before a 429, above
//!    all at a gateway that hangs ([`Builder::strict_critical`] changes that). What left and was
//!    [not processed](steadfast_spec::Fate::Unprocessed) may have been counted, so it is held as after a reset.
//! 6. **Lanes.** A freed slot goes to the highest [`Lane`] that waits, and within a lane to whoever came first.
//!    Priority alone is not enough: polls that nobody contests would spend the minute's quota in 40 seconds. So
//!    the lower lanes leave a few slots of each window alone ([`Ceilings`]), and in windows of ten seconds or more
//!    that have ceilings, verifications, normal and bulk requests are spread evenly.
//! 7. **No wait in vain.** A request that could not leave before its deadline, or that finds its lane's queue full,
//!    is refused at once with a [`Refusal`].
//! 8. **A 429 all the same**, from another program on the same token, stops its zone for 1, 2, 4, then 8 seconds, or
//!    for what `Retry-After` says up to a minute. Then one request tries, the foremost, before all others go on. If
//!    it is refused too, the windows that are longer than the pause count as spent, except for cancels and
//!    verifications, which go on trying after each pause. What it learns from a 429 that its own log does not explain:
//!    see [`Profile`].
//!
//! Why this is safe, with numbers and without formulas, is told in [`explained`].
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
//! # Restarts
//!
//! The gateway's windows outlive a program, and one that starts with empty windows is refused for up to a minute.
//! [`ColdStart`] says what a limiter takes for spent when it starts, and keeps the journal from which the next one
//! knows better; a journal that could not be written makes the next start careful. Nothing waits for the disk, and a cancel waits for nothing that is only supposed to be spent.
//!
//! # Whom a zone counts together
//!
//! Every count belongs to one server: its host and port, however they are spelt. Beyond that a zone counts, by its
//! [`Scope`], the local address ([`RateLimitLayer::local_address`]), the API key ([`ApiKeyName`]), or the token. A
//! token's count goes by the [`Account`], so that a renewed token keeps its windows until [`ZoneLimiter::reset`] says
//! that they are new. Names and addresses are hashed under a key of the limiter's own, and no secret is one of them.
//!
//! # Fairness and wake-ups
//!
//! A slot that becomes free is given to a waiter under the lock, so it cannot be taken by whoever comes next, and
//! only that waiter is woken. Of all that wait for a key, the foremost keeps a timer for the next slot, and one other
//! beside it; when one of them goes, the next is woken to keep it. The others look twice a second.
//!
//! **A future that is kept and not polled** (an idle branch of a `select!`, a stream whose consumer is busy) holds
//! nobody up for long. A slot that it does not collect within a second, or by its deadline, goes to the next. After
//! half of that second all who wait behind it are woken to show that they are there, and those who do not leave the
//! queues, too. A call that was sent and then left is woken as well when others wait; if nobody polls it for half a
//! second more, its answer is taken for there, and its slots age from then on. So any number of such futures costs others
//! one second and a window at most. (An answer that is not there yet, to a call that nobody polls, is counted too early;
//! that can cost a 429 and nothing else. A [`Permit`] taken by hand is never taken back.) Polled again, a future has its old place:
//! at the head of its lane, before all who came later.
//!
//! # What it does not do
//!
//! * It cannot see others that use the same token, key or address; it only reacts to their 429s, and reports an
//!   [`Event::ModelMismatch`], which looks the same when the gateway counts in a way that the profile excludes.
//! * It promises nothing for a gateway that counts a request later than its answer, unless [`Quota::settle`] says
//!   by how much.
//! * It does not share quota between processes. One process hands on to the next what is spent, through a file
//!   ([`ColdStart::Journal`]) or as data ([`ZoneLimiter::export`]).
//! * It moves a route from one zone to another only where [`Builder::demote`] says so, and it does not retry.
//! * It counts requests. What is held rather than spent, such as connections, is no zone of it.

mod acquire;
mod builder;
mod caution;
mod ceilings;
mod cold_start;
mod configured;
mod decision;
mod demotion;
mod event;
pub mod explained;
mod freeze;
mod future;
mod hand_off;
mod in_flight;
mod invalid;
mod journal;
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
mod start;
mod sync;
mod time;
mod universal;
mod zone_limiter;
mod zones_of;

pub use steadfast_spec::{BoxError, Lane, Scope, Zone, ext::Account};

pub use crate::{
    acquire::Acquire,
    builder::Builder,
    ceilings::{Ceilings, Reserve},
    cold_start::{ColdStart, TokenOrigin},
    configured::{WindowSettings, ZoneSettings},
    decision::{Answer, Ask, Decision, Grant, Loss, WaiterId, ZoneId},
    event::{Event, NextStart},
    future::ResponseFuture,
    invalid::InvalidLimiter,
    keys::{ApiKeyName, ScopeKeys},
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
