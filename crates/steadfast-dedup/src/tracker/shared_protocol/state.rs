//! The data behind an account's lock, and what its poller does next.

use std::task::Waker;

use crate::{
    numbers::{IntentNo, ReadNo},
    protocol::{effect::Effect, order_protocol::OrderProtocol, wake::Wake},
    tracker::{
        joined::Joined,
        polled_calls::PolledCalls,
        timekeeper::Timekeeper,
        tokens::Tokens,
        waiters::{About, Waiters},
    },
};

/// The data behind the lock.
pub(crate) struct State {
    pub(crate) protocol: OrderProtocol,
    pub(crate) calls: PolledCalls,
    pub(super) next_intent: u64,
    pub(super) next_read: u64,
    pub(crate) tokens: Tokens,
    pub(crate) time: Timekeeper,
    pub(crate) joined: Joined,
    pub(super) poller: PollerState,
    /// Whether a request has shown the path to the list, so that a poller can be started.
    pub(super) can_poll: bool,
    /// False once no handle of the tracker is left, so that there is no one to tell of an order that appears late.
    pub(super) has_handles: bool,
    pub(super) waiters: Waiters,
    /// How many steps have events that no receiver has yet: they are sent without the lock.
    pub(super) reporting: usize,
}

/// The state of the one task that reads the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PollerState {
    Absent,
    /// It looks at the plan before it sleeps.
    Awake,
    /// Until this is due, or something else is.
    Asleep(Wake),
}

impl State {
    pub(super) fn new(protocol: OrderProtocol, time: Timekeeper) -> Self {
        Self {
            protocol,
            calls: PolledCalls::default(),
            next_intent: 0,
            next_read: 0,
            can_poll: false,
            tokens: Tokens::default(),
            time,
            joined: Joined::default(),
            poller: PollerState::Absent,
            has_handles: true,
            waiters: Waiters::default(),
            reporting: 0,
        }
    }

    /// Replaces the protocol by one that an earlier process's journal has led to.
    pub(crate) fn resume(&mut self, protocol: OrderProtocol, next_intent: u64) {
        (self.protocol, self.next_intent) = (protocol, next_intent);
    }

    /// Numbers an intent.
    pub(crate) fn new_intent(&mut self) -> IntentNo {
        self.next_intent += 1;
        IntentNo(self.next_intent - 1)
    }

    /// Numbers a read.
    pub(crate) fn new_read(&mut self) -> ReadNo {
        self.next_read += 1;
        ReadNo(self.next_read - 1)
    }

    /// Notes that a poller can be started.
    pub(crate) fn allow_poller(&mut self) {
        self.can_poll = true;
    }

    /// True if the events of all steps were sent.
    pub(crate) fn has_reported(&self) -> bool {
        self.reporting == 0
    }

    /// True if no order is in flight or in doubt, and none may leave or leave again for a caller that waits.
    pub(crate) fn is_quiet(&self) -> bool {
        !self.calls.are_open() && self.protocol.in_doubt() == 0 && self.protocol.in_flight() == 0
    }

    /// Returns the poller's next action and its time.
    pub(super) fn next_wake(&self) -> Option<Wake> {
        let protocol = &self.protocol;
        let wanted = self.has_handles
            || protocol.in_doubt() > 0
            || protocol.awaits_baseline()
            || protocol.awaits_checks()
            || protocol.awaits_last_look();
        let wake = if wanted { protocol.next_wake() } else { None };
        let check = self.calls.check_due().filter(|_| self.has_handles || self.calls.are_open());
        match (wake, check) {
            (Some(Wake::Read(at, _) | Wake::Tick(at)), Some(check)) if at < check => wake,
            (wake, check) => check.map(Wake::Tick).or(wake),
        }
    }

    /// Wakes the poller if its plan has changed; true if it must be started.
    pub(super) fn rouse(&mut self, woken: &mut Vec<Waker>) -> bool {
        match self.poller {
            // ## Absent => Awake
            //
            // Under the lock, so that it is started once.
            PollerState::Absent if self.can_poll && self.next_wake().is_some() => {
                self.poller = PollerState::Awake;
                return true;
            }
            // ## Asleep => Awake
            //
            // Not only when it must wake earlier: it ends when nothing is due any more.
            PollerState::Asleep(until) if self.next_wake() != Some(until) => {
                self.poller = PollerState::Awake;
                self.waiters.take(About::Plan, woken);
            }
            PollerState::Absent | PollerState::Asleep(_) | PollerState::Awake => {}
        }
        false
    }
}

/// The effects of one or more steps, in order.
#[derive(Default)]
pub(crate) struct Effects(Vec<Effect>);

impl Effects {
    /// Adds the effects of one step. The first non-empty list is kept without a copy.
    pub(crate) fn extend(&mut self, more: Vec<Effect>) {
        if self.0.is_empty() {
            self.0 = more;
        } else {
            self.0.extend(more);
        }
    }

    pub(super) fn into_vec(self) -> Vec<Effect> {
        self.0
    }

    pub(crate) fn as_slice(&self) -> &[Effect] {
        &self.0
    }
}
