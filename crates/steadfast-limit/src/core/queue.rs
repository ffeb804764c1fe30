use std::collections::VecDeque;

use steadfast_call::Lane;

use crate::core::{
    decision::{Ask, WaiterId},
    rules::ceilings::LANES,
    time::Nanos,
};

/// A waiter's place: higher lanes first, then the order of arrival.
///
/// The order is the same in every queue that a waiter is in. So the foremost of several waiters for several zones is
/// foremost everywhere, and no two can wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) lane: Lane,
    /// Grows with every arrival. At the head of the lane it is negative, below all others.
    pub(crate) turn: i64,
    pub(crate) waiter: WaiterId,
}

impl Place {
    /// Returns the place of `waiter`, which asks for `ask`.
    pub(crate) fn of(waiter: WaiterId, ask: &Ask<'_>) -> Self {
        let turn = if ask.head_of_lane { i64::MIN + waiter.turn } else { waiter.turn };
        Self { lane: ask.lane, turn, waiter }
    }
}

/// The waiters for one key of one zone.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// In order. Most arrive at the end and leave at the front, and a place's rank is found by halving.
    places: VecDeque<Place>,
    waiting: [u32; LANES],
    alarm: Option<Alarm>,
    /// The waiter that keeps the same timer as the alarm's waiter.
    deputy: Option<WaiterId>,
    computed: Option<Computed>,
    /// When the last roll call was made, or 0 if none is open.
    called: Nanos,
}

/// When the zone opens, as last computed for a waiter. Valid until the key changes: without a change, every rule gives
/// the same instant however often it is asked before that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Computed {
    pub(crate) version: u32,
    pub(crate) lane: Lane,
    pub(crate) ahead: u32,
    pub(crate) opens: Option<Nanos>,
}

/// The one timer of a queue: its waiter and its instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alarm {
    pub(crate) waiter: WaiterId,
    pub(crate) at: Nanos,
}

impl Queue {
    pub(crate) fn insert(&mut self, place: Place) {
        if let Err(rank) = self.places.binary_search(&place) {
            self.places.insert(rank, place);
            self.waiting[place.lane as usize] += 1;
        }
    }

    pub(crate) fn remove(&mut self, place: &Place) {
        if let Ok(rank) = self.places.binary_search(place) {
            self.places.remove(rank);
            self.waiting[place.lane as usize] -= 1;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns how many wait.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns how many wait in each lane.
    pub(crate) fn waiting(&self) -> [u32; LANES] {
        self.waiting
    }

    pub(crate) fn alarm(&self) -> Option<Alarm> {
        self.alarm
    }

    /// Moves the alarm to the foremost waiter, or to another instant. Returns the waiter to wake: one that has a new
    /// alarm, or an earlier one. An alarm that comes too early costs one poll and is then set again.
    pub(crate) fn set_alarm(&mut self, alarm: Option<Alarm>) -> Option<WaiterId> {
        let before = std::mem::replace(&mut self.alarm, alarm);
        let is_new =
            |alarm: &Alarm| before.is_none_or(|before| before.waiter != alarm.waiter || alarm.at < before.at);
        alarm.filter(is_new).map(|alarm| alarm.waiter)
    }

    pub(crate) fn deputy(&self) -> Option<WaiterId> {
        self.deputy
    }

    /// Lets `waiter` keep the same timer as the alarm's waiter.
    pub(crate) fn appoint(&mut self, waiter: WaiterId) {
        self.deputy = Some(waiter);
    }

    /// Returns the last result, if it was for the same question.
    pub(crate) fn computed(&self, version: u32, lane: Lane, ahead: u32) -> Option<Computed> {
        self.computed.filter(|last| (last.version, last.lane, last.ahead) == (version, lane, ahead))
    }

    pub(crate) fn remember(&mut self, computed: Computed) {
        self.computed = Some(computed);
    }

    /// Begins a roll call. False if one is open.
    pub(crate) fn begin_call(&mut self, now: Nanos) -> bool {
        let begins = self.called == 0;
        if begins {
            self.called = now.max(1);
        }
        begins
    }

    /// Returns when the open roll call was made.
    pub(crate) fn called(&self) -> Option<Nanos> {
        (self.called > 0).then_some(self.called)
    }

    /// Ends a roll call that was made by `until`, and returns when it was made.
    pub(crate) fn end_call(&mut self, until: Nanos) -> Option<Nanos> {
        let called = self.called().filter(|called| *called <= until)?;
        self.called = 0;
        Some(called)
    }

    /// Returns the place that has so many ahead of it.
    pub(crate) fn at(&self, ahead: u32) -> Option<Place> {
        self.places.get(ahead as usize).copied()
    }

    /// Returns how many stand ahead of `place`.
    pub(crate) fn ahead_of(&self, place: &Place) -> u32 {
        self.places.partition_point(|other| other < place) as u32
    }

    /// Returns how many would stand ahead of a request that came now.
    pub(crate) fn ahead_of_new(&self, lane: Lane, head: bool) -> u32 {
        if head {
            // Behind those at the head of the lane, whose turns are negative.
            return self.ahead_of(&Place { lane, turn: 0, waiter: WaiterId { slot: 0, turn: 0 } });
        }
        self.waiting[..=lane as usize].iter().sum()
    }

    /// Returns all waiters, the foremost first.
    pub(crate) fn waiters(&self) -> Vec<WaiterId> {
        self.places.iter().map(|place| place.waiter).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiter_knows_how_many_are_ahead() {
        let mut queue = Queue::default();
        // A request at the head of its lane has a negative turn.
        let order = [(Lane::Critical, 4), (Lane::Trading, -3), (Lane::Trading, 1), (Lane::Bulk, -5)];
        let places = order.map(|(lane, turn)| Place { lane, turn, waiter: WaiterId { slot: 0, turn: 0 } });
        places.iter().rev().for_each(|place| queue.insert(*place));
        assert_eq!(places.each_ref().map(|place| queue.ahead_of(place)), [0, 1, 2, 3]);
        assert_eq!(queue.ahead_of_new(Lane::Trading, true), 2);
        assert_eq!(queue.ahead_of_new(Lane::Trading, false), 3);
    }
}
