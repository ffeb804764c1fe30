use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    numbers::{IntentNo, Session},
    protocol::phase::RefusalCheck,
};

/// The orders that may still appear after their end was told, and the reads that are due for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watches {
    /// Since when each of them is watched for.
    since: BTreeMap<IntentNo, Duration>,
    /// Until when an order could still be listed, by the lateness bound, whose outcome was told before that: one that was
    /// refused (401, 429), or one that was found beside equal ones.
    late_until: BTreeSet<Duration>,
    /// Orders whose 429 was returned to the caller and is not confirmed by a list yet.
    unconfirmed: BTreeSet<IntentNo>,
    /// Refusals (401, 429) that a call ended with before a list agreed with them.
    unlisted: BTreeMap<IntentNo, RefusalCheck>,
    /// When the lists of past sessions were last read.
    own_looks: BTreeMap<Session, OwnLook>,
    /// The last reads of a shutdown, while one is due.
    last_look: Option<LastLook>,
}

/// When the list of a past session was read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnLook {
    pub(crate) last: Option<Duration>,
    /// Whether that read failed.
    pub(crate) failed: bool,
    /// One more is wanted before the account is released.
    pub(crate) wanted: bool,
}

/// The last reads of a shutdown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastLook {
    /// When they began.
    since: Duration,
    /// When the next one is due.
    due: Duration,
    /// From when on a list shows every order that was refused or rejected before.
    shows: Duration,
    /// A list that was read after that was seen.
    looked: bool,
    /// One of them brought a list.
    listed: bool,
}

impl LastLook {
    /// Returns the last reads that begin now. Lists read from `shows` on show every order refused or rejected before.
    pub(crate) fn new(since: Duration, due: Duration, shows: Duration) -> Self {
        Self { since, due, shows, looked: false, listed: false }
    }

    /// Returns when they began.
    pub(crate) fn since(self) -> Duration {
        self.since
    }

    /// Returns when the next one is due.
    pub(crate) fn due(self) -> Duration {
        self.due
    }

    #[must_use]
    pub(crate) fn due_at(self, due: Duration) -> Self {
        Self { due, ..self }
    }

    /// Returns from when on one of them shows every order that was refused before.
    pub(crate) fn shows(self) -> Duration {
        self.since.max(self.shows)
    }

    /// Notes that a list was read at this time.
    pub(crate) fn look(&mut self, at: Duration) {
        self.looked |= at >= self.shows();
    }

    /// Notes that one of them brought a list.
    pub(crate) fn note_list(&mut self) {
        self.listed = true;
    }

    /// True if one of them brought a list.
    pub(crate) fn has_list(self) -> bool {
        self.listed
    }

    /// True if a list was read that shows every order that was refused before.
    pub(crate) fn has_looked(self) -> bool {
        self.looked
    }
}

impl Watches {
    pub(crate) fn watch(&mut self, number: IntentNo, since: Duration) {
        self.since.insert(number, since);
    }

    /// Ends the watch for an order; returns since when it was watched for.
    pub(crate) fn unwatch(&mut self, number: IntentNo) -> Option<Duration> {
        self.since.remove(&number)
    }

    pub(crate) fn since(&self, number: IntentNo) -> Option<Duration> {
        self.since.get(&number).copied()
    }

    pub(crate) fn is_watched(&self, number: IntentNo) -> bool {
        self.since.contains_key(&number)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.since.is_empty()
    }

    /// Returns the watched orders, and since when they are.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (IntentNo, Duration)> {
        self.since.iter().map(|(&number, &since)| (number, since))
    }

    /// Carries over to the next day: only these orders are still watched for.
    pub(crate) fn begin_day(&mut self, is_watched: impl Fn(IntentNo) -> bool) {
        self.since.retain(|&number, _| is_watched(number));
        self.late_until.clear();
        self.own_looks.clear();
    }

    /// Asks for a list that is read after `until`, when an order whose outcome is told can be listed no more.
    pub(crate) fn look_after(&mut self, until: Duration) {
        self.late_until.insert(until);
    }

    pub(crate) fn looks_after(&self, until: Duration) -> bool {
        self.late_until.contains(&until)
    }

    /// Returns until when the first and the last of those orders could be listed.
    pub(crate) fn late_until(&self) -> Option<(Duration, Duration)> {
        Some((*self.late_until.first()?, *self.late_until.last()?))
    }

    /// Drops those that a list read at this time shows.
    pub(crate) fn end_late_looks(&mut self, at: Duration) {
        self.late_until.retain(|&until| until >= at);
    }

    /// Notes that a refusal was returned that no list has confirmed.
    pub(crate) fn await_confirmation(&mut self, number: IntentNo) {
        self.unconfirmed.insert(number);
    }

    pub(crate) fn end_confirmation(&mut self, number: IntentNo) {
        self.unconfirmed.remove(&number);
    }

    /// Drops the refusals that are confirmed.
    pub(crate) fn confirm(&mut self, is_confirmed: impl Fn(IntentNo, Option<Duration>) -> bool) {
        let since = &self.since;
        self.unconfirmed.retain(|number| !is_confirmed(*number, since.get(number).copied()));
    }

    pub(crate) fn unconfirmed(&self) -> &BTreeSet<IntentNo> {
        &self.unconfirmed
    }

    pub(crate) fn take_unconfirmed(&mut self) -> BTreeSet<IntentNo> {
        std::mem::take(&mut self.unconfirmed)
    }

    /// Notes that a call ended with a refusal before a list agreed with it.
    pub(crate) fn note_unlisted(&mut self, number: IntentNo, check: RefusalCheck) {
        self.unlisted.insert(number, check);
    }

    pub(crate) fn end_unlisted(&mut self, number: IntentNo) {
        self.unlisted.remove(&number);
    }

    pub(crate) fn is_unlisted(&self, number: IntentNo) -> bool {
        self.unlisted.contains_key(&number)
    }

    pub(crate) fn unlisted(&self) -> impl Iterator<Item = (IntentNo, RefusalCheck)> {
        self.unlisted.iter().map(|(&number, &check)| (number, check))
    }

    pub(crate) fn own_look(&self, session: Session) -> OwnLook {
        self.own_looks.get(&session).copied().unwrap_or_default()
    }

    /// Asks for one more read of a past session's list.
    pub(crate) fn want_own_look(&mut self, session: Session) {
        self.own_looks.entry(session).or_default().wanted = true;
    }

    pub(crate) fn end_own_look(&mut self, session: Session, at: Duration, looked: bool) {
        self.own_looks.insert(session, OwnLook { last: Some(at), failed: !looked, wanted: false });
    }

    pub(crate) fn last_look(&self) -> Option<LastLook> {
        self.last_look
    }

    pub(crate) fn set_last_look(&mut self, look: Option<LastLook>) {
        self.last_look = look;
    }

    pub(crate) fn take_last_look(&mut self) -> Option<LastLook> {
        self.last_look.take()
    }
}
