use std::sync::Arc;

use crate::{
    numbers::{IntentNo, Session, TradingDay},
    protocol::order_event::OrderEvent,
};

/// An output of a [`OrderProtocol`](crate::OrderProtocol).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// Calls that wait for this intent must look at its verdict.
    Decided(IntentNo),
    /// An event for the user.
    Report(OrderEvent),
    /// A list that was read long enough after the intent's refusals (401, 429), or after the rejection of its named
    /// order, agrees with them; replayed as [`Event::Confirmed`](crate::Event::Confirmed). Safe to lose.
    Confirmed(IntentNo),
    /// A list showed orders for the first time; replayed as [`Event::Known`](crate::Event::Known). Safe to lose.
    Seen {
        /// The session that lists them.
        session: Session,
        /// Their identifiers.
        order_ids: Vec<Arc<str>>,
        /// Whether it was a valid read of the whole list.
        complete: bool,
    },
    /// The current day has another name than it had so far.
    DayRenamed {
        /// The wrong one.
        from: TradingDay,
        /// The right one.
        day: TradingDay,
        /// The orders that were sent on it.
        intents: Vec<IntentNo>,
    },
    /// The name of an order stands for it until this day, too, which may be later than its own; replayed as
    /// [`Event::NamedUntil`](crate::Event::NamedUntil).
    NamedUntil {
        /// The order.
        intent: IntentNo,
        /// The day.
        day: TradingDay,
    },
}
