use std::{
    collections::BTreeSet,
    ops::Bound::{Excluded, Unbounded},
};

use steadfast_spec::Lane;

use crate::{Nanos, ceilings::LANES, decision::WaiterId};

/// Where a waiter stands: higher lanes first, then in the order of arrival.
///
/// The order is the same in every queue that a waiter stands in, so that of several waiters for several zones the
/// foremost is always the foremost everywhere, and no two can wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) lane: Lane,
    /// Grows with every arrival; who goes to the head of its lane gets one below all others.
    pub(crate) turn: i64,
    pub(crate) waiter: WaiterId,
}

/// Those who wait for one key of one zone.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    places: BTreeSet<Place>,
    waiting: [u32; LANES],
    pub(crate) alarm: Option<Alarm>,
    /// Who looks at the timer beside the one that keeps it.
    pub(crate) deputy: Option<WaiterId>,
    pub(crate) answered: Option<Answered>,
    /// When everybody here was last called to show that he is there, if that is still to be looked at.
    pub(crate) called: Nanos,
}

/// When the zone opens, as last worked out for one who waits: true until the key changes, because without a change
/// a later look finds the same instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    pub(crate) version: u32,
    pub(crate) lane: Lane,
    pub(crate) ahead: u32,
    pub(crate) opens: Option<Nanos>,
}

/// The one timer of a queue: which waiter keeps it, and for when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alarm {
    pub(crate) waiter: WaiterId,
    pub(crate) at: Nanos,
}

impl Queue {
    pub(crate) fn insert(&mut self, place: Place) {
        if self.places.insert(place) {
            self.waiting[place.lane as usize] += 1;
        }
    }

    pub(crate) fn remove(&mut self, place: &Place) {
        if self.places.remove(place) {
            self.waiting[place.lane as usize] -= 1;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// How many wait in each lane.
    pub(crate) fn waiting(&self) -> [u32; LANES] {
        self.waiting
    }

    /// The foremost place, or the one next behind `place`.
    pub(crate) fn behind(&self, place: Option<&Place>) -> Option<Place> {
        match place {
            None => self.places.first().copied(),
            Some(place) => self.places.range((Excluded(place), Unbounded)).next().copied(),
        }
    }

    /// How many stand ahead of `place`.
    pub(crate) fn ahead_of(&self, place: &Place) -> u32 {
        self.places.range(..place).fold(0, |ahead, _| ahead + 1)
    }

    /// How many would stand ahead of one who came now.
    pub(crate) fn ahead_of_new(&self, lane: Lane, head: bool) -> u32 {
        let lanes = if head { lane as usize } else { lane as usize + 1 };
        self.waiting[..lanes].iter().sum()
    }

    /// All places, the foremost first.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Place> {
        self.places.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_knows_how_many_are_ahead() {
        let mut queue = Queue::default();
        // Whoever goes to the head of his lane has the lower turn.
        let order = [(Lane::Critical, 4), (Lane::Trading, -3), (Lane::Trading, 1), (Lane::Bulk, -5)];
        let places = order.map(|(lane, turn)| Place { lane, turn, waiter: WaiterId { slot: 0, turn: 0 } });
        places.iter().rev().for_each(|place| queue.insert(*place));
        assert_eq!(places.each_ref().map(|place| queue.ahead_of(place)), [0, 1, 2, 3]);
        assert_eq!(queue.ahead_of_new(Lane::Trading, true), 1);
        assert_eq!(queue.ahead_of_new(Lane::Trading, false), 3);
    }
}
