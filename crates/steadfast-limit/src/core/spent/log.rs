use std::collections::VecDeque;

use crate::core::time::Nanos;

const MICROSECOND: Nanos = 1_000;

/// The response stamps of one key, oldest first: 4 bytes each, shared by all windows of the zone.
///
/// A stamp is stored as a number of units after a moving base. It is rounded up, so a stored stamp is never older
/// than the real one.
#[derive(Debug, Default)]
pub(crate) struct StampLog {
    base: Nanos,
    units: VecDeque<u32>,
}

impl StampLog {
    pub(crate) fn len(&self) -> usize {
        self.units.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Returns the bytes taken on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.units.capacity() * size_of::<u32>()
    }

    /// Returns the stamp at `index`, counted from the oldest.
    pub(crate) fn get(&self, index: usize, unit: Nanos) -> Option<Nanos> {
        self.units.get(index).map(|units| self.base + u64::from(*units) * unit)
    }

    /// Returns the stamps from `index` on, the oldest first.
    pub(crate) fn from(&self, index: usize, unit: Nanos) -> impl Iterator<Item = Nanos> {
        let base = self.base;
        self.units.range(index.min(self.len())..).map(move |units| base + u64::from(*units) * unit)
    }

    /// Returns how many stamps are at least `period` old at `now`.
    pub(crate) fn expired(&self, now: Nanos, period: Nanos, unit: Nanos) -> usize {
        self.units.partition_point(|units| self.base + u64::from(*units) * unit + period <= now)
    }

    /// Returns the `k`th latest stamp; `k` = 1 is the latest.
    pub(crate) fn kth_latest(&self, k: usize, unit: Nanos) -> Option<Nanos> {
        self.len().checked_sub(k).and_then(|index| self.get(index, unit))
    }

    /// Appends `stamp`, which is not older than any before it. `usual` is the length in ordinary use: the capacity
    /// doubles, but stops at `usual` until that is exceeded.
    pub(crate) fn push(&mut self, stamp: Nanos, unit: Nanos, usual: usize) {
        if self.is_empty() {
            self.base = stamp;
        }
        if self.units.len() == self.units.capacity() {
            let doubled = (2 * self.units.capacity()).max(8);
            let wanted = if self.len() < usual { doubled.min(usual) } else { doubled };
            self.units.reserve_exact(wanted - self.len());
        }
        let units = self.units_at(stamp, unit);
        self.units.push_back(units);
    }

    /// Forgets the stamps that are at least `retention` old at `now`.
    pub(crate) fn expire(&mut self, now: Nanos, retention: Nanos, unit: Nanos) {
        while self.get(0, unit).is_some_and(|oldest| oldest + retention <= now) {
            self.units.pop_front();
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.units = VecDeque::new();
    }

    /// Returns `stamp` in units after the base. Moves the base first if it is too far back.
    fn units_at(&mut self, stamp: Nanos, unit: Nanos) -> u32 {
        let since = stamp.saturating_sub(self.base);
        // Nearly every zone counts microseconds, and division by a constant compiles to a multiplication.
        let units = if unit == MICROSECOND { since.div_ceil(MICROSECOND) } else { since.div_ceil(unit) };
        if let Ok(units) = u32::try_from(units) {
            return units;
        }
        let oldest = self.units.front().copied().unwrap_or(0);
        self.base += u64::from(oldest) * unit;
        for units in &mut self.units {
            *units -= oldest;
        }
        // The unit is chosen so that all retained stamps are in range. A stamp beyond it was not expired in time,
        // and counts as the latest possible one.
        u32::try_from(stamp.saturating_sub(self.base).div_ceil(unit)).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: Nanos = 1_000;

    #[test]
    fn a_stamp_is_rounded_up_and_never_down() {
        let mut log = StampLog::default();
        log.push(500, UNIT, 8);
        log.push(501, UNIT, 8);
        log.push(1_500, UNIT, 8);
        assert_eq!(
            (0..3).map(|i| log.get(i, UNIT)).collect::<Vec<_>>(),
            [Some(500), Some(1_500), Some(1_500)]
        );
        assert_eq!(log.kth_latest(3, UNIT), Some(500));
        assert_eq!(log.kth_latest(4, UNIT), None);
    }

    #[test]
    fn the_base_moves_along_over_days() {
        let mut log = StampLog::default();
        let hour = 3_600_000_000_000;
        for i in 1..=72 {
            log.expire(i * hour, hour, UNIT);
            log.push(i * hour, UNIT, 8);
            assert_eq!(log.kth_latest(1, UNIT), Some(i * hour), "hour {i}");
        }
        assert_eq!(log.len(), 1);
    }

    #[test]
    fn a_moved_base_keeps_the_stamps_that_stay() {
        let mut log = StampLog::default();
        let (early, late) = (4_000_000_000_000, 4_294_967_297_000);
        log.push(0, UNIT, 8);
        log.push(early, UNIT, 8);
        log.expire(early, early, UNIT);
        log.push(late, UNIT, 8);
        assert_eq!((log.get(0, UNIT), log.get(1, UNIT)), (Some(early), Some(late)));
    }

    #[test]
    fn the_log_of_a_full_zone_takes_no_more_than_its_usual_length() {
        let mut log = StampLog::default();
        for i in 0..800 {
            log.push(i * 1_000_000, UNIT, 800);
        }
        assert_eq!(log.heap_bytes(), 3_200);
    }
}
