//! Other crates for the same task, configured for the same limits, to be measured beside steadfast.
//!
//! A separate crate, so that building steadfast does not build these: only benches depend on it. Every peer is
//! configured as in its own documentation, and as a careful user would: two limiters where the service has two
//! windows. None of them takes both permits at once, gives one back, or considers when the answer came. The
//! comparison covers cost, not guarantees.

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
