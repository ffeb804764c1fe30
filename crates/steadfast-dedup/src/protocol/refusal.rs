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
        attempt::{Attempt, Sent},
        effect::Effect,
        event::Answer,
        intent::Intent,
        key::Key,
        keys::KeyIntents,
        listed_orders::fresh::Fresh,
        matcher,
        order_protocol::OrderProtocol,
        phase::{Finding, Phase, RefusalCheck},
        reads::ReadStart,
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
        self.intents.reopen(number);
        self.keys.reopen_refused(&key, number);
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
                && self.watches.is_believed(told.saturating_add(lateness))
        });
        for number in unconfirmed.map(|(number, _)| number).collect::<Vec<_>>() {
            self.reopen_refused(number);
            if let Some(intent) = self.intents.get_mut(&number) {
                intent.abandon();
            }
        }
    }

    /// True if an intent waits for a list that confirms its refusal.
    #[must_use]
    pub fn awaits_check(&self, intent: IntentNo) -> bool {
        self.intents.get(&intent).is_some_and(|intent| matches!(intent.phase(), Phase::Refused(_)))
            || self.is_held(intent)
    }

    /// True if any intent waits for such a list.
    #[must_use]
    pub fn awaits_checks(&self) -> bool {
        self.checks().next().is_some() || self.rejected.has_held()
    }

    /// Returns when the next list that can confirm a refusal may be read.
    pub(crate) fn next_check(&self) -> Option<Duration> {
        let checks = self.checks().map(|(_, check)| check.since.saturating_add(check.lag));
        checks.chain(self.next_release()).min()
    }

    fn checks(&self) -> impl Iterator<Item = (IntentNo, RefusalCheck)> {
        self.intents.refused().iter().filter_map(|&number| match *self.intents.get(&number)?.phase() {
            Phase::Refused(check) => Some((number, check)),
            _ => None,
        })
    }

    /// True if no list known so far shows an order that was refused.
    pub(crate) fn stays_refused(&self, intent: &Intent) -> bool {
        intent.day() == self.time.day()
            && self.shown_as(intent).next().is_none()
            && !self.has_more_strangers(intent)
            && !self.is_disputed(intent)
    }

    /// Returns the orders of a key whose callers were told of a refusal.
    ///
    /// Only those of today, and those so shortly before midnight that they may be listed today.
    pub(crate) fn refused_of(&self, key: &Key) -> impl Iterator<Item = (IntentNo, &Intent)> {
        let refused = self.keys.get(key).into_iter().flat_map(KeyIntents::refused);
        let intents = refused.filter_map(|number| Some((*number, self.intents.get(number)?)));
        intents.filter(|(number, it)| {
            it.was_told_not_placed() && (it.day() == self.time.day() || self.watches.is_watched(*number))
        })
    }

    /// Returns the refused order that a listed one matches exactly.
    pub(crate) fn refused_owner(&self, key: &Key, fresh: &Fresh) -> Option<IntentNo> {
        let is_it = |it: &Intent| {
            it.could_own(fresh.first_seen)
                && matcher::strict(&fresh.record, it.order())
                && !self.is_strangers_by_tag(it, fresh)
        };
        let mut refused = self.refused_of(key).filter(|(_, intent)| is_it(intent));
        refused.next().map(|(number, _)| number)
    }

    /// Withdraws every refusal on a key that a listed order refutes.
    ///
    /// Runs before anything is claimed: a listed order may be the refused one.
    pub(crate) fn refute(&mut self, key: &Key, out: &mut Vec<Effect>) {
        if self.intents.refused().is_empty() {
            return;
        }
        let refuted = |number: &IntentNo| {
            self.intents.get(number).is_some_and(|intent| {
                // An awaited answer may give the listed order to another intent.
                let its = |fresh: &Fresh| !self.may_be_answered_yet(key, *number, fresh.first_seen);
                intent.key() == key
                    && (self.is_disputed(intent)
                        || self.has_more_strangers(intent)
                        || self.shown_as(intent).any(its))
            })
        };
        let refuted: Vec<_> = self.intents.refused().iter().copied().filter(refuted).collect();
        for number in refuted {
            self.doubt_refused(number, out);
        }
    }

    /// Ends the check of refusals by one read of today's list, valid or not.
    pub(crate) fn check_refusals(&mut self, started: Option<ReadStart>, valid: bool, out: &mut Vec<Effect>) {
        let (at, seq) = started.map_or((self.time.now(), self.time.latest()), |start| (start.at, start.seq));
        let due = move |check: &RefusalCheck| check.from < seq && at >= check.since.saturating_add(check.lag);
        let checked: Vec<_> =
            self.checks().filter(|(_, check)| due(check)).map(|(number, _)| number).collect();
        for number in checked {
            let Some(intent) = self.intents.get(&number) else { continue };
            let key = intent.key().clone();
            if !valid
                || started.is_some_and(|start| {
                    let by_token =
                        matches!(intent.phase(), Phase::Refused(RefusalCheck { by_token: true, .. }));
                    self.is_shown_elsewhere(intent, by_token, start)
                })
            {
                let is_last = matches!(intent.phase(), Phase::Refused(RefusalCheck { is_last: true, .. }));
                self.doubt_refused(number, out);
                if is_last {
                    self.finish_unresolved(number, Reason::Unverifiable, out);
                }
                self.resolve(&key, out);
                continue;
            }
            // An order that a wrong answer gave to another intent is not certainly its own.
            self.refute(&key, out);
            if self.intents.get(&number).is_some_and(|intent| self.stays_refused(intent))
                && self.intents.refused().contains(&number)
            {
                self.clear_refused(number, out);
            }
        }
        if valid {
            self.confirm_unlisted(started, due, out);
        }
    }

    /// Confirms refusals whose calls have ended: this list was read long enough after them and lacks their orders.
    fn confirm_unlisted(
        &mut self,
        started: Option<ReadStart>,
        due: impl Fn(&RefusalCheck) -> bool,
        out: &mut Vec<Effect>,
    ) {
        let due: Vec<_> =
            self.watches.unlisted().filter(|(_, check)| due(check)).map(|(number, _)| number).collect();
        for number in due {
            let Some(intent) = self.intents.get(&number) else {
                self.watches.end_unlisted(number);
                continue;
            };
            let by_token = intent.token_refused();
            if started.is_some_and(|start| self.is_shown_elsewhere(intent, by_token, start)) {
                continue;
            }
            if intent.finding() == Some(&Finding::Refused) && self.stays_refused(intent) {
                out.push(Effect::Confirmed(number));
            }
            self.watches.end_unlisted(number);
        }
    }

    /// Takes in that a list of an earlier run confirmed the intent's refusals, or its rejection.
    pub(crate) fn take_confirmed(&mut self, number: IntentNo) {
        let Some(intent) = self.intents.get_mut(&number) else { return };
        if *intent.phase() == Phase::Idle && intent.was_refused() {
            self.rejected.note_confirmed(number);
        } else if matches!(intent.phase(), Phase::Refused(_)) {
            // For a resend, the grant stands.
            if intent.first_sent().is_some() {
                intent.grant();
                self.intents.end_refusal(number);
            } else {
                intent.clear();
            }
        }
    }

    /// Lets a refusal of an earlier run wait for a list: nothing but the service's word says that its order is not
    /// placed.
    pub(crate) fn check_again(&mut self, number: IntentNo) {
        let (since, from, lag) = (self.time.now(), self.time.tick(), self.refusal_lag());
        // It is not sent for a caller that is gone, so it keeps no other order waiting.
        self.leave_line(number, &mut Vec::new());
        let Some(intent) = self.intents.get_mut(&number) else { return };
        intent.abandon();
        let by_token = intent.token_refused();
        intent.await_check(RefusalCheck { since, from, lag, by_token, is_last: false });
        self.intents.refuse(number);
    }

    /// True if the order would be in another session's list. After a 401 there is no other: its session is over.
    fn is_shown_elsewhere(&self, intent: &Intent, by_token: bool, start: ReadStart) -> bool {
        let last = intent.attempts().iter().rev().find(|attempt: &&Attempt| attempt.refused().is_some());
        !by_token && last.is_some_and(|attempt| self.scoped(attempt.session()) != start.session)
    }

    /// True if a caller would be told of a refused token (401) that no list has confirmed.
    pub(crate) fn awaits_last_check(&self, intent: &Intent) -> bool {
        intent.has_caller() && intent.first_sent().is_none()
    }

    /// Keeps a call's end open for the check that confirms its refusal: a later check may be impossible.
    pub(crate) fn hold_refused(&mut self, number: IntentNo, check: RefusalCheck) {
        if let Some(intent) = self.intents.get_mut(&number) {
            intent.await_check(RefusalCheck { is_last: true, ..check });
        }
    }

    fn clear_refused(&mut self, number: IntentNo, out: &mut Vec<Effect>) {
        let Some(intent) = self.intents.get_mut(&number) else { return };
        out.push(Effect::Confirmed(number));
        let is_last = matches!(intent.phase(), Phase::Refused(RefusalCheck { is_last: true, .. }));
        if is_last || !intent.has_caller() {
            // The list has confirmed it.
            intent.clear();
            return self.end_refused(number, out);
        }
        let late = self.time.now().saturating_add(self.settings.lateness);
        self.watches.believe(late);
        // For a resend, the grant stands.
        if intent.first_sent().is_some() {
            intent.grant();
            self.intents.end_refusal(number);
        } else {
            intent.clear();
        }
        out.push(Effect::Decided(number));
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
            // The refused send was a resend.
            self.finish_unresolved(number, Reason::NotObserved, out);
        } else {
            self.watches.believe(self.time.now().saturating_add(self.settings.lateness));
            self.watches.await_confirmation(number);
            if let Some(Phase::Refused(check)) = self.intents.get(&number).map(Intent::phase) {
                self.watches.note_unlisted(number, *check);
            }
            self.finish(number, Finding::Refused, out);
        }
    }

    /// Returns when to read the list for refusals that were believed while their orders could still be late.
    ///
    /// One read serves all refusals that follow closely on each other.
    pub(crate) fn next_late_look(&self) -> Option<Duration> {
        let due = schedule::late_look(self.watches.believed()?.0);
        let failed = self.reads.last_pace().shared.filter(|&last| last >= due);
        Some(failed.map_or(due, schedule::next_try))
    }

    /// Returns from when on a list shows all of those orders, however late they are.
    pub(crate) fn late_refusals_show(&self) -> Duration {
        self.watches.believed().map(|(_, last)| schedule::late_look(last)).unwrap_or_default()
    }

    /// Ends an intent as rejected. Its name is free: by the service's word it never stood for an order. But a
    /// repeat leaves only after a list that no such order can lag behind.
    pub(crate) fn end_rejected(&mut self, number: IntentNo, out: &mut Vec<Effect>) {
        self.hold_repeats_of(number);
        self.intents.free_name(number);
        self.intents.note_rejection(self.time.now());
        self.finish(number, Finding::Rejected, out);
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

impl Intent {
    /// True if its caller was told that it was refused.
    pub(crate) fn was_told_not_placed(&self) -> bool {
        matches!(self.finding(), Some(Finding::Refused | Finding::Rejected))
    }

    /// True if a send of it was refused without having been executed.
    pub(crate) fn was_refused(&self) -> bool {
        self.attempts().iter().any(|attempt: &Attempt| attempt.refused().is_some())
    }
}
