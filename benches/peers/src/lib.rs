//! What others offer for the same, set up for the same limits, to be measured beside it.
//!
//! A crate of its own, so that nobody who builds steadfast builds these: only benches depend on it. Every peer is set
//! up as its own documentation shows it, and as a careful user would: two limiters where the service has two windows.
//! None of them takes both permits at once, gives one back, or knows when the answer came; what they cost is compared,
//! not what they promise.

mod governor;
mod leaky_bucket;
mod tower;
mod tower_resilience;

pub use crate::{
    governor::{Given, Governor},
    leaky_bucket::LeakyBucket,
    tower::rate_limits,
    tower_resilience::TowerResilience,
};
