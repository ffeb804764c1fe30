use std::sync::Arc;

use steadfast_spec::OrderRecord;

use crate::numbers::{LogicalTime, Session};

/// A listed order that an intent may still take: none owns it yet, or its owner is in dispute.
#[derive(Clone, Debug)]
pub(crate) struct Fresh {
    pub(crate) order_id: Arc<str>,
    pub(crate) first_seen: LogicalTime,
    pub(crate) record: Arc<OrderRecord>,
    /// The session whose list showed it first.
    pub(crate) session: Session,
    /// It was reported already, as a candidate or as too many.
    pub(crate) flagged: bool,
    /// It was reported as the order of a send taken for dead, so it belongs to no other intent.
    pub(crate) late: bool,
}

impl Fresh {
    /// Notes that it was reported.
    pub(super) fn flag(&mut self) {
        self.flagged = true;
    }

    /// Lets it be reported again.
    pub(super) fn unflag(&mut self) {
        self.flagged = false;
    }

    /// Notes that it was reported as the order of a send taken for dead.
    pub(super) fn flag_late(&mut self) {
        (self.flagged, self.late) = (true, true);
    }

    /// Takes that back; it stays reported.
    pub(super) fn unflag_late(&mut self) {
        self.late = false;
    }
}
