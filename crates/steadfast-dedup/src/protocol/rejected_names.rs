use std::{collections::BTreeMap, time::Duration};

use steadfast_call::ext;

use crate::numbers::IntentNo;

/// The names of orders that were refused for good, and the unsent intents that repeat one of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct RejectedNames {
    /// Each is kept until a list that no such order can lag behind was read.
    names: BTreeMap<ext::IntentId, Rejection>,
    held: BTreeMap<IntentNo, Rejection>,
}

/// A refusal for good that no list has confirmed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rejection {
    intent: IntentNo,
    since: Duration,
}

impl Rejection {
    /// Returns the refusal of an intent that came at this time or, if it came to an earlier process, when this one
    /// began.
    pub(crate) fn new(intent: IntentNo, since: Duration) -> Self {
        Self { intent, since }
    }

    pub(crate) fn intent(&self) -> IntentNo {
        self.intent
    }

    /// Returns from when on a list shows the order, if it was placed all the same.
    pub(crate) fn shows(&self, lateness: Duration) -> Duration {
        self.since.saturating_add(lateness)
    }
}

impl RejectedNames {
    /// Notes that a name was refused for good, and forgets the oldest one if there are more than so many.
    pub(crate) fn note(&mut self, name: ext::IntentId, rejection: Rejection, remembered: usize) {
        self.names.insert(name, rejection);
        if self.names.len() > remembered
            && let Some((oldest, _)) = self.names.iter().min_by_key(|(_, it)| it.since)
        {
            let oldest = oldest.clone();
            self.names.remove(&oldest);
        }
    }

    /// Holds back an intent if it repeats such a name.
    pub(crate) fn hold(&mut self, number: IntentNo, name: &ext::IntentId) {
        if let Some(&rejection) = self.names.get(name) {
            self.held.insert(number, rejection);
        }
    }

    pub(crate) fn is_held(&self, number: IntentNo) -> bool {
        self.held.contains_key(&number)
    }

    pub(crate) fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Returns the intents that are held back, and why.
    pub(crate) fn held(&self) -> impl Iterator<Item = (IntentNo, Rejection)> {
        self.held.iter().map(|(&number, &rejection)| (number, rejection))
    }

    /// Holds an intent back no longer; true if it was held.
    pub(crate) fn release(&mut self, number: IntentNo) -> bool {
        self.held.remove(&number).is_some()
    }

    /// Forgets the held intents of an earlier process.
    pub(crate) fn release_all(&mut self) {
        self.held.clear();
    }

    /// True if there is nothing that a list could confirm.
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.held.is_empty()
    }

    /// Forgets the names whose orders a list that began at `start` would show.
    pub(crate) fn forget_shown(&mut self, start: Duration, lateness: Duration) {
        self.names.retain(|_, it| it.shows(lateness) > start);
    }
}
