//! Compares refusals with the list that confirms or refutes them.
//!
//! A list confirms a refusal if it is valid, was read long enough after it, is of the order's session, and shows no order
//! that may be the refused one, in any form.

use std::time::Duration;

use crate::{
    numbers::IntentNo,
    protocol::{
        attempt::Attempt,
        effect::Effect,
        intent::Intent,
        key::Key,
        listed_orders::fresh::Fresh,
        order_protocol::OrderProtocol,
        phase::{Finding, Phase, RefusalCheck},
        reads::ReadStart,
        resolution::Reason,
    },
};

impl OrderProtocol {
    /// True if an intent waits for a list that confirms its refusal.
    #[must_use]
    pub fn awaits_check(&self, intent: IntentNo) -> bool {
        self.check_of(intent).is_some() || self.is_held(intent)
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
        self.intents.refused().iter().filter_map(|&number| Some((number, self.check_of(number)?)))
    }

    fn check_of(&self, number: IntentNo) -> Option<RefusalCheck> {
        if !self.intents.refused().contains(&number) {
            return None;
        }
        match *self.intents.get(&number)?.phase() {
            Phase::Refused(check) => Some(check),
            _ => None,
        }
    }

    /// True if no list known so far shows an order that was refused.
    pub(crate) fn stays_refused(&self, intent: &Intent) -> bool {
        intent.day() == self.time.day()
            && self.shown_as(intent).next().is_none()
            && !self.has_more_strangers(intent)
            && !self.is_disputed(intent)
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
        if intent.is_rejected() {
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

    fn clear_refused(&mut self, number: IntentNo, out: &mut Vec<Effect>) {
        let Some(intent) = self.intents.get_mut(&number) else { return };
        let is_last = matches!(intent.phase(), Phase::Refused(RefusalCheck { is_last: true, .. }));
        if is_last || !intent.has_caller() {
            // The list has confirmed it.
            out.push(Effect::Confirmed(number));
            intent.clear();
            return self.end_refused(number, out);
        }
        // By the service's clock the day may be over: its list is empty then, whatever was placed.
        if self.time.is_midnight_near() {
            let key = intent.key().clone();
            self.doubt_refused(number, out);
            return self.resolve(&key, out);
        }
        out.push(Effect::Confirmed(number));
        let late = self.time.now().saturating_add(self.settings.lateness);
        self.watches.look_after(late);
        // For a resend, the grant stands.
        if intent.first_sent().is_some() {
            intent.grant();
            self.intents.end_refusal(number);
        } else {
            intent.clear();
        }
        out.push(Effect::Decided(number));
    }
}
