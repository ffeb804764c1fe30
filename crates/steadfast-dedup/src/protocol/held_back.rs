//! Holds back reports of orders that are one too many, or were refused and are listed all the same.
//!
//! Such a listed order may be an acknowledged one whose answer named a wrong identifier: its own record then has no owner
//! until lists have contradicted that identifier. A report before that would have to be taken back, and might make a user
//! cancel the order that was asked for. So only lists end the wait, however long they take: they show the identifier, or
//! contradict it. Where none can do either any more, the record is reported as what it may be, next to the identifier that
//! is not confirmed.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use steadfast_spec::{OrderRecord, OrderRequest};

use crate::{
    numbers::IntentNo,
    protocol::{
        effect::Effect,
        intent::Intent,
        key::Key,
        listed_orders::{confirming::Unconfirmed, fresh::Fresh},
        matcher,
        order_event::OrderEvent,
        order_protocol::OrderProtocol,
    },
    settings::policy::{AccountMode, ListShows},
};

/// Whether a listed order without an owner may be reported: as one too many, or as one that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// It may: all acknowledged orders that it could be are listed under other identifiers.
    Certain,
    /// Not yet: it may be an acknowledged order that lists have yet to show or contradict.
    HeldBack,
    /// Only as a candidate of these acknowledged orders: it may be one of them, and no list will tell.
    MayBe(Vec<IntentNo>),
    /// The same, of the day before: today's lists tell nothing about those.
    MayBeYesterdays(Vec<IntentNo>),
}

/// Whether more lists are expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outlook {
    MoreLists,
    /// The process may end, or the trading day does.
    NoMoreLists,
}

/// A look through the listed orders of a key that no intent owns.
pub(crate) struct Sweep<'a> {
    outlook: Outlook,
    key: &'a Key,
    /// The acknowledged orders of the key that no list has shown or contradicted. Found once: many listed orders are
    /// judged beside the same ones.
    unconfirmed: OnceCell<Vec<(IntentNo, Unconfirmed)>>,
}

impl<'a> Sweep<'a> {
    pub(crate) fn of(key: &'a Key, outlook: Outlook) -> Self {
        Self { outlook, key, unconfirmed: OnceCell::new() }
    }

    pub(crate) fn key(&self) -> &'a Key {
        self.key
    }

    /// Begins again with the same key: an order of it has found its owner.
    #[must_use]
    pub(crate) fn again(self) -> Self {
        Self::of(self.key, self.outlook)
    }
}

impl OrderProtocol {
    /// Reports what was held back, because no later list may show more.
    pub(crate) fn tell_held_back(&mut self, out: &mut Vec<Effect>) {
        for key in self.listed.unowned.keys() {
            self.sweep_for(Outlook::NoMoreLists, &key, out);
        }
    }

    /// Judges a listed order that equals an intent's order.
    pub(crate) fn judge_equal(&self, sweep: &Sweep<'_>, number: IntentNo, fresh: &Fresh) -> Judgement {
        let Some(intent) = self.intents.get(&number).filter(|intent| is_unlikely_owner(intent)) else {
            return Judgement::Certain;
        };
        if self.settings.list_shows != ListShows::Everything || !self.counts_as_ours(number, fresh) {
            return Judgement::Certain;
        }
        match self.beside_unconfirmed(sweep, fresh) {
            Judgement::Certain if is_excess_of(intent) => self.beside_unproved(sweep.key, fresh),
            judgement => judgement,
        }
    }

    /// True if a listed order counts as ours: others trade in a shared account, and only its tag tells there.
    fn counts_as_ours(&self, number: IntentNo, fresh: &Fresh) -> bool {
        self.settings.account_mode != AccountMode::Shared || self.owner_by_tag(fresh) == Some(number)
    }

    /// Judges a listed order that may be an intent's in another form.
    pub(crate) fn judge_alike(&self, sweep: &Sweep<'_>, fresh: &Fresh) -> Judgement {
        // One without a key is kept for no acknowledged order.
        if self.settings.list_shows != ListShows::Everything || Key::of_record(&fresh.record).is_none() {
            return Judgement::Certain;
        }
        self.beside_unconfirmed(sweep, fresh)
    }

    /// Judges a listed order beside the acknowledged ones of its key that no list has shown or contradicted.
    fn beside_unconfirmed(&self, sweep: &Sweep<'_>, fresh: &Fresh) -> Judgement {
        let mut may_be = Vec::new();
        for &(number, unconfirmed) in
            sweep.unconfirmed.get_or_init(|| self.unconfirmed_of(sweep.key).collect())
        {
            let Some(intent) = self.intents.get(&number) else { continue };
            if !intent.could_own(fresh.first_seen) || !matcher::loose(&fresh.record, intent.order()) {
                continue;
            }
            if unconfirmed == Unconfirmed::Awaited && sweep.outlook == Outlook::MoreLists {
                return Judgement::HeldBack;
            }
            if is_of_its_quantity(&fresh.record, intent.order()) {
                may_be.push(number);
            }
        }
        if !may_be.is_empty() {
            return Judgement::MayBe(may_be);
        }
        let yesterdays = self.may_be_yesterdays(sweep.key, fresh);
        if yesterdays.is_empty() { Judgement::Certain } else { Judgement::MayBeYesterdays(yesterdays) }
    }

    /// Judges a listed order that equals an acknowledged one beside those of its key that lists show as another order, as it
    /// seems: it may be one of them, and a later list may prove that.
    fn beside_unproved(&self, key: &Key, fresh: &Fresh) -> Judgement {
        if !self.fidelity.has_mismatches() {
            return Judgement::Certain;
        }
        let may_be = self.finished_of(key).filter(|(_, intent)| {
            intent.order_id().is_some_and(|order_id| self.is_unproved(order_id))
                && intent.could_own(fresh.first_seen)
                && matcher::loose(&fresh.record, intent.order())
                && is_of_its_quantity(&fresh.record, intent.order())
        });
        let may_be: Vec<_> = may_be.map(|(number, _)| number).collect();
        if may_be.is_empty() { Judgement::Certain } else { Judgement::MayBe(may_be) }
    }

    /// Returns the acknowledged orders of the day before that a listed order may be: lists may hold them for some time,
    /// and the first valid list of the day shows them however late it is read.
    fn may_be_yesterdays(&self, key: &Key, fresh: &Fresh) -> Vec<IntentNo> {
        if !self.may_list_yesterdays() && !self.listed.lists.is_of_the_first(fresh) {
            return Vec::new();
        }
        let may_be = |number: &IntentNo| {
            self.intents.get(number).is_some_and(|intent| {
                intent.key() == key
                    && intent.day() != self.time.day()
                    && intent.could_own(fresh.first_seen)
                    && matcher::loose(&fresh.record, intent.order())
                    && is_of_its_quantity(&fresh.record, intent.order())
            })
        };
        self.listed.yesterday.unshown().filter(may_be).collect()
    }

    /// True if a listed order is one too many beside another order of ours, and cannot be this one's: its quantity
    /// differs, and no change of any order was sent since. `alike`: the [owners](Self::owners_beside_excess) of its quantity.
    pub(crate) fn is_excess_beside(
        &self,
        intent: &Intent,
        fresh: &Fresh,
        alike: &[(IntentNo, &Intent)],
    ) -> bool {
        let owner = || {
            let number = self.late_owner_among(alike.iter().copied(), intent.key(), fresh)?;
            self.intents.get(&number)
        };
        !alike.is_empty()
            && self.settings.account_mode == AccountMode::Exclusive
            && !is_of_its_quantity(&fresh.record, intent.order())
            && self.is_unchanged(intent)
            && owner().is_some_and(is_excess_of)
    }

    /// Returns the decided orders of ours that asked for the quantity which a record shows, if one of them has its order:
    /// another one may be one too many. For most orders of a crowded list there are none.
    pub(crate) fn owners_beside_excess(&self, key: &Key, record: &OrderRecord) -> Vec<(IntentNo, &Intent)> {
        let has_owner = self.finished_like(key, record).any(|(_, intent)| is_excess_of(intent));
        if has_owner { self.finished_like(key, record).collect() } else { Vec::new() }
    }

    /// Returns the candidates of an unresolved order that were reported for no other one.
    ///
    /// Once that order is resolved, they are reported again, as what they are then.
    pub(crate) fn candidates_of_it_alone(&self, number: IntentNo) -> BTreeSet<Arc<str>> {
        let intent = self.intents.get(&number).filter(|intent| !intent.told_candidates().is_empty());
        let Some(intent) = intent else { return BTreeSet::new() };
        let others: Vec<_> = self
            .finished_of(intent.key())
            .filter(|(other, _)| *other != number)
            .map(|(_, other)| other)
            .collect();
        let candidates = intent.told_candidates().iter().map(|id| Arc::from(id.as_str()));
        candidates.filter(|id: &Arc<str>| !others.iter().any(|other| other.was_told_of(id))).collect()
    }

    /// Returns the acknowledged orders of a key that no list has shown or contradicted, and those that lists contradict
    /// once midnight is over.
    fn unconfirmed_of(&self, key: &Key) -> impl Iterator<Item = (IntentNo, Unconfirmed)> {
        let today = self.finished_of(key).filter(|(_, intent)| intent.day() == self.time.day());
        today.filter_map(|(number, intent)| {
            let order_id = intent.order_id()?;
            let unjudged = || self.is_unjudged(order_id).then_some(Unconfirmed::Awaited);
            Some((number, self.listed.unconfirmed(order_id).or_else(unjudged)?))
        })
    }

    /// Reports acknowledged orders that no list confirms, with the listed orders that may be each.
    pub(crate) fn tell_may_be(&mut self, may_be: BTreeMap<IntentNo, Vec<Arc<str>>>, out: &mut Vec<Effect>) {
        for (number, candidates) in may_be {
            self.tell_ack_unconfirmed(number, &candidates, out);
        }
    }

    /// Reports that no list has confirmed an acknowledged order: once, and again with a candidate that is new.
    pub(crate) fn tell_ack_unconfirmed(
        &mut self,
        number: IntentNo,
        candidates: &[Arc<str>],
        out: &mut Vec<Effect>,
    ) {
        let Some(intent) = self.intents.get(&number) else { return };
        let Some(order_id) = intent.order_id() else { return };
        if self.listed.awaited.note_unconfirmed(order_id, candidates) {
            out.push(Effect::Report(OrderEvent::AckUnconfirmed {
                intent: number,
                name: intent.name().cloned(),
                order_id: order_id.to_string(),
                candidates: candidates.iter().map(ToString::to_string).collect(),
            }));
        }
    }
}

/// True unless the record shows another quantity than was ordered.
fn is_of_its_quantity(record: &OrderRecord, order: &OrderRequest) -> bool {
    record.qty.is_none_or(|qty| qty == order.qty())
}

/// True if an intent needs no other order by the service's word: it has one, or it was refused or rejected.
fn is_unlikely_owner(intent: &Intent) -> bool {
    intent.order_id().is_some() || intent.was_told_not_placed()
}

/// True if one more order that equals this intent's is one too many: its own is known, and it was sent only once.
pub(crate) fn is_excess_of(intent: &Intent) -> bool {
    intent.order_id().is_some() && intent.resends() == 0 && !intent.was_refused()
}
