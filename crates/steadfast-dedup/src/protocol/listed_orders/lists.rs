//! The lists of the day, without their orders.

use std::collections::BTreeMap;

use steadfast_spec::{Code, OrderRecord, OrderStatus};

use crate::{
    numbers::{LogicalTime, Session},
    protocol::listed_orders::{fresh::Fresh, session_list::SessionList},
};

/// Which lists of the day were taken in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lists {
    sessions: BTreeMap<Session, SessionList>,
    /// The position from which the first valid list of the day counts.
    first_valid: Option<LogicalTime>,
    /// When the latest list was taken in, a caller's included.
    taken_in: LogicalTime,
    /// A list has shown an order that had ended.
    ended: bool,
}

/// How a list became known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) session: Session,
    /// A complete read by the poller: a later list of the session must hold at least the same.
    pub(crate) by_poller: bool,
}

impl Lists {
    /// Returns what the lists of a session have shown, if the session is known.
    pub(crate) fn session(&self, session: Session) -> Option<&SessionList> {
        self.sessions.get(&session)
    }

    /// Returns the same, for a session that is known from now on.
    pub(crate) fn meet(&mut self, session: Session) -> &mut SessionList {
        self.sessions.entry(session).or_default()
    }

    /// Notes that a list which counts from this position is valid.
    pub(crate) fn note_valid(&mut self, seen: LogicalTime) {
        self.first_valid.get_or_insert(seen);
    }

    /// True if no valid list of the day came before the one that showed an order first.
    pub(crate) fn is_of_the_first(&self, fresh: &Fresh) -> bool {
        self.first_valid.is_none_or(|first| fresh.first_seen <= first)
    }

    /// True if a list was taken in after this position, a caller's included.
    pub(crate) fn has_one_since(&self, position: LogicalTime) -> bool {
        self.taken_in > position
    }

    /// True if a list has shown an order that had ended.
    pub(crate) fn shows_ended(&self) -> bool {
        self.ended
    }

    /// Notes that the list that is complete at this position is taken in.
    pub(super) fn take_in(&mut self, seen: LogicalTime) {
        self.taken_in = seen;
    }

    /// Notes whether a listed order has ended.
    pub(super) fn note_status(&mut self, record: &OrderRecord) {
        self.ended |= matches!(record.status, Some(Code::Known(status)) if status != OrderStatus::Open);
    }
}
