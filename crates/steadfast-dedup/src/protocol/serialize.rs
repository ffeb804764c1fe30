//! Sends orders of a key one after the other, where the settings ask for it.

use crate::{
    numbers::IntentNo,
    protocol::{effect::Effect, key::Key, order_protocol::OrderProtocol},
    settings::policy::KeyPolicy,
};

impl OrderProtocol {
    /// True if the intent has its turn among others of its instrument and side.
    #[must_use]
    pub fn has_turn(&self, number: IntentNo) -> bool {
        if self.settings.key_policy == KeyPolicy::Concurrent {
            return true;
        }
        let Some(key) = self.intents.get(&number).and_then(|intent| self.keys.get(intent.key())) else {
            return true;
        };
        key.has_turn(number)
    }

    pub(crate) fn join_line(&mut self, key: &Key, number: IntentNo) {
        if self.settings.key_policy == KeyPolicy::Serialize {
            self.keys.join_line(key, number);
        }
    }

    /// Removes an intent from its line and wakes the next one.
    pub(crate) fn leave_line(&mut self, number: IntentNo, out: &mut Vec<Effect>) {
        if self.settings.key_policy == KeyPolicy::Concurrent {
            return;
        }
        let Some(intent) = self.intents.get(&number) else { return };
        if let Some(next) = self.keys.leave_line(intent.key(), number) {
            out.push(Effect::Decided(next));
        }
    }
}
