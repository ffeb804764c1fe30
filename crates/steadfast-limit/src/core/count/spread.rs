use std::num::NonZeroU32;

use crate::core::{count::paced, rules::Bound, spent::stamps::Stamps, time::Nanos};

/// The slots of a window that requests without an answer hold. The gateway may have counted each, or not yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots<'a> {
    /// Each of these holds its slot until a period after its instant. They ascend.
    pub(crate) held: &'a [Nanos],
    /// This many more hold theirs until they are answered.
    pub(crate) until_answered: u32,
}

impl Slots<'_> {
    /// Returns how many of `limit` slots are free, and from when on, if nothing else happens: first as many as are free at
    /// `now`, or else the first one that will be, then one more at a time. Nothing if none is free before an answer.
    pub(crate) fn free(self, limit: u32, period: Nanos, now: Nanos) -> impl Iterator<Item = (Nanos, u32)> {
        let held = &self.held[self.held.partition_point(|stamp| stamp + period <= now)..];
        let all = held.len() + self.until_answered as usize;
        let too_many = (all + 1).saturating_sub(limit as usize);
        (too_many..=held.len()).map(move |over| {
            let from = over.checked_sub(1).map_or(0, |last| held[last] + period);
            (from, limit - (all - over) as u32)
        })
    }
}

/// A bucket that spreads the requests of a zone over the slots that are free.
///
/// A request without an answer does not fill it for as long as the gateway may count it, because that would hold up all
/// others. It fills it once, when it is given up or its patience ends. Until the gateway can no longer count it, it holds
/// one of the [slots](Slots).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    interval: Nanos,
    burst: u32,
}

impl Bucket {
    /// Makes a bucket for `free` slots of `bound`, with `burst` or as much of it as they allow.
    pub(crate) fn new(bound: &Bound, free: u32, burst: NonZeroU32) -> Self {
        let burst = burst.get().min(free / 2).max(1);
        Self { interval: paced::interval(bound, free, burst), burst }
    }

    /// Returns when it has room for one more request after those at `stamps`, with `busy` that must be answered first.
    /// `None` if too many are.
    pub(crate) fn opens(self, stamps: Stamps<'_>, busy: u32) -> Option<Nanos> {
        paced::earliest(stamps.iter(), self.interval, self.burst.into(), busy.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{rules::ceilings::LANES, spent::log::StampLog, time::held};

    const SECOND: Nanos = 1_000_000_000;

    #[test]
    fn each_request_without_an_answer_holds_one_slot_until_a_period_later() {
        let free = |limit, until_answered, now| {
            Slots { held: &[10, 30, 50], until_answered }.free(limit, 100, now).collect::<Vec<_>>()
        };
        assert_eq!(free(10, 0, 109), [(0, 7), (110, 8), (130, 9), (150, 10)]);
        assert_eq!(free(10, 0, 110), [(0, 8), (130, 9), (150, 10)]);
        assert_eq!(free(10, 2, 149), [(0, 7), (150, 8)]);
        assert_eq!(free(3, 0, 0), [(110, 1), (130, 2), (150, 3)], "one must end");
        assert_eq!(free(3, 2, 0), [(150, 1)], "all three must end");
        assert_eq!(free(3, 3, 0), [], "and one more be answered");
    }

    #[test]
    fn the_fewer_slots_are_free_the_further_apart_are_requests() {
        let bound = Bound {
            limit: 10,
            nominal: SECOND,
            period: held(SECOND),
            ceilings: [10; LANES],
            reach: 0,
            at_once: 10,
        };
        for (free, burst, intervals) in [(10, 1, 9), (9, 1, 8), (2, 1, 1), (10, 5, 5), (3, 5, 2)] {
            let bucket = Bucket::new(&bound, free, NonZeroU32::new(burst).unwrap());
            assert_eq!(bucket.interval, held(SECOND).div_ceil(intervals), "{free} free, a burst of {burst}");
        }
        let log = StampLog::default();
        let bucket = Bucket::new(&bound, 9, NonZeroU32::MIN);
        let opens = |lost: &[Nanos], busy| bucket.opens(Stamps::new(&log, 1_000, lost), busy);
        assert_eq!(opens(&[], 0), Some(0));
        assert_eq!(opens(&[7 * SECOND], 0), Some(7 * SECOND + bucket.interval + 1_000_000));
        assert_eq!(opens(&[], 1), None);
    }
}
