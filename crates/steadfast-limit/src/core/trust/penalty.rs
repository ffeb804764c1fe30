use steadfast_call::Lane;

use crate::core::{
    time::Nanos,
    trust::{circuit_breaker::CircuitBreaker, trust_level::TrustLevel},
};

/// The consequences of the 429s of one key: its pause, the trust in it and its restrictions.
///
/// Boxed by its owner, because most keys never meet a 429. Such a key holds one pointer, and one comparison shows
/// that nothing holds it back.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Penalty {
    breaker: CircuitBreaker,
    trust: TrustLevel,
    /// The same, for the critical lane's own 429s. Only its learned limit counts.
    critical: TrustLevel,
    /// When the bulk lane may have its next slot, where it takes only every second.
    bulk_opens: Nanos,
    /// Until when the long windows count as spent, for the lanes that can wait.
    full_until: Nanos,
}

impl Penalty {
    pub(crate) fn breaker(&self) -> CircuitBreaker {
        self.breaker
    }

    pub(crate) fn breaker_mut(&mut self) -> &mut CircuitBreaker {
        &mut self.breaker
    }

    pub(crate) fn trust(&self) -> TrustLevel {
        self.trust
    }

    pub(crate) fn trust_mut(&mut self) -> &mut TrustLevel {
        &mut self.trust
    }

    pub(crate) fn critical(&self) -> TrustLevel {
        self.critical
    }

    pub(crate) fn critical_mut(&mut self) -> &mut TrustLevel {
        &mut self.critical
    }

    /// Holds back the bulk lane until `until`.
    pub(crate) fn hold_back_bulk(&mut self, until: Nanos) {
        self.bulk_opens = until;
    }

    /// Counts the long windows as spent until `until`.
    pub(crate) fn fill(&mut self, until: Nanos) {
        self.full_until = self.full_until.max(until);
    }

    /// No longer counts the long windows as spent.
    pub(crate) fn empty(&mut self) {
        self.full_until = 0;
    }

    /// Returns until when the long windows count as spent.
    pub(crate) fn full_until(&self) -> Nanos {
        self.full_until
    }

    /// Returns until when `lane`, which can wait, is held back besides by the pause.
    pub(crate) fn holds_back(&self, lane: Lane) -> Nanos {
        if lane == Lane::Bulk { self.full_until.max(self.bulk_opens) } else { self.full_until }
    }

    /// True if nothing is left to remember at `now`, in a zone that allows `limit`.
    pub(crate) fn is_over(&self, limit: u32, now: Nanos) -> bool {
        self.breaker.is_over(now)
            && self.trust.is_over(limit, now)
            && self.critical.is_over(limit, now)
            && self.full_until <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::decision::Share;

    #[test]
    fn it_lasts_as_long_as_the_longest_of_its_parts() {
        let mut full = Penalty::default();
        full.fill(7);
        assert!(!full.is_over(10, 6));
        assert!(full.is_over(10, 7));
        let mut stopped = Penalty::default();
        let share = Share { at: 0, lane: Lane::Normal, awaited: false, optimistic: false };
        stopped.breaker.refused(share, None, 1);
        assert!(!stopped.is_over(10, 7));
        let mut taught = Penalty::default();
        taught.trust.mismatch(false, 10, 1);
        assert!(!taught.is_over(10, 7));
        let mut critical = Penalty::default();
        critical.critical.mismatch(false, 10, 1);
        assert!(!critical.is_over(10, 7));
    }
}
