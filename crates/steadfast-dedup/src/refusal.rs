//! Refusals that a list may refute.
//!
//! A 401 or a 429 says that the order was not executed. A gateway that answers so after it has placed the order is rare,
//! and an order that is sent again on its word alone is placed twice. So its word stands only if one valid list, read
//! [long enough](crate::rules::Rules::refusal_lag) after it, does not show the order. Shown, or not to be had: the order is
//! in doubt, resolved by what is listed, and never sent again.
//!
//! Lists may lag for longer than that one look waits. So the list is read once more when no order can be late any more, in the
//! slowest lane, and an order that it shows is reported.
//!
//! A caller to whom a 429 is returned is told at once, and the list is watched. Of a 401 he is told after that one look: a token
//! that is refused, and that nobody can renew, reads no list later either. If the look fails the order is unresolved.

use std::time::Duration;

use crate::{
    attempt::{Attempt, AttemptState, Never, Sent},
    book::Fresh,
    event::{Answer, Effect},
    intent::{Check, Finding, Intent, Phase},
    key::Key,
    matcher,
    registry::{ReadStart, Registry},
    resolution::Reason,
    schedule,
    stamp::{AttemptNo, IntentNo},
};

impl Registry {
    /// The service says that it did not execute what was sent.
    pub(crate) fn refuse(&mut self, attempt: AttemptNo, sent: Sent, answer: Answer, out: &mut Vec<Effect>) {
        let by_token = answer == Answer::Status(401);
        let check = Check { since: self.now, from: self.tick(), by_token, is_last: false };
        let epoch = self.epoch;
        let Some(intent) = self.intents.get_mut(&attempt.intent) else { return };
        let Some(found) = intent.attempts.get_mut(attempt.index) else { return };
        found.state = AttemptState::Refused(sent);
        intent.token_refused = by_token;
        intent.phase = Phase::Refused(check);
        let (key, stale) = (intent.key.clone(), intent.epoch != epoch);
        self.refused.insert(attempt.intent);
        if stale {
            self.doubt_refused(attempt.intent, out);
        }
        self.resolve(&key, out);
    }

    /// A caller wants an order once more that was refused, by the same name.
    pub(crate) fn reopen_refused(&mut self, number: IntentNo) {
        let from = self.tick();
        let since = self.watches.remove(&number).unwrap_or(self.now);
        self.unconfirmed.remove(&number);
        let Some(intent) = self.intents.get_mut(&number) else { return };
        if !matches!(intent.phase, Phase::Finished(Finding::Refused)) {
            return;
        }
        intent.phase = Phase::Refused(Check { since, from, by_token: false, is_last: false });
        (intent.caller_waits, intent.opened) = (true, self.now);
        let key = intent.key.clone();
        // While it was decided nobody needed the records that may be its order.
        self.book.show_again();
        self.refused.insert(number);
        self.finished.retain(|other| *other != number);
        let book = self.keys.entry(key.clone()).or_default();
        book.finished.remove(&number);
        book.refused.remove(&number);
        if !book.live.contains(&number) {
            book.live.push(number);
        }
        self.join_line(&key, number);
    }

    /// The day is over, and no list was read that would have shown what an earlier process had sent and was refused. Nobody
    /// was told of its refusal.
    pub(crate) fn reopen_unconfirmed(&mut self) {
        let lateness = self.settings.lateness;
        let unconfirmed = self.watches.iter().filter(|&(&number, told)| {
            let intent = self.intents.get(&number);
            Some(number) <= self.restored
                && intent.and_then(Intent::finding) == Some(&Finding::Refused)
                && self.believed.contains(&told.saturating_add(lateness))
        });
        for number in unconfirmed.map(|(&number, _)| number).collect::<Vec<_>>() {
            self.reopen_refused(number);
            if let Some(intent) = self.intents.get_mut(&number) {
                intent.caller_waits = false;
            }
        }
    }

    /// True if an intent waits for a list that confirms its refusal.
    #[must_use]
    pub fn awaits_check(&self, intent: IntentNo) -> bool {
        self.intents.get(&intent).is_some_and(|intent| matches!(intent.phase, Phase::Refused(_)))
    }

    /// True if any does.
    #[must_use]
    pub fn awaits_checks(&self) -> bool {
        self.checks().next().is_some()
    }

    /// When the next list may be read that confirms a refusal.
    pub(crate) fn next_check(&self) -> Option<Duration> {
        self.checks().map(|(_, check)| check.since.saturating_add(self.rules.refusal_lag)).min()
    }

    fn checks(&self) -> impl Iterator<Item = (IntentNo, Check)> {
        self.refused.iter().filter_map(|&number| match self.intents.get(&number)?.phase {
            Phase::Refused(check) => Some((number, check)),
            _ => None,
        })
    }

    /// True if no list shows an order that was refused, as far as is known now.
    pub(crate) fn stays_refused(&self, intent: &Intent) -> bool {
        intent.epoch == self.epoch && self.shown_as(intent).next().is_none() && !self.is_given_away(intent)
    }

    /// True if an answer may have given an order that was refused to another one.
    fn is_given_away(&self, intent: &Intent) -> bool {
        self.is_disputed(intent) && !steadfast_spec::Planted::DisputedRefusalsBelieved.is_on()
    }

    /// Listed orders that may be one that was refused, whichever session's list shows them. An equal order that was lost in
    /// that session may be the one as well: lists of a session may show those of the ones before.
    fn shown_as<'a>(&'a self, intent: &'a Intent) -> impl Iterator<Item = &'a Fresh> + 'a {
        self.intent_strict(intent).chain(self.near(intent))
    }

    /// Orders of a key whose callers were told that they were refused: today, or so shortly before midnight that they may
    /// be listed today.
    pub(crate) fn refused_of(&self, key: &Key) -> impl Iterator<Item = (IntentNo, &Intent)> {
        let refused = self.keys.get(key).into_iter().flat_map(|key| &key.refused);
        let intents = refused.filter_map(|number| Some((*number, self.intents.get(number)?)));
        intents.filter(|(number, it)| {
            it.was_told_refused() && (it.epoch == self.epoch || self.watches.contains_key(number))
        })
    }

    /// The order among them that shows itself now, by everything that is listed of it.
    pub(crate) fn refused_owner(&self, key: &Key, fresh: &Fresh) -> Option<IntentNo> {
        let is_it = |it: &Intent| it.could_own(fresh.first_seen) && matcher::strict(&fresh.record, &it.order);
        let mut refused = self.refused_of(key).filter(|(_, intent)| is_it(intent));
        refused.next().map(|(number, _)| number)
    }

    /// Takes back the belief in every refusal on a key that what is listed refutes. Before anything is claimed: the order
    /// may be the refused one.
    pub(crate) fn refute(&mut self, key: &Key, out: &mut Vec<Effect>) {
        if self.refused.is_empty() {
            return;
        }
        let refuted = |number: &IntentNo| {
            self.intents.get(number).is_some_and(|intent| {
                // An answer that is awaited may say that it is another's.
                let its = |fresh: &Fresh| !self.may_be_answered_yet(key, *number, fresh.first_seen);
                intent.key == *key && (self.is_given_away(intent) || self.shown_as(intent).any(its))
            })
        };
        let refuted: Vec<_> = self.refused.iter().copied().filter(refuted).collect();
        for number in refuted {
            self.doubt_refused(number, out);
        }
    }

    /// A read for the list of today is over, whole and valid or not.
    pub(crate) fn check_refusals(&mut self, started: Option<ReadStart>, valid: bool, out: &mut Vec<Effect>) {
        let (at, seq) = started.map_or((self.now, self.seq), |start| (start.at, start.seq));
        let due =
            |check: &Check| check.from < seq && at >= check.since.saturating_add(self.rules.refusal_lag);
        let due: Vec<_> = self.checks().filter(|(_, check)| due(check)).map(|(number, _)| number).collect();
        for number in due {
            let Some(intent) = self.intents.get(&number) else { continue };
            let key = intent.key.clone();
            if !valid || started.is_some_and(|start| self.is_shown_elsewhere(intent, start)) {
                let is_last = matches!(intent.phase, Phase::Refused(Check { is_last: true, .. }));
                self.doubt_refused(number, out);
                if is_last {
                    self.finish_unresolved(number, Reason::Unverifiable, out);
                }
                self.resolve(&key, out);
                continue;
            }
            // What a wrong answer has given to another one is nobody's own.
            self.refute(&key, out);
            if self.intents.get(&number).is_some_and(|intent| self.stays_refused(intent))
                && self.refused.contains(&number)
            {
                self.clear_refused(number, out);
            }
        }
    }

    /// True if an order would be in another session's list. Of a 401 there is no other: its session is over.
    fn is_shown_elsewhere(&self, intent: &Intent, start: ReadStart) -> bool {
        let by_token = matches!(intent.phase, Phase::Refused(Check { by_token: true, .. }));
        let last = intent.attempts.iter().rev().find(|attempt: &&Attempt| attempt.refused().is_some());
        !by_token
            && last.is_some_and(|attempt| self.scoped(attempt.session) != start.session)
            && !steadfast_spec::Planted::RefusalCheckedElsewhere.is_on()
    }

    /// True if a caller would be told of a refusal of the token that no list has confirmed.
    pub(crate) fn awaits_last_check(&self, intent: &Intent) -> bool {
        intent.caller_waits
            && intent.first_sent().is_none()
            && !steadfast_spec::Planted::DeadTokenBelieved.is_on()
    }

    /// The call is over but for the look that confirms its refusal: nobody may be able to make it later.
    pub(crate) fn hold_refused(&mut self, number: IntentNo, check: Check) {
        if let Some(intent) = self.intents.get_mut(&number) {
            intent.phase = Phase::Refused(Check { is_last: true, ..check });
        }
    }

    fn clear_refused(&mut self, number: IntentNo, out: &mut Vec<Effect>) {
        let Some(intent) = self.intents.get_mut(&number) else { return };
        if matches!(intent.phase, Phase::Refused(Check { is_last: true, .. })) {
            return self.end_refused(number, out);
        }
        let late = self.now.saturating_add(self.settings.lateness);
        self.believed.insert(late);
        // Of a resend, the grant stands.
        if intent.first_sent().is_some() {
            intent.phase = Phase::Granted;
            self.refused.remove(&number);
        } else {
            intent.phase = Phase::Cleared;
        }
        out.push(Effect::Decided(number));
    }

    /// The refusal may be untrue: its order is looked for, and never sent again.
    pub(crate) fn doubt_refused(&mut self, number: IntentNo, out: &mut Vec<Effect>) {
        if !self.refused.remove(&number) {
            return;
        }
        let settles = self.now.saturating_add(self.settings.lateness);
        let Some(intent) = self.intents.get_mut(&number) else { return };
        let (key, stale) = (intent.key.clone(), intent.epoch != self.epoch);
        for (index, attempt) in intent.attempts.iter_mut().enumerate() {
            let Some(sent) = attempt.refused() else { continue };
            attempt.state = AttemptState::Doubt { sent, settled: None, never: Some(Never::Opaque) };
            self.unsettled.insert((settles, AttemptNo { intent: number, index }));
            self.keys.entry(key.clone()).or_default().unsettled += 1;
        }
        self.tally.lose(Answer::Status(429));
        self.search(number, self.now);
        if stale {
            self.finish_unresolved(number, Reason::EpochChanged, out);
        }
        out.push(Effect::Decided(number));
    }

    /// The call is over, and its caller is told that the order was refused, or nobody waits for it.
    pub(crate) fn end_refused(&mut self, number: IntentNo, out: &mut Vec<Effect>) {
        if steadfast_spec::Planted::RefusedOrderForgotten.is_on() {
            return self.forget(number, out);
        }
        if self.is_sent(number) {
            // What is refused is a resend.
            self.finish_unresolved(number, Reason::NotObserved, out);
        } else {
            self.believed.insert(self.now.saturating_add(self.settings.lateness));
            self.unconfirmed.insert(number);
            self.finish(number, Finding::Refused, out);
        }
    }

    /// When the list is read for those whose refusals were believed before their orders were late: once for all of them that
    /// follow on each other.
    pub(crate) fn next_late_look(&self) -> Option<Duration> {
        let due = schedule::late_look(*self.believed.first()?);
        let failed = self.pace.shared.filter(|&last| last >= due);
        Some(failed.map_or(due, schedule::next_try))
    }

    /// From when on a list shows all of them, however late they are.
    pub(crate) fn late_refusals_show(&self) -> Duration {
        let shows = self.believed.last().map(|&late| schedule::late_look(late));
        shows.filter(|_| !steadfast_spec::Planted::LateRefusalsNotAwaited.is_on()).unwrap_or_default()
    }

    /// A list was read that could have shown them.
    pub(crate) fn end_late_looks(&mut self, start: ReadStart) {
        self.believed.retain(|&late| late >= start.at);
    }

    /// The call is over, and its caller is told that the order was refused for good. The name is free: by the service's word
    /// it never meant an order.
    pub(crate) fn end_rejected(&mut self, number: IntentNo, out: &mut Vec<Effect>) {
        let name = self.intents.get(&number).and_then(|intent| intent.name.as_ref());
        if let Some(name) = name.filter(|name| self.names.get(name) == Some(&number)).cloned() {
            self.names.remove(&name);
        }
        self.rejected_at = Some(self.now);
        self.finish(number, Finding::Rejected, out);
    }

    /// From when on a list shows what was refused for good and is placed all the same, if none was read since.
    pub(crate) fn rejections_show(&self) -> Option<Duration> {
        let show = self.rejected_at?.saturating_add(self.rules.refusal_lag);
        self.pace.shared.is_none_or(|last| last < show).then_some(show)
    }
}

impl Intent {
    /// True if its caller was told that it was refused.
    pub(crate) fn was_told_refused(&self) -> bool {
        matches!(self.finding(), Some(Finding::Refused | Finding::Rejected))
    }

    /// True if a send of it was refused without having been executed.
    pub(crate) fn was_refused(&self) -> bool {
        self.attempts.iter().any(|attempt: &Attempt| attempt.refused().is_some())
    }
}
