use std::task::Waker;

use crate::{
    core::{
        decision::{Ask, Decision, Grant, WaiterId},
        event::Event,
        limiter::Limiter,
        time::Nanos,
    },
    shell::{open_calls::OpenCalls, sync::Mutex, wakers::Wakers},
};

/// The core behind its one lock, and the wakers of the waiters.
///
/// A slot that becomes free belongs to a waiter before the lock is released, so no waiter is woken in vain and no
/// other request takes the slot. There is no clock and no timer: instants come in with each call, so a model checker
/// can run this through every order of threads.
pub(crate) struct HandOff {
    state: Mutex<State>,
}

struct State {
    core: Limiter,
    wakers: Wakers,
    open_calls: OpenCalls,
}

impl HandOff {
    pub(crate) fn new(core: Limiter) -> Self {
        Self {
            state: Mutex::new(State { core, wakers: Wakers::default(), open_calls: OpenCalls::default() }),
        }
    }

    /// Calls the core under the lock, then wakes the waiters concerned. Returns the events; the caller reports them
    /// without the lock.
    pub(crate) fn with<T>(&self, call: impl FnOnce(&mut Limiter) -> T) -> (T, Vec<Event>) {
        self.with_all(|core, _, _| call(core))
    }

    /// Takes a place in the queues for `ask`, or polls the place that it has. `waker` is called when it must poll
    /// again. The returned instant is when it must poll in any case, because other waiters may be absent.
    pub(crate) fn poll(
        &self,
        place: &mut Option<WaiterId>,
        ask: &Ask<'_>,
        waker: &Waker,
        now: Nanos,
    ) -> (Decision, Nanos, Vec<Event>) {
        let former = *place;
        let ((decision, wakes_at, asked, _), events) = self.with_all(|core, wakers, open_calls| {
            // Calls that have an answer and are not polled hold up the waiters.
            let asked = if former.is_some() { open_calls.check(core, now) } else { Vec::new() };
            let known = former.and_then(|waiter| core.poll(waiter, now));
            // A waiter that was absent at its turn gets its old place back.
            let decision = known.unwrap_or_else(|| core.acquire_at(ask, former, now));
            let waits = if let Decision::Queued { waiter, .. } = &decision { Some(*waiter) } else { None };
            let left = former.filter(|former| waits != Some(*former));
            let forgotten = left.and_then(|former| wakers.forget(former));
            let replaced = waits.and_then(|waiter| wakers.keep(waiter, waker));
            let wakes_at = waits.map_or(Nanos::MAX, |waiter| core.plan_wake(waiter, now));
            (decision, wakes_at, asked, (forgotten, replaced))
        });
        asked.into_iter().for_each(Waker::wake);
        // A granted or refused request has no place in any queue.
        *place = match &decision {
            Decision::Queued { waiter, .. } => Some(*waiter),
            Decision::Granted(_) | Decision::Refused(_) => None,
        };
        (decision, wakes_at, events)
    }

    /// Gives up a place. A slot granted meanwhile goes to the next waiter.
    pub(crate) fn leave(&self, waiter: WaiterId, now: Nanos) -> Vec<Event> {
        let (_, events) = self.with_all(|core, wakers, _| {
            core.cancel(waiter, now);
            wakers.forget(waiter)
        });
        events
    }

    /// Records that the call behind `grant` was polled and is pending, and keeps its waker. False if the call must
    /// ask for a new permit: it had not left, and its slots were given away while it was not polled.
    pub(crate) fn keep_alive(
        &self,
        owner: &mut Option<usize>,
        grant: &mut Option<Grant>,
        sent: Option<Nanos>,
        waker: &Waker,
        now: Nanos,
    ) -> bool {
        let ((holds, _), events) = self.with_all(|core, _, open_calls| match (*owner, grant.take()) {
            (Some(owner), _) => open_calls.seen(owner, sent, waker, core, now),
            (None, Some(grant)) => {
                *owner = Some(open_calls.insert(grant, sent, waker, now));
                (true, None)
            }
            (None, None) => (false, None),
        });
        debug_assert!(events.is_empty(), "a poll settles nothing: {events:?}");
        holds
    }

    /// Removes a call that has ended and returns the grant that it still held.
    pub(crate) fn end_call(&self, owner: usize) -> Option<Grant> {
        let (grant, _waker) = self.state.lock().open_calls.remove(owner)?;
        grant
    }

    fn with_all<T>(
        &self,
        call: impl FnOnce(&mut Limiter, &mut Wakers, &mut OpenCalls) -> T,
    ) -> (T, Vec<Event>) {
        let mut state = self.state.lock();
        let State { core, wakers, open_calls } = &mut *state;
        let result = call(core, wakers, open_calls);
        let woken = core.take_woken();
        let events = core.take_events();
        if !woken.is_empty() {
            let woken: Vec<_> = woken.into_iter().filter_map(|waiter| wakers.take(waiter)).collect();
            drop(state);
            woken.into_iter().for_each(Waker::wake);
        }
        (result, events)
    }
}

/// The views that the model checker's tests need.
#[cfg(all(test, shuttle))]
impl HandOff {
    /// Returns how many wakers are kept.
    pub(crate) fn kept_wakers(&self) -> usize {
        self.state.lock().wakers.len()
    }

    /// Does what [`with`](Self::with) does, without its last line: no waiter is woken.
    pub(crate) fn without_waking(&self, call: impl FnOnce(&mut Limiter)) {
        let mut state = self.state.lock();
        call(&mut state.core);
        drop(state.core.take_woken());
    }
}
