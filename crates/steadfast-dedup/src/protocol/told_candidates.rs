//! Says which listed orders the caller of an unresolved order is told of.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
};

use crate::protocol::{
    intent::Intent, listed_orders::fresh::Fresh, matcher, order_protocol::OrderProtocol,
    resolution::Unresolved,
};

/// The listed orders that could be an intent's by what they show.
pub(crate) struct Matches<'a> {
    strict: Vec<&'a Fresh>,
    near: Vec<&'a Fresh>,
}

impl OrderProtocol {
    /// Finds the listed orders that could be an intent's by what they show.
    pub(crate) fn matches_of<'a>(&'a self, intent: &'a Intent) -> Matches<'a> {
        Matches { strict: self.intent_strict(intent).collect(), near: self.near(intent).collect() }
    }

    /// Returns the candidates of an intent that its report marks as told. Some that are marked already may be missing. Left
    /// out are also orders that
    ///
    /// - are only similar to the intent's, and equal one of a lost or refused send: they are reported as that one;
    /// - equal another order of ours and cannot be this one: each of them is one too many;
    /// - equal both this intent's and a refused one, where more are listed than intents could own: a list without prices
    ///   shows both alike, and the excess is reported as the refused one.
    pub(crate) fn told_of(&self, intent: &Intent, matches: Matches<'_>) -> BTreeSet<Arc<str>> {
        let is_refused = |fresh: &Fresh| self.refused_owner(intent.key(), fresh).is_some();
        let dead: Vec<_> = self.dead_of(intent.key()).map(|(_, intent)| intent).collect();
        // Found once for each quantity: most orders of a crowd have the same one.
        let mut asked = BTreeMap::new();
        let mut is_others = |fresh: &Fresh| {
            let Some(qty) = fresh.record.qty else { return false };
            let (by_dead, alike) = asked.entry(qty).or_insert_with(|| {
                let by_dead = dead.iter().any(|it| it.order().qty() == qty);
                (by_dead, self.owners_beside_excess(intent.key(), &fresh.record))
            });
            let is_its =
                |it: &&Intent| it.could_own(fresh.first_seen) && matcher::strict(&fresh.record, it.order());
            *by_dead && dead.iter().any(is_its) || self.is_excess_beside(intent, fresh, alike)
        };
        let Matches { mut strict, mut near } = matches;
        let has_refused = self.refused_of(intent.key()).next().is_some();
        // Without refused orders nothing is counted below, so those that are marked already need no second look.
        near.retain(|fresh| (has_refused || !fresh.flagged) && !is_others(fresh));
        if !has_refused {
            return strict.into_iter().chain(near).map(|fresh| fresh.order_id.clone()).collect();
        }
        let (alike, near): (Vec<_>, Vec<_>) =
            near.into_iter().partition(|fresh| matcher::strict(&fresh.record, intent.order()));
        strict.extend(alike);
        let near = near.into_iter().filter(|fresh| !is_refused(fresh));
        strict.sort_by_key(|fresh| (fresh.first_seen, &fresh.order_id));
        let mut too_many = strict.len().saturating_sub(self.claimants(intent, &strict));
        strict.retain(|fresh| {
            let left = too_many > 0 && is_refused(fresh);
            too_many -= usize::from(left);
            !left
        });
        strict.into_iter().chain(near).map(|fresh| fresh.order_id.clone()).collect()
    }

    /// Returns how many intents in flight or in doubt, this one included, could own one of these orders.
    fn claimants(&self, intent: &Intent, orders: &[&Fresh]) -> usize {
        let may_own = |other: &Intent| {
            let is_it = |fresh: &&Fresh| {
                other.could_own(fresh.first_seen) && matcher::strict(&fresh.record, other.order())
            };
            orders.iter().any(is_it)
        };
        self.live_of(intent.key()).filter(|(_, other)| may_own(other)).count().max(1)
    }

    /// Returns all candidates of an intent. `matches` are those that look like it.
    pub(crate) fn candidates_among(&self, intent: &Intent, matches: &Matches<'_>) -> Vec<String> {
        // An order that exactly matches another order of ours belongs to that one and is reported there.
        let Matches { strict, near } = matches;
        let mut eligible: Vec<_> = strict.iter().chain(near).copied().collect();
        eligible.extend(self.likely_others(intent));
        eligible.sort_by_key(|fresh| fresh.first_seen);
        // One that looks like it and carries its tag comes twice.
        let mut told = HashSet::new();
        eligible
            .into_iter()
            .filter(|fresh| told.insert(&*fresh.order_id))
            .take(Unresolved::MOST_CANDIDATES)
            .map(|fresh| String::from(&*fresh.order_id))
            .collect()
    }
}
