use std::{
    num::{NonZeroU32, NonZeroUsize},
    time::Duration,
};

use tower_resilience_ratelimiter::{RateLimiterConfigError, RateLimiterLayer, WindowType};
use tower_resilience_retry::RetryLayer;
use tower_resilience_timelimiter::{FixedTimeout, TimeLimiterLayer};

/// tower-resilience: its rate limit for each window, its retry and its timeout.
///
/// It reads tokio's clock itself.
#[derive(Clone, Copy, Debug)]
pub struct TowerResilience {
    window: WindowType,
    /// How long a request waits for a permit before it is refused.
    patience: Duration,
}

impl TowerResilience {
    /// Its default: windows that begin when the layer is made, the cheapest of its algorithms.
    #[must_use]
    pub fn fixed_window() -> Self {
        Self { window: WindowType::Fixed, patience: Duration::from_secs(600) }
    }

    /// Its exact algorithm, which remembers when each request was sent.
    #[must_use]
    pub fn sliding_log() -> Self {
        Self { window: WindowType::SlidingLog, ..Self::fixed_window() }
    }

    /// Returns a layer for each window.
    ///
    /// # Errors
    ///
    /// None for limits that fit into memory: the crate checks a configuration when it builds it.
    pub fn rate_limits(
        self,
        second: NonZeroU32,
        minute: NonZeroU32,
    ) -> Result<(RateLimiterLayer, RateLimiterLayer), RateLimiterConfigError> {
        Ok((
            self.rate_limit(minute, Duration::from_secs(60))?,
            self.rate_limit(second, Duration::from_secs(1))?,
        ))
    }

    /// Returns a layer for one window.
    ///
    /// # Errors
    ///
    /// As [`rate_limits`](Self::rate_limits).
    pub fn rate_limit(
        self,
        most: NonZeroU32,
        period: Duration,
    ) -> Result<RateLimiterLayer, RateLimiterConfigError> {
        RateLimiterLayer::builder()
            .limit_for_period(most.get() as usize)
            .refresh_period(period)
            .timeout_duration(self.patience)
            .window_type(self.window)
            .build()
    }

    /// Returns a layer that repeats the answers selected by `again`, after 1, 2, 4 … seconds.
    #[must_use]
    pub fn retry<Req, Res, E>(
        attempts: NonZeroUsize,
        again: impl Fn(&Res) -> bool + Send + Sync + 'static,
    ) -> RetryLayer<Req, Res, E> {
        RetryLayer::<Req, Res, E>::builder()
            .max_attempts(attempts.get())
            .exponential_backoff(Duration::from_secs(1))
            .retry_on(|_| false)
            .retry_on_response(again)
            .build()
    }

    /// Returns a layer that gives up after `limit`.
    #[must_use]
    pub fn timeout(limit: Duration) -> TimeLimiterLayer<FixedTimeout> {
        TimeLimiterLayer::<FixedTimeout>::builder().timeout_duration(limit).build()
    }
}
