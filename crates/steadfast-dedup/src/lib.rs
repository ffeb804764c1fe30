//! Resolves orders in doubt, so that no order is placed twice and none is lost silently.
//!
//! A 504 on `POST /api/oms/place-order` does not mean that the order was rejected (§4.4), and the service knows no
//! order id of the client's own. Only the order list can tell. This crate reads it, concludes no more than the
//! evidence carries, and reports where the evidence is not enough.
//!
//! # The guarantee
//!
//! Exactly once is impossible: until the client decides, a lost request looks the same as one that is applied later.
//! Without a server that knows the client's own ids, no client can promise it. The guarantee is:
//!
//! - With [`ResendPolicy::Never`] an order in doubt is never sent again. A repeat after a documented 401 or 429 is no
//!   resend: such an order was not executed, and a list that is read a second later does not show it.
//! - Otherwise an order in doubt is sent again *at most once*. No second order exists as long as an order appears no
//!   later than the [lateness bound](Settings::lateness) says.
//!
//! In an [exclusive](AccountMode::Exclusive) account any order that breaks the bound is noticed afterwards and
//! reported as an [`OrderEvent`], without a request by the caller.
//!
//! *Never silently*: an order that is neither placed, found, nor certainly void comes back as [`Unresolved`], with
//! the reason, the candidates, and the original answer.
//!
//! # Assumptions
//!
//! | | assumption | if it is false |
//! |---|---|---|
//! | A1 | the gateway applies one request at most once | both orders stand; the one too many is reported |
//! | A2 | an applied order is listed within the lateness bound, counted from the gateway's answer or, where there was none, from the last instant at which it may still have been at work | a resend may double the order; it is reported when it appears. [`ResendPolicy::Never`] needs no A2 |
//! | A3 | the whole list is complete and drops nothing during a day | noticed as soon as an order is gone: no resends in that session |
//! | A4 | our own order is at least similar to what was asked for | a resend may double it; in an exclusive account any new order without an owner vetoes an absence until a list has shown the instrument under its own name, and nothing is sent again once an acknowledged order is listed under another one; [`Settings::conservative`] insists on having recognised one |
//! | A5 | no one else places an equal order in the account | theirs may be taken for ours, and ours is then missing; never a duplicate. [`AccountMode::Shared`] claims nothing |
//! | A6 | the `Date` of the service's answers is right to within ten minutes when a process begins | orders are assigned to another day, and under their names may be sent again, or not at all; [`OrderEvent::ClockStepped`] reports it. With [`Settings::refuse_disputed_day`] no order leaves until a later `Date` and the machine's clock agree, and no `Date` alone moves the day |
//! | A7 | an order that was answered with 401 or 429 was not executed, or is in a list that is read a second later | it is sent again and exists twice, also with [`ResendPolicy::Never`]; [`OrderEvent::RefusedButPlaced`] reports it |
//!
//! The true lateness of orders is measured: [`Tally::visibility_lag`] holds every observed lag, and
//! [`LagHistogram::lateness_risk`] estimates the risk to A2 from them.
//!
//! After an end without certainty, orders of the same instrument and side are placed, but nothing is concluded about
//! them until [`OrderTracker::resolve`], the list, or the end of the day clears it: exits are never blocked, and no
//! conclusion rests on books that may be wrong. Several processes that place orders in one account do not know of
//! each other's orders: one process must own the account, or all of them run [`AccountMode::Shared`].
//!
//! # Layers
//!
//! Two layers share one [`OrderTracker`]: [`DedupLayer`] outermost, [`SendGuardLayer`] below everything that waits or sends
//! again. Between them are retries, token renewal, rate limits and the `Authorization` header; reads of the list pass
//! through those too.
//!
//! # The core
//!
//! [`OrderProtocol`] holds all rules as a pure state machine without clock, lock or I/O. Its safety rests on the order in
//! which it learnt things, not on time:
//!
//! 1. An order can be an intent's only if it was first listed *after* that intent was sent; "listed" is when the
//!    list was complete, not when it was asked for.
//! 2. A list shows an absence only if it was asked for *after* the attempt was settled.
//! 3. Every order has one owner. The oldest eligible order is taken; a claim waits while another attempt in flight
//!    could own the order; nothing is absent before every attempt in doubt of the same instrument and side is
//!    settled.
//! 4. Found needs an exact match. Absent needs that nothing is even similar.
//!
//! An exhaustive model over the same code shows, for each of these rules, the duplicate that follows without it, and
//! that a crash at any point only causes doubt.
//!
//! # What it does not do
//!
//! It keeps nothing on disk unless it is given a [`journal`]. It does not cancel duplicates, does not read
//! `GET /api/oms/history`, and does not share its knowledge with other processes. A journal writes answers lazily: if a
//! crash loses the answers of two equal orders, they may come back with each other's identifier.

#[cfg(test)]
mod checks;
mod error;
mod guard;
pub mod journal;
mod numbers;
mod place;
mod protocol;
mod settings;
mod tracker;

pub use crate::{
    error::{InDoubt, NotRepeated, OrderWithheld},
    guard::{
        future::SendGuardFuture, guarded_body::GuardedBody, layer::SendGuardLayer, send_guard::SendGuard,
    },
    numbers::{AttemptNo, IntentNo, LogicalTime, ReadNo, Session, TradingDay},
    place::{body::ResponseBody, future::ResponseFuture, layer::DedupLayer, service::Dedup},
    protocol::{
        effect::Effect,
        event::{Answer, Event},
        order_event::{OrderEvent, TagEcho},
        order_protocol::OrderProtocol,
        read_fault::ReadFault,
        resolution::{RESOLUTION_HEADER, Reason, Resolution, Unresolved, Verdict},
        ruling::{InvalidRuling, Ruling},
        tally::{Cause, Confidence, Tally},
        trace::Step,
        visibility::LagHistogram,
        wake::{Purpose, Wake},
    },
    settings::{
        Settings,
        order_tag::OrderTag,
        policy::{AccountMode, Baseline, KeyPolicy, ListShows, OrdersScope, ResendPolicy, VerifyOn},
    },
    tracker::{
        order_tracker::{OrderTracker, WeakOrderTracker},
        recovery::{Recover, RecoveredOrder},
        undecided::unresolved,
    },
};
