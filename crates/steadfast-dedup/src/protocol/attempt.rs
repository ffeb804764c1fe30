use std::time::Duration;

use crate::numbers::{LogicalTime, Session};

/// How long after the end of its connection a request may still arrive, because the kernel holds it.
pub(crate) const ORPHANED: Duration = Duration::from_secs(120);

/// One physical send of an order.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    begun: LogicalTime,
    session: Session,
    state: AttemptState,
}

#[derive(Clone, Debug)]
pub(crate) enum AttemptState {
    /// Opened, and its body not polled: nothing has left.
    Open,
    /// Sent, and not answered.
    InFlight(Sent),
    /// It did not leave, was not executed, or was rejected while an earlier send stands.
    Void,
    /// Refused (401, 429) or rejected. A list may show that its order was placed all the same.
    Refused(Sent),
    /// Answered with an order id.
    Acknowledged(Sent),
    /// Nothing proves what became of it.
    Doubt {
        sent: Sent,
        /// The position at which the lateness bound passed, so that no order of it can appear any more; `None` before
        /// that.
        settled: Option<LogicalTime>,
        /// Why it must never be sent again, if so.
        never: Option<Never>,
    },
}

/// When an attempt left: its position for safety, its time for ages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) seq: LogicalTime,
    pub(crate) at: Duration,
    /// The same on a clock that runs on during suspension, for its age.
    pub(crate) aging: Duration,
}

/// Why an attempt in doubt forbids a resend even after a verified absence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Never {
    /// The service answered with a success: by its word it took the order, and a list without it contradicts that.
    Success,
    /// Its answer denies the order, proves nothing, or was not read; or there was no answer, and no bound on when the
    /// request may still arrive.
    Opaque,
    /// The process that sent it is gone.
    Restart,
}

impl Attempt {
    pub(crate) fn new(begun: LogicalTime, session: Session) -> Self {
        Self { begun, session, state: AttemptState::Open }
    }

    /// Returns when it was begun.
    pub(crate) fn begun(&self) -> LogicalTime {
        self.begun
    }

    pub(crate) fn session(&self) -> Session {
        self.session
    }

    pub(crate) fn state(&self) -> &AttemptState {
        &self.state
    }

    pub(super) fn state_mut(&mut self) -> &mut AttemptState {
        &mut self.state
    }

    pub(super) fn set_state(&mut self, state: AttemptState) {
        self.state = state;
    }

    /// Returns when it left, if nothing says that it placed no order: in flight, acknowledged or in doubt.
    pub(crate) fn standing(&self) -> Option<Sent> {
        match self.state {
            AttemptState::Open | AttemptState::Void | AttemptState::Refused(_) => None,
            AttemptState::InFlight(sent)
            | AttemptState::Acknowledged(sent)
            | AttemptState::Doubt { sent, .. } => Some(sent),
        }
    }

    /// Returns when it left, if the service refused or rejected it.
    pub(crate) fn refused(&self) -> Option<Sent> {
        match self.state {
            AttemptState::Refused(sent) => Some(sent),
            _ => None,
        }
    }

    /// True if it is in doubt, and a kernel may hold its request after its connection has ended.
    pub(crate) fn may_be_held(&self) -> bool {
        matches!(self.state, AttemptState::Doubt { never: Some(Never::Opaque | Never::Restart), .. })
    }

    pub(crate) fn in_flight(&self) -> Option<Sent> {
        match self.state {
            AttemptState::InFlight(sent) => Some(sent),
            _ => None,
        }
    }
}
