//! Shares the rate limits, the token and the orders of one account between processes and machines, through Redis or Valkey.
//!
//! Each process that trades on an account counts only what it sends itself. Two of them on one token send twice the
//! quota, and the service answers 429. Here they count together: the windows of every zone lie in a store that all of
//! them reach, and one script decides about each request.
//!
//! - [`Shared`] connects to the store. A limiter [counts with](steadfast_limit::Builder::count_with) it.
//! - [`RedisStore`] keeps the account's token there, sealed, so that all processes make one login between them.
//! - [`Orders`] says which process places the account's orders, and keeps their journal there. A [`Standby`] waits for them.
//! - [`SharedZone`] asks for a [`SharedPermit`], without a limiter.
//! - [`SharedWindows`] is the rule, as a plain value: instants and events in, decisions out.
//! - [`Script`] is the same rule for the store. A test drives both with the same history on a real server.
//! - [`Rule`] takes the limits of a zone from a [`ZoneLimiter`](steadfast_limit::ZoneLimiter).
//!
//! # Example
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use steadfast_limit::{Account, ZoneLimiter};
//! use steadfast_redis::Shared;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let shared = Shared::connect("redis://store.example:6379", &Account::new("SB0001")).await?;
//! let limiter = ZoneLimiter::builder().preset().count_with(Arc::new(shared)).build()?;
//! // In every process of the account: `limiter.layer()`. `ClientBuilder::shared` of the facade does the same.
//! # Ok(())
//! # }
//! ```
//!
//! # Rules
//!
//! 1. A store that may forget is refused: one that evicts keys, a replica, or one whose replicas may be promoted without
//!    what it was told.
//! 2. While the store cannot be reached nothing is granted but cancels, by a [slot](Rule::emergency_share) that was lent to
//!    each process before. Other requests wait for 10 s, then fail with the store's name.
//! 3. A permit may be used for 5 s after it was asked for. One whose reply was lost is given back, and another one is
//!    asked for.
//! 4. The store's clock may be set back or forward, or be another machine's: the account has a clock of its own there, which
//!    advances no faster than those of the processes.
//! 5. Where sentinels watch the store, they are asked for its server before each connection.

mod connect;
mod count;
mod error;
mod fitness;
mod followed;
mod health;
mod line;
mod new_token;
mod orders;
mod place;
mod random;
mod returns;
mod rule;
mod script;
mod seal;
mod share;
mod shared;
mod shared_zone;
mod store;
mod store_clock;
mod token_store;
mod windows;

pub use self::{
    connect::Connect,
    error::{NotGranted, StoreError, Unfit},
    health::Health,
    orders::{
        Orders,
        error::{OrdersError, ResumeError},
        standby::Standby,
        watch::OrdersWatch,
    },
    rule::{Micros, Rule},
    script::Script,
    seal::{InvalidSeal, Seal},
    shared::Shared,
    shared_zone::{SharedPermit, SharedZone},
    token_store::{RedisLease, RedisStore},
    windows::{Ask, Decision, Reading, SharedWindows},
};
#[doc(hidden)]
pub use self::{
    orders::{
        ledger::{Fence, HaltState, Lease, Ledger, Renewal, Taken, Told, Turn},
        scripts::OrdersScript,
    },
    script::{acquire_arguments, lend_arguments, read_arguments, settle_arguments},
    store_clock::StoreClock,
};
