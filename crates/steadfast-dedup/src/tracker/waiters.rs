use std::{collections::BTreeMap, task::Waker};

use crate::numbers::IntentNo;

/// The wakers of the calls and the poller that wait for a change of the protocol, by the subject of the wait.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    wakers: BTreeMap<(About, Place), Waker>,
    last: u64,
}

/// The subject of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum About {
    /// The poller's plan.
    Plan,
    /// Any change.
    Change,
    /// A decision about an intent.
    Intent(IntentNo),
}

/// The place of a waker among all that were ever left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(u64);

impl Waiters {
    /// Leaves a waker at `place`, or at a new one that is noted there.
    pub(crate) fn leave(&mut self, about: About, place: &mut Option<Place>, waker: &Waker) {
        let place = *place.get_or_insert_with(|| {
            self.last += 1;
            Place(self.last)
        });
        self.wakers.entry((about, place)).or_insert_with(|| waker.clone()).clone_from(waker);
    }

    /// Moves the wakers of a subject to `woken`.
    pub(crate) fn take(&mut self, about: About, woken: &mut Vec<Waker>) {
        let all = (about, Place(0))..=(about, Place(u64::MAX));
        while let Some((&place, _)) = self.wakers.range(all.clone()).next() {
            woken.extend(self.wakers.remove(&place));
        }
    }

    /// Removes all wakers.
    pub(crate) fn take_all(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.wakers).into_values().collect()
    }

    /// Removes a waker. To be dropped without the lock: it may hold the last reference to a task.
    #[must_use]
    pub(crate) fn remove(&mut self, about: About, place: Place) -> Option<Waker> {
        self.wakers.remove(&(about, place))
    }
}

/// For the checker of schedules, which makes mistakes on purpose.
#[cfg(all(test, shuttle))]
impl Waiters {
    pub(crate) fn subjects(&self) -> impl Iterator<Item = &About> {
        self.wakers.keys().map(|(about, _)| about)
    }

    pub(crate) fn wakers(&self, is_wanted: impl Fn(&About) -> bool) -> Vec<Waker> {
        let wanted = self.wakers.iter().filter(|((about, _), _)| is_wanted(about));
        wanted.map(|(_, waker)| waker.clone()).collect()
    }

    /// Removes the waiters of some subjects, to be put back later.
    pub(crate) fn set_aside(&mut self, is_meant: impl Fn(&About) -> bool) -> Self {
        let wakers = self.wakers.extract_if(.., |(about, _), _| is_meant(about)).collect();
        Self { wakers, last: self.last }
    }

    pub(crate) fn put_back(&mut self, mut aside: Self) {
        self.wakers.append(&mut aside.wakers);
    }
}
