//! Says what becomes of an order when its call ends.

use crate::{
    numbers::IntentNo,
    protocol::{effect::Effect, order_protocol::OrderProtocol, phase::Phase, resolution::Reason},
};

impl OrderProtocol {
    /// The call returned. A doubt stays; an unused grant lapses.
    pub(crate) fn conclude(&mut self, number: IntentNo, out: &mut Vec<Effect>) {
        let Some(intent) = self.intents.get(&number) else { return };
        match *intent.phase() {
            Phase::Idle if intent.is_rejected() => self.end_rejected(number, out),
            Phase::Idle => self.forget(number, out),
            Phase::Granted => self.finish_unresolved(number, Reason::NotObserved, out),
            Phase::Refused(check) if check.by_token && self.awaits_last_check(intent) => {
                self.hold_refused(number, check);
            }
            Phase::Refused(_) | Phase::Cleared => self.end_refused(number, out),
            Phase::Sending | Phase::Doubt | Phase::Finished(_) => {}
        }
    }

    /// The caller is gone: nothing is sent again, and the search goes on.
    pub(crate) fn abandon(&mut self, number: IntentNo, out: &mut Vec<Effect>) {
        let Some(intent) = self.intents.get_mut(&number) else { return };
        intent.abandon();
        match *intent.phase() {
            Phase::Idle if intent.is_rejected() => self.end_rejected(number, out),
            Phase::Idle => self.forget(number, out),
            Phase::Granted => self.finish_unresolved(number, Reason::NotObserved, out),
            Phase::Refused(_) | Phase::Cleared => self.end_refused(number, out),
            Phase::Sending | Phase::Doubt | Phase::Finished(_) => {}
        }
    }

    pub(crate) fn forget(&mut self, number: IntentNo, out: &mut Vec<Effect>) {
        self.leave_line(number, out);
        self.rejected.release(number);
        self.intents.forget(number);
        out.push(Effect::Decided(number));
    }
}
