use crate::rule::Micros;

/// Says how far a key's clock may have come, by this process's own clock, which no operator sets.
///
/// A store's clock that is set forward would let stamps expire early. So no script counts time beyond this.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct StoreClock {
    /// How far the key's clock was ahead of ours at most, and when by ours.
    ahead: Option<(Micros, Micros)>,
}

/// How much faster than ours the store's clock may run, in parts per million.
const RATE_ERROR_PPM: Micros = 500;

impl StoreClock {
    /// Learns from a reply that came at `received` to a call that was sent at `sent` and allowed `latest`.
    pub fn observe(&mut self, shown: Micros, latest: Option<Micros>, sent: Micros, received: Micros) {
        // The store read its clock later than `sent`, so the difference is at least the true one.
        let ahead = shown - sent;
        match (latest, self.ahead) {
            // The store's clock has been set: what it shows now is not even reached when the reply is here. The next call
            // allows nothing.
            (Some(latest), _) if shown > latest + with_error(received - sent) => self.ahead = None,
            // Sent before that was known.
            (Some(_), None) => {}
            (_, Some(_)) if self.latest(sent).is_some_and(|latest| shown >= latest) => {}
            _ => self.ahead = Some((ahead, sent)),
        }
    }

    /// Returns the latest instant that the key's clock can truly show at `now` of ours; `None` if that is not known.
    pub fn latest(&self, now: Micros) -> Option<Micros> {
        self.ahead.map(|(ahead, since)| since + ahead + with_error((now - since).max(0)))
    }
}

/// Returns the most that the store's clock advances while ours advances by `elapsed`.
fn with_error(elapsed: Micros) -> Micros {
    elapsed + elapsed * RATE_ERROR_PPM / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_believed_as_little_as_clocks_differ_in_rate() {
        let mut clock = StoreClock::default();
        assert_eq!(clock.latest(7), None);
        clock.observe(1_000_000_300, None, 0, 400);
        assert_eq!(clock.latest(0), Some(1_000_000_300));
        // A reply that took less time says it more exactly.
        clock.observe(1_000_000_110, clock.latest(10), 10, 120);
        assert_eq!(clock.latest(10), Some(1_000_000_110));
        // A call that took long says nothing new.
        clock.observe(1_000_900_000, clock.latest(1_000), 1_000, 950_000);
        assert_eq!(clock.latest(60_000_010), Some(1_060_000_110 + 30_000));
        // Of a key that went on from an earlier instant it follows at once.
        clock.observe(500_000_000, clock.latest(60_000_010), 60_000_010, 60_000_020);
        assert_eq!(clock.latest(60_000_010), Some(500_000_000));
    }

    #[test]
    fn after_a_step_forward_it_is_believed_only_once_it_has_let_no_time_pass() {
        let mut clock = StoreClock::default();
        clock.observe(5_000, None, 0, 10);
        let [first, second, third] = [100, 200, 150].map(|sent| clock.latest(sent));
        clock.observe(3_600_000_000, first, 100, 150);
        assert_eq!(clock.latest(160), None);
        // The second call was on its way meanwhile.
        clock.observe(3_600_000_100, second, 200, 250);
        assert_eq!(clock.latest(260), None);
        // A third one was answered before the step, and its reply comes last.
        clock.observe(5_150, third, 150, 255);
        assert_eq!(clock.latest(260), None);
        clock.observe(5_200, None, 300, 310);
        assert_eq!(clock.latest(300), Some(5_200));
    }
}
