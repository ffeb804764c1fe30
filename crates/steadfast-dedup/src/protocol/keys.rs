mod finished;
mod next_day;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use steadfast_spec::{Decimal, OrderRequest};

pub(crate) use self::{finished::Finished, next_day::Overnight};
use crate::{
    numbers::{AttemptNo, IntentNo, LogicalTime},
    protocol::key::Key,
};

/// The intents of each key, and when their attempts in doubt settle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    all: BTreeMap<Key, KeyIntents>,
    /// Attempts in doubt that are not settled, by the instant at which they settle.
    unsettled: BTreeSet<(Duration, AttemptNo)>,
}

/// The intents that share a key.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyIntents {
    /// In flight, in doubt, or found absent and not sent again yet.
    live: Vec<IntentNo>,
    /// Decided, with a send that may have placed an order.
    finished: Finished,
    /// The finished ones with a send that was never answered.
    dead: BTreeSet<IntentNo>,
    /// Those whose caller was told of a refusal or a rejection, or is about to be told of a rejection.
    refused: BTreeSet<IntentNo>,
    /// How many attempts in doubt are not settled.
    unsettled: usize,
    /// When the last of the others settled.
    last_settled: LogicalTime,
    /// One of the orders that were sent; `mixed`: an order that differs from it was sent too.
    sample: Option<Arc<OrderRequest>>,
    mixed: bool,
    /// Intents that may be sent, where orders of a key are sent one after the other. The first has its turn.
    line: VecDeque<IntentNo>,
    /// Intents that ended without certainty whether they placed an order, and were not cleared since.
    blockers: BTreeSet<IntentNo>,
    /// When the oldest of them ended. Nothing is concluded about orders sent later.
    blocked_since: LogicalTime,
}

/// How a decided intent counts among those of its key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    /// The quantity that was asked for.
    pub(crate) qty: Decimal,
    /// An order of a lost send may still appear.
    pub(crate) is_dead: bool,
    /// Its caller was told of a refusal or a rejection.
    pub(crate) is_refused: bool,
    /// When it ended, if it bars conclusions about later orders.
    pub(crate) blocks_since: Option<LogicalTime>,
}

impl KeyIntents {
    pub(crate) fn live(&self) -> &[IntentNo] {
        &self.live
    }

    pub(crate) fn finished(&self) -> &Finished {
        &self.finished
    }

    pub(crate) fn dead(&self) -> &BTreeSet<IntentNo> {
        &self.dead
    }

    pub(crate) fn refused(&self) -> &BTreeSet<IntentNo> {
        &self.refused
    }

    pub(crate) fn blockers(&self) -> &BTreeSet<IntentNo> {
        &self.blockers
    }

    /// Returns when the oldest blocker ended, if there is one.
    pub(crate) fn blocked_since(&self) -> Option<LogicalTime> {
        (!self.blockers.is_empty()).then_some(self.blocked_since)
    }

    /// True if orders of the key were sent that differ from each other.
    pub(crate) fn is_mixed(&self) -> bool {
        self.mixed
    }

    /// True if an order of ours may be listed under this key.
    pub(crate) fn may_be_listed(&self) -> bool {
        !self.live.is_empty() || !self.finished.is_empty() || !self.blockers.is_empty()
    }

    /// True if orders of other intents may be listed under this key.
    pub(crate) fn has_others(&self, number: IntentNo) -> bool {
        let all = self.live.iter().chain(&self.refused).chain(&self.blockers);
        all.copied().chain(self.finished.iter()).any(|other| other != number)
    }

    /// True if all attempts in doubt had settled before this position.
    pub(crate) fn is_settled_before(&self, evidence: LogicalTime) -> bool {
        self.unsettled == 0 && self.last_settled < evidence
    }

    /// True if an intent has its turn in the line.
    ///
    /// Orders in flight or in doubt that are not in line come from before this process began.
    pub(crate) fn has_turn(&self, number: IntentNo) -> bool {
        self.live.iter().all(|&other| other == number)
            && self.line.front().is_none_or(|&first| first == number)
    }

    #[cfg(test)]
    pub(crate) fn last_settled(&self) -> LogicalTime {
        self.last_settled
    }

    fn stand(&mut self, number: IntentNo) {
        if !self.live.contains(&number) {
            self.live.push(number);
        }
    }
}

impl Keys {
    pub(crate) fn get(&self, key: &Key) -> Option<&KeyIntents> {
        self.all.get(key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &KeyIntents)> {
        self.all.iter()
    }

    /// Notes that an order of an intent leaves.
    pub(crate) fn send(&mut self, key: &Key, number: IntentNo, order: &Arc<OrderRequest>) {
        let its = self.entry(key);
        let sample = its.sample.get_or_insert_with(|| order.clone());
        its.mixed |= !Arc::ptr_eq(sample, order) && **sample != **order;
        its.stand(number);
    }

    /// Puts an intent among the live ones.
    pub(crate) fn stand(&mut self, key: &Key, number: IntentNo) {
        self.entry(key).stand(number);
    }

    /// Removes an intent from the live ones.
    pub(crate) fn retire(&mut self, key: &Key, number: IntentNo) {
        if let Some(its) = self.all.get_mut(key) {
            its.live.retain(|&other| other != number);
        }
    }

    /// Takes an intent that was rejected from the live ones to the refused ones, before its call ends.
    pub(crate) fn reject(&mut self, key: &Key, number: IntentNo) {
        self.retire(key, number);
        self.entry(key).refused.insert(number);
    }

    /// Puts an intent among the decided ones.
    pub(crate) fn finish(&mut self, key: &Key, number: IntentNo, ended: Ended) {
        let its = self.entry(key);
        its.finished.insert(number, ended.qty);
        if ended.is_dead {
            its.dead.insert(number);
        }
        if ended.is_refused {
            its.refused.insert(number);
        }
        if let Some(since) = ended.blocks_since {
            if its.blockers.is_empty() {
                its.blocked_since = since;
            }
            its.blockers.insert(number);
        }
    }

    /// Puts a decided intent back that was dropped with a day which is not over.
    pub(crate) fn restore(&mut self, key: &Key, number: IntentNo, order: &Arc<OrderRequest>, ended: Ended) {
        if self.get(key).is_some_and(|its| its.finished.contains(number)) {
            return;
        }
        self.send(key, number, order);
        self.retire(key, number);
        self.finish(key, number, ended);
    }

    /// Notes that a decided intent has a send that was never answered.
    pub(crate) fn presume_dead(&mut self, key: &Key, number: IntentNo) {
        self.entry(key).dead.insert(number);
    }

    /// Takes an intent out of the decided ones, among the live ones, because its answer is not believed any more.
    pub(crate) fn undecide(&mut self, key: &Key, number: IntentNo) {
        let its = self.entry(key);
        its.stand(number);
        its.finished.remove(number);
        its.dead.remove(&number);
    }

    /// Takes an intent out of the decided ones, because its refusal does not end it any more.
    pub(crate) fn undecide_refused(&mut self, key: &Key, number: IntentNo) {
        if let Some(its) = self.all.get_mut(key) {
            its.finished.remove(number);
            its.refused.remove(&number);
        }
    }

    /// Drops a decided intent.
    pub(crate) fn forget(&mut self, key: &Key, number: IntentNo) {
        if let Some(its) = self.all.get_mut(key) {
            its.finished.remove(number);
            its.dead.remove(&number);
            its.refused.remove(&number);
            its.blockers.remove(&number);
        }
    }

    /// Ends an intent's block on later orders of its key.
    pub(crate) fn unblock(&mut self, key: &Key, number: IntentNo) {
        if let Some(its) = self.all.get_mut(key) {
            its.blockers.remove(&number);
        }
    }

    pub(crate) fn join_line(&mut self, key: &Key, number: IntentNo) {
        self.entry(key).line.push_back(number);
    }

    /// Removes an intent from the line of its key; returns whose turn it is now.
    pub(crate) fn leave_line(&mut self, key: &Key, number: IntentNo) -> Option<IntentNo> {
        let its = self.all.get_mut(key)?;
        its.line.retain(|&other| other != number);
        its.line.front().copied()
    }

    /// Notes that an attempt is in doubt and settles at this time.
    pub(crate) fn unsettle(&mut self, key: &Key, attempt: AttemptNo, settles: Duration) {
        self.unsettled.insert((settles, attempt));
        self.entry(key).unsettled += 1;
    }

    /// Takes the next attempt that has settled by now.
    pub(crate) fn take_settled(&mut self, now: Duration) -> Option<AttemptNo> {
        let &(at, attempt) = self.unsettled.first()?;
        (at <= now).then(|| {
            self.unsettled.pop_first();
            attempt
        })
    }

    /// Counts one attempt of a key as settled.
    pub(crate) fn settle(&mut self, key: &Key, at: LogicalTime) {
        let its = self.entry(key);
        its.unsettled = its.unsettled.saturating_sub(1);
        its.last_settled = at;
    }

    /// Returns when the last unsettled attempt of an intent settles.
    pub(crate) fn settles_at(&self, number: IntentNo) -> Option<Duration> {
        self.unsettled.iter().filter(|(_, attempt)| attempt.intent == number).map(|(at, _)| *at).max()
    }

    /// Forgets when attempts settle: an earlier process counted on its own clock.
    pub(crate) fn forget_unsettled(&mut self) {
        self.unsettled.clear();
        self.all.values_mut().for_each(|its| its.unsettled = 0);
    }

    /// Forgets when an attempt settles.
    #[cfg(test)]
    pub(crate) fn forget_unsettled_one(&mut self, attempt: AttemptNo) {
        self.unsettled.retain(|(_, other)| *other != attempt);
    }

    fn entry(&mut self, key: &Key) -> &mut KeyIntents {
        self.all.entry(key.clone()).or_default()
    }
}
