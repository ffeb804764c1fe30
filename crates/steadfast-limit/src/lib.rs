//! Holds each request until every zone it falls under admits it.
//!
//! WIP

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
mod retry_after;
mod rules;
mod service;
mod snapshot;
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
    time::Nanos,
    zone_limiter::ZoneLimiter,
    zones_of::{ByRoute, RouteZones, ZonesOf},
};
