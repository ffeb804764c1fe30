//! Finds the decided order that a listed order without an owner belongs to.

use std::cmp::Reverse;

use steadfast_spec::{OrderRecord, OrderRequest};

use crate::{
    numbers::IntentNo,
    protocol::{
        intent::Intent, key::Key, listed_orders::fresh::Fresh, matcher, order_protocol::OrderProtocol,
        phase::Finding,
    },
    settings::policy::AccountMode,
};

impl OrderProtocol {
    /// Returns the decided intent that an order belongs to, if no waiting intent can claim it.
    pub(crate) fn owner_too_late(&self, key: &Key, fresh: &Fresh) -> Option<IntentNo> {
        // It may have its owner already, under another spelling of its identifier or from the day before.
        if self.listed.is_ambiguous(&fresh.order_id) {
            return None;
        }
        let is_decided =
            |number: &IntentNo| self.intents.get(number).is_some_and(|it| it.finding().is_some());
        let by_tag = || self.owner_by_tag(fresh).filter(is_decided);
        let waiting = || self.live_of(key).filter(|(_, intent)| intent.could_own(fresh.first_seen));
        if waiting().next().is_none() {
            return by_tag().or_else(|| self.late_owner(key, fresh));
        }
        // No waiting intent equals it, but one with a send taken for dead or refused does.
        let asked = waiting().any(|(_, intent)| matcher::strict(&fresh.record, intent.order()));
        if asked {
            return None;
        }
        by_tag().or_else(|| self.dead_owner(key, fresh)).or_else(|| self.refused_owner(key, fresh))
    }

    /// Returns the decided intent that most likely owns an order: those without an order first, and of those the last.
    ///
    /// Each of them may own a later order as well, but only the earlier ones may own one that was listed before.
    pub(crate) fn late_owner(&self, key: &Key, fresh: &Fresh) -> Option<IntentNo> {
        self.late_owner_among(self.finished_like(key, &fresh.record), key, fresh)
    }

    /// Does the same among the decided intents that asked for the order's quantity.
    pub(crate) fn late_owner_among<'a>(
        &self,
        alike: impl Iterator<Item = (IntentNo, &'a Intent)>,
        key: &Key,
        fresh: &Fresh,
    ) -> Option<IntentNo> {
        let eligible = alike.filter(|(number, intent)| {
            (intent.day() == self.time.day() || self.may_be_overnight(*number, intent, fresh))
                && !intent.is_ruled_out(&fresh.order_id)
                && intent.could_own(fresh.first_seen)
                && matcher::strict(&fresh.record, intent.order())
                && !self.is_strangers_by_tag(intent, fresh)
        });
        let likeliest =
            eligible.min_by_key(|(number, intent)| (likely_owner(intent, fresh), Reverse(*number)));
        likeliest.map(|(number, _)| number).or_else(|| self.absent_owner(key, fresh, matcher::loose))
    }

    /// Returns the intent reported absent that a listed order may belong to.
    ///
    /// Only in an exclusive account, where no stranger places similar orders.
    pub(crate) fn absent_owner(
        &self,
        key: &Key,
        fresh: &Fresh,
        is_like: fn(&OrderRecord, &OrderRequest) -> bool,
    ) -> Option<IntentNo> {
        if self.settings.account_mode != AccountMode::Exclusive {
            return None;
        }
        let mut absent = self.finished_of(key).filter(|(_, intent)| {
            intent.day() == self.time.day()
                && intent.was_told_absent()
                && !intent.was_told_of(&fresh.order_id)
                && intent.could_own(fresh.first_seen)
                && is_like(&fresh.record, intent.order())
        });
        absent.next().map(|(number, _)| number)
    }

    /// True if a waiting order may be a listed one, or the caller of one was told of it as a candidate.
    pub(crate) fn is_wanted(&self, key: &Key, fresh: &Fresh) -> bool {
        let may_be_its = |intent: &Intent| {
            intent.could_own(fresh.first_seen) && matcher::strict(&fresh.record, intent.order())
        };
        self.live_of(key).any(|(_, intent)| may_be_its(intent))
            || self.finished_of(key).any(|(_, intent)| intent.was_told_of(&fresh.order_id))
    }

    /// True if a candidate that an intent's caller was told of may be its order as well as this late one is.
    pub(crate) fn has_another_candidate(&self, intent: &Intent, late: &Fresh) -> bool {
        let may_be_its = |order_id: &str| {
            let record = || self.listed.unowned.of(intent.key()).find(|fresh| *fresh.order_id == *order_id);
            self.listed.owner(order_id).is_none()
                // One that may be another order's by an answer is not counted.
                && !self.listed.is_ambiguous(order_id)
                // Its record may be dropped by now.
                && record().is_none_or(|fresh| matcher::strict(&fresh.record, intent.order()))
        };
        intent.told_candidates().iter().any(|order_id| **order_id != *late.order_id && may_be_its(order_id))
    }
}

/// Ranks how likely a decided intent owns a listed order; the lowest is the likeliest.
///
/// Intents that ended in doubt or refused come before those with an order, but not for an order that was already
/// their candidate. A send taken for dead comes before a rejection, and one without a candidate before one with.
fn likely_owner(intent: &Intent, fresh: &Fresh) -> (u8, bool, bool, bool) {
    let group = match intent.finding() {
        Some(Finding::Rejected) => 2,
        _ if intent.order_id().is_none() => 0,
        _ if intent.resends() > 0 => 1,
        _ => 3,
    };
    let is_refused = intent.finding() == Some(&Finding::Refused);
    (group, intent.was_told_of(&fresh.order_id), is_refused, !intent.told_candidates().is_empty())
}
