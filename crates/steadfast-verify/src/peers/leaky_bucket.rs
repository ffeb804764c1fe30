use std::{num::NonZeroU32, time::Duration};

use leaky_bucket::RateLimiter;

/// leaky-bucket, one for each window.
#[derive(Debug)]
pub struct LeakyBucket {
    second: RateLimiter,
    minute: RateLimiter,
}

impl LeakyBucket {
    /// Allows this many a second and a minute, all at once if need be. It reads tokio's clock itself.
    #[must_use]
    pub fn new(second: NonZeroU32, minute: NonZeroU32) -> Self {
        Self {
            second: Self::of_one_window(second, Duration::from_secs(1)),
            minute: Self::of_one_window(minute, Duration::from_secs(60)),
        }
    }

    /// Takes a permit of each. False if one of them has none; the other's may then be gone.
    pub fn take(&self) -> bool {
        self.second.try_acquire(1) && self.minute.try_acquire(1)
    }

    /// Returns leaky-bucket's own limiter of one window.
    #[must_use]
    pub fn of_one_window(most: NonZeroU32, period: Duration) -> RateLimiter {
        let most = most.get() as usize;
        RateLimiter::builder().max(most).initial(most).refill(most).interval(period).build()
    }
}
