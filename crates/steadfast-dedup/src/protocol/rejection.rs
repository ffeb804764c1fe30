//! Holds back a repeat, under its name, of an order that was rejected.
//!
//! A rejection is for good (400, 403, 404, 405, 415), unlike a refusal (401, 429). It is returned at once, and no list is
//! read for it. But a gateway may reject an order after it has placed it, and lists lag by up to W. A call that repeats
//! the name would then place a second order while no list shows the first. So it waits for a valid list that began W after
//! the rejection or later. Whether the order has other terms by then does not matter: the name stands for one order. A
//! list of another session does not count unless it has shown orders of that one. A list that may show the order, in any
//! form, gives the name back to it; a repeat is then in doubt, as it is if no such list can be read in time. The journal
//! holds that such a list was read, because the next process may have another session.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use steadfast_call::ext;

use crate::{
    numbers::{IntentNo, LogicalTime, Session},
    protocol::{
        effect::Effect,
        intent::Intent,
        key::Key,
        keys::KeyIntents,
        matcher,
        order_event::OrderEvent,
        order_protocol::OrderProtocol,
        phase::Finding,
        reads::ReadStart,
        rejected_names::Rejection,
        resolution::{Reason, Unresolved},
    },
};

/// How long after a list that proved nothing the next one is read.
const AGAIN: Duration = Duration::from_secs(5);

impl OrderProtocol {
    /// Ends an intent as rejected. Its name is free: by the service's word it never stood for an order. But a
    /// repeat leaves only after a list that no such order can lag behind.
    pub(crate) fn end_rejected(&mut self, number: IntentNo, out: &mut Vec<Effect>) {
        self.hold_repeats_of(number);
        self.intents.free_name(number);
        self.intents.note_rejection(self.time.now());
        self.finish(number, Finding::Rejected, out);
    }

    /// Notes that an intent with a name was rejected.
    pub(crate) fn hold_repeats_of(&mut self, number: IntentNo) {
        let name = self.intents.get(&number).and_then(|intent| intent.name().cloned());
        let Some(name) = name.filter(|_| !self.rejected.was_confirmed(number)) else { return };
        let rejection = Rejection::new(number, self.time.now());
        self.rejected.note(name, rejection, self.rules.remembered);
        if self.was_listed_since_sent(number) {
            // The record that may be its order was dropped when it was rejected.
            self.listed.show_again();
        }
    }

    /// Holds back a new intent if it repeats such a name, or gives the name back at once: a list of today confirms no
    /// rejection of yesterday. Once midnight is over, yesterday's names are free; but to the next process a later day may
    /// be a step of the wall clock.
    pub(crate) fn hold_repeat(&mut self, number: IntentNo, name: &ext::IntentId, out: &mut Vec<Effect>) {
        let Some(rejection) = self.rejected.of(name) else { return };
        let until = self.time.now().saturating_add(self.settings.budget());
        if self.is_of_today(rejection) {
            self.rejected.hold(number, rejection, until);
        } else if self.time.is_midnight_near() || self.intents.is_restored(rejection.intent()) {
            self.doubt_rejection(rejection, Reason::EpochChanged, out);
        }
    }

    /// Ends the waits for lists at the end of the day.
    pub(crate) fn doubt_yesterdays_rejections(&mut self, out: &mut Vec<Effect>) {
        let held = self.rejected.held().map(|(_, rejection)| rejection);
        let ended: Vec<_> = held.filter(|&rejection| !self.is_of_today(rejection)).collect();
        for rejection in ended {
            self.doubt_rejection(rejection, Reason::EpochChanged, out);
        }
    }

    fn is_of_today(&self, rejection: Rejection) -> bool {
        self.intents.get(&rejection.intent()).is_some_and(|intent| intent.day() == self.time.day())
    }

    /// Makes a name stand for its rejected order again: that may exist, and no list will tell.
    fn doubt_rejection(&mut self, rejection: Rejection, reason: Reason, out: &mut Vec<Effect>) {
        self.doubt_rejected(rejection.intent(), Unresolved::new(reason, Vec::new()), out);
    }

    /// Does the same, and reports the order, so that the journal holds its doubt: once, although several repeats or lists may
    /// lead to it.
    fn doubt_rejected(&mut self, number: IntentNo, unresolved: Unresolved, out: &mut Vec<Effect>) {
        let was_rejected = self.intents.get(&number).is_some_and(Intent::was_told_not_placed);
        self.take_name_back(number, unresolved, out);
        if !was_rejected {
            return;
        }
        let Some(intent) = self.intents.get(&number) else { return };
        // Otherwise another order has the name by now.
        let Some(Finding::Unresolved(unresolved)) = intent.finding() else { return };
        let name = intent.name().cloned();
        out.extend([
            Effect::Report(OrderEvent::RefusalUnconfirmed { intent: number, name: name.clone() }),
            Effect::Report(OrderEvent::Unresolved { intent: number, name, unresolved: unresolved.clone() }),
        ]);
    }

    /// Returns when orders of a key left that were rejected, where a list must still confirm that: listed
    /// orders are kept that could be theirs.
    pub(crate) fn unconfirmed_sends(&self, key: &Key) -> impl Iterator<Item = LogicalTime> {
        let refused = self.keys.get(key).into_iter().flat_map(KeyIntents::refused);
        let intents = refused.filter_map(|&number| {
            self.intents.get(&number).filter(|it| self.rejected.is_unconfirmed(number, Some(it)))
        });
        intents.filter_map(|intent| intent.first_left().map(|sent| sent.seq))
    }

    /// True while an intent waits for the list that confirms the rejection of the earlier order of its name.
    pub(crate) fn is_held(&self, number: IntentNo) -> bool {
        self.rejected.is_held(number)
    }

    /// Returns when the next list that can release a repeat may be read.
    pub(crate) fn next_release(&self) -> Option<Duration> {
        let due = self.rejected.held().map(|(_, it)| it.shows(self.settings.lateness)).min()?;
        // Such a list was read, and was not valid.
        let again = self.reads.last_pace().last.filter(|&last| last >= due);
        Some(again.map_or(due, |last| last.saturating_add(AGAIN)))
    }

    /// Takes in what a valid list says of rejected orders: it releases the repeats of those that it lacks, if it
    /// would show them. The name of one that it may show stands for that order again, repeated yet or not.
    pub(crate) fn release(&mut self, start: ReadStart, out: &mut Vec<Effect>) {
        let lateness = self.settings.lateness;
        let mut hidden = BTreeSet::new();
        for number in self.rejected.due(start.at, lateness) {
            let rejected = self.intents.get(&number);
            let elsewhere = |it| self.is_in_anothers_list(it, start.session);
            let shown = rejected.and_then(|it| {
                let unowned = self.shown_as(it).next().map(|fresh| &fresh.order_id);
                unowned.or_else(|| self.taken_by_an_equal(it)).cloned()
            });
            if let Some(order_id) = shown {
                // A repeat gets an order in doubt.
                let unresolved = Unresolved::new(Reason::NearMatch, vec![order_id.to_string()]);
                self.doubt_rejected(number, unresolved, out);
            } else if rejected.is_some_and(|it| self.is_hidden_by_others(it) || elsewhere(it)) {
                // The next list may find room for it, or be its own session's.
                hidden.insert(number);
            } else if rejected.is_some() {
                // The next process may have another login, whose lists do not show it.
                out.push(Effect::Confirmed(number));
            }
        }
        let released = self.rejected.confirm(start.at, lateness, &hidden);
        out.extend(released.into_iter().map(Effect::Decided));
    }

    /// Returns an order that a list showed and that counts as an equal intent's, although it may be this one's: the one
    /// that it was given, or one that was reported as late.
    fn taken_by_an_equal<'a>(&'a self, intent: &'a Intent) -> Option<&'a Arc<str>> {
        let equals = self.finished_of(intent.key()).filter(|(_, other)| other.order() == intent.order());
        let given = equals.filter_map(|(_, other)| match other.finding() {
            Some(Finding::Recovered { order_id, .. }) => Some(order_id),
            _ => None,
        });
        let mut given =
            given.filter(|id| self.listed.first_seen(id).is_some_and(|seen| intent.could_own(seen)));
        let mut late = self.listed.unowned.of(intent.key()).filter(|fresh| {
            fresh.late && intent.could_own(fresh.first_seen) && matcher::loose(&fresh.record, intent.order())
        });
        given.next().or_else(|| Some(&late.next()?.order_id))
    }

    /// Ends the waits for which no list came in time: the rejected orders may exist, and their names stand for them.
    pub(crate) fn end_holds(&mut self, out: &mut Vec<Effect>) {
        for (_, rejection) in self.rejected.over(self.time.now()) {
            self.doubt_rejection(rejection, Reason::Unverifiable, out);
        }
    }

    /// True if a list was read since an intent was first sent.
    fn was_listed_since_sent(&self, number: IntentNo) -> bool {
        let sent = self.intents.get(&number).and_then(Intent::first_left);
        sent.is_some_and(|sent| self.listed.lists.has_one_since(sent.seq))
    }

    /// True if the list of this session may hide an order that was rejected in another one. Lists that have shown another
    /// order of that session hide none.
    fn is_in_anothers_list(&self, intent: &Intent, session: Session) -> bool {
        intent.last_refused().is_some_and(|its| its != session && !self.listed.shows_some_of(its, session))
    }

    /// True if more orders are listed than are kept, and one of those could be the intent's.
    fn is_hidden_by_others(&self, intent: &Intent) -> bool {
        self.has_more_strangers(intent)
            || intent
                .first_left()
                .is_some_and(|sent| self.listed.unowned.has_overflow(intent.key(), sent.seq, None))
    }

    /// Returns from when on a list shows orders placed despite a rejection, if none was read since.
    pub(crate) fn rejections_show(&self) -> Option<Duration> {
        Some(self.intents.rejected_at()?.saturating_add(self.settings.lateness))
    }

    /// Notes that a list was read at this time.
    pub(crate) fn end_rejections(&mut self, at: Duration) {
        if self.rejections_show().is_some_and(|show| show <= at) {
            self.intents.end_rejections();
        }
    }
}
