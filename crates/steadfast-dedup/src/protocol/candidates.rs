//! Decides which listed orders can be an intent's, next to all other intents of its key.
//!
//! A record alone is not always enough: a list without prices shows two orders of different price alike, and a list
//! of one login session shows first of all the orders of that session.

use std::{cell::LazyCell, collections::BTreeMap};

use crate::{
    numbers::IntentNo,
    protocol::{
        attempt::Attempt, intent::Intent, key::Key, keys::KeyIntents, listed_orders::fresh::Fresh, matcher,
        order_protocol::OrderProtocol, resolution::Reason,
    },
    settings::policy::{AccountMode, OrdersScope},
};

impl OrderProtocol {
    /// Returns orders without an owner that match only this intent of ours exactly and appeared after its send.
    pub(crate) fn intent_strict<'a>(&'a self, intent: &'a Intent) -> impl Iterator<Item = &'a Fresh> + 'a {
        let strict = self.listed.unowned.strict(intent.key(), intent.order());
        strict.filter(|fresh| self.is_strict(intent, fresh))
    }

    /// Returns orders that could be the intent's after a change, or cannot be told apart, and match no other intent.
    pub(crate) fn near<'a>(&'a self, intent: &'a Intent) -> impl Iterator<Item = &'a Fresh> + 'a {
        // Only intents of a quantity that is listed can match an order exactly, and only one that shows its key.
        let asked = LazyCell::new(move || {
            let mut asked = BTreeMap::<_, Vec<_>>::new();
            for (_, other) in self.standing_of(intent.key()) {
                let qty = other.order().qty();
                if self.listed.unowned.has_qty(intent.key(), qty) {
                    asked.entry(qty).or_default().push(other);
                }
            }
            asked
        });
        self.listed.unowned.of(intent.key()).filter(move |fresh| {
            intent.could_own(fresh.first_seen)
                && !fresh.late
                && matcher::loose(&fresh.record, intent.order())
                && !self.is_strict(intent, fresh)
                && !self.is_excluded_by_tag(intent, fresh)
                // Of two equal intents, the one of the order's session comes first, but may end up with another of
                // several orders. The rest is then this intent's, so until that is known the order is near.
                && !fresh.record.qty.and_then(|qty| asked.get(&qty)).is_some_and(|others| {
                    !matcher::strict(&fresh.record, intent.order())
                        && others.iter().any(|other| self.is_strict(other, fresh))
                })
        })
    }

    /// Returns orders of other instruments that could be the intent's under a spelling of the list's own.
    ///
    /// In an exclusive account no one else has placed them. Once a list has shown this instrument under its name,
    /// other names are other instruments. The flag says whether there were more than are kept.
    fn strangers<'a>(&'a self, intent: &'a Intent) -> (impl Iterator<Item = &'a Fresh> + 'a, bool) {
        let sent = intent.first_left().map(|sent| sent.seq);
        let matters = sent.is_some()
            && self.settings.account_mode == AccountMode::Exclusive
            && !self.listed.recognises(&intent.order().sym_id().folded());
        let (strangers, more) = self.listed.unowned.strange(sent.unwrap_or_default());
        let may_be_its = move |fresh: &&Fresh| matters && !self.is_excluded_by_tag(intent, fresh);
        (strangers.filter(may_be_its), more && matters)
    }

    /// Returns listed orders that may be one that was refused, in the list of any session and in any form.
    ///
    /// An equal order lost in that session may be it too: a session's list may show orders of earlier sessions.
    pub(crate) fn shown_as<'a>(&'a self, intent: &'a Intent) -> impl Iterator<Item = &'a Fresh> + 'a {
        let alike = self.intent_strict(intent).chain(self.near(intent));
        alike.chain(self.strangers(intent).0).chain(self.tagged(intent)).chain(self.untagged_alike(intent))
    }

    /// True if more orders of other names are listed than are kept, and one of those could be the intent's.
    pub(crate) fn has_more_strangers(&self, intent: &Intent) -> bool {
        self.strangers(intent).1
    }

    /// True if more orders are listed than are kept, and one of those could be the intent's.
    pub(crate) fn has_overflow(&self, intent: &Intent) -> bool {
        intent.first_sent().is_some_and(|sent| self.listed.unowned.has_overflow(intent.key(), sent.seq, None))
    }

    /// Returns orders like the intent's that answers gave to other intents, which had asked for something else.
    ///
    /// An answer may have reached the wrong order. The flag says whether there were more than are kept.
    fn disputed<'a>(&'a self, intent: &'a Intent) -> (impl Iterator<Item = &'a Fresh> + 'a, bool) {
        let sent = intent.first_left().map(|sent| sent.seq);
        let matters = sent.is_some();
        let (disputed, more) = self.listed.disputed.since(sent.unwrap_or_default());
        (disputed.filter(move |fresh| matters && self.may_be_its_dispute(intent, fresh)), more && matters)
    }

    /// True if a disputed order may be this intent's, in whatever form the list shows it.
    ///
    /// One of the quantity that its owner asked for, and not of this one's, is the owner's in a form of the list's
    /// own.
    fn may_be_its_dispute(&self, intent: &Intent, fresh: &Fresh) -> bool {
        let owner = self.listed.owner(&fresh.order_id).and_then(|number| self.intents.get(&number));
        let is_owners = || owner.is_some_and(|owner| fresh.record.qty == Some(owner.order().qty()));
        matcher::loose(&fresh.record, intent.order())
            && (fresh.record.qty == Some(intent.order().qty()) || !is_owners())
    }

    /// True if an order that an answer gave to another intent, or a record under another order's identifier, may be
    /// this one's.
    pub(crate) fn is_disputed(&self, intent: &Intent) -> bool {
        let (mut disputed, more) = self.disputed(intent);
        more || disputed.next().is_some() || self.may_be_under_a_repeated_id(intent)
    }

    /// True if a list shows an identifier twice, so that one of the two records may be this intent's.
    fn may_be_under_a_repeated_id(&self, intent: &Intent) -> bool {
        intent
            .first_left()
            .is_some_and(|sent| self.listed.may_be_under_a_repeated_id(intent.order(), sent.seq))
    }

    /// True if such an order is exactly this one's.
    pub(crate) fn is_disputed_exactly(&self, intent: &Intent) -> bool {
        let (mut disputed, more) = self.disputed(intent);
        more || disputed.any(|fresh| matcher::strict(&fresh.record, intent.order()))
    }

    /// True if a listed order could be the intent's: changed, not told apart, under another name, or given away by a
    /// wrong answer.
    pub(crate) fn is_vetoed(&self, intent: &Intent) -> bool {
        let (mut strangers, more) = self.strangers(intent);
        self.has_overflow(intent)
            || more
            || self.is_disputed(intent)
            || self.near(intent).next().is_some()
            || strangers.next().is_some()
            || self.tagged(intent).next().is_some()
    }

    /// Returns the listed orders that could be the intent's although they do not look like it: under another name, given
    /// away by an answer, or with its tag.
    pub(crate) fn likely_others<'a>(&'a self, intent: &'a Intent) -> impl Iterator<Item = &'a Fresh> + 'a {
        self.strangers(intent).0.chain(self.disputed(intent).0).chain(self.tagged(intent))
    }

    /// Returns the reason why near orders leave an intent unresolved whose session is over.
    pub(crate) fn near_reason(&self, intent: &Intent) -> Reason {
        let changed = self.near(intent).any(|fresh| !matcher::strict(&fresh.record, intent.order()));
        if changed { Reason::NearMatch } else { Reason::SessionChanged }
    }

    /// True if a listed order equals the intent's, and nothing says that it is another's.
    fn is_strict(&self, intent: &Intent, fresh: &Fresh) -> bool {
        intent.could_own(fresh.first_seen)
            && !fresh.late
            && matcher::strict(&fresh.record, intent.order())
            && !self.fits_two_of_ours(intent, fresh)
            && !self.is_another_sessions(intent, fresh)
            && !self.is_excluded_by_tag(intent, fresh)
            && !self.carries_anothers_tag(intent, fresh)
            && !self.listed.is_ambiguous(&fresh.order_id)
    }

    // A record that matches two different orders of ours identifies neither; an answer may still do so. A refused
    // order counts, because it may have been placed all the same, and a rejected one from its answer on.
    fn fits_two_of_ours(&self, intent: &Intent, fresh: &Fresh) -> bool {
        self.rules.told_apart
            && self.keys.get(intent.key()).is_some_and(KeyIntents::is_mixed)
            && self.standing_of(intent.key()).chain(self.not_placed_of(intent.key())).any(|(_, other)| {
                other.could_own(fresh.first_seen)
                    && other.order() != intent.order()
                    && matcher::strict(&fresh.record, other.order())
            })
    }

    /// True if an answer that is still awaited may say which of two orders a record shows.
    pub(crate) fn may_be_told_apart(&self, intent: &Intent) -> bool {
        let shared = self.listed.unowned.strict(intent.key(), intent.order()).filter(|fresh| {
            intent.could_own(fresh.first_seen) && !fresh.late && self.fits_two_of_ours(intent, fresh)
        });
        let mut shared = shared.map(|fresh| fresh.first_seen);
        shared.any(|first_seen| {
            self.live_of(intent.key()).any(|(_, other)| {
                other.order() != intent.order()
                    && other
                        .attempts()
                        .iter()
                        .filter_map(Attempt::in_flight)
                        .any(|sent| sent.seq < first_seen)
            })
        })
    }

    // An order that a session's list shows first belongs first to intents of that session.
    fn is_another_sessions(&self, intent: &Intent, fresh: &Fresh) -> bool {
        self.settings.orders_scope == OrdersScope::Session
            && self.rules.session_first
            && !intent.was_sent_in(fresh.session)
            && self.standing_of(intent.key()).any(|(_, other)| {
                other.was_sent_in(fresh.session)
                    && other.could_own(fresh.first_seen)
                    && matcher::loose(&fresh.record, other.order())
            })
    }

    /// Returns the decided intent with a lost send that a listed order matches.
    pub(crate) fn dead_owner(&self, key: &Key, fresh: &Fresh) -> Option<IntentNo> {
        let mut dead = self.dead_of(key).filter(|(_, intent)| self.is_strict(intent, fresh));
        dead.next().map(|(number, _)| number)
    }

    /// True if a search for the intent would have claimed this order.
    pub(crate) fn would_be_claimed(&self, intent: &Intent, fresh: &Fresh) -> bool {
        let by_likeness = self.settings.account_mode == AccountMode::Exclusive && intent.has_baseline();
        let by_tag = || intent.tag().is_some_and(|tag| self.tags.proves(tag, fresh));
        self.is_strict(intent, fresh) && (by_likeness || by_tag())
    }

    /// Returns the intents of a key whose order may still appear: in flight, in doubt, or decided with a lost send.
    fn standing_of(&self, key: &Key) -> impl Iterator<Item = (IntentNo, &Intent)> {
        self.live_of(key).chain(self.dead_of(key))
    }

    pub(crate) fn dead_of(&self, key: &Key) -> impl Iterator<Item = (IntentNo, &Intent)> {
        let finished = self.keys.get(key).into_iter().flat_map(|key| key.dead().iter().copied());
        let intents = finished.filter_map(|number| Some((number, self.intents.get(&number)?)));
        intents.filter(|(_, intent)| intent.day() == self.time.day() && intent.is_presumed_dead())
    }
}
