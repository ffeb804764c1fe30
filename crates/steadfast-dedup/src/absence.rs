//! When an order that is not listed is absent, and what follows.
//!
//! An absence rests on the lists alone: enough valid reads, the last of them begun after the lateness bound of every
//! send in doubt of the key. What the lost answer said does not make it better or worse, with one exception: a success
//! without an id says that the order was taken. Then the list and the service contradict each other, one of the
//! assumptions behind every absence is broken for this key, and nothing is concluded of its later orders. An answer
//! that says `error`, were it a 200, agrees with the list; its order is watched for like that of any other lost send.

use std::time::Duration;

use crate::{
    attempt::{AttemptState, Never},
    event::{Effect, OrderEvent},
    intent::{Intent, Phase},
    registry::{Calibration, Registry},
    resolution::Reason,
    stamp::{IntentNo, Seq},
};

impl Registry {
    /// True if everything says that no order of the intent exists, at this moment.
    pub(crate) fn is_absent(&self, intent: &Intent) -> bool {
        self.has_looked(intent)
            && !self.is_tainted(&intent.key)
            && self.intent_strict(intent).next().is_none()
            && self.near(intent).next().is_none()
    }

    /// True if the intent is young enough to be sent again at that time.
    pub(crate) fn is_young(&self, intent: &Intent, at: Duration) -> bool {
        let limit = self.settings.max_age(intent.order.order_type());
        steadfast_spec::Planted::OldOrderResent.is_on()
            || intent.first_sent().is_some_and(|sent| at.saturating_sub(sent.at) <= limit)
    }

    // Looked for long enough and not found: sent again if everything allows it, otherwise reported.
    pub(crate) fn conclude_absence(&mut self, number: IntentNo, out: &mut Vec<Effect>) {
        let Some(intent) = self.intents.get(&number) else { return };
        if intent.phase == Phase::Granted {
            // A grant lapses at the body poll, where it is judged anew.
            return;
        }
        if self.intent_strict(intent).next().is_some() {
            return;
        }
        if self.may_be_told_apart(intent) {
            return;
        }
        let near = self.near(intent).next().is_some();
        let verdict = if self.has_looked(intent) {
            if near { Err(Reason::NearMatch) } else { self.resend_allowed(intent) }
        } else if self.has_looked_elsewhere(intent) {
            Err(if near { self.near_reason(intent) } else { Reason::SessionChanged })
        } else {
            return;
        };
        match verdict {
            Ok(()) => {
                let Some(intent) = self.intents.get_mut(&number) else { return };
                intent.phase = Phase::Granted;
                let absent = OrderEvent::Absent { intent: number, name: intent.name.clone() };
                out.extend([Effect::Report(absent), Effect::Decided(number)]);
            }
            Err(reason) => self.finish_unresolved(number, reason, out),
        }
    }

    /// Enough valid reads, the last of them sent after every attempt in doubt of the key had settled.
    fn has_looked(&self, intent: &Intent) -> bool {
        let Some(doubt) = &intent.doubt else { return false };
        if steadfast_spec::Planted::ResendWithoutCheck.is_on()
            || (steadfast_spec::Planted::OneImmediateCheck.is_on() && doubt.here.reads > 0)
        {
            return true;
        }
        doubt.here.reads >= self.rules.negatives && self.is_settled(intent, doubt.here.latest)
    }

    fn has_looked_elsewhere(&self, intent: &Intent) -> bool {
        let Some(doubt) = &intent.doubt else { return false };
        doubt.elsewhere.reads >= self.rules.negatives && self.is_settled(intent, doubt.elsewhere.latest)
    }

    fn is_settled(&self, intent: &Intent, evidence: Seq) -> bool {
        if steadfast_spec::Planted::NoSettle.is_on() {
            return true;
        }
        if self.rules.cohort {
            return self
                .keys
                .get(&intent.key)
                .is_some_and(|key| key.unsettled == 0 && key.last_settled < evidence);
        }
        intent.attempts.iter().all(|attempt| match attempt.state {
            AttemptState::Doubt { settled, .. } => settled.is_some_and(|settled| settled < evidence),
            _ => true,
        })
    }

    pub(crate) fn resend_allowed(&self, intent: &Intent) -> Result<(), Reason> {
        if intent.never() == Some(Never::Success) {
            return Err(Reason::AcceptedUnknownId);
        }
        if self.settings.positive_control {
            match self.calibration {
                Calibration::Recognised => {}
                Calibration::Untested => return Err(Reason::NoPositiveControl),
                Calibration::Failed => return Err(Reason::Uncalibrated),
            }
        }
        let barred = self.is_tainted(&intent.key)
            || (intent.never().is_some() && !steadfast_spec::Planted::OpaqueResent.is_on())
            || !intent.caller_waits
            || !self.is_young(intent, self.now)
            || intent.reopened;
        if barred || self.settings.max_resends() == 0 {
            return Err(Reason::NotObserved);
        }
        if intent.resends() >= self.settings.max_resends() && !steadfast_spec::Planted::EndlessResends.is_on()
        {
            return Err(Reason::ResendsExhausted);
        }
        Ok(())
    }
}
