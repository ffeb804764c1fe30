use std::{collections::BTreeMap, task::Waker};

use crate::numbers::IntentNo;

/// The wakers of the calls and the poller that wait for a change of the protocol, by the subject of the wait.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    wakers: BTreeMap<(About, WakerNo), Waker>,
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

/// The number of a waker among all that were ever left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WakerNo(u64);

impl Waiters {
    /// Leaves a waker under `waker_no`, or under a new number that is noted there.
    pub(crate) fn leave(&mut self, about: About, waker_no: &mut Option<WakerNo>, waker: &Waker) {
        let waker_no = *waker_no.get_or_insert_with(|| {
            self.last += 1;
            WakerNo(self.last)
        });
        self.wakers.entry((about, waker_no)).or_insert_with(|| waker.clone()).clone_from(waker);
    }

    /// Moves the wakers of a subject to `woken`.
    pub(crate) fn take(&mut self, about: About, woken: &mut Vec<Waker>) {
        let all = (about, WakerNo(0))..=(about, WakerNo(u64::MAX));
        woken.extend(self.wakers.extract_if(all, |_, _| true).map(|(_, waker)| waker));
    }

    /// Removes all wakers.
    pub(crate) fn take_all(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.wakers).into_values().collect()
    }

    /// Removes a waker. To be dropped without the lock: it may hold the last reference to a task.
    #[must_use]
    pub(crate) fn remove(&mut self, about: About, waker_no: WakerNo) -> Option<Waker> {
        self.wakers.remove(&(about, waker_no))
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
