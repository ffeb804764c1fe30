//! Other crates for the same task, configured for the same limits, to be measured beside steadfast.
//!
//! Every peer is configured as in its own documentation, and as a careful user would: two limiters where the service has
//! two windows. None of them takes both permits at once, gives one back, or considers when the answer came. Benches
//! compare what they cost, and `sim limits` what they let through.

mod governor;
mod leaky_bucket;
mod tower;
mod tower_resilience;

pub use self::{
    governor::{Given, Governor},
    leaky_bucket::LeakyBucket,
    tower::rate_limits,
    tower_resilience::TowerResilience,
};
