//! Takes a user's ruling on an order that could not be resolved.

use std::sync::Arc;

use crate::{
    numbers::IntentNo,
    protocol::{
        effect::Effect,
        intent::Intent,
        order_event::OrderEvent,
        order_protocol::OrderProtocol,
        phase::Finding,
        resolution::{Reason, Unresolved},
        ruling::{InvalidRuling, Ruling},
    },
};

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
                if self.listed.owner(order_id).is_some() && !self.may_be_taken(order_id, intent)
                    || self.listed.is_respelled(order_id) =>
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
        let seen = self.time.tick();
        let taken_from = match &ruling {
            Ruling::Placed { order_id } => self.dispossess(order_id, number),
            Ruling::NotPlaced => None,
        };
        if let (Some(other), Ruling::Placed { order_id }) = (taken_from, &ruling) {
            let name = self.intents.get(&other).and_then(|intent| intent.name().cloned());
            let order_id = order_id.clone();
            out.push(Effect::Report(OrderEvent::AckMismatch { intent: other, name, order_id }));
        }
        let candidates = self.candidates_of_it_alone(number);
        let Some(intent) = self.intents.get_mut(&number) else { return };
        let key = intent.key().clone();
        match ruling {
            Ruling::Placed { order_id } => {
                let order_id: Arc<str> = order_id.into();
                intent.finish(Finding::Recovered { order_id: order_id.clone(), status: None });
                self.listed.adopt(&order_id, number, seen);
                self.listed.excuse(number);
            }
            Ruling::NotPlaced => {
                // It stays among the decided intents of its key, so an order that appears is still noticed.
                // Its candidates are ruled out.
                let candidates = intent.told_candidates().to_vec();
                let unresolved = Unresolved::new(Reason::NotObserved, candidates);
                intent.finish(Finding::Unresolved(unresolved));
                intent.note_ruled();
                self.intents.drop_name(number);
                self.listed.excuse(number);
            }
        }
        self.keys.unblock(&key, number);
        self.listed.unflag_all(&candidates);
        out.push(Effect::Decided(number));
        self.resolve(&key, out);
        let other = taken_from.and_then(|other| Some(self.intents.get(&other)?.key().clone()));
        if let Some(other) = other.filter(|other| *other != key) {
            self.resolve(&other, out);
        }
    }
}
