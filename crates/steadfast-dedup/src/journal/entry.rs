use std::{collections::BTreeSet, sync::Arc};

use steadfast_call::{Outcome, ext};
use steadfast_spec::{OrderRequest, Tag};

use crate::{
    numbers::{AttemptNo, IntentNo, Session, TradingDay},
    protocol::event::Answer,
};

/// An event of an account's orders that must outlive the process.
///
/// It holds the order's fields, which only concern the account, and no secret: a session is written as a keyed hash
/// of its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The account.
    pub account: ext::Account,
    /// The event.
    pub record: Record,
}

/// The content of an [`Entry`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Record {
    /// A send is about to begin. The only record that must be durable before the event.
    Begun {
        /// The send.
        attempt: AttemptNo,
        /// The session that it is sent in.
        session: Session,
        /// The trading day.
        day: TradingDay,
        /// The caller's own name for the order.
        name: Option<ext::IntentId>,
        /// The order.
        order: Arc<OrderRequest>,
        /// The tag that all of its sends carry. No later order of the day may have it.
        tag: Option<Tag>,
    },
    /// Its answer arrived, or is lost.
    Closed {
        /// The send.
        attempt: AttemptNo,
        /// The meaning of the answer.
        outcome: Outcome,
        /// How it was answered.
        answer: Answer,
    },
    /// A list showed orders for the first time.
    Seen {
        /// The session that lists them.
        session: Session,
        /// The trading day.
        day: TradingDay,
        /// Their identifiers.
        order_ids: Vec<String>,
        /// Whether that is all that the list held beyond known orders.
        complete: bool,
    },
    /// An order in doubt was found.
    Found {
        /// The order's number.
        intent: IntentNo,
        /// The identifier.
        order_id: String,
        /// Its status, as far as shown.
        status: Option<String>,
    },
    /// A list agreed with every refusal (401, 429) of an order so far, or with its rejection. Without it nothing but the
    /// service's word says that the order is not placed.
    Confirmed {
        /// The order's number.
        intent: IntentNo,
    },
    /// The caller of an order has its answer, as far as a program that answers for others can know.
    Heard {
        /// The order's number.
        intent: IntentNo,
    },
    /// A user ruled on an order.
    Ruled {
        /// The order's number.
        intent: IntentNo,
        /// The identifier, if it was placed.
        order_id: Option<String>,
    },
    /// The search for an order ended without certainty, for this reason.
    Unresolved {
        /// The order's number.
        intent: IntentNo,
        /// Why, as in [`Reason::as_str`](crate::Reason::as_str).
        reason: String,
        /// The identifiers of its candidates.
        candidates: Vec<String>,
    },
    /// The service's clock gave the current day another name than earlier entries.
    Renamed {
        /// The day's wrong name, in entries about lists.
        from: TradingDay,
        /// Its right name.
        day: TradingDay,
        /// The orders that were sent on it.
        intents: BTreeSet<IntentNo>,
    },
    /// While the order was undecided, the service's clock named a later day than its own: its name stands for it until that
    /// day. A later record with its own day takes this back.
    NamedUntil {
        /// The order's number.
        intent: IntentNo,
        /// The day.
        day: TradingDay,
    },
    /// A change of an order is about to be sent. Lists may show any order that was sent before in another form.
    Changed,
}

impl Record {
    /// Gives the day of a send or a list its right name, as [`Renamed`](Self::Renamed) says.
    pub(crate) fn rename_day(&mut self, from: TradingDay, right: TradingDay, intents: &BTreeSet<IntentNo>) {
        match self {
            Self::Begun { attempt, day, .. } if intents.contains(&attempt.intent) => *day = right,
            Self::Seen { day, .. } if *day == from => *day = right,
            _ => {}
        }
    }

    /// Returns the trading day on which it was written, where the record has one.
    pub(crate) fn day(&self) -> Option<TradingDay> {
        match self {
            Self::Begun { day, .. } | Self::Seen { day, .. } => Some(*day),
            Self::Closed { .. }
            | Self::Found { .. }
            | Self::Confirmed { .. }
            | Self::Heard { .. }
            | Self::Ruled { .. }
            | Self::Unresolved { .. }
            | Self::Renamed { .. }
            | Self::NamedUntil { .. }
            | Self::Changed => None,
        }
    }
}
