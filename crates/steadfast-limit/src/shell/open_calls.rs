use std::task::Waker;

use slab::Slab;

use steadfast_call::Lane;

use crate::core::{
    decision::{Grant, ZoneId},
    limiter::Limiter,
    time::Nanos,
};
use crate::shell::wakers::replace;

/// The calls on their way that are polled. Each is asked for a sign of life when others wait.
///
/// Without this, a call that was sent and is no longer polled would hold its slots for good: its answer has arrived
/// and remains unread.
#[derive(Default)]
pub(super) struct OpenCalls {
    all: Slab<OpenCall>,
    /// When to check them next.
    next: Nanos,
}

struct OpenCall {
    holds: Holds,
    /// When the request left, if it did.
    sent: Option<Nanos>,
    waker: Waker,
    /// When it was last polled.
    seen: Nanos,
    /// When it was last asked for a sign of life.
    asked: Nanos,
}

enum Holds {
    Grant(Grant),
    /// Its slots were given away. If it comes back, it is counted again in these zones and this lane.
    GivenAway {
        zones: Vec<(ZoneId, u64)>,
        lane: Lane,
    },
}

impl OpenCalls {
    /// A call not polled for this long is asked. One that does not answer for as long again counts as absent.
    const ASKED_AFTER: Nanos = 500_000_000;

    /// Registers a polled call and its grant.
    pub(super) fn insert(&mut self, grant: Grant, sent: Option<Nanos>, waker: &Waker, now: Nanos) -> usize {
        let holds = Holds::Grant(grant);
        self.all.insert(OpenCall { holds, sent, waker: waker.clone(), seen: now, asked: 0 })
    }

    /// Records that the call is polled again. False if it had not left and its slots have been given away. Returns
    /// also the waker replaced, to drop without the lock.
    ///
    /// A call that had left goes on, and counts once more for what it may still send.
    pub(super) fn seen(
        &mut self,
        call: usize,
        sent: Option<Nanos>,
        waker: &Waker,
        core: &mut Limiter,
        now: Nanos,
    ) -> (bool, Option<Waker>) {
        let Some(known) = self.all.get_mut(call) else { return (false, None) };
        (known.seen, known.sent) = (now, sent);
        let replaced = replace(&mut known.waker, waker);
        if let Holds::GivenAway { zones, lane } = &known.holds {
            if sent.is_none() {
                return (false, replaced);
            }
            if let Some(grant) = core.count_again(zones, *lane, now) {
                known.holds = Holds::Grant(grant);
            }
        }
        (true, replaced)
    }

    /// Removes a call that has ended. Returns the grant that it still held, and its waker, to drop without the lock.
    pub(super) fn remove(&mut self, call: usize) -> Option<(Option<Grant>, Waker)> {
        let OpenCall { holds, waker, .. } = self.all.try_remove(call)?;
        match holds {
            Holds::Grant(grant) => Some((Some(grant), waker)),
            Holds::GivenAway { .. } => Some((None, waker)),
        }
    }

    /// Asks calls that have not been polled for a while, and takes the slots of absent ones back. A waiter triggers
    /// this. Returns the wakers to call.
    pub(super) fn check(&mut self, core: &mut Limiter, now: Nanos) -> Vec<Waker> {
        if now < self.next || self.all.is_empty() {
            return Vec::new();
        }
        let mut woken = Vec::new();
        self.next = now + Self::ASKED_AFTER;
        for (_, open) in &mut self.all {
            let Holds::Grant(grant) = &open.holds else { continue };
            if open.asked <= open.seen {
                let due = open.seen + Self::ASKED_AFTER;
                if due <= now {
                    open.asked = now;
                    // A task that neglects its calls may neglect its waits as well.
                    core.call_roll(grant.keys(), now);
                    woken.push(open.waker.clone());
                } else {
                    self.next = self.next.min(due);
                }
                continue;
            }
            let due = open.asked + Self::ASKED_AFTER;
            if due > now {
                self.next = self.next.min(due);
                continue;
            }
            // ## On its way => presumed answered by now, or never left
            core.dismiss(grant.keys(), now.saturating_sub(1));
            let given_away = Holds::GivenAway { zones: core.zones_of(grant), lane: grant.lane() };
            if let Holds::Grant(grant) = std::mem::replace(&mut open.holds, given_away) {
                match open.sent {
                    Some(sent) => core.presume_counted(grant, sent, now),
                    None => core.refund(grant, now),
                }
            }
        }
        woken
    }
}
