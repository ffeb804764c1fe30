use std::time::Duration;

use crate::stamp::{Seq, Session};

/// One physical send of an order.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) begun: Seq,
    pub(crate) session: Session,
    pub(crate) state: AttemptState,
}

#[derive(Clone, Debug)]
pub(crate) enum AttemptState {
    /// Opened, and its body not polled: nothing has left.
    Open,
    /// Sent, and not answered.
    InFlight(Sent),
    /// Proved to have placed nothing: never sent, not executed, or refused.
    Void,
    /// Refused without having been executed, by the service's own word, which a list may refute.
    Refused(Sent),
    /// Answered with an order id.
    Acknowledged(Sent),
    /// Nobody knows.
    Doubt {
        sent: Sent,
        /// When no order of it can appear any more, by the lateness bound; `None` until that has passed.
        settled: Option<Seq>,
        /// Why it must never be sent again, if it must not.
        never: Option<Never>,
    },
}

/// When an attempt left: its position for safety, its time for ages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) seq: Seq,
    pub(crate) at: Duration,
    /// The same on a clock that a suspended machine does not stop, for its age.
    pub(crate) aging: Duration,
}

/// Why an attempt in doubt forbids a resend even after a verified absence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Never {
    /// The service answered with a success: by its own word it took the order, and a list without it contradicts that.
    Success,
    /// Its answer says that it took no order, says nothing that can be relied on, or nobody was left to read it; or there
    /// was none, and nobody knows until when what was sent may arrive.
    Opaque,
    /// The process that sent it is gone.
    Restart,
}

impl Attempt {
    /// When it left, if an order of it may exist.
    pub(crate) fn standing(&self) -> Option<Sent> {
        match self.state {
            AttemptState::Open | AttemptState::Void | AttemptState::Refused(_) => None,
            AttemptState::InFlight(sent)
            | AttemptState::Acknowledged(sent)
            | AttemptState::Doubt { sent, .. } => Some(sent),
        }
    }

    /// When it left, if it was refused without having been executed.
    pub(crate) fn refused(&self) -> Option<Sent> {
        match self.state {
            AttemptState::Refused(sent) => Some(sent),
            _ => None,
        }
    }

    pub(crate) fn in_flight(&self) -> Option<Sent> {
        match self.state {
            AttemptState::InFlight(sent) => Some(sent),
            _ => None,
        }
    }
}
