//! The consequences of 429s: pauses, less trust in a zone, and routes counted under another zone.

pub(crate) mod circuit_breaker;
pub(crate) mod moved_routes;
pub(crate) mod penalty;
pub(crate) mod trust_level;
pub(crate) mod trust_step;
