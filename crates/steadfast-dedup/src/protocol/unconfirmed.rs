//! Follows the refusals (429) that were returned to their callers before a list could confirm them.
//!
//! A list confirms one if it is of the order's session, and lacks the order when that cannot be late any more. Once no such
//! list can be read, the order is reported, and is unresolved if its session is over.

use std::time::Duration;

use crate::{
    numbers::{IntentNo, Session},
    protocol::{
        effect::Effect, intent::Intent, order_event::OrderEvent, order_protocol::OrderProtocol,
        phase::Finding, resolution::Reason,
    },
    settings::policy::OrdersScope,
};

impl OrderProtocol {
    /// Confirms refusals by a valid list of this session: an order that it lacks and that cannot be late was refused.
    ///
    /// The gateway may have passed it on until the answer.
    pub(crate) fn confirm_refusals(&mut self, session: Session, start: Duration) {
        let (intents, lateness) = (&self.intents, self.settings.lateness);
        self.watches.confirm(|number, told| {
            let sent_in = intents.get(&number).and_then(Intent::last_refused);
            let is_late = told.is_some_and(|told| start < told.saturating_add(lateness));
            sent_in.is_none_or(|sent_in| sent_in == session && !is_late)
        });
    }

    /// Reports refusals that cannot be confirmed any more: the day ends, or the last look of a shutdown has failed.
    pub(crate) fn tell_unconfirmed(&mut self, out: &mut Vec<Effect>) {
        for number in self.watches.take_unconfirmed() {
            self.tell_unconfirmed_one(number, out);
        }
    }

    /// Reports one; false if there is nothing to report.
    fn tell_unconfirmed_one(&self, number: IntentNo, out: &mut Vec<Effect>) -> bool {
        let refused = self.intents.get(&number).filter(|intent| {
            // A token that is still refused later was refused before, too.
            intent.finding() == Some(&Finding::Refused) && !intent.token_refused()
        });
        let Some(intent) = refused else { return false };
        let name = intent.name().cloned();
        out.push(Effect::Report(OrderEvent::RefusalUnconfirmed { intent: number, name }));
        true
    }

    /// Withdraws refusals that can never be confirmed.
    pub(crate) fn doubt_unconfirmed(&mut self, out: &mut Vec<Effect>) {
        let Some(now) = self.sessions.current().filter(|_| !self.watches.unconfirmed().is_empty()) else {
            return;
        };
        if self.settings.orders_scope != OrdersScope::Session {
            return drop(self.watches.take_unconfirmed());
        }
        let is_lost = |number: &&IntentNo| {
            let refused = self.intents.get(number).and_then(Intent::last_refused);
            refused.is_none_or(|session| session != now && !self.sessions.can_read(session))
        };
        let lost: Vec<_> = self.watches.unconfirmed().iter().filter(is_lost).copied().collect();
        for number in lost {
            self.watches.end_confirmation(number);
            if !self.tell_unconfirmed_one(number, out) {
                continue;
            }
            let Some(key) = self.intents.get(&number).map(|intent| intent.key().clone()) else { continue };
            self.keys.undecide_refused(&key, number);
            self.intents.undecide(number);
            self.watches.unwatch(number);
            self.intents.refuse(number);
            self.doubt_refused(number, out);
            self.finish_unresolved(number, Reason::SessionChanged, out);
            self.resolve(&key, out);
        }
    }
}
