//! Sends orders of a key one after the other, where the settings ask for it.

use crate::{
    numbers::IntentNo,
    protocol::{event::Effect, key::Key, order_protocol::OrderProtocol},
    settings::policy::KeyPolicy,
};

impl OrderProtocol {
    /// True if the intent has its turn among others of its instrument and side.
    #[must_use]
    pub fn has_turn(&self, number: IntentNo) -> bool {
        if self.settings.key_policy == KeyPolicy::Concurrent {
            return true;
        }
        let Some(key) = self.intents.get(&number).and_then(|intent| self.keys.get(&intent.key)) else {
            return true;
        };
        // Orders in flight or in doubt that are not in line come from before this process began.
        key.live.iter().all(|&other| other == number) && key.line.front().is_none_or(|&first| first == number)
    }

    pub(crate) fn join_line(&mut self, key: &Key, number: IntentNo) {
        if self.settings.key_policy == KeyPolicy::Serialize {
            self.keys.entry(key.clone()).or_default().line.push_back(number);
        }
    }

    /// Removes an intent from its line and wakes the next one.
    pub(crate) fn leave_line(&mut self, number: IntentNo, out: &mut Vec<Effect>) {
        if self.settings.key_policy == KeyPolicy::Concurrent {
            return;
        }
        let Some(intent) = self.intents.get(&number) else { return };
        let Some(key) = self.keys.get_mut(&intent.key) else { return };
        key.line.retain(|&other| other != number);
        if let Some(&next) = key.line.front() {
            out.push(Effect::Decided(next));
        }
    }
}
