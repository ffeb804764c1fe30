//! Notices acknowledged identifiers that the list shows for another order.
//!
//! Answers on a connection that is out of step are exchanged or shifted: each order gets another one's identifier,
//! and no identifier is missing or given twice. The list shows it by the record under an identifier. A different side
//! or instrument means another order at once. For an instrument this needs proof that lists use our name for it: the
//! one shown is one of ours, or the ordered one was shown under its name. Otherwise the list may have a spelling of
//! its own. So does an exit leg of another product: only bracket and cover orders have legs.
//!
//! A quantity may differ for good reasons: the user changed it, or the list counts the shares that are left. So it
//! proves something only if the ordered quantity is listed as well, and no change of any order was sent since. It must
//! be listed under the identifier of another order of ours that differs too (an exchange, perhaps through orders of other
//! instruments and sides), or as an order that would be one too many. Users of other terminals who exchange the
//! quantities of two of our orders cannot be told from a service that does.
//!
//! Its own order may be listed later than the record of another one, by up to W. So the list is read again until then,
//! and what may be its own order is held back meanwhile. An order that nothing proves to be another one by then is
//! reported as unconfirmed: it may have been changed, or its own may be lost.
//!
//! A price may differ for good reasons too. It proves something only if the record equals an order that the service
//! refused or rejected, and the acknowledged order is listed as well, as one too many.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use steadfast_spec::{Decimal, OrderRecord, SymId};

use crate::{
    numbers::IntentNo,
    protocol::{
        effect::Effect,
        fidelity::{Mismatch, Shows},
        held_back::is_excess_of,
        intent::Intent,
        key::Key,
        listed_orders::fresh::Fresh,
        matcher,
        order_event::OrderEvent,
        order_protocol::OrderProtocol,
        phase::Finding,
    },
    settings::policy::AccountMode,
};

/// An order whose record shows another quantity than was ordered.
struct Moved<'a> {
    order_id: Arc<str>,
    key: &'a Key,
    ordered: Decimal,
    shown: Decimal,
    /// An order of the ordered quantity is listed and has no owner.
    is_free: bool,
}

impl OrderProtocol {
    /// Notes the record that our list shows for an acknowledged order; true if it is another order.
    ///
    /// It is judged when the whole list is there.
    pub(crate) fn note_mismatch(&mut self, owner: IntentNo, record: &OrderRecord) -> bool {
        let Some(intent) =
            self.intents.get(&owner).filter(|intent| is_acknowledged(intent, &record.order_id))
        else {
            return false;
        };
        let is_leg = matcher::is_exit_leg(record);
        let Some(shows) = Shows::of(record, intent) else {
            if is_leg {
                return false;
            }
            // Legs may share an identifier: one of them is the order.
            self.fidelity.end_mismatch(&record.order_id);
            self.listed.end_comparison(&record.order_id);
            return false;
        };
        if self.listed.has_compared(&record.order_id) {
            return true;
        }
        let listed = Key::of_record(record).zip(record.qty).filter(|_| !is_leg);
        let may_be_another = matches!(&shows, Shows::Quantity(shown) if is_of_an_order(*shown));
        let since = self.listed.acknowledged_at(&record.order_id);
        let since = since.filter(|_| may_be_another && self.is_unchanged(intent));
        let open_until = since.map(|since| since.saturating_add(self.settings.lateness));
        self.fidelity.note_mismatch(&record.order_id, owner, shows, listed, open_until);
        true
    }

    /// True if lists showed an order before an answer gave it to an intent, and not as the intent's order. The next list of
    /// ours is compared.
    pub(crate) fn is_listed_otherwise(&self, order_id: &str, number: IntentNo) -> bool {
        let is_its = |intent: &Intent| {
            self.listed.unowned.with_id(order_id).any(|fresh| Shows::of(&fresh.record, intent).is_none())
        };
        self.listed.is_shown(order_id)
            && self.listed.owner(order_id).is_none()
            && !self.intents.get(&number).is_some_and(is_its)
    }

    /// Withdraws answers that a list contradicts.
    ///
    /// `shows`: the list shows every order that was placed W before this; `None` for a caller's list, which may lack any.
    pub(crate) fn judge_mismatches(&mut self, shows: Option<Duration>, out: &mut Vec<Effect>) {
        // Around midnight a list may show an order of another day.
        if self.time.is_midnight_near() {
            return;
        }
        let (intents, today) = (&self.intents, self.time.day());
        self.fidelity.keep_mismatches(|order_id, owner| {
            let owner = intents.get(&owner).filter(|intent| intent.day() == today);
            owner.is_some_and(|intent| is_acknowledged(intent, order_id))
        });
        let moved = self.moved_quantities();
        let proved = |(order_id, mismatch): (&Arc<str>, &Mismatch)| {
            let is_another = self.is_another(mismatch)
                || moved.contains(order_id)
                || self.is_listed_under_its_name(mismatch);
            is_another.then(|| (order_id.clone(), mismatch.owner()))
        };
        let mut proved: BTreeSet<_> = self.fidelity.mismatches().filter_map(proved).collect();
        proved.extend(self.refused_ones());
        let mut keys = Vec::new();
        for (order_id, owner) in proved {
            self.fidelity.end_mismatch(&order_id);
            let Some(intent) = self.intents.get(&owner) else { continue };
            let name = intent.name().cloned();
            keys.push(intent.key().clone());
            self.listed.contest(&order_id);
            let order_id = order_id.to_string();
            out.push(Effect::Report(OrderEvent::AckMismatch { intent: owner, name, order_id }));
            self.disbelieve(owner);
        }
        for (order_id, intent) in self.fidelity.unreported_mismatches() {
            let order_id = order_id.to_string();
            let name = self.intents.get(&intent).and_then(|intent| intent.name().cloned());
            out.push(Effect::Report(OrderEvent::Uncalibrated { intent, name, order_id }));
        }
        for key in keys {
            self.resolve(&key, out);
        }
        if let Some(at) = shows {
            self.close_mismatches(at, out);
        }
    }

    /// Reports the orders that no list read by then proves to be other ones, and whose own it had to show.
    pub(crate) fn close_mismatches(&mut self, at: Duration, out: &mut Vec<Effect>) {
        for owner in self.fidelity.close_mismatches(at) {
            self.tell_ack_unconfirmed(owner, &[], out);
        }
    }

    /// True if a list shows another order under an acknowledged identifier, or may do: that is judged by later lists, or
    /// once midnight is over.
    pub(crate) fn is_unjudged(&self, order_id: &str) -> bool {
        let is_unjudged = |mismatch: &Mismatch| {
            mismatch.is_open() || self.time.is_midnight_near() && self.is_another(mismatch)
        };
        self.fidelity.mismatch(order_id).is_some_and(is_unjudged)
    }

    /// True if a list shows another order under an acknowledged identifier, as it seems, and none has proved that: near
    /// midnight nothing is proved, and beside an order in doubt that may own the acknowledged one's record.
    ///
    /// A quantity says so only if no change was sent.
    pub(crate) fn is_unproved(&self, order_id: &str) -> bool {
        let is_unproved = |mismatch: &Mismatch| match mismatch.shows() {
            Shows::Quantity(shown) => {
                let owner = self.intents.get(&mismatch.owner());
                is_of_an_order(*shown) && owner.is_some_and(|intent| self.is_unchanged(intent))
            }
            Shows::Leg | Shows::Side | Shows::Instrument(_) => true,
        };
        self.fidelity.mismatch(order_id).is_some_and(is_unproved)
    }

    /// Returns acknowledged orders shown exactly as a refused one, whose own order is listed as one too many.
    fn refused_ones(&self) -> Vec<(Arc<str>, IntentNo)> {
        let is_one = |fresh: &Fresh| {
            let owner = self.listed.owner(&fresh.order_id)?;
            let its = |intent: &&Intent| {
                intent.day() == self.time.day() && is_acknowledged(intent, &fresh.order_id)
            };
            let intent = self.intents.get(&owner).filter(its)?;
            let key = Key::of_record(&fresh.record)?;
            let proved = self.refused_owner(&key, fresh).is_some()
                && self.is_unchanged(intent)
                && self.has_excess_equal(intent);
            proved.then(|| (fresh.order_id.clone(), owner))
        };
        self.listed.disputed.iter().filter_map(is_one).collect()
    }

    /// True if a record shows another order by its side or instrument.
    fn is_another(&self, mismatch: &Mismatch) -> bool {
        match mismatch.shows() {
            Shows::Side | Shows::Leg => true,
            Shows::Instrument(shown) => self.is_anothers_name(mismatch.owner(), shown.as_ref()),
            Shows::Quantity(_) => false,
        }
    }

    /// True if lists are known to use our name for the order's instrument, or the shown one is another of ours.
    fn is_anothers_name(&self, owner: IntentNo, shown: Option<&SymId>) -> bool {
        let is_ours =
            |shown: &SymId| self.intents.iter().any(|(_, it)| it.order().sym_id().folded() == *shown);
        let known = |intent: &Intent| self.listed.recognises(&intent.order().sym_id().folded());
        self.intents.get(&owner).is_some_and(known) || shown.is_some_and(|shown| is_ours(&shown.folded()))
    }

    /// True if the one shown is of another instrument, and an order under the ordered one's name would be one too many:
    /// then lists use our name for it.
    fn is_listed_under_its_name(&self, mismatch: &Mismatch) -> bool {
        let is_of_its_name = |intent| self.has_excess_equal(intent);
        matches!(mismatch.shows(), Shows::Instrument(_))
            && self.intents.get(&mismatch.owner()).is_some_and(is_of_its_name)
    }

    /// Returns orders shown with another quantity, whose own is listed as one too many or under another of them.
    fn moved_quantities(&self) -> BTreeSet<Arc<str>> {
        let moved = |(order_id, mismatch): (&Arc<str>, &Mismatch)| {
            let Shows::Quantity(shown) = *mismatch.shows() else { return None };
            let intent = self.intents.get(&mismatch.owner()).filter(|intent| self.is_unchanged(intent))?;
            let is_free = self.has_excess_equal(intent);
            Some(Moved {
                order_id: order_id.clone(),
                key: intent.key(),
                ordered: intent.order().qty(),
                shown,
                is_free,
            })
        };
        let mut left: Vec<Moved<'_>> = self.fidelity.mismatches().filter_map(moved).collect();
        // An exchange among more than two orders may go through other instruments and sides.
        let others = self.fidelity.mismatches().filter(|(_, mismatch)| self.is_another(mismatch));
        let others: BTreeSet<_> = others.filter_map(|(_, mismatch)| mismatch.listed().cloned()).collect();
        // An order whose quantity is listed nowhere was changed, so it explains no other.
        loop {
            let before = left.len();
            let mut shown = others.clone();
            shown.extend(left.iter().map(|it| (it.key.clone(), it.shown)));
            left.retain(|it| it.is_free || shown.contains(&(it.key.clone(), it.ordered)));
            if left.len() == before {
                return left.into_iter().map(|it| it.order_id).collect();
            }
        }
    }

    /// True if an order was sent since the last change: the next one concerns it, too.
    pub(crate) fn is_change_news(&self) -> bool {
        self.fidelity.is_change_news()
    }

    /// True if no change of an order was sent since this one.
    pub(crate) fn is_unchanged(&self, intent: &Intent) -> bool {
        intent.first_sent().is_some_and(|sent| self.fidelity.is_unchanged_since(sent.seq))
    }

    /// True if a listed order equals this one and would be one too many.
    fn has_excess_equal(&self, intent: &Intent) -> bool {
        self.settings.account_mode == AccountMode::Exclusive
            && self.intent_strict(intent).any(|fresh| {
                // An order that equals no waiting intent's is none of theirs, unless it was changed.
                let is_its = |it: &Intent| {
                    it.could_own(fresh.first_seen) && matcher::strict(&fresh.record, it.order())
                };
                let is_asked = || self.live_of(intent.key()).any(|(_, it)| is_its(it));
                let late = || self.late_owner(intent.key(), fresh).filter(|_| !is_asked());
                let owner = self.owner_too_late(intent.key(), fresh).or_else(late);
                let owner = owner.and_then(|number| self.intents.get(&number));
                owner.is_some_and(is_excess_of)
            })
    }
}

fn is_acknowledged(intent: &Intent, id: &str) -> bool {
    matches!(intent.finding(), Some(Finding::Acknowledged { order_id }) if **order_id == *id)
}

/// False for zero, which no order has: nothing is left of the one that is shown so.
fn is_of_an_order(qty: Decimal) -> bool {
    qty != Decimal::default()
}
