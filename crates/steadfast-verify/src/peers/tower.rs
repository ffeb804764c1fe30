use std::{num::NonZeroU32, time::Duration};

use tower::{
    ServiceBuilder,
    layer::util::{Identity, Stack},
    limit::RateLimitLayer,
};

/// tower's rate limit, one layer for each window. It reads tokio's clock itself, and its services cannot be cloned.
#[must_use]
pub fn rate_limits(
    second: NonZeroU32,
    minute: NonZeroU32,
) -> ServiceBuilder<Stack<RateLimitLayer, Stack<RateLimitLayer, Identity>>> {
    ServiceBuilder::new()
        .rate_limit(minute.get().into(), Duration::from_secs(60))
        .rate_limit(second.get().into(), Duration::from_secs(1))
}
