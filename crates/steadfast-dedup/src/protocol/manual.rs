//! Takes a user's ruling on an order that could not be resolved.

use std::{error::Error, fmt, sync::Arc};

use crate::{
    numbers::IntentNo,
    protocol::{
        event::{Effect, OrderEvent},
        intent::{Finding, Intent, Phase},
        key::Key,
        order_protocol::OrderProtocol,
        resolution::{Reason, Unresolved},
    },
};

/// A user's ruling on an order that ended as [`Unresolved`](crate::Unresolved), for
/// [`OrderTracker::resolve`](crate::OrderTracker::resolve).
///
/// It is believed: it clears the taint that the order put on later orders of its instrument and side.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ruling {
    /// It was placed, and this is its identifier.
    Placed {
        /// The identifier. One that only an answer gave to another order, and that is a candidate of this one, is
        /// taken from that order, which is then in doubt.
        order_id: String,
    },
    /// It was not placed, or is of no interest any more.
    NotPlaced,
}

/// Why a ruling is not accepted: it contradicts known facts, or its order was not unresolved.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidRuling {
    /// The order is not known, or no longer.
    UnknownIntent,
    /// The order did not end as unresolved.
    NotUnresolved,
    /// The identifier belongs to another order of ours.
    OrderOwned,
}

impl fmt::Display for InvalidRuling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownIntent => "order is not known",
            Self::NotUnresolved => "order did not end as unresolved",
            Self::OrderOwned => "order id belongs to another order",
        })
    }
}

steadfast_spec::debug_in_one_line!(InvalidRuling);

impl Error for InvalidRuling {}

impl OrderProtocol {
    /// Checks whether a ruling can be accepted.
    ///
    /// # Errors
    ///
    /// See [`InvalidRuling`].
    pub fn check_ruling(&self, number: IntentNo, ruling: &Ruling) -> Result<(), InvalidRuling> {
        let intent = self.intents.get(&number).ok_or(InvalidRuling::UnknownIntent)?;
        if !matches!(intent.finding(), Some(Finding::Unresolved(_))) {
            return Err(InvalidRuling::NotUnresolved);
        }
        match ruling {
            Ruling::Placed { order_id }
                if self.book.owner(order_id).is_some() && !self.may_be_taken(order_id, intent)
                    || self.book.is_respelled(order_id) =>
            {
                Err(InvalidRuling::OrderOwned)
            }
            Ruling::Placed { .. } | Ruling::NotPlaced => Ok(()),
        }
    }

    /// True if only an answer gave an order to another intent, and a list showed it as what this one may be.
    fn may_be_taken(&self, order_id: &str, intent: &Intent) -> bool {
        self.owner_by_answer(order_id).is_some() && intent.was_told_of(order_id)
    }

    pub(crate) fn rule(&mut self, number: IntentNo, ruling: Ruling, out: &mut Vec<Effect>) {
        if self.check_ruling(number, &ruling).is_err() {
            return;
        }
        let seen = self.tick();
        let taken_from = match &ruling {
            Ruling::Placed { order_id } => self.dispossess(order_id, number),
            Ruling::NotPlaced => None,
        };
        if let (Some(other), Ruling::Placed { order_id }) = (taken_from, &ruling) {
            let name = self.intents.get(&other).and_then(|intent| intent.name.clone());
            let order_id = order_id.clone();
            out.push(Effect::Report(OrderEvent::AckMismatch { intent: other, name, order_id }));
        }
        let Some(intent) = self.intents.get_mut(&number) else { return };
        let key = intent.key.clone();
        match ruling {
            Ruling::Placed { order_id } => {
                let order_id: Arc<str> = order_id.into();
                if !self.book.was_told(&order_id, number) {
                    self.book.excuse(number);
                }
                intent.phase =
                    Phase::Finished(Finding::Recovered { order_id: order_id.clone(), status: None });
                self.book.adopt(&order_id, number, seen);
            }
            Ruling::NotPlaced => {
                // It stays among the decided intents of its key, so an order that appears is still noticed.
                let unresolved = Unresolved::new(Reason::NotObserved, Vec::new());
                intent.phase = Phase::Finished(Finding::Unresolved(unresolved));
                if let Some(name) = intent.name.take()
                    && self.names.get(&name) == Some(&number)
                {
                    self.names.remove(&name);
                }
                self.book.excuse(number);
            }
        }
        self.clear_taint(&key, number);
        out.push(Effect::Decided(number));
        self.resolve(&key, out);
        let other = taken_from.and_then(|other| Some(self.intents.get(&other)?.key.clone()));
        if let Some(other) = other.filter(|other| *other != key) {
            self.resolve(&other, out);
        }
    }

    /// Removes an intent's taint from its key.
    pub(crate) fn clear_taint(&mut self, key: &Key, number: IntentNo) {
        if let Some(key) = self.keys.get_mut(key) {
            key.tainting.remove(&number);
        }
    }
}
