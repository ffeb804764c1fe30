//! Withdraws acknowledgements that are contradicted.
//!
//! On a connection that is out of step an order gets the answer of another one. Then two orders have one identifier,
//! or one has an identifier that no list ever shows. A wrong identifier cannot be noticed before something
//! contradicts it. From then on its order is in doubt, is searched for, and is never sent again: by the service's
//! word it was taken.
//!
//! If two lists lack an identifier, lists may also just be later than W assumes. So if a list shows it after all, it
//! goes first to the intent whose answer named it. Until then, that intent takes no other order that another intent
//! could own: the other one would be sent again, and the late order listed afterwards.

use std::{sync::Arc, time::Duration};

use steadfast_spec::{OrderType, Validity};

use crate::{
    numbers::{AttemptNo, IntentNo, Session},
    protocol::{
        effect::Effect, event::Answer, intent::Intent, key::Key, listed_orders::fresh::Fresh, matcher,
        order_event::OrderEvent, order_protocol::OrderProtocol, phase::Finding, reads::ReadStart, schedule,
    },
    settings::policy::ListShows,
};

impl OrderProtocol {
    /// Searches for the order of an intent whose answer or claim is contradicted; it is never sent again.
    pub(crate) fn disbelieve(&mut self, number: IntentNo) {
        let (now, lateness, works) = (self.time.now(), self.settings.lateness, self.settings.gateway_timeout);
        let today = self.time.day();
        let Some(intent) = self.intents.get_mut(&number).filter(|intent| intent.day() == today) else {
            return;
        };
        if intent.is_open() {
            return;
        }
        for (index, sent) in intent.disbelieve() {
            // Its own answer may still be to come, as if there had been none.
            let base = now.max(sent.at.saturating_add(works));
            let attempt = AttemptNo { intent: number, index };
            self.keys.unsettle(intent.key(), attempt, base.saturating_add(lateness));
        }
        let key = intent.key().clone();
        self.keys.undecide(&key, number);
        self.intents.undecide(number);
        self.watches.unwatch(number);
        self.take_back_late(number);
        let since = self.time.tick();
        self.listed.recall_reported(&key, since);
        self.listed.show_again();
        self.tally.lose(Answer::Status(200));
        self.search(number, now);
    }

    /// Withdraws an answer that an earlier run of the process found to prove nothing.
    pub(crate) fn disbelieve_again(&mut self, number: IntentNo, out: &mut Vec<Effect>) {
        let Some(intent) = self.intents.get(&number) else { return };
        match intent.finding() {
            Some(Finding::Acknowledged { order_id }) => {
                let order_id = order_id.clone();
                self.listed.contest(&order_id);
                self.disbelieve(number);
            }
            None if intent.was_refused() => {
                self.intents.refuse(number);
                self.doubt_refused(number, out);
            }
            _ => {}
        }
    }

    /// Withdraws the answer that gave an order to another intent than a list or a user's ruling does; returns that
    /// intent.
    pub(crate) fn dispossess(&mut self, order_id: &str, number: IntentNo) -> Option<IntentNo> {
        let other = self.owner_by_answer(order_id).filter(|&other| other != number)?;
        self.listed.contest(order_id);
        self.disbelieve(other);
        Some(other)
    }

    /// Returns the intent that owns an order only because an answer named it.
    pub(crate) fn owner_by_answer(&self, order_id: &str) -> Option<IntentNo> {
        let owner = self.listed.owner(order_id)?;
        let acknowledged = |intent: &&Intent| {
            intent.day() == self.time.day()
                && matches!(intent.finding(), Some(Finding::Acknowledged { order_id: id }) if **id == *order_id)
        };
        self.intents.get(&owner).filter(acknowledged).map(|_| owner)
    }

    /// Handles an identifier that two intents got, or that was listed before its order was sent: its owner is
    /// unknown.
    pub(crate) fn contradict(&mut self, number: IntentNo, order_id: &Arc<str>, out: &mut Vec<Effect>) {
        let owner = self.listed.contest(order_id);
        if let Some(key) = owner.and_then(|owner| Some(self.intents.get(&owner)?.key().clone())) {
            let since = self.time.tick();
            self.listed.recall(order_id, &key, since, self.settings.lateness);
        }
        let other = owner.filter(|&other| other != number);
        let name = self.intents.get(&number).and_then(|intent| intent.name().cloned());
        let conflict = OrderEvent::Conflict { intent: number, name, other, order_id: order_id.to_string() };
        out.push(Effect::Report(conflict));
        for number in [Some(number), other].into_iter().flatten() {
            self.disbelieve(number);
        }
        let keys = [Some(number), other].into_iter().flatten();
        let keys: Vec<_> = keys.filter_map(|number| Some(self.intents.get(&number)?.key().clone())).collect();
        for key in keys {
            self.resolve(&key, out);
        }
    }

    /// Checks that a list shows every order that was acknowledged long enough before it was read.
    ///
    /// `is_whole`: the list lacks nothing that earlier lists of its session have shown.
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
        // After this, lists of that session are not waited for any more.
        let settled = old(self.settings.gateway_timeout.saturating_add(self.settings.lateness));
        let mut keys = Vec::new();
        for (at, order_id, told_in) in self.listed.awaited.unlisted_before(beyond) {
            let owner = self.listed.owner(&order_id);
            // After a restart the token is often another one. Its list counts if it shows orders of the former one.
            let is_its = told_in == session || self.listed.shows_some_of(told_in, session);
            let shows_it = is_its && is_whole;
            let waits = match shows_it {
                // One list may come from an undeclared cache and be older than it says. A second one a while later is
                // not.
                true => {
                    start.at < self.listed.miss(&order_id, start.at).saturating_add(schedule::AUDIT_AGAIN)
                }
                false => at >= settled,
            };
            if waits {
                continue;
            }
            // Either way, waiting longer brings nothing more.
            self.listed.stop_awaiting(&order_id);
            let Some(number) = owner.filter(|_| shows_it) else { continue };
            let Some(intent) = self.intents.get(&number).filter(|intent| self.must_be_listed(intent)) else {
                continue;
            };
            let (name, key) = (intent.name().cloned(), intent.key().clone());
            self.listed.contest_unshown(&order_id);
            let order_id = order_id.to_string();
            out.push(Effect::Report(OrderEvent::AckNotListed { intent: number, name, order_id }));
            self.disbelieve(number);
            keys.push(key);
        }
        for key in keys {
            self.resolve(&key, out);
        }
    }

    /// Gives orders that lists show after all back to the intents whose answers named them.
    pub(crate) fn believe_again(&mut self, key: &Key, out: &mut Vec<Effect>) {
        if !self.listed.withdrawn.has_unshown() {
            return;
        }
        let shown = |(number, intent): (IntentNo, &Intent)| {
            let order_id = self
                .listed
                .withdrawn
                .unshown(number)
                .filter(|_| intent.is_open() && intent.day() == self.time.day())?;
            let mut strict = self.listed.unowned.strict(key, intent.order());
            let fresh =
                strict.find(|fresh| fresh.order_id == *order_id && intent.could_own(fresh.first_seen))?;
            (!self.may_be_answered_yet(key, number, fresh.first_seen)).then(|| (number, order_id.clone()))
        };
        let shown: Vec<_> = self.live_of(key).filter_map(shown).collect();
        for (number, order_id) in shown {
            self.take(number, &order_id, out);
        }
    }

    /// True if a listed order may belong to another intent, and this one's own identifier may still be listed.
    pub(crate) fn awaits_its_own(&self, number: IntentNo, intent: &Intent, fresh: &Fresh) -> bool {
        let is_its = |(other, it): (IntentNo, &Intent)| {
            other != number
                && self.listed.withdrawn.unshown(other).is_none()
                && it.could_own(fresh.first_seen)
                && matcher::strict(&fresh.record, it.order())
        };
        let key = intent.key();
        self.listed.withdrawn.unshown(number).is_some()
            && (self.is_blocked(key) || self.live_of(key).chain(self.dead_of(key)).any(is_its))
    }

    /// False for an order that may have ended at once, where no list has ever shown an ended order.
    fn must_be_listed(&self, intent: &Intent) -> bool {
        let order = intent.order();
        let rests = order.order_type() != OrderType::Market && order.validity() != Validity::Ioc;
        rests || self.listed.lists.shows_ended()
    }

    /// True while the list must be read for acknowledged orders that it has not shown, or shows in a form that may be
    /// another order's.
    pub(crate) fn awaits_audit(&self) -> bool {
        let awaited = || self.listed.awaited.unlisted_from(Duration::ZERO);
        self.settings.list_shows == ListShows::Everything
            && (self.fidelity.first_open().is_some() || awaited().is_some())
    }

    /// Returns when the list is read for them next, if it was last read at `last`.
    pub(crate) fn next_audit(&self, last: Option<Duration>) -> Option<Duration> {
        if !self.awaits_audit() {
            return None;
        }
        let (lateness, beyond) = (self.settings.lateness, self.overdue_before(last));
        let first = if self.reads.last_pace().without_list {
            Some(schedule::next_try(last.unwrap_or_default()))
        } else {
            let overdue =
                self.listed.awaited.unlisted_from(Duration::ZERO).is_some_and(|since| since < beyond);
            schedule::next_audit(overdue, self.listed.awaited.unlisted_from(beyond), last, lateness)
        };
        let open = self.fidelity.first_open().map(|until| schedule::open_audit(until, last));
        let missed = self.listed.missed_before(beyond);
        [first, schedule::second_audit(missed, last), open].into_iter().flatten().min()
    }

    /// Returns when it is read once more for those that a list lacks.
    pub(crate) fn second_audit(&self, last: Option<Duration>) -> Option<Duration> {
        if !self.awaits_audit() {
            return None;
        }
        schedule::second_audit(self.listed.missed_before(self.overdue_before(last)), last)
    }

    /// As in `audit`: the read at `last` should have shown orders acknowledged before this.
    fn overdue_before(&self, last: Option<Duration>) -> Duration {
        last.and_then(|last| last.checked_sub(self.settings.lateness)).unwrap_or_default()
    }
}
