//! Resolves orders in doubt, so that no order is placed twice.

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
    ledger::Ledger,
    registry::{Purpose, Registry, Wake},
    resolution::{RESOLUTION_HEADER, Reason, Resolution, Unresolved, Verdict},
    send_guard::{SendGuard, SendGuardFuture, SendGuardLayer},
    service::Dedup,
    settings::{AccountMode, OrdersScope, ResendPolicy, Settings},
    stamp::{AttemptNo, Epoch, IntentNo, ReadNo, Seq, Session},
};
