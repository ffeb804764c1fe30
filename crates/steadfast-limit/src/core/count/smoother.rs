use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use governor::{
    Quota, RateLimiter,
    clock::Clock,
    middleware::NoOpMiddleware,
    state::{InMemoryState, NotKeyed},
};

use crate::core::{rules::Smoothing, time::Nanos};

/// Sends the requests of the lanes that can wait evenly over a long window.
///
/// It is governor's cell-rate algorithm on the core's own clock. Asking charges it, so it is asked last, when
/// everything else admits the request. Until then [`opens`](Self::opens) returns the instant given by its last
/// refusal.
pub(crate) struct Smoother {
    limiter: RateLimiter<NotKeyed, InMemoryState, CoreClock, NoOpMiddleware<Duration>>,
    opens: Nanos,
    burst: u32,
    /// How many charges belong to requests that never left. The next requests use them up, because the algorithm
    /// cannot take a charge back.
    returned: u32,
}

impl Smoother {
    pub(crate) fn new(smoothing: Smoothing, now: Nanos) -> Option<Self> {
        let quota =
            Quota::with_period(Duration::from_nanos(smoothing.interval))?.allow_burst(smoothing.burst);
        let limiter = RateLimiter::direct_with_clock(quota, CoreClock(AtomicU64::new(now)));
        Some(Self { limiter, opens: 0, burst: smoothing.burst.get(), returned: 0 })
    }

    /// Returns the earliest instant for the next request.
    pub(crate) fn opens(&self) -> Nanos {
        self.opens
    }

    /// Charges one request. False if it comes too early; [`opens`](Self::opens) then returns the instant.
    pub(crate) fn charge(&mut self, now: Nanos) -> bool {
        if self.returned > 0 {
            self.returned -= 1;
            return true;
        }
        self.limiter.clock().0.store(now, Ordering::Relaxed);
        match self.limiter.check() {
            Ok(()) => true,
            Err(not_until) => {
                let earliest = not_until.earliest_possible().as_nanos();
                self.opens = u64::try_from(earliest).unwrap_or(Nanos::MAX).max(now + 1);
                false
            }
        }
    }

    /// Takes back the charge of a request that never left.
    ///
    /// At most one burst is owed. So a wave of refunds is followed by two bursts at most, which the windows still
    /// bound.
    pub(crate) fn give_back(&mut self) {
        self.returned = (self.returned + 1).min(self.burst);
        self.opens = 0;
    }
}

impl fmt::Debug for Smoother {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Smoother").field("opens", &self.opens).finish_non_exhaustive()
    }
}

/// Returns the instant of the core's last call.
#[derive(Debug)]
struct CoreClock(AtomicU64);

impl Clock for CoreClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn a_burst_goes_at_once_and_the_rest_is_smoothed() {
        let smoothing = Smoothing { burst: NonZeroU32::new(3).unwrap(), interval: 100 };
        let mut smoother = Smoother::new(smoothing, 1_000).unwrap();
        assert_eq!([(); 4].map(|()| smoother.charge(1_000)), [true, true, true, false]);
        assert_eq!(smoother.opens(), 1_100);
        assert!(!smoother.charge(1_099));
        assert!(smoother.charge(1_100));
        assert!(!smoother.charge(1_100));
    }

    #[test]
    fn a_charge_that_is_given_back_pays_for_the_next_and_no_more_than_a_burst_is_owed() {
        let smoothing = Smoothing { burst: NonZeroU32::new(3).unwrap(), interval: 100 };
        let mut smoother = Smoother::new(smoothing, 1_000).unwrap();
        assert_eq!([(); 4].map(|()| smoother.charge(1_000)), [true, true, true, false]);
        smoother.give_back();
        assert_eq!(smoother.opens(), 0);
        assert_eq!([(); 2].map(|()| smoother.charge(1_000)), [true, false]);
        (0..10).for_each(|_| smoother.give_back());
        assert_eq!([(); 4].map(|()| smoother.charge(1_001)), [true, true, true, false]);
    }
}
