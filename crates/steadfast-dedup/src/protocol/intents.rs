use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use steadfast_call::ext;

use crate::{
    numbers::{IntentNo, TradingDay},
    protocol::{intent::Intent, work},
};

/// How many orders that were rejected are kept, in case a list shows them after all.
const REJECTED: usize = 1_000;

/// All intents that are remembered, by number and by name, and where each of them stands in line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Intents {
    all: BTreeMap<IntentNo, Intent>,
    names: BTreeMap<ext::IntentId, IntentNo>,
    /// Those of which nothing was sent yet.
    unsent: BTreeSet<IntentNo>,
    /// Those whose order is searched for, or will be again if their resend is not answered conclusively.
    searched: BTreeSet<IntentNo>,
    /// Those that may have changed since it was last asked.
    changed: Vec<IntentNo>,
    /// True once a send had no bound on how late it may arrive ([`Never::Opaque`](super::attempt::Never::Opaque)).
    has_endless: bool,
    /// The undecided ones with a send that was refused as not executed (401, 429).
    refused: BTreeSet<IntentNo>,
    /// The decided ones, the oldest first.
    finished: VecDeque<IntentNo>,
    /// The latest that were rejected.
    rejected: VecDeque<IntentNo>,
    /// When the last of them was, until a list that shows all of them was read.
    rejected_at: Option<Duration>,
    /// The last one of earlier processes.
    restored: Option<IntentNo>,
    /// Until which days names stand for orders, where that is later than the days on which they were sent.
    named_until: BTreeMap<IntentNo, TradingDay>,
}

impl Intents {
    pub(crate) fn get(&self, number: &IntentNo) -> Option<&Intent> {
        work::count();
        self.all.get(number)
    }

    pub(crate) fn get_mut(&mut self, number: &IntentNo) -> Option<&mut Intent> {
        self.changed.push(*number);
        self.all.get_mut(number)
    }

    /// Takes the next one that may have changed, perhaps not for the first time.
    pub(crate) fn take_changed(&mut self) -> Option<IntentNo> {
        self.changed.pop()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (IntentNo, &Intent)> {
        self.all.iter().map(|(&number, intent)| (number, intent))
    }

    pub(crate) fn open(&mut self, number: IntentNo, intent: Intent) {
        if let Some(name) = intent.name() {
            self.names.insert(name.clone(), number);
        }
        self.all.insert(number, intent);
        self.unsent.insert(number);
    }

    /// Drops an intent; its name is free, unless it is another one's by now.
    pub(crate) fn forget(&mut self, number: IntentNo) -> Option<Intent> {
        self.refused.remove(&number);
        self.unsent.remove(&number);
        self.named_until.remove(&number);
        self.changed.push(number);
        self.free_name(number);
        self.all.remove(&number)
    }

    /// Returns the intent that a name stands for.
    pub(crate) fn holder(&self, name: &ext::IntentId) -> Option<IntentNo> {
        self.names.get(name).copied()
    }

    /// Frees the name of an intent. A name may be used again on the next day: by now it may be another intent's.
    pub(crate) fn free_name(&mut self, number: IntentNo) {
        if let Some(name) = self.all.get(&number).and_then(|intent| intent.name())
            && self.names.get(name) == Some(&number)
        {
            self.names.remove(name);
        }
    }

    /// Takes the name of an intent away, so that a caller can use it for another order.
    pub(crate) fn drop_name(&mut self, number: IntentNo) {
        self.free_name(number);
        if let Some(intent) = self.all.get_mut(&number) {
            intent.drop_name();
        }
    }

    /// Makes the name of an intent stand for it again, and returns the intent that it stood for; `None` if that one has
    /// left.
    pub(crate) fn take_name_back(&mut self, number: IntentNo) -> Option<IntentNo> {
        let name = self.all.get(&number)?.name()?;
        let holder = self.names.get(name).copied().unwrap_or(number);
        // A repeat that has not left yet joins it.
        if holder != number && !self.unsent.contains(&holder) {
            return None;
        }
        self.names.insert(name.clone(), number);
        Some(holder)
    }

    /// Notes that an order of an intent leaves.
    pub(crate) fn send(&mut self, number: IntentNo) {
        self.unsent.remove(&number);
        self.refused.remove(&number);
    }

    pub(crate) fn is_unsent(&self, number: IntentNo) -> bool {
        self.unsent.contains(&number)
    }

    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Notes that an intent's order is searched for.
    pub(crate) fn search(&mut self, number: IntentNo) {
        self.changed.push(number);
        self.searched.insert(number);
    }

    /// True if an intent's order is or may again be searched for.
    pub(crate) fn is_searched(&self, number: IntentNo) -> bool {
        self.searched.contains(&number)
    }

    /// Returns the intents that are or may again be searched for.
    pub(crate) fn searched(&self) -> impl Iterator<Item = (IntentNo, &Intent)> {
        self.searched.iter().filter_map(|&number| Some((number, self.all.get(&number)?)))
    }

    /// Notes that a send has no bound on how late it may arrive.
    pub(crate) fn note_endless(&mut self) {
        self.has_endless = true;
    }

    /// True once there was such a send.
    pub(crate) fn has_endless(&self) -> bool {
        self.has_endless
    }

    /// Notes that a send of an intent was refused as not executed.
    pub(crate) fn refuse(&mut self, number: IntentNo) {
        self.refused.insert(number);
    }

    /// Ends the wait for a list that confirms a refusal; true if there was one.
    pub(crate) fn end_refusal(&mut self, number: IntentNo) -> bool {
        self.refused.remove(&number)
    }

    pub(crate) fn refused(&self) -> &BTreeSet<IntentNo> {
        &self.refused
    }

    /// Notes that an intent is decided.
    pub(crate) fn finish(&mut self, number: IntentNo) {
        self.changed.push(number);
        self.searched.remove(&number);
        self.refused.remove(&number);
        self.unsent.remove(&number);
    }

    /// Puts a decided intent at the end of those that are remembered.
    pub(crate) fn remember(&mut self, number: IntentNo) {
        self.finished.push_back(number);
    }

    /// Takes the oldest of the decided intents if there are more than so many.
    pub(crate) fn take_oldest_beyond(&mut self, remembered: usize) -> Option<IntentNo> {
        if self.finished.len() > remembered { self.finished.pop_front() } else { None }
    }

    /// Takes an intent out of the decided ones.
    pub(crate) fn undecide(&mut self, number: IntentNo) {
        self.finished.retain(|&other| other != number);
    }

    /// Keeps an order that was rejected, in a queue apart from that of the remembered names.
    pub(crate) fn keep_rejected(&mut self, number: IntentNo) {
        self.rejected.push_back(number);
    }

    /// Takes the oldest of these if there is no room for it any more.
    pub(crate) fn take_oldest_rejected(&mut self) -> Option<IntentNo> {
        if self.rejected.len() > REJECTED { self.rejected.pop_front() } else { None }
    }

    pub(crate) fn note_rejection(&mut self, at: Duration) {
        self.rejected_at = Some(at);
    }

    /// Notes that a list which shows all rejected orders was read.
    pub(crate) fn end_rejections(&mut self) {
        self.rejected_at = None;
    }

    /// Returns when an order was last rejected, if no list that shows such an order was read since.
    pub(crate) fn rejected_at(&self) -> Option<Duration> {
        self.rejected_at
    }

    /// Notes that all intents so far are of earlier processes.
    pub(crate) fn restore(&mut self) {
        self.restored = self.all.last_key_value().map(|(&number, _)| number);
    }

    /// True if an intent is of an earlier process.
    pub(crate) fn is_restored(&self, number: IntentNo) -> bool {
        Some(number) <= self.restored
    }

    /// Renames the day of the intents of a day with a wrong name, and returns them.
    pub(crate) fn rename_day(&mut self, wrong: TradingDay, right: TradingDay) -> Vec<IntentNo> {
        let restored = self.restored;
        // The clock was behind: orders that an earlier process placed on the day with the wrong name were
        // yesterday's.
        let is_older = |number: IntentNo, intent: &Intent| {
            wrong < right && Some(number) <= restored && intent.order_id().is_some()
        };
        let mut renamed = Vec::new();
        for (&number, intent) in &mut self.all {
            if intent.day() == wrong && !is_older(number, intent) {
                intent.rename_day(right);
                renamed.push(number);
            }
        }
        renamed
    }

    /// Makes the name of an order stand for it until a day, too; true if that is new.
    pub(crate) fn name_until(&mut self, number: IntentNo, day: TradingDay) -> bool {
        self.named_until.insert(number, day) != Some(day)
    }

    /// True if the name of an order stands for it on a day, if it has one.
    pub(crate) fn is_named_on(&self, number: IntentNo, day: TradingDay) -> bool {
        let is_until = self.named_until.get(&number).is_some_and(|until| *until >= day);
        is_until || self.all.get(&number).is_some_and(|intent| intent.day() == day || intent.keeps_name())
    }

    /// Lets no name stand for an order of an earlier day after this one; returns the orders for which that changes
    /// something.
    pub(crate) fn end_names_after(&mut self, day: TradingDay) -> Vec<IntentNo> {
        self.named_until.extract_if(.., |_, until| *until > day).map(|(number, _)| number).collect()
    }

    /// Carries over to the next day.
    ///
    /// Intents that were decided just now are kept a day longer: their callers may not have asked yet. One without
    /// certainty keeps its name on all days, until a user rules on it.
    pub(crate) fn begin_day(&mut self, ended: TradingDay) {
        self.named_until.retain(|_, until| *until > ended);
        let is_over = |number: &IntentNo, intent: &Intent| {
            !(intent.day() == ended || intent.keeps_name() || self.named_until.contains_key(number))
        };
        let over = self.all.extract_if(.., |number, intent| is_over(number, intent));
        self.changed.extend(over.map(|(number, _)| number));
        self.finished.retain(|number| self.all.contains_key(number));
        self.names.retain(|_, number| self.all.contains_key(number));
        self.rejected.clear();
        self.rejected_at = None;
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    #[cfg(test)]
    pub(crate) fn has_names(&self) -> bool {
        !self.names.is_empty()
    }
}
