//! Answers that named an order and are not believed any more.
//!
//! On a connection that is out of step an order gets the answer of another one. Then two orders have one identifier, or one
//! has an identifier that no list ever shows. Nothing can be done about a wrong identifier before anything contradicts it;
//! from then on its order is in doubt, is looked for, and is never sent again: by the service's word it was taken.
//!
//! That two lists lack it may also say that lists are later than they are taken to be. So an order of that kind that a list shows
//! after all belongs to whom its answer named it to, before anybody else; and he takes no other one that somebody else could own,
//! too: that one would be sent again once the late order is listed.

use std::{sync::Arc, time::Duration};

use steadfast_spec::{OrderType, Validity};

use crate::{
    attempt::{AttemptState, Never},
    book::Fresh,
    event::{Answer, Effect, OrderEvent},
    intent::{Finding, Intent},
    key::Key,
    matcher,
    policy::ListShows,
    registry::{ReadStart, Registry},
    schedule,
    stamp::{AttemptNo, IntentNo, Session},
};

impl Registry {
    /// Looks for the order of an intent whose answer, or whose claim, is contradicted; it is never sent again.
    pub(crate) fn disbelieve(&mut self, number: IntentNo) {
        let (now, lateness, works) = (self.now, self.settings.lateness, self.settings.gateway_timeout);
        let today = self.epoch;
        let Some(intent) = self.intents.get_mut(&number).filter(|intent| intent.epoch == today) else {
            return;
        };
        if intent.is_open() {
            return;
        }
        let mut doubted = Vec::new();
        for (index, attempt) in intent.attempts.iter_mut().enumerate() {
            match &mut attempt.state {
                AttemptState::Acknowledged(sent) => {
                    // Its own answer may be still to come, as if there had been none.
                    let base = now.max(sent.at.saturating_add(works));
                    doubted.push((base.saturating_add(lateness), AttemptNo { intent: number, index }));
                    let never = Some(Never::Success);
                    attempt.state = AttemptState::Doubt { sent: *sent, settled: None, never };
                }
                AttemptState::Doubt { never, .. } => *never = Some(Never::Success),
                AttemptState::Open
                | AttemptState::InFlight(_)
                | AttemptState::Refused(_)
                | AttemptState::Void => {}
            }
        }
        let key = self.keys.entry(intent.key.clone()).or_default();
        key.unsettled += doubted.len();
        if !key.live.contains(&number) {
            key.live.push(number);
        }
        key.finished.remove(&number);
        key.dead.remove(&number);
        self.unsettled.extend(doubted);
        self.finished.retain(|&other| other != number);
        self.watches.remove(&number);
        self.book.show_again();
        self.tally.lose(Answer::Status(200));
        self.search(number, now);
    }

    /// An earlier run of the process has found that its answer proves nothing.
    pub(crate) fn disbelieve_again(&mut self, number: IntentNo, out: &mut Vec<Effect>) {
        let Some(intent) = self.intents.get(&number) else { return };
        match intent.finding() {
            Some(Finding::Acknowledged { order_id }) => {
                let order_id = order_id.clone();
                self.book.contest(&order_id);
                self.disbelieve(number);
            }
            None if intent.was_refused() => {
                self.refused.insert(number);
                self.doubt_refused(number, out);
            }
            _ => {}
        }
    }

    /// An identifier was given to one intent and was another's, or was there before: nobody can tell whose it is.
    pub(crate) fn contradict(&mut self, number: IntentNo, order_id: &Arc<str>, out: &mut Vec<Effect>) {
        let owner = self.book.contest(order_id);
        if let Some(key) = owner.and_then(|owner| Some(self.intents.get(&owner)?.key.clone())) {
            let since = self.tick();
            self.book.recall(order_id, &key, since, self.settings.lateness);
        }
        let other = owner.filter(|&other| other != number);
        let name = self.intents.get(&number).and_then(|intent| intent.name.clone());
        let conflict = OrderEvent::Conflict { intent: number, name, other, order_id: order_id.to_string() };
        out.push(Effect::Report(conflict));
        for number in [Some(number), other].into_iter().flatten() {
            self.disbelieve(number);
        }
        let keys = [Some(number), other].into_iter().flatten();
        let keys: Vec<_> = keys.filter_map(|number| Some(self.intents.get(&number)?.key.clone())).collect();
        for key in keys {
            self.resolve(&key, out);
        }
    }

    /// Looks whether a list shows what was acknowledged long before it was asked for.
    ///
    /// `is_whole`: it lacks nothing that lists of its session have shown.
    pub(crate) fn audit(
        &mut self,
        start: ReadStart,
        session: Session,
        is_whole: bool,
        out: &mut Vec<Effect>,
    ) {
        if !self.awaits_audit() {
            return;
        }
        let old = |after: Duration| start.at.checked_sub(after).unwrap_or_default();
        let beyond = old(self.settings.lateness);
        // After this nobody waits for a list of its session any more.
        let settled = old(self.settings.gateway_timeout.saturating_add(self.settings.lateness));
        let mut keys = Vec::new();
        for (at, order_id, told_in) in self.book.unlisted_before(beyond) {
            let owner = self.book.owner(&order_id);
            let shows_it = told_in == session && is_whole;
            let waits = match shows_it {
                // One list may be older than it says, out of a cache nobody knows of. A while later there is another one.
                true => start.at < self.book.miss(&order_id, start.at).saturating_add(schedule::AUDIT_AGAIN),
                false => at >= settled,
            };
            if waits {
                continue;
            }
            // Either way nothing more will be learnt of it.
            self.book.stop_awaiting(&order_id);
            let Some(number) = owner.filter(|_| shows_it) else { continue };
            let Some(intent) = self.intents.get(&number).filter(|intent| self.must_be_listed(intent)) else {
                continue;
            };
            let (name, key) = (intent.name.clone(), intent.key.clone());
            self.book.contest_unshown(&order_id);
            let order_id = order_id.to_string();
            out.push(Effect::Report(OrderEvent::AckNotListed { intent: number, name, order_id }));
            self.disbelieve(number);
            keys.push(key);
        }
        for key in keys {
            self.resolve(&key, out);
        }
    }

    /// Gives orders that lists show after all back to those whose answers named them.
    pub(crate) fn believe_again(&mut self, key: &Key, out: &mut Vec<Effect>) {
        if !self.book.has_unshown() {
            return;
        }
        let shown = |(number, intent): (IntentNo, &Intent)| {
            let order_id =
                self.book.unshown(number).filter(|_| intent.is_open() && intent.epoch == self.epoch)?;
            let mut strict = self.book.strict(key, &intent.order);
            let fresh =
                strict.find(|fresh| fresh.order_id == *order_id && intent.could_own(fresh.first_seen))?;
            (!self.may_be_answered_yet(key, number, fresh.first_seen)).then(|| (number, order_id.clone()))
        };
        let shown: Vec<_> = self.live_of(key).filter_map(shown).collect();
        for (number, order_id) in shown {
            self.take(number, &order_id, out);
        }
    }

    /// True if an order may be another one's, of somebody whose own may be listed yet, under the identifier that its answer named.
    pub(crate) fn awaits_its_own(&self, number: IntentNo, intent: &Intent, fresh: &Fresh) -> bool {
        let is_its = |(other, it): (IntentNo, &Intent)| {
            other != number
                && self.book.unshown(other).is_none()
                && it.could_own(fresh.first_seen)
                && matcher::strict(&fresh.record, &it.order)
        };
        let key = &intent.key;
        self.book.unshown(number).is_some()
            && !steadfast_spec::Planted::LateAckTakesTwins.is_on()
            && (self.is_tainted(key) || self.live_of(key).chain(self.dead_of(key)).any(is_its))
    }

    /// False for an order that may have ended at once, where no list has shown an order that has ended.
    fn must_be_listed(&self, intent: &Intent) -> bool {
        let order = &intent.order;
        let rests = order.order_type() != OrderType::Market && order.validity() != Validity::Ioc;
        rests || self.book.shows_ended()
    }

    /// True while the list has to be looked at for acknowledged orders that it has not shown.
    pub(crate) fn awaits_audit(&self) -> bool {
        let audited = self.settings.list_shows == ListShows::Everything
            && !steadfast_spec::Planted::UnlistedAcksBelieved.is_on();
        audited && self.book.unlisted_from(Duration::ZERO).is_some()
    }

    /// When it is looked at for them, if the last look was at `last`.
    pub(crate) fn next_audit(&self, last: Option<Duration>) -> Option<Duration> {
        if !self.awaits_audit() {
            return None;
        }
        let (lateness, beyond) = (self.settings.lateness, self.overdue_before(last));
        let first = if self.pace.listless {
            Some(schedule::next_try(last.unwrap_or_default()))
        } else {
            let overdue = self.book.unlisted_from(Duration::ZERO).is_some_and(|since| since < beyond);
            schedule::next_audit(overdue, self.book.unlisted_from(beyond), last, lateness)
        };
        first.into_iter().chain(self.second_audit(last)).min()
    }

    /// When it is looked at once more for those that a list lacks.
    pub(crate) fn second_audit(&self, last: Option<Duration>) -> Option<Duration> {
        let missed = self.book.missed_before(self.overdue_before(last));
        schedule::second_audit(missed, last).filter(|_| self.awaits_audit())
    }

    /// As of `audit`: what was acknowledged before this should have been shown by the look at `last`.
    fn overdue_before(&self, last: Option<Duration>) -> Duration {
        last.and_then(|last| last.checked_sub(self.settings.lateness)).unwrap_or_default()
    }
}
