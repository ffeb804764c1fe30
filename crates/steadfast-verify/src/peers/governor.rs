use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use governor::{
    Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    middleware::NoOpMiddleware,
    nanos::Nanos,
    state::{InMemoryState, NotKeyed},
};

/// governor, one limiter for each window.
#[derive(Debug)]
pub struct Governor<C: Clock = DefaultClock> {
    second: RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<C::Instant>>,
    minute: RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<C::Instant>>,
}

impl Governor {
    /// Allows this many a second and a minute, all at once if need be, by governor's own clock.
    #[must_use]
    pub fn new(second: NonZeroU32, minute: NonZeroU32) -> Self {
        Self::with_clock(second, minute, &DefaultClock::default())
    }

    /// Waits for a permit of each, one after the other.
    pub async fn until_ready(&self) {
        self.second.until_ready().await;
        self.minute.until_ready().await;
    }
}

impl<C: Clock + Clone> Governor<C> {
    /// Does the same with another clock.
    #[must_use]
    pub fn with_clock(second: NonZeroU32, minute: NonZeroU32, clock: &C) -> Self {
        Self {
            second: RateLimiter::direct_with_clock(Quota::per_second(second), clock.clone()),
            minute: RateLimiter::direct_with_clock(Quota::per_minute(minute), clock.clone()),
        }
    }
}

impl<C: Clock> Governor<C> {
    /// Takes a permit of each. False if one of them has none; the other's may then be gone.
    pub fn take(&self) -> bool {
        self.second.check().is_ok() && self.minute.check().is_ok()
    }
}

/// A clock that returns the time it was given, in nanoseconds. Reading it costs one load.
#[derive(Clone, Debug, Default)]
pub struct Given(Arc<AtomicU64>);

impl Given {
    /// Sets the time.
    pub fn set(&self, nanos: u64) {
        self.0.store(nanos, Ordering::Relaxed);
    }
}

impl Clock for Given {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        self.0.load(Ordering::Relaxed).into()
    }
}
