mod owners;
#[cfg(all(test, shuttle))]
mod schedules;

use std::task::Waker;

use self::owners::Owners;
use crate::{Ask, Decision, Event, Grant, Limiter, Nanos, WaiterId, sync::Mutex};

/// The core behind its one lock, and the tasks of those who wait.
///
/// A slot that becomes free belongs to a waiter before the lock is released, so nobody is woken in vain and nobody
/// can take it meanwhile. It has no clock and no timer: both come in with each call, which is what lets a model
/// checker run it through every order of threads.
pub(crate) struct HandOff {
    state: Mutex<State>,
}

struct State {
    core: Limiter,
    wakers: Wakers,
    owners: Owners,
}

impl HandOff {
    pub(crate) fn new(core: Limiter) -> Self {
        Self { state: Mutex::new(State { core, wakers: Wakers::default(), owners: Owners::default() }) }
    }

    /// One call of the core under the lock; whoever it concerns is woken after it. Returns what the caller has to
    /// report, which is done without the lock, too.
    pub(crate) fn with<T>(&self, call: impl FnOnce(&mut Limiter) -> T) -> (T, Vec<Event>) {
        self.with_wakers(|core, _| call(core))
    }

    /// Looks at a place in the queues, or takes one: what `ask` asks for, and where it waits. `waker` is called
    /// when it is to be looked at again. The instant is that at which it looks in any case, because others may not
    /// be there.
    pub(crate) fn poll(
        &self,
        place: &mut Option<WaiterId>,
        ask: &Ask<'_>,
        waker: &Waker,
        now: Nanos,
    ) -> (Decision, Nanos, Vec<Event>) {
        let former = *place;
        let ((decision, looks_at, asked), events) = self.with_all(|core, wakers, owners| {
            // Those whose answers are back and who do not look at them hold up whoever waits.
            let asked = if former.is_some() { owners.look(core, now) } else { Vec::new() };
            let known = former.and_then(|waiter| core.poll(waiter, now));
            // Whoever was not there when it was its turn has its old place again.
            let decision = known.unwrap_or_else(|| core.acquire_at(ask, former, now));
            let waits = if let Decision::Queued { waiter, .. } = &decision { Some(*waiter) } else { None };
            if let Some(former) = former.filter(|former| waits != Some(*former)) {
                wakers.forget(former);
            }
            let looks_at = waits.map_or(Nanos::MAX, |waiter| {
                wakers.keep(waiter, waker);
                core.looks_at(waiter, now)
            });
            (decision, looks_at, asked)
        });
        asked.into_iter().for_each(Waker::wake);
        // Whoever has been granted or refused has no place in any queue any longer.
        *place = match &decision {
            Decision::Queued { waiter, .. } => Some(*waiter),
            Decision::Granted(_) | Decision::Refused(_) => None,
        };
        (decision, looks_at, events)
    }

    /// Gives a place up; what it was granted meanwhile goes to the next.
    pub(crate) fn leave(&self, waiter: WaiterId, now: Nanos) -> Vec<Event> {
        let ((), events) = self.with_wakers(|core, wakers| {
            wakers.forget(waiter);
            core.cancel(waiter, now);
        });
        events
    }

    /// The call that `grant` is for is polled, and waits: by whoever `waker` wakes. False if it must ask again, because it
    /// had not left, and was not polled for so long that its slots are another's.
    pub(crate) fn watch(
        &self,
        owner: &mut Option<usize>,
        grant: &mut Option<Grant>,
        sent: Option<Nanos>,
        waker: &Waker,
        now: Nanos,
    ) -> bool {
        let (holds, _) = self.with_all(|core, _, owners| match (*owner, grant.take()) {
            (Some(owner), _) => owners.seen(owner, sent, waker, core, now),
            (None, Some(grant)) => {
                *owner = Some(owners.insert(grant, sent, waker, now));
                true
            }
            (None, None) => false,
        });
        holds
    }

    /// What a call that has ended still held.
    pub(crate) fn watch_no_more(&self, owner: usize) -> Option<Grant> {
        self.state.lock().owners.remove(owner)
    }

    fn with_wakers<T>(&self, call: impl FnOnce(&mut Limiter, &mut Wakers) -> T) -> (T, Vec<Event>) {
        self.with_all(|core, wakers, _| call(core, wakers))
    }

    fn with_all<T>(&self, call: impl FnOnce(&mut Limiter, &mut Wakers, &mut Owners) -> T) -> (T, Vec<Event>) {
        let mut state = self.state.lock();
        let State { core, wakers, owners } = &mut *state;
        let result = call(core, wakers, owners);
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

/// The tasks of those who wait, by the slots of their names. A slot may be another's by now.
#[derive(Default)]
struct Wakers(Vec<Option<(WaiterId, Waker)>>);

impl Wakers {
    fn take(&mut self, waiter: WaiterId) -> Option<Waker> {
        let kept = self.0.get_mut(waiter.slot())?.take_if(|(whose, _)| *whose == waiter);
        kept.map(|(_, waker)| waker)
    }

    /// `waiter` is to be woken by `waker`.
    fn keep(&mut self, waiter: WaiterId, waker: &Waker) {
        if self.0.len() <= waiter.slot() {
            self.0.resize(waiter.slot() + 1, None);
        }
        match &mut self.0[waiter.slot()] {
            Some((whose, kept)) => {
                *whose = waiter;
                kept.clone_from(waker);
            }
            none => *none = Some((waiter, waker.clone())),
        }
    }

    /// `waiter` no longer waits.
    fn forget(&mut self, waiter: WaiterId) {
        self.take(waiter);
        while self.0.last().is_some_and(Option::is_none) {
            self.0.pop();
        }
        if self.0.is_empty() {
            self.0 = Vec::new();
        }
    }
}
