use crate::rule::Micros;

/// Bounds the store's clock by this process's own, which no operator sets.
///
/// A store's clock that is set forward would let stamps expire early. So no script counts time beyond this bound. A
/// clock that is set back only makes requests wait.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StoreClock {
    /// How far the store's clock was ahead of ours at most, and when by ours.
    ahead: Option<(Micros, Micros)>,
}

/// How much faster than ours the store's clock may run, in parts per million.
const RATE_ERROR_PPM: Micros = 500;

/// More than any instant, and exact as a double.
const UNKNOWN: Micros = 1 << 52;

impl StoreClock {
    /// Learns from a reply to a call that was sent at `sent` by our clock.
    pub(crate) fn observe(&mut self, time: Micros, sent: Micros) {
        // The store read its clock later than `sent`, so the difference is at least the true one.
        let ahead = time - sent;
        if self.ahead.is_none() || ahead < self.latest(sent) - sent {
            self.ahead = Some((ahead, sent));
        }
    }

    /// Returns the latest instant that the store's clock can truly show at `now` of ours.
    pub(crate) fn latest(&self, now: Micros) -> Micros {
        self.ahead
            .map_or(UNKNOWN, |(ahead, since)| now + ahead + (now - since).max(0) * RATE_ERROR_PPM / 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_set_forward_is_believed_as_little_as_clocks_differ_in_rate() {
        let mut clock = StoreClock::default();
        assert_eq!(clock.latest(7), UNKNOWN);
        clock.observe(1_000_000_300, 0);
        assert_eq!(clock.latest(0), 1_000_000_300);
        // A reply that took less time says it more exactly.
        clock.observe(1_000_000_110, 10);
        assert_eq!(clock.latest(10), 1_000_000_110);
        // An hour forward, and a minute later.
        clock.observe(4_600_000_000, 1_000);
        assert_eq!(clock.latest(60_000_010), 1_060_000_110 + 30_000);
        // Set back, it is followed at once.
        clock.observe(500_000_000, 60_000_010);
        assert_eq!(clock.latest(60_000_010), 500_000_000);
    }
}
