//! One order after the other, where the settings ask for it.

use crate::{event::Effect, key::Key, policy::KeyPolicy, registry::Registry, stamp::IntentNo};

impl Registry {
    /// True if the intent may be sent as far as others of its instrument and side go.
    #[must_use]
    pub fn has_turn(&self, number: IntentNo) -> bool {
        if self.settings.key_policy == KeyPolicy::Concurrent {
            return true;
        }
        let Some(key) = self.intents.get(&number).and_then(|intent| self.keys.get(&intent.key)) else {
            return true;
        };
        // What is in flight or in doubt without being in line was so before the process began.
        key.live.iter().all(|&other| other == number) && key.line.front().is_none_or(|&first| first == number)
    }

    pub(crate) fn join_line(&mut self, key: &Key, number: IntentNo) {
        if self.settings.key_policy == KeyPolicy::Serialize {
            self.keys.entry(key.clone()).or_default().line.push_back(number);
        }
    }

    /// Lets the next one go.
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
