//! Holds back a repeat, under its name, of an order that was refused for good.
//!
//! A refusal for good is returned at once, and no list is read for it. But a gateway may refuse after it has placed the
//! order, and lists lag by up to W. A call that repeats the name would then place a second order while no list shows
//! the first. So it waits for a valid list that began W after the refusal or later. Whether the order has other terms
//! by then does not matter: the name stands for one order.

use std::time::Duration;

use steadfast_spec::ext;

use crate::{
    numbers::IntentNo,
    protocol::{event::Effect, order_protocol::OrderProtocol},
};

/// How long after a list that proved nothing the next one is read.
const AGAIN: Duration = Duration::from_secs(5);

/// A refusal for good that no list has confirmed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rejection {
    pub(crate) intent: IntentNo,
    /// When it came or, if it came to an earlier process, when this one began.
    since: Duration,
}

impl OrderProtocol {
    /// Notes that the name of an intent was refused for good.
    pub(crate) fn hold_repeats_of(&mut self, number: IntentNo) {
        let name = self.intents.get(&number).and_then(|intent| intent.name.clone());
        let Some(name) = name else { return };
        self.rejected_names.insert(name, Rejection { intent: number, since: self.time.now() });
        if self.rejected_names.len() > self.rules.remembered
            && let Some((oldest, _)) = self.rejected_names.iter().min_by_key(|(_, it)| it.since)
        {
            let oldest = oldest.clone();
            self.rejected_names.remove(&oldest);
        }
    }

    /// Holds back an intent that repeats such a name.
    pub(crate) fn hold(&mut self, number: IntentNo, name: &ext::IntentId) {
        if let Some(&rejection) = self.rejected_names.get(name) {
            self.held.insert(number, rejection);
        }
    }

    /// True while an intent waits for the list that confirms the refusal of its name.
    pub(crate) fn is_held(&self, number: IntentNo) -> bool {
        self.held.contains_key(&number)
    }

    /// Returns when the next list that can release a repeat may be read.
    pub(crate) fn next_release(&self) -> Option<Duration> {
        let due = self.held.values().map(|it| self.shows(*it)).min()?;
        // Such a list was read, and was not valid.
        let again = self.reads.last_pace().last.filter(|&last| last >= due);
        Some(again.map_or(due, |last| last.saturating_add(AGAIN)))
    }

    /// Returns from when on a list shows an order that was placed despite a refusal for good.
    fn shows(&self, rejection: Rejection) -> Duration {
        rejection.since.saturating_add(self.settings.lateness)
    }

    /// Releases the repeats that a valid list, begun at `start`, allows.
    pub(crate) fn release(&mut self, start: Duration, out: &mut Vec<Effect>) {
        if self.rejected_names.is_empty() && self.held.is_empty() {
            return;
        }
        // Records that may be such an order were dropped while it was decided.
        if !self.held.is_empty() {
            self.book.show_again();
        }
        let due = self.held.iter().filter(|(_, it)| self.shows(**it) <= start);
        for (number, rejection) in due.map(|(&number, &it)| (number, it)).collect::<Vec<_>>() {
            let rejected = self.intents.get(&rejection.intent);
            let shown = rejected.and_then(|it| self.shown_as(it).next()).map(|it| it.order_id.clone());
            match shown {
                // It may be the refused order: the repeat gets an order in doubt.
                Some(order_id) => self.hold_name(rejection.intent, &order_id, out),
                None => {
                    self.held.remove(&number);
                    out.push(Effect::Decided(number));
                }
            }
        }
        let lateness = self.settings.lateness;
        self.rejected_names.retain(|_, it| it.since.saturating_add(lateness) > start);
    }
}
