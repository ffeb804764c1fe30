//! Holds each request until every rate-limit zone it falls under admits it.
//!
//! The service answers 429 to a client that asks too often (§8). A 429 costs more than the request: during the
//! back-off after it not even a cancel can leave. This crate keeps the limits on the client's side. Nearly the whole
//! quota is used, no 429 comes back whatever the delay of the line, and a cancel never waits behind polls.
//!
//! [`RateLimitLayer`] is the tower layer. [`ZoneLimiter`] hands out the same permits without tower, and
//! [`Limiter`] is the pure core of both, for simulations.
//!
//! # Example
//!
//! ```
//! use http::{Request, Response};
//! use steadfast_call::{Call, Failure};
//! use steadfast_limit::{BoxError, Zone, ZoneLimiter};
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
//!     Call::of_mut(order.extensions_mut()).set_send_by(soon.into_std());
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
//! # Another service
//!
//! Nothing of this is bound to §8. Five requests a second and a hundred a minute for any service:
//!
//! ```
//! # use steadfast_limit::{InvalidLimiter, MINUTE, Quota, SECOND, Scope, Zone, ZoneLimiter};
//! const WEATHER: Zone = Zone::new("weather");
//! let quota = Quota::new(WEATHER, Scope::Shared).limit(5, SECOND).limit(100, MINUTE);
//! let limiter = ZoneLimiter::builder().zone(quota).build()?;
//! let layer = limiter.layer().all_in(WEATHER); // around any service of `http::Request`s
//! # let _ = layer;
//! # Ok::<(), InvalidLimiter>(())
//! ```
//!
//! With the feature `reqwest`, `limiter.send(&client, request, WEATHER).await` does the same for a `reqwest` client.
//!
//! # The rule
//!
//! 1. **A slot is spent from the permit until a window after the answer.** The gateway counts a request somewhere
//!    between the send and the answer. If fewer than `N` requests are on their way or were answered within the last
//!    `T`, one more cannot be the `N + 1`st in any stretch of `T` at the gateway, whatever the line does. A limiter
//!    that counts from the send breaks with every late packet.
//! 2. **Clocks differ.** Periods are held 500 ppm and a millisecond longer than they are.
//! 3. **All zones or none.** A request under two zones takes a slot in both at the same instant, or in neither.
//! 4. **A request that never left costs nothing**: if it was refused, cancelled or failed before it left, its slots
//!    are free again.
//! 5. **A lost request costs more.** If its connection ended abortively, its slots are held for a second and a
//!    window from that instant. If the end is unknown, they are held for [two minutes](Builder::arrives_within) and
//!    a window, because an operating system goes on sending the rest of a closed connection; so declare the abortive
//!    end where it is true ([`RateLimitLayer::ends_dropped_calls`], [`Builder::ends_with_process`]). Cancels and
//!    verifications are held back for a window only, and by a request without an answer yet for three seconds and a
//!    window: getting out of a position comes before a 429, above all at a gateway that hangs
//!    ([`Builder::strict_critical`] changes that). A request that left and was
//!    [not processed](steadfast_call::Fate::Unprocessed) may have been counted, so it is held as after a reset.
//! 6. **Lanes.** A freed slot goes to the highest waiting [`Lane`], and within a lane to the first come. Priority
//!    alone is not enough: uncontested polls would spend the minute's quota in 40 seconds. So the lower lanes leave
//!    a few slots of each window alone ([`Ceilings`]), and in windows of ten seconds or more that have ceilings,
//!    verifications, normal and bulk requests are sent evenly.
//! 7. **No wait in vain.** A request that could not leave before its deadline, or that finds its lane's queue full,
//!    is refused at once with a [`Refusal`].
//! 8. **A 429 all the same**, caused by another program on the same token, stops its zone for 1, 2, 4, then 8
//!    seconds, or for the time in `Retry-After` up to a minute. Then the foremost request probes before all others go
//!    on. If it is refused too, the windows longer than the pause count as spent, except for cancels and
//!    verifications, which probe after each pause. For the reaction to a 429 that the limiter's own log does not
//!    explain, see [`Profile`].
//!
//! [`explained`] shows why this is safe, with numbers and without formulas.
//!
//! A [`Profile`] says how much is assumed of the gateway's way of counting. The preset keeps `place_order`
//! [adaptive](Profile::Adaptive), because bursts matter most there, and the other zones
//! [universal](Profile::Universal).
//!
//! # Order
//!
//! Outside of the layer: every layer that may send a request more than once (retry, resend, renewal of the token).
//! Inside: layers whose result must be fresh when the request leaves, and the transport. Every physical send takes a
//! permit.
//!
//! # Clone
//!
//! Clones of a layer, its services and its limiter share one state. Two limiters share nothing, so one token should
//! be used through one limiter.
//!
//! # Cancellation
//!
//! Any future may be dropped at any point. A waiter leaves its queues. A granted permit whose request has not been
//! passed on goes to the next in line at once. Afterwards its slots are held as rule 5 says, and free themselves.
//!
//! # Restarts
//!
//! The gateway's windows outlive a program, and one that starts with empty windows is refused for up to a minute.
//! [`ColdStart`] sets what counts as spent at the start, and keeps the journal for the next start. A journal that
//! could not be written makes the next start pessimistic. No request waits for the disk, and no cancel waits for
//! slots that are only assumed to be spent.
//!
//! # Whom a zone counts together
//!
//! Every count belongs to one server: its host and port, in any spelling. Within that a zone counts, by its
//! [`Scope`], per local address ([`RateLimitLayer::local_address`]), API key ([`ApiKeyName`]), or token. A token is
//! counted under its [`Account`], so a renewed token keeps the windows until [`ZoneLimiter::reset`] declares them
//! new. Names and addresses are hashed with a key of the limiter's own; secrets are never among them.
//!
//! # Fairness and wake-ups
//!
//! A freed slot is given to a waiter under the lock, so no later request can take it, and only that waiter is woken.
//! Of the waiters for a key, the foremost keeps a timer for the next slot, and one deputy keeps it too. When one of
//! them leaves, the next is woken to take over. The others wake twice a second.
//!
//! **A future that is kept and not polled** (an idle branch of a `select!`, a stream whose consumer is busy) does
//! not delay others for long. A slot not collected within a second, or by the deadline, goes to the next waiter.
//! After half of that second all waiters behind it are woken for a roll call, and those that do not answer leave the
//! queues, too. A call that was sent and is no longer polled is woken as well when others wait. After half a second
//! more without a poll, its answer is presumed to be there and its slots age from then on. So any number of such
//! futures costs others one second and a window at most. (If the answer of an unpolled call is not there yet, it is
//! counted too early, which can cost a 429 and nothing else. A [`Permit`] taken by hand is never taken back.) Polled
//! again, a future has its old place at the head of its lane, before all later ones.
//!
//! # What it does not do
//!
//! * It cannot see others that use the same token, key or address. It only reacts to their 429s and reports an
//!   [`Event::ModelMismatch`], which looks the same if the gateway counts in a way that the profile excludes.
//! * It promises nothing for a gateway that counts a request later than its answer, unless [`Quota::settle`] says by
//!   how much.
//! * It does not share quota between processes. One process passes its spent slots to the next through a file
//!   ([`ColdStart::Journal`]) or as data ([`ZoneLimiter::export`]).
//! * It moves a route from one zone to another only where [`Builder::move_refused_routes`] is set, and it does not retry.
//! * It counts requests only, not resources that are held, such as connections.

#[doc = include_str!("explained.md")]
pub mod explained {}

mod core;
mod error;
mod future;
mod layer;
mod persist;
mod request;
#[cfg(feature = "reqwest")]
mod reqwest;
#[cfg(all(test, shuttle))]
mod schedules;
mod service;
mod shell;

pub use steadfast_call::{BoxError, Lane, ext::Account};
pub use steadfast_spec::{Scope, Zone};

#[cfg(feature = "reqwest")]
pub use crate::reqwest::{SendError, SendFuture, SendRequest};
pub use crate::{
    core::{
        decision::{Answer, Ask, Decision, Grant, Loss, WaiterId, ZoneId},
        event::{Event, NextStart},
        limiter::Limiter,
        rules::{
            ceilings::{Ceilings, Reserve},
            profile::Profile,
            quota::{MINUTE, Quota, SECOND},
        },
        snapshot::{LaneSnapshot, Snapshot, WindowUse, ZoneSnapshot},
        time::Nanos,
        trust::trust_step::TrustStep,
    },
    error::{InvalidLimiter, Refusal},
    future::ResponseFuture,
    layer::RateLimitLayer,
    persist::{
        cold_start::{ColdStart, TokenOrigin},
        spent::Spent,
    },
    request::{
        keys::{ApiKeyName, ScopeKeys},
        zones_of::{AllIn, ByRoute, RouteZones, ZonesOf},
    },
    service::RateLimit,
    shell::{
        acquire::Acquire,
        builder::Builder,
        permit::Permit,
        shared_count::{SharedAcquire, SharedAsk, SharedCount, SharedSlot},
        zone_limiter::ZoneLimiter,
        zone_settings::{WindowSettings, ZoneSettings},
    },
};
