//! Carries over from one trading day to the next.
//!
//! Lists start empty and identifiers may be used again, so nothing listed yesterday proves anything today. Four
//! things stay for one day: the names of orders, for a caller who repeats one just after midnight; their identifiers,
//! for a list that is a moment behind; orders in flight, until they are answered; and orders lost or refused so
//! shortly before midnight that they may be listed today. The last are watched for. A lost one also blocks its key
//! until lists have shown that nothing of it has appeared.

use std::{collections::BTreeSet, time::Duration};

use crate::{
    numbers::{IntentNo, LogicalTime, TradingDay},
    protocol::{
        effect::Effect,
        intent::Intent,
        key::Key,
        keys::{Ended, KeyIntents},
        listed_orders::fresh::Fresh,
        matcher,
        order_protocol::OrderProtocol,
        phase::Finding,
        reads::ReadStart,
        resolution::Reason,
    },
};

impl OrderProtocol {
    /// Renames the current day; nothing of it is over.
    pub(crate) fn rename_day(&mut self, day: TradingDay, out: &mut Vec<Effect>) {
        let wrong = self.time.rename_day(day);
        let intents = self.intents.rename_day(wrong, day);
        out.push(Effect::DayRenamed { from: wrong, day, intents });
        self.reads.rename_day(wrong, day);
        // Orders set aside as yesterday's are today's again, and keep their owners. Those that only an answer has named
        // wait for lists again.
        let (seen, now) = (self.time.tick(), self.time.now());
        let unshown: BTreeSet<IntentNo> = self.listed.yesterday.unshown().collect();
        let todays = || self.intents.iter().filter(|(_, intent)| intent.day() == day);
        for (number, intent) in todays().filter(|(_, intent)| intent.finding().is_some()) {
            let may_appear = intent.may_appear(now, self.settings.lateness);
            self.keys.restore(intent.key(), number, intent.order(), Ended::of(intent, seen, may_appear));
        }
        let owned = todays().filter_map(|(number, intent)| {
            Some((number, intent.order_id()?.clone(), intent.session().unwrap_or_default()))
        });
        for (number, order_id, session) in owned.collect::<Vec<_>>() {
            if self.listed.owner(&order_id).is_some() {
                continue;
            }
            if unshown.contains(&number) {
                self.listed.await_lists(&order_id, number, session, seen, now);
            } else {
                self.listed.adopt(&order_id, number, seen);
            }
        }
    }

    /// Takes in the day that an answer of the service names.
    pub(crate) fn hear_day(&mut self, day: TradingDay, out: &mut Vec<Effect>) {
        let today = self.time.day();
        self.time.hear_day(day);
        if day == today {
            for intent in self.intents.end_names_after(today) {
                out.push(Effect::NamedUntil { intent, day });
            }
            return;
        }
        if day > today {
            self.name_undecided_until(day, out);
        }
        // The service's lists show orders of that day alone.
        for number in self.open_numbers() {
            self.finish_unresolved(number, Reason::EpochChanged, out);
        }
        for number in self.intents.refused().clone() {
            self.doubt_refused(number, out);
            self.finish_unresolved(number, Reason::EpochChanged, out);
        }
    }

    /// Makes the names of orders that have left and are undecided stand for them until a day, too.
    pub(crate) fn name_undecided_until(&mut self, day: TradingDay, out: &mut Vec<Effect>) {
        let has_left = |intent: &Intent| intent.name().is_some() && intent.first_left().is_some();
        let undecided = self.live_intents().filter(|(_, intent)| has_left(intent));
        for intent in undecided.map(|(number, _)| number).collect::<Vec<_>>() {
            if self.intents.name_until(intent, day) {
                out.push(Effect::NamedUntil { intent, day });
            }
        }
    }

    /// Notes from when on lists can show that nothing is left of an order lost before midnight.
    pub(crate) fn block_over_midnight(&mut self, number: IntentNo) {
        let from = self.shows_all_from(number);
        if let Some(intent) = self.intents.get_mut(&number) {
            intent.block_from(from);
        }
    }

    /// Returns from when on lists show every order of an intent's lost sends: the lateness bound after the last of them
    /// has settled and can arrive no more.
    pub(crate) fn shows_all_from(&self, number: IntentNo) -> Duration {
        let lateness = self.settings.lateness;
        let arrived = self.intents.get(&number).and_then(Intent::arrives_until);
        let listed = arrived.map(|at| at.saturating_add(lateness));
        let last = listed.max(self.keys.settles_at(number)).unwrap_or(self.time.now());
        last.saturating_add(lateness)
    }

    /// Lifts the blocks of yesterday's orders of which two valid lists in a row have shown nothing.
    pub(crate) fn unblock(&mut self, start: ReadStart) {
        let barring: Vec<IntentNo> =
            self.keys.iter().flat_map(|(_, key)| key.blockers().iter().copied()).collect();
        for number in barring {
            let Some(intent) = self.intents.get(&number) else { continue };
            let shown = self.listed.unowned.of(intent.key()).any(|fresh| {
                intent.could_own(fresh.first_seen) && matcher::loose(&fresh.record, intent.order())
            });
            let shown = shown || self.has_overflow(intent);
            let Some(intent) = self.intents.get_mut(&number) else { continue };
            let needed = self.rules.negatives.max(2);
            let lifted = intent.pass_block(start.at, start.session, shown, needed);
            let key = intent.key().clone();
            if lifted {
                self.keys.unblock(&key, number);
            }
        }
    }

    /// Returns when blocking orders of a key were sent: listed orders are kept that could be theirs.
    pub(crate) fn barring_sends(&self, key: &Key) -> impl Iterator<Item = LogicalTime> {
        let barring = self.keys.get(key).into_iter().flat_map(KeyIntents::blockers);
        barring
            .filter_map(|number| self.intents.get(number))
            .filter(|intent| intent.is_block())
            .filter_map(|intent| intent.first_sent().map(|sent| sent.seq))
    }

    /// True if an order that appears today may come from a send that was lost or refused before midnight.
    pub(crate) fn may_be_overnight(&self, number: IntentNo, intent: &Intent, fresh: &Fresh) -> bool {
        (intent.is_block() || intent.finding() == Some(&Finding::Refused) || intent.was_told_absent())
            && intent.day() != self.time.day()
            && self.watches.is_watched(number)
            && !self.listed.yesterday.owned(&fresh.order_id)
    }

    /// True if a list may still hold orders of yesterday.
    ///
    /// A machine that slept over midnight may have sent its last ones after waking.
    pub(crate) fn may_list_yesterdays(&self) -> bool {
        let settles = self.settings.gateway_timeout.saturating_add(self.settings.lateness);
        self.time.is_midnight_near()
            || self.time.day_began().is_some_and(|began| self.time.now() < began.saturating_add(settles))
    }
}
