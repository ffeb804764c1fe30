//! Checks refusals that a list may refute.
//!
//! A 401 or a 429 says that the order was not executed. A gateway that answers so after it has placed the order is
//! rare, but an order that is sent again on its word alone would then be placed twice. So the refusal stands only if
//! one valid list, read [long enough](crate::Settings::refusal_lag) after it, does not show the order. If the
//! list shows it, or there is no list, the order is in doubt: lists decide about it, and it is never sent again.
//!
//! Lists may lag for longer than that one check waits. So the list is read once more, in the slowest lane, when no
//! order can be late any more. An order that it shows is reported.
//!
//! A caller to whom a 429 is returned is told at once, and the list is watched. Of a 401 the caller is told after
//! that one check: a refused token that cannot be renewed reads no list later either. If the check fails, the order
//! is unresolved.

use std::time::Duration;

use crate::{
    numbers::{AttemptNo, IntentNo},
    protocol::{
        attempt::Sent,
        effect::Effect,
        event::Answer,
        intent::Intent,
        key::Key,
        keys::KeyIntents,
        listed_orders::fresh::Fresh,
        matcher,
        order_protocol::OrderProtocol,
        phase::{Finding, Phase, RefusalCheck},
        resolution::Reason,
        schedule,
    },
};

impl OrderProtocol {
    /// The service says that it did not execute the send.
    pub(crate) fn refuse(&mut self, attempt: AttemptNo, sent: Sent, answer: Answer, out: &mut Vec<Effect>) {
        let by_token = answer == Answer::Status(401);
        let lag = self.refusal_lag();
        let check =
            RefusalCheck { since: self.time.now(), from: self.time.tick(), lag, by_token, is_last: false };
        let today = self.time.day();
        let Some(intent) = self.intents.get_mut(&attempt.intent) else { return };
        intent.refuse(attempt.index, sent);
        intent.set_token_refused(by_token);
        intent.await_check(check);
        let (key, stale) = (intent.key().clone(), intent.day() != today);
        self.intents.refuse(attempt.intent);
        if stale {
            self.doubt_refused(attempt.intent, out);
        }
        self.resolve(&key, out);
    }

    /// Returns how long after a refusal a list must be read to confirm it: lists lag.
    pub(crate) fn refusal_lag(&self) -> Duration {
        self.rules.refusal_lag.unwrap_or_else(|| self.settings.refusal_lag_used())
    }

    /// Opens a refused intent again, because a caller repeats its name.
    pub(crate) fn repeat_refused(&mut self, number: IntentNo, out: &mut Vec<Effect>) {
        self.reopen_refused(number);
        let today = self.time.day();
        // A list of today confirms no refusal of yesterday.
        if self.intents.get(&number).is_some_and(|intent| intent.day() != today) {
            self.doubt_refused(number, out);
        }
    }

    /// Lets a refused intent wait for a list once more.
    pub(crate) fn reopen_refused(&mut self, number: IntentNo) {
        let from = self.time.tick();
        let since = self.watches.unwatch(number).unwrap_or(self.time.now());
        self.watches.end_confirmation(number);
        // How long ago an earlier process was refused is unknown: its order may still be as late as any.
        let restored = self.intents.is_restored(number);
        let lag = if restored { self.settings.lateness } else { self.refusal_lag() };
        let Some(intent) = self.intents.get_mut(&number) else { return };
        let is_left = matches!(intent.phase(), Phase::Refused(_)) && !intent.has_caller();
        if !is_left && !matches!(intent.phase(), Phase::Finished(Finding::Refused)) {
            return;
        }
        self.watches.end_unlisted(number);
        intent.await_check(RefusalCheck { since, from, lag, by_token: false, is_last: false });
        intent.ask_again(self.time.now());
        let key = intent.key().clone();
        // Records that may be its order were dropped while it was decided.
        self.listed.show_again();
        self.intents.refuse(number);
        self.intents.undecide(number);
        self.keys.undecide_refused(&key, number);
        self.keys.stand(&key, number);
        self.join_line(&key, number);
    }

    /// At the end of the day, reopens refusals of an earlier process that neither a list has confirmed nor a caller
    /// was told of.
    pub(crate) fn reopen_unconfirmed(&mut self) {
        let lateness = self.settings.lateness;
        let unconfirmed = self.watches.iter().filter(|&(number, told)| {
            let intent = self.intents.get(&number);
            self.intents.is_restored(number)
                && intent.and_then(Intent::finding) == Some(&Finding::Refused)
                && self.watches.looks_after(told.saturating_add(lateness))
        });
        for number in unconfirmed.map(|(number, _)| number).collect::<Vec<_>>() {
            self.reopen_refused(number);
            if let Some(intent) = self.intents.get_mut(&number) {
                intent.abandon();
            }
        }
    }

    /// Returns the orders of a key whose callers were told of a refusal or a rejection.
    ///
    /// Only those of today, and those so shortly before midnight that they may be listed today.
    pub(crate) fn refused_of(&self, key: &Key) -> impl Iterator<Item = (IntentNo, &Intent)> {
        self.not_placed_of(key).filter(|(_, it)| it.was_told_not_placed())
    }

    /// Returns these, and the ones whose calls are about to end with a rejection.
    pub(crate) fn not_placed_of(&self, key: &Key) -> impl Iterator<Item = (IntentNo, &Intent)> {
        let refused = self.keys.get(key).into_iter().flat_map(KeyIntents::refused);
        let intents = refused.filter_map(|number| Some((*number, self.intents.get(number)?)));
        intents.filter(|(number, it)| {
            (it.was_told_not_placed() || it.is_rejected())
                && (it.day() == self.time.day() || self.watches.is_watched(*number))
        })
    }

    /// Returns the refused or rejected order that a listed one matches exactly.
    pub(crate) fn refused_owner(&self, key: &Key, fresh: &Fresh) -> Option<IntentNo> {
        let is_it = |it: &Intent| {
            it.could_own(fresh.first_seen)
                && matcher::strict(&fresh.record, it.order())
                && !self.is_strangers_by_tag(it, fresh)
        };
        let mut refused = self.refused_of(key).filter(|(_, intent)| is_it(intent));
        refused.next().map(|(number, _)| number)
    }

    /// True if a caller would be told of a refused token (401) that no list has confirmed.
    pub(crate) fn awaits_last_check(&self, intent: &Intent) -> bool {
        intent.has_caller() && intent.first_sent().is_none()
    }

    /// Lets a call that would end with a 401 wait for the list that confirms it: a later check may be impossible.
    pub(crate) fn hold_refused(&mut self, number: IntentNo, check: RefusalCheck) {
        if let Some(intent) = self.intents.get_mut(&number) {
            intent.await_check(RefusalCheck { is_last: true, ..check });
        }
    }

    /// Treats a refusal as possibly untrue: its order is searched for, and never sent again.
    pub(crate) fn doubt_refused(&mut self, number: IntentNo, out: &mut Vec<Effect>) {
        if !self.intents.end_refusal(number) {
            return;
        }
        let settles = self.time.now().saturating_add(self.settings.lateness);
        let Some(intent) = self.intents.get_mut(&number) else { return };
        let (key, stale) = (intent.key().clone(), intent.day() != self.time.day());
        for index in intent.doubt_refused() {
            self.keys.unsettle(&key, AttemptNo { intent: number, index }, settles);
        }
        self.intents.note_endless();
        self.tally.lose(Answer::Status(429));
        self.search(number, self.time.now());
        if stale {
            self.finish_unresolved(number, Reason::EpochChanged, out);
        }
        out.push(Effect::Decided(number));
    }

    /// Ends an intent as refused: its caller is told so, or is gone.
    pub(crate) fn end_refused(&mut self, number: IntentNo, out: &mut Vec<Effect>) {
        if self.is_sent(number) {
            // The refused send was a resend. It may be the listed order that kept the refusal from being confirmed.
            let is_shown = self.intents.get(&number).is_some_and(|intent| self.is_vetoed(intent));
            let reason = if is_shown { Reason::NearMatch } else { Reason::NotObserved };
            self.finish_unresolved(number, reason, out);
        } else {
            self.watches.look_after(self.time.now().saturating_add(self.settings.lateness));
            self.watches.await_confirmation(number);
            if let Some(Phase::Refused(check)) = self.intents.get(&number).map(Intent::phase) {
                self.watches.note_unlisted(number, *check);
            }
            self.finish(number, Finding::Refused, out);
        }
    }

    /// Returns when to read the list for orders whose outcome was told while they could still be late.
    ///
    /// One read serves all that follow closely on each other.
    pub(crate) fn next_late_look(&self) -> Option<Duration> {
        let due = schedule::late_look(self.watches.late_until()?.0);
        let failed = self.reads.last_pace().current.filter(|&last| last >= due);
        Some(failed.map_or(due, schedule::next_try))
    }

    /// Returns from when on a list shows all of those orders, however late they are.
    pub(crate) fn late_orders_show(&self) -> Duration {
        self.watches.late_until().map(|(_, last)| schedule::late_look(last)).unwrap_or_default()
    }
}
