use crate::rule::Micros;

/// The clock of one key: the store's time, without its steps.
///
/// The store's clock may be set, and another machine may take its place. So each caller says how far its own clock lets
/// the key's come, and a caller that knows nothing yet lets no time pass: the key goes on from the latest instant at which
/// it has decided.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeyClock {
    /// The latest instant at which it has decided.
    last: Option<Micros>,
    /// Its lead over the store's time.
    offset: Micros,
}

/// The time of a key's clock for one caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The store's time without its steps. The caller learns from it how far the clock may come next time.
    pub shown: Micros,
    /// The instant that counts for this caller.
    pub now: Micros,
}

/// How much earlier than the key's clock a caller's may be: longer than a call is waited for. If it is still earlier the
/// store's clock has been set forward, or the caller's is of other times.
const LATE: Micros = 2_000_000;

impl KeyClock {
    /// Reads the clock at `time` of the store for a caller that allows `latest`, if it knows that.
    pub(super) fn read(&mut self, time: Micros, latest: Option<Micros>) -> Reading {
        let last = self.last.unwrap_or(Micros::MIN);
        let mut shown = time + self.offset;
        let latest = latest.filter(|latest| latest + LATE >= last.max(shown) || self.last.is_none());
        // Set back, or not known to have come this far.
        if self.last.is_some() && (latest.is_none() || shown < last) {
            self.offset = last - time;
            shown = last;
        }
        let now = latest.map_or(shown, |latest| latest.min(shown));
        self.last = Some(now.max(last));
        Reading { shown, now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Micros = 3_600_000_000;

    #[test]
    fn no_step_of_the_stores_clock_is_one_of_the_keys() {
        let mut clock = KeyClock::default();
        let now = |clock: &mut KeyClock, time, latest| clock.read(time, latest).now;
        let began = 500 * HOUR;
        assert_eq!(now(&mut clock, began, None), began);
        assert_eq!(now(&mut clock, began + 10, Some(began + 12)), began + 10);
        // A second ahead: as far as the caller's clock allows.
        assert_eq!(now(&mut clock, began + 1_000_000, Some(began + 20)), began + 20);
        // A caller that has just started allows nothing, and from there all go on.
        assert_eq!(now(&mut clock, began + 1_000_005, None), began + 20);
        assert_eq!(now(&mut clock, began + 1_000_008, Some(began + 30)), began + 23);
        // An hour ahead, which is no call's delay.
        assert_eq!(now(&mut clock, began + HOUR, Some(began + 30)), began + 23);
        assert_eq!(now(&mut clock, began + HOUR + 1, Some(began + 40)), began + 24);
        // Back, even beyond the first step: it goes on at once.
        assert_eq!(now(&mut clock, began - HOUR, Some(began + 40)), began + 24);
        assert_eq!(now(&mut clock, began - HOUR + 7, Some(began + 40)), began + 31);
    }

    #[test]
    fn a_caller_of_another_clock_counts_as_one_that_knows_nothing() {
        let mut clock = KeyClock::default();
        clock.read(HOUR, None);
        let earlier = clock.read(HOUR + 5, Some(HOUR - LATE + 5));
        assert_eq!(earlier, Reading { shown: HOUR + 5, now: HOUR - LATE + 5 }, "its call took long");
        let other = clock.read(HOUR + 20, Some(HOUR / 2));
        assert_eq!(other, Reading { shown: HOUR, now: HOUR });
    }
}
