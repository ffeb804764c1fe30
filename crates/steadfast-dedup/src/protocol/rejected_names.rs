use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use steadfast_call::ext;

use crate::{numbers::IntentNo, protocol::intent::Intent};

/// The names of orders that were rejected, and the unsent intents that repeat one of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct RejectedNames {
    /// Each is kept until a list that no such order can lag behind was read.
    names: BTreeMap<ext::IntentId, Rejection>,
    held: BTreeMap<IntentNo, Hold>,
    /// Rejected orders of earlier processes, confirmed by a list then.
    confirmed: BTreeSet<IntentNo>,
}

/// An unsent intent's wait for a list.
#[derive(Clone, Copy, Debug)]
struct Hold {
    rejection: Rejection,
    /// When it ends without such a list.
    until: Duration,
}

/// A rejection that no list has confirmed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rejection {
    intent: IntentNo,
    since: Duration,
}

impl Rejection {
    /// Returns the rejection of an intent that came at this time or, if it came to an earlier process, when this one
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
    /// Notes that the order of a name was rejected, and forgets the oldest one if there are more than so many.
    pub(crate) fn note(&mut self, name: ext::IntentId, rejection: Rejection, remembered: usize) {
        self.names.insert(name, rejection);
        if self.names.len() > remembered
            && let Some((oldest, _)) = self.names.iter().min_by_key(|(_, it)| it.since)
        {
            let oldest = oldest.clone();
            self.names.remove(&oldest);
        }
    }

    /// Returns the rejection of a name that no list has confirmed yet.
    pub(crate) fn of(&self, name: &ext::IntentId) -> Option<Rejection> {
        self.names.get(name).copied()
    }

    /// Notes that a list of an earlier process confirmed the rejection of an order.
    pub(crate) fn note_confirmed(&mut self, number: IntentNo) {
        self.confirmed.insert(number);
    }

    pub(crate) fn was_confirmed(&self, number: IntentNo) -> bool {
        self.confirmed.contains(&number)
    }

    /// Holds back an intent that repeats the name of such a rejection, at most until then.
    pub(crate) fn hold(&mut self, number: IntentNo, rejection: Rejection, until: Duration) {
        self.held.insert(number, Hold { rejection, until });
    }

    /// True if a repeat of this intent's name waits, or would wait, for a list that confirms its rejection.
    pub(crate) fn is_unconfirmed(&self, number: IntentNo, intent: Option<&Intent>) -> bool {
        let rejection = intent.and_then(Intent::name).and_then(|name| self.names.get(name));
        rejection.is_some_and(|rejection| rejection.intent == number)
            || self.held().any(|(_, rejection)| rejection.intent == number)
    }

    pub(crate) fn is_held(&self, number: IntentNo) -> bool {
        self.held.contains_key(&number)
    }

    pub(crate) fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Returns the intents that are held back, and why.
    pub(crate) fn held(&self) -> impl Iterator<Item = (IntentNo, Rejection)> {
        self.held.iter().map(|(&number, hold)| (number, hold.rejection))
    }

    /// Returns those whose wait is over.
    pub(crate) fn over(&self, now: Duration) -> Vec<(IntentNo, Rejection)> {
        let over = self.held.iter().filter(|(_, hold)| hold.until <= now);
        over.map(|(&number, hold)| (number, hold.rejection)).collect()
    }

    /// Returns when the first of these waits ends.
    pub(crate) fn held_until(&self) -> Option<Duration> {
        self.held.values().map(|hold| hold.until).min()
    }

    /// Holds an intent back no longer; true if it was held.
    pub(crate) fn release(&mut self, number: IntentNo) -> bool {
        self.held.remove(&number).is_some()
    }

    /// Forgets the held intents of an earlier process.
    pub(crate) fn release_all(&mut self) {
        self.held.clear();
    }

    /// Returns the rejected orders that a list begun at `start` shows, if they were placed all the same.
    pub(crate) fn due(&self, start: Duration, lateness: Duration) -> BTreeSet<IntentNo> {
        let all = self.names.values().chain(self.held.values().map(|hold| &hold.rejection));
        all.filter(|it| it.shows(lateness) <= start).map(|it| it.intent).collect()
    }

    /// Confirms the rejections of all orders that such a list would show, except these; returns the repeats that it
    /// releases.
    pub(crate) fn confirm(
        &mut self,
        start: Duration,
        lateness: Duration,
        except: &BTreeSet<IntentNo>,
    ) -> Vec<IntentNo> {
        let waits = |it: &Rejection| it.shows(lateness) > start || except.contains(&it.intent);
        self.names.retain(|_, it| waits(it));
        let released: Vec<_> =
            self.held.iter().filter(|(_, hold)| !waits(&hold.rejection)).map(|(&number, _)| number).collect();
        self.held.retain(|_, hold| waits(&hold.rejection));
        released
    }
}
