//! Short helpers for traces of requests in the algorithms' tests.

use std::{num::NonZeroU32, time::Duration};

use super::{Enforcer, Kind, Window, decide};

pub(super) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(super) const fn ns(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

pub(super) fn per_second(limit: u32, kind: Kind) -> Enforcer {
    Enforcer::new(kind, Window::per_second(NonZeroU32::new(limit).unwrap()))
}

impl Enforcer {
    /// Returns whether each of these successive requests is admitted.
    pub(super) fn verdicts(&mut self, arrivals: &[Duration]) -> Vec<bool> {
        arrivals.iter().map(|now| decide(&mut [self], *now).is_ok()).collect()
    }

    /// Returns how many of the requests are admitted.
    pub(super) fn admitted(&mut self, arrivals: &[Duration]) -> usize {
        self.verdicts(arrivals).into_iter().filter(|admitted| *admitted).count()
    }
}
