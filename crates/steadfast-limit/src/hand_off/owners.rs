use std::task::Waker;

use slab::Slab;

use crate::{Grant, Lane, Limiter, Nanos, ZoneId};

/// The requests on their way whose calls are polled by somebody: whether he is still there is asked when others wait.
///
/// A call that was sent, and that nobody polls any more, would otherwise hold its slots for good: its answer is back, and
/// nobody looks at it.
#[derive(Default)]
pub(super) struct Owners {
    all: Slab<Owner>,
    /// When they are looked at next.
    next: Nanos,
}

struct Owner {
    holds: Holds,
    /// When it left, if it did.
    sent: Option<Nanos>,
    waker: Waker,
    /// When it was last polled.
    seen: Nanos,
    /// When it was last asked whether it is there.
    asked: Nanos,
}

enum Holds {
    Grant(Grant),
    /// What it would fall under if it came back.
    Nothing(Vec<(ZoneId, u64)>, Lane),
}

impl Owners {
    /// Who was not polled for so long is asked, and who has not answered after as long again is not there.
    const ASKED_AFTER: Nanos = 500_000_000;

    /// Somebody polls the call that `grant` is for.
    pub(super) fn insert(&mut self, grant: Grant, sent: Option<Nanos>, waker: &Waker, now: Nanos) -> usize {
        let holds = Holds::Grant(grant);
        self.all.insert(Owner { holds, sent, waker: waker.clone(), seen: now, asked: 0 })
    }

    /// It is polled again; false if it had not left, and its slots are another's by now.
    ///
    /// One that had left goes on, and what it may send from here on is counted once more.
    pub(super) fn seen(
        &mut self,
        owner: usize,
        sent: Option<Nanos>,
        waker: &Waker,
        core: &mut Limiter,
        now: Nanos,
    ) -> bool {
        let Some(known) = self.all.get_mut(owner) else { return false };
        (known.seen, known.sent) = (now, sent);
        known.waker.clone_from(waker);
        if let Holds::Nothing(zones, lane) = &known.holds {
            if sent.is_none() {
                return false;
            }
            if let Some(grant) = core.charge(zones, *lane, now) {
                known.holds = Holds::Grant(grant);
            }
        }
        true
    }

    /// It has ended: what it still held.
    pub(super) fn remove(&mut self, owner: usize) -> Option<Grant> {
        match self.all.try_remove(owner)?.holds {
            Holds::Grant(grant) => Some(grant),
            Holds::Nothing(..) => None,
        }
    }

    /// Somebody waits: asks those who have not been polled for a while, and gives back what the absent hold. Whoever is
    /// to be woken comes back.
    pub(super) fn look(&mut self, core: &mut Limiter, now: Nanos) -> Vec<Waker> {
        if now < self.next || self.all.is_empty() || steadfast_spec::Planted::AbsentCallsHold.is_on() {
            return Vec::new();
        }
        let mut woken = Vec::new();
        self.next = now + Self::ASKED_AFTER;
        for (_, owner) in &mut self.all {
            let Holds::Grant(grant) = &owner.holds else { continue };
            if owner.asked <= owner.seen {
                let due = owner.seen + Self::ASKED_AFTER;
                if due <= now {
                    owner.asked = now;
                    // Where calls are left, waits may be, too.
                    core.call_all(grant.ledgers, now);
                    woken.push(owner.waker.clone());
                } else {
                    self.next = self.next.min(due);
                }
                continue;
            }
            let due = owner.asked + Self::ASKED_AFTER;
            if due > now {
                self.next = self.next.min(due);
                continue;
            }
            // ## On its way => presumed answered by now, or never left
            core.dismiss(grant.ledgers, now.saturating_sub(1));
            let nothing = Holds::Nothing(core.zones_of(grant), grant.lane);
            if let Holds::Grant(grant) = std::mem::replace(&mut owner.holds, nothing) {
                match owner.sent {
                    Some(sent) => core.presume_counted(grant, sent, now),
                    None => core.refund(grant, now),
                }
            }
        }
        woken
    }
}
