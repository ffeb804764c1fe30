#[cfg(all(test, shuttle))]
mod schedules;
mod state;

use std::{
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use self::state::PollerState;
pub(crate) use self::state::{Effects, State};
use crate::{
    protocol::{
        effect::Effect,
        order_event::OrderEvent,
        order_protocol::OrderProtocol,
        wake::{Purpose, Wake},
    },
    tracker::{
        sync::{Clock, Mutex},
        timekeeper::Timekeeper,
        waiters::{About, WakerNo},
    },
};

/// How often the poller asks when the trading day ends: a wall clock may be set, or run on while the machine sleeps.
const DAY_ASKED_EVERY: Duration = Duration::from_secs(20);

/// An account's protocol behind its one lock, with the wakers of the calls and the poller that wait for it.
///
/// A waiter checks and leaves its waker under one lock; a step of the protocol takes the wakers that it concerns
/// under the same lock. So no change falls between a check and the wait, and a dropped wait leaves nothing. Whether
/// the poller must be started or woken is decided there, too. It starts and reports nothing itself: its
/// caller does that without the lock, so a model checker can run it under every order of threads.
pub(crate) struct SharedProtocol {
    clock: Clock,
    state: Mutex<State>,
}

/// The poller's next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    Read(Purpose),
    Tick,
    SleepUntil(Duration),
    /// Nothing is due: the poller ends, and is started again when something is.
    End,
}

/// The work that is left after a step, to be done without the lock.
#[must_use]
pub(crate) struct Aftermath {
    pub(crate) reports: Vec<OrderEvent>,
    /// Whether the poller must be started; the receiver of this starts it.
    pub(crate) starts_poller: bool,
}

impl SharedProtocol {
    pub(crate) fn new(protocol: OrderProtocol, time: Timekeeper) -> Self {
        Self { clock: Clock::start(), state: Mutex::new(State::new(protocol, time)) }
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn get_mut(&mut self) -> &mut State {
        self.state.get_mut()
    }

    /// Looks at the state without a change that any waiter needs to see.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock())
    }

    /// Runs `action` under the lock, and wakes the waiters that its effects concern.
    pub(crate) fn enter<T>(
        &self,
        action: impl FnOnce(&mut State, Duration, &mut Effects) -> T,
    ) -> (T, Aftermath) {
        let (mut effects, mut reports, mut woken) = (Effects::default(), Vec::new(), Vec::new());
        let mut state = self.state.lock();
        // Read under the lock, so that instants enter the protocol in order.
        let now = self.clock.now();
        let result = action(&mut state, now, &mut effects);
        for effect in effects.into_vec() {
            match effect {
                Effect::Decided(intent) => state.waiters.take(About::Intent(intent), &mut woken),
                Effect::Report(event) => reports.push(event),
                Effect::Seen { .. }
                | Effect::Confirmed(_)
                | Effect::DayRenamed { .. }
                | Effect::NamedUntil { .. } => {}
            }
        }
        state.reporting += usize::from(!reports.is_empty());
        state.waiters.take(About::Change, &mut woken);
        let starts_poller = state.rouse(&mut woken);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        (result, Aftermath { reports, starts_poller })
    }

    /// Notes that the events of a step were sent, and wakes those who wait for that.
    pub(crate) fn reported(&self) {
        let mut woken = Vec::new();
        let mut state = self.state.lock();
        state.reporting -= 1;
        state.waiters.take(About::Change, &mut woken);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Returns the poller's next action; `day_left` returns how much of the trading day is left.
    pub(crate) fn plan(&self, day_left: impl FnOnce(&State) -> Duration) -> Plan {
        let mut state = self.state.lock();
        let now = self.clock.now();
        if state.protocol.is_watching() {
            // Asked each time: a wall clock may be set.
            let left = day_left(&state);
            state.protocol.end_day_at(now.saturating_add(left));
        }
        let (poller, plan) = match state.next_wake() {
            // Under the lock: a later step that makes something due starts another poller.
            None => (PollerState::Absent, Plan::End),
            Some(Wake::Read(at, purpose)) if at <= now => (PollerState::Awake, Plan::Read(purpose)),
            Some(Wake::Tick(at)) if at <= now => (PollerState::Awake, Plan::Tick),
            Some(wake @ (Wake::Read(at, _) | Wake::Tick(at))) => {
                let asks =
                    if state.protocol.is_watching() { now.saturating_add(DAY_ASKED_EVERY) } else { at };
                (PollerState::Asleep(wake), Plan::SleepUntil(at.min(asks)))
            }
        };
        state.poller = poller;
        plan
    }

    /// Sleeps until `at`, or until something else is due. A change since the plan was made ends it at once.
    pub(crate) async fn sleep_until(&self, at: Duration) {
        let due = |state: &mut State| (!matches!(state.poller, PollerState::Asleep(_))).then_some(());
        // In both cases a new plan is made.
        let _ = self.clock.until(at, self.wait(About::Plan, due)).await;
    }

    /// Notes that the last handle of the tracker is gone: doubts are still resolved, but nothing is watched for.
    pub(crate) fn lose_handles(&self) {
        let mut woken = Vec::new();
        let mut state = self.state.lock();
        state.has_handles = false;
        // ## Asleep => Awake
        //
        // Its reason to sleep may be gone. Nothing new becomes due, so no poller is started.
        if matches!(state.poller, PollerState::Asleep(_)) {
            state.poller = PollerState::Awake;
            state.waiters.take(About::Plan, &mut woken);
        }
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Notes that the poller could not be started.
    pub(crate) fn poller_gone(&self) {
        self.state.lock().poller = PollerState::Absent;
    }

    /// Notes that the poller was dropped with work left, and wakes all who wait: one of them may be on a runtime that can
    /// start the next.
    pub(crate) fn poller_dropped(&self) {
        let mut state = self.state.lock();
        state.poller = PollerState::Absent;
        let woken = state.waiters.take_all();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// True if there is work for a poller, and none.
    pub(crate) fn lacks_poller(&self) -> bool {
        let state = self.state.lock();
        matches!(state.poller, PollerState::Absent) && state.can_poll && state.next_wake().is_some()
    }

    /// Waits until `look` finds something; it is asked again after each step about this subject.
    pub(crate) fn wait<T, F>(&self, about: About, look: F) -> Wait<'_, F>
    where
        F: FnMut(&mut State) -> Option<T> + Unpin,
    {
        Wait { shared: self, about, look, waker_no: None }
    }

    /// Looks once; if it finds nothing, leaves the waker under `waker_no` for this subject.
    pub(crate) fn poll_wait<T>(
        &self,
        about: About,
        waker_no: &mut Option<WakerNo>,
        cx: &Context<'_>,
        look: impl FnOnce(&mut State) -> Option<T>,
    ) -> Poll<T> {
        let mut state = self.state.lock();
        if let Some(found) = look(&mut state) {
            return Poll::Ready(found);
        }
        state.waiters.leave(about, waker_no, cx.waker());
        Poll::Pending
    }

    /// Ends a wait, whose waker is under `waker_no` if it left one.
    pub(crate) fn stop_waiting(&self, about: About, waker_no: Option<WakerNo>) {
        if let Some(waker_no) = waker_no {
            let kept = self.state.lock().waiters.remove(about, waker_no);
            // Without the lock: a waker may hold the last reference to a task.
            drop(kept);
        }
    }
}

/// A wait for a change of the protocol. Dropping it has no effect.
pub(crate) struct Wait<'a, F> {
    shared: &'a SharedProtocol,
    about: About,
    look: F,
    waker_no: Option<WakerNo>,
}

impl<T, F> Future for Wait<'_, F>
where
    F: FnMut(&mut State) -> Option<T> + Unpin,
{
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let this = &mut *self;
        this.shared.poll_wait(this.about, &mut this.waker_no, cx, &mut this.look)
    }
}

impl<F> Drop for Wait<'_, F> {
    fn drop(&mut self) {
        self.shared.stop_waiting(self.about, self.waker_no);
    }
}
