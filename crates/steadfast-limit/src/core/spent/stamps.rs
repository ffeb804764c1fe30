use crate::core::{spent::log::StampLog, time::Nanos};

/// All stamps that still count as spent in one key, for one lane: answered requests and lost ones.
///
/// A lost request has a stamp like any other, at the latest instant at which the gateway may have counted it. That
/// may lie in the future.
#[derive(Clone, Copy)]
pub(crate) struct Stamps<'a> {
    log: &'a StampLog,
    unit: Nanos,
    lost: &'a [Nanos],
}

impl<'a> Stamps<'a> {
    /// Combines the stamps of `log` and of `lost`, both ascending.
    pub(crate) fn new(log: &'a StampLog, unit: Nanos, lost: &'a [Nanos]) -> Self {
        Self { log, unit, lost }
    }

    /// Returns the number of stamps.
    pub(crate) fn len(&self) -> usize {
        self.log.len() + self.lost.len()
    }

    /// Returns the `k`th latest stamp; `k` = 1 is the latest.
    pub(crate) fn kth_latest(&self, k: usize) -> Option<Nanos> {
        if self.lost.is_empty() {
            return self.log.kth_latest(k, self.unit);
        }
        if k > self.len() {
            return None;
        }
        // Of all splits that take `k` stamps from the two ends, the right one has the latest minimum.
        (k.saturating_sub(self.log.len())..=k.min(self.lost.len()))
            .filter_map(|from_lost| {
                let lost = (from_lost > 0).then(|| self.lost[self.lost.len() - from_lost]);
                let logged = if k > from_lost { self.log.kth_latest(k - from_lost, self.unit) } else { None };
                match (lost, logged) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                }
            })
            .max()
    }

    /// Returns how many stamps are still held at `now` for `period`.
    pub(crate) fn held(&self, now: Nanos, period: Nanos) -> usize {
        let over = self.lost.partition_point(|stamp| stamp + period <= now);
        self.len() - over - self.log.expired(now, period, self.unit)
    }

    /// Fills `all` with the stamps still held at `now` for `period`, the earliest first.
    pub(crate) fn since(&self, now: Nanos, period: Nanos, all: &mut Vec<Nanos>) {
        all.clear();
        all.extend(self.log.from(self.log.expired(now, period, self.unit), self.unit));
        if !self.lost.is_empty() {
            all.extend(self.lost.iter().filter(|stamp| **stamp + period > now));
            all.sort_unstable();
        }
    }

    /// Returns all stamps, the earliest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Nanos> {
        let mut logged = self.log.from(0, self.unit).peekable();
        let mut lost = self.lost.iter().copied().peekable();
        std::iter::from_fn(move || match (logged.peek(), lost.peek()) {
            (Some(a), Some(b)) if a > b => lost.next(),
            (Some(_), _) => logged.next(),
            (None, _) => lost.next(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kth_latest_is_that_of_both_merged() {
        let mut log = StampLog::default();
        for stamp in [1_000, 3_000, 5_000, 7_000] {
            log.push(stamp, 1, 8);
        }
        let lost = [2_000, 6_000, 9_000];
        let stamps = Stamps::new(&log, 1, &lost);
        let latest: Vec<_> = (1..=8).map(|k| stamps.kth_latest(k)).collect();
        let expected = [9_000, 7_000, 6_000, 5_000, 3_000, 2_000, 1_000].map(Some);
        assert_eq!(latest[..7], expected);
        assert_eq!(latest[7], None);
        assert_eq!(stamps.held(6_000, 1_000), 3, "at 6000 + 1000 the stamps of 6000 and later are held");
        assert_eq!(stamps.held(6_999, 1_000), 3);
        assert_eq!(stamps.held(7_000, 1_000), 2);
        let mut since = Vec::new();
        stamps.since(6_999, 1_000, &mut since);
        assert_eq!(since, [6_000, 7_000, 9_000]);
        assert!(stamps.iter().eq([1_000, 2_000, 3_000, 5_000, 6_000, 7_000, 9_000]));
    }
}
