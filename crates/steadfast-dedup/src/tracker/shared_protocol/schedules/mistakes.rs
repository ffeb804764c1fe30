//! Mistakes in the shared protocol that the checker must find: they show that it would find another one.

use super::*;
use crate::tracker::waiters::Waiters;

/// A mistake in a shared protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    None,
    /// Waiters are woken before there is anything to see.
    WakesBeforeItSteps,
    /// A look and the wait are two steps.
    LooksBeforeItWaits,
    /// The decision that a poller is needed and the note that there is one are two steps.
    StartsByHearsay,
    /// The poller's check that nothing is due and the note that it is gone are two steps.
    EndsByHearsay,
    /// The poller sleeps though its plan is out of date.
    SleepsByAnOldPlan,
}

impl World {
    pub(super) fn step_after_waking(&self, event: Event) -> Aftermath {
        let is_call = |about: &About| matches!(about, About::Intent(_));
        let waiting = self.shared.look(|state| state.waiters.wakers(is_call));
        waiting.into_iter().for_each(Waker::wake);
        let mut aside = Waiters::default();
        let (_, after) = self.shared.enter(|state, now, out| {
            aside = state.waiters.set_aside(is_call);
            self.take(state, now, event, out);
        });
        self.shared.look(|state| state.waiters.put_back(aside));
        after
    }

    // This world's shared protocol may not start a poller, so it starts no poller itself.
    pub(super) fn step_and_start_later(&self, event: Event) -> Aftermath {
        let ((), after) = self.shared.enter(|state, now, out| self.take(state, now, event, out));
        let is_needed =
            |state: &mut State| state.poller == PollerState::Absent && state.protocol.next_wake().is_some();
        let needed = self.shared.look(is_needed);
        if needed {
            self.shared.look(|state| state.poller = PollerState::Awake);
        }
        Aftermath { starts_poller: needed, ..after }
    }
}

/// Runs the checker with a seed, so that it finds the mistake in the same schedules each time.
///
/// A schedule that fails may end the process: dropping after a panic waits for locks, which the checker does not
/// allow then.
fn find(mistake: Mistake) {
    shuttle::check_random_with_seed(move || from_zero(|| storm(mistake)), 1, 20_000);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_wake_up_before_the_change_is_found() {
    find(Mistake::WakesBeforeItSteps);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_look_before_the_wait_is_found() {
    find(Mistake::LooksBeforeItWaits);
}

#[test]
#[should_panic(expected = "two pollers")]
fn a_poller_that_is_started_twice_is_found() {
    find(Mistake::StartsByHearsay);
}

#[test]
#[should_panic(expected = "nobody to do it")]
fn a_poller_that_ends_with_work_left_is_found() {
    find(Mistake::EndsByHearsay);
}

#[test]
#[should_panic(expected = "sleeps by an old plan")]
fn a_poller_that_sleeps_by_an_old_plan_is_found() {
    find(Mistake::SleepsByAnOldPlan);
}
