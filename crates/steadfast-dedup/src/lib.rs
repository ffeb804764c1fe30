//! Resolves orders in doubt, so that no order is placed twice and none is lost silently.
//!
//! A 504 on `POST /api/oms/place-order` does not mean that the order was rejected (§4.4), and the service knows no
//! order id of the client's own. The one thing that can be asked is the order list. This crate asks it, draws no
//! conclusion that the evidence does not carry, and says so where the evidence does not suffice.
//!
//! # The guarantee
//!
//! Exactly once is impossible: a request that was lost and one that is applied after the client has decided look
//! the same until then. What holds is:
//!
//! - *At most once*, always, with [`ResendPolicy::Never`].
//! - *At most once* otherwise, as long as an order appears no later than the
//!   [lateness bound](Settings::lateness) says.
//! - In an [exclusive](AccountMode::Exclusive) account any order that breaks the bound is noticed afterwards and
//!   reported as an [`OrderEvent`].
//!
//! # Layers
//!
//! Two layers share one [`Ledger`]: [`DedupLayer`] outermost, [`SendGuardLayer`] below everything that waits or
//! sends again. Between them stand retries, token renewal, rate limits and the `Authorization` header; the reads of
//! the list pass through those too.
//!
//! # The core
//!
//! [`Registry`] holds all rules as a pure state machine without clock, lock or input and output. Its safety rests on
//! the order in which things were learnt, not on time:
//!
//! 1. An order can be an intent's only if it was first listed *after* that intent was sent; "listed" is when the
//!    list was complete, not when it was asked for.
//! 2. A list shows an absence only if it was asked for *after* the attempt was settled.
//! 3. Every order has one owner. The oldest eligible order is taken; a claim waits while another attempt in flight
//!    could own the order; nothing is absent before every attempt in doubt of the same instrument and side is
//!    settled.
//! 4. Found needs an exact match. Absent needs that nothing is even similar.
//!
//! An exhaustive model over the same code shows, for each of these, the duplicate that follows if it is left out.
//!
//! # What it does not do
//!
//! It keeps nothing on disk: after a restart, orders that were in doubt are known to nobody. It does not cancel
//! duplicates, does not look at `GET /api/oms/history`, and leaves lists that callers read for themselves alone.

mod account;
mod attempt;
mod body;
mod book;
mod claim;
mod deciding;
mod error;
mod event;
mod future;
mod guard_body;
mod intent;
mod key;
mod layer;
mod ledger;
mod matcher;
#[cfg(test)]
mod model;
mod placement;
mod poller;
mod query;
mod reading;
mod registry;
mod report;
mod resolution;
mod schedule;
mod send_guard;
mod sending;
mod service;
mod settings;
mod stamp;
mod ticket;

pub use crate::{
    body::ResponseBody,
    error::{InDoubt, OrderRefused, ReadFault},
    event::{Answer, Effect, Event, OrderEvent},
    future::ResponseFuture,
    guard_body::GuardedBody,
    layer::DedupLayer,
    ledger::{Ledger, WeakLedger},
    registry::{Purpose, Registry, Wake},
    resolution::{RESOLUTION_HEADER, Reason, Resolution, Unresolved, Verdict},
    send_guard::{SendGuard, SendGuardFuture, SendGuardLayer},
    service::Dedup,
    settings::{AccountMode, OrdersScope, ResendPolicy, Settings},
    stamp::{AttemptNo, Epoch, IntentNo, ReadNo, Seq, Session},
};
