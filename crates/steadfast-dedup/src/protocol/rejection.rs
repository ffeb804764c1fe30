//! Holds back a repeat, under its name, of an order that was refused for good.
//!
//! A refusal for good is returned at once, and no list is read for it. But a gateway may refuse after it has placed the
//! order, and lists lag by up to W. A call that repeats the name would then place a second order while no list shows
//! the first. So it waits for a valid list that began W after the refusal or later. Whether the order has other terms
//! by then does not matter: the name stands for one order.

use std::time::Duration;

use crate::{
    numbers::IntentNo,
    protocol::{event::Effect, order_protocol::OrderProtocol, rejected_names::Rejection},
};

/// How long after a list that proved nothing the next one is read.
const AGAIN: Duration = Duration::from_secs(5);

impl OrderProtocol {
    /// Notes that the name of an intent was refused for good.
    pub(crate) fn hold_repeats_of(&mut self, number: IntentNo) {
        let name = self.intents.get(&number).and_then(|intent| intent.name().cloned());
        let Some(name) = name else { return };
        let rejection = Rejection::new(number, self.time.now());
        self.rejected.note(name, rejection, self.rules.remembered);
    }

    /// True while an intent waits for the list that confirms the refusal of its name.
    pub(crate) fn is_held(&self, number: IntentNo) -> bool {
        self.rejected.is_held(number)
    }

    /// Returns when the next list that can release a repeat may be read.
    pub(crate) fn next_release(&self) -> Option<Duration> {
        let due = self.rejected.held().map(|(_, it)| it.shows(self.settings.lateness)).min()?;
        // Such a list was read, and was not valid.
        let again = self.reads.last_pace().last.filter(|&last| last >= due);
        Some(again.map_or(due, |last| last.saturating_add(AGAIN)))
    }

    /// Releases the repeats that a valid list, begun at `start`, allows.
    pub(crate) fn release(&mut self, start: Duration, out: &mut Vec<Effect>) {
        if self.rejected.is_empty() {
            return;
        }
        // Records that may be such an order were dropped while it was decided.
        if self.rejected.has_held() {
            self.listed.show_again();
        }
        let lateness = self.settings.lateness;
        let due: Vec<_> = self.rejected.held().filter(|(_, it)| it.shows(lateness) <= start).collect();
        for (number, rejection) in due {
            let rejected = self.intents.get(&rejection.intent());
            let shown = rejected.and_then(|it| self.shown_as(it).next()).map(|it| it.order_id.clone());
            match shown {
                // It may be the refused order: the repeat gets an order in doubt.
                Some(order_id) => self.hold_name(rejection.intent(), &order_id, out),
                None => {
                    self.rejected.release(number);
                    out.push(Effect::Decided(number));
                }
            }
        }
        self.rejected.forget_shown(start, lateness);
    }
}
