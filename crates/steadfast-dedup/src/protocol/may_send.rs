//! Decides which sends may leave.

use crate::{
    numbers::{AttemptNo, IntentNo, Session},
    protocol::{attempt::AttemptState, order_protocol::OrderProtocol, phase::Phase},
};

impl OrderProtocol {
    /// Returns the number for the next send of an intent, or `None` if it may not be sent now.
    ///
    /// An intent in doubt is not sent. A resend stays within its session and its trading day.
    #[must_use]
    pub fn next_attempt(&self, intent: IntentNo, session: Session) -> Option<AttemptNo> {
        let found = self.intents.get(&intent)?;
        let allowed = match *found.phase() {
            Phase::Idle | Phase::Cleared => self.has_turn(intent) && !self.is_held(intent),
            Phase::Granted => found.session() == Some(self.scoped(session)) && found.day() == self.time.day(),
            _ => false,
        };
        allowed.then_some(AttemptNo { intent, index: found.attempts().len() })
    }

    /// True if a send that was begun is still allowed, now that the transport polls its body.
    #[must_use]
    pub fn may_send(&self, attempt: AttemptNo) -> bool {
        let Some(intent) = self.intents.get(&attempt.intent) else { return false };
        let open = intent.attempt(attempt.index).is_some_and(|a| matches!(a.state(), AttemptState::Open));
        open && intent.has_caller()
            && match *intent.phase() {
                Phase::Idle => self.displaced_by(attempt.intent).is_none() && !self.is_held(attempt.intent),
                Phase::Cleared => self.stays_refused(intent) && !self.is_stale(intent),
                // The verdict may be old: evidence can arrive while the send waits in queues.
                Phase::Granted => {
                    self.is_absent(intent)
                        && self.is_young(intent, self.time.now())
                        && intent.day() == self.time.day()
                        && self.recognises_orders().is_ok()
                }
                _ => false,
            }
    }

    /// Returns the intent that has taken the name of an unsent one: a refused or rejected order that a list shows.
    #[must_use]
    pub fn displaced_by(&self, unsent: IntentNo) -> Option<IntentNo> {
        let name = self.intents.get(&unsent).filter(|_| self.intents.is_unsent(unsent))?.name()?;
        self.intents.holder(name).filter(|&holder| holder != unsent)
    }
}
