//! What is asked of an account, or told to it, beside the orders themselves.

use std::sync::Arc;

use steadfast_spec::OrderRecord;

use super::Account;
use crate::{
    event::Event,
    monitor::About,
    ruling::{InvalidRuling, Ruling},
    stamp::{Epoch, IntentNo, Session},
    tally::Tally,
    trace::Step,
};

impl Account {
    pub(crate) fn tally(&self) -> Tally {
        self.monitor.look(|state| state.registry.tally.clone())
    }

    pub(crate) fn trace(&self) -> Vec<Step> {
        self.monitor.look(|state| state.registry.steps.clone()).unwrap_or_default()
    }

    pub(crate) fn rule(self: &Arc<Self>, intent: IntentNo, ruling: Ruling) -> Result<(), InvalidRuling> {
        self.with(|state, now, effects| {
            state.registry.check_ruling(intent, &ruling)?;
            let ruled = self.noted(Event::Ruled { intent, ruling });
            effects.extend(state.registry.step(now, ruled));
            Ok(())
        })
    }

    /// Waits until whoever is deciding about a send has written it down.
    pub(crate) fn pass_lock(&self) {
        self.monitor.look(|_| ());
    }

    /// What a caller's own list holds, if the day on which it was asked for goes on.
    pub(crate) fn overhear(self: &Arc<Self>, day: Epoch, session: Session, records: Vec<OrderRecord>) {
        self.with(|state, now, effects| {
            // Nobody may have placed an order or read a list today.
            state.tell_time(&self.settings, now, effects);
            if day != state.time.today() {
                return;
            }
            effects.extend(state.registry.step(now, Event::Overheard { session, records }));
        });
    }

    /// Waits until an intent may be sent as far as others of its instrument and side go.
    pub(crate) async fn turn(&self, intent: IntentNo) {
        let about = About::Intent(intent);
        self.monitor.wait(about, |state| state.registry.has_turn(intent).then_some(())).await;
    }
}
