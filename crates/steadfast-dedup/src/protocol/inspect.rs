//! Opens the protocol's state to the exhaustive checks, for tests only.

use crate::{
    numbers::{AttemptNo, IntentNo, ReadNo},
    protocol::{
        intent::Intent, keys::KeyIntents, listed_orders::ListedOrders, order_protocol::OrderProtocol,
        reads::ReadStart, rules::Rules, tags::Tags,
    },
};

impl OrderProtocol {
    /// Takes rules out, to show that they are needed.
    pub(crate) fn with_rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    pub(crate) fn intent(&self, number: IntentNo) -> Option<&Intent> {
        self.intents.get(&number)
    }

    pub(crate) fn all_intents(&self) -> impl Iterator<Item = (IntentNo, &Intent)> {
        self.intents.iter()
    }

    pub(crate) fn all_keys(&self) -> impl Iterator<Item = &KeyIntents> {
        self.keys.iter().map(|(_, key)| key)
    }

    pub(crate) fn listed_orders(&self) -> &ListedOrders {
        &self.listed
    }

    pub(crate) fn tags(&self) -> &Tags {
        &self.tags
    }

    /// Returns where a read under way has started.
    pub(crate) fn read_start(&self, read: ReadNo) -> Option<ReadStart> {
        self.reads.get(read)?.started
    }

    /// True if the list of any session is kept readable.
    pub(crate) fn has_readable(&self) -> bool {
        self.sessions.has_readable()
    }

    /// Settles an attempt now, whatever the time.
    pub(crate) fn settle_now(&mut self, attempt: AttemptNo) {
        self.keys.forget_unsettled_one(attempt);
        self.settle(attempt);
    }
}
