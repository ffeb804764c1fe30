//! Answers questions about an account, and takes in reports, besides the orders themselves.

use std::sync::Arc;

use steadfast_call::ext;
use steadfast_spec::OrderRecord;

use super::Account;
use crate::{
    numbers::{IntentNo, Session, TradingDay},
    protocol::{
        event::Event,
        resolution::Verdict,
        ruling::{InvalidRuling, Ruling},
        tally::Tally,
        trace::Step,
    },
    tracker::recovery::RecoveredOrder,
};

impl Account {
    pub(crate) fn tally(&self) -> Tally {
        self.shared.look(|state| state.protocol.tally().clone())
    }

    pub(crate) fn trace(&self) -> Vec<Step> {
        self.shared.look(|state| state.protocol.steps().to_vec())
    }

    /// Returns what is known of the order of a name.
    pub(crate) fn verdict_of(&self, name: &ext::IntentId) -> Option<Verdict> {
        self.shared.look(|state| {
            let (intent, _) = state.protocol.named(name)?;
            Some(state.protocol.verdict(intent))
        })
    }

    /// True if the order is not forgotten.
    pub(crate) fn knows(&self, intent: IntentNo) -> bool {
        self.shared.look(|state| state.protocol.knows(intent))
    }

    /// True if a user ruled on how the order ended.
    pub(crate) fn is_ruled(&self, intent: IntentNo) -> bool {
        self.shared.look(|state| state.protocol.is_ruled(intent))
    }

    /// Returns the orders that ended without certainty.
    pub(crate) fn unresolved(&self) -> Vec<RecoveredOrder> {
        self.shared.look(|state| {
            let unresolved = state.protocol.unresolved().map(|(intent, its, unresolved)| RecoveredOrder {
                account: self.name.clone(),
                intent,
                name: its.name().cloned(),
                order: its.order().clone(),
                verdict: Verdict::Unresolved(unresolved.clone()),
            });
            unresolved.collect()
        })
    }

    /// True if an order of this name may have left.
    pub(crate) fn has_sent(&self, name: &ext::IntentId) -> bool {
        self.shared.look(|state| {
            state.protocol.named(name).is_some_and(|(intent, _)| state.protocol.is_sent(intent))
        })
    }

    pub(crate) fn rule(self: &Arc<Self>, intent: IntentNo, ruling: Ruling) -> Result<(), InvalidRuling> {
        self.with(|state, now, effects| {
            state.protocol.check_ruling(intent, &ruling)?;
            let ruled = self.noted(Event::Ruled { intent, ruling });
            effects.extend(state.protocol.step(now, ruled));
            Ok(())
        })
    }

    /// Waits for the lock, so that a send being decided now is recorded.
    pub(crate) fn pass_lock(&self) {
        self.shared.look(|_| ());
    }

    /// Takes in a list that a caller read, if the day on which it was asked for still goes on.
    pub(crate) fn take_caller_list(
        self: &Arc<Self>,
        day: TradingDay,
        session: Session,
        records: Vec<OrderRecord>,
    ) {
        if self.halt.owned().is_err() {
            return;
        }
        self.with(|state, now, effects| {
            // There may have been no order and no read today.
            state.tell_time(&self.settings, now, effects);
            if day != state.time.today() {
                return;
            }
            effects.extend(state.protocol.step(now, Event::CallerList { session, records }));
        });
    }
}
