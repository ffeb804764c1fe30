//! Tells by tags which listed order is which of ours.
//!
//! A listed order with the tag of one of ours is that order: in a shared account, among equals, and even if its other fields
//! differ from what was asked for. But services copy fields: to slices, to conversions, to an order that a user repeats. So
//! one whose fields differ is believed only once a second one with its tag would be listed as well. Several with one tag
//! decide nothing, unless all are exactly what was asked for. A tag makes no late order appear: an absence takes as long as
//! without it.

use std::sync::Arc;

use steadfast_spec::{Code, OrderRecord};

use crate::{
    numbers::{IntentNo, Session},
    protocol::{
        effect::Effect,
        intent::Intent,
        key::Key,
        listed_orders::{fresh::Fresh, lists::Source},
        matcher,
        order_event::OrderEvent,
        order_protocol::OrderProtocol,
        phase::Finding,
    },
    settings::policy::AccountMode,
};

/// How far the tags in lists identify the order of an intent in doubt.
pub(crate) enum ByTag {
    /// Nothing: no list shows its tag, or lists do not tell orders by tags.
    Nothing,
    /// It is this listed order.
    Its(Arc<str>),
    /// A listed order carries its tag, and a later list may show a second one that does.
    Unclear,
    /// The tag was copied: several listed orders carry it, or one that may be another order.
    Copied,
}

/// The records of a list that tell something new about tags.
#[derive(Debug, Default)]
pub(crate) struct TagNews {
    /// Those without an owner that show a tag of ours.
    shown: Vec<OrderRecord>,
    /// Those of our orders that do not show their whole tag.
    unlike: Vec<(IntentNo, OrderRecord)>,
}

impl OrderProtocol {
    /// Gives an intent its tag, for all of its sends.
    pub(crate) fn tag(&mut self, number: IntentNo, tag: steadfast_spec::Tag) {
        if let Some(intent) = self.intents.get_mut(&number) {
            intent.set_tag(tag);
            self.tags.assign(number, tag);
        }
    }

    /// Notes that a send of an intent carries no tag. The tag that it had is still known as its own.
    pub(crate) fn untag(&mut self, number: IntentNo) {
        if let Some(intent) = self.intents.get_mut(&number) {
            intent.drop_tag();
        }
    }

    /// Compares the tag of an acknowledged order with what a list of ours shows of it.
    pub(crate) fn prove_tag(
        &mut self,
        owner: IntentNo,
        session: Session,
        record: &OrderRecord,
        out: &mut Vec<Effect>,
    ) {
        let Some((intent, tag)) = self.intents.get(&owner).and_then(|it| Some((it, it.tag()?))) else {
            return;
        };
        let (echo, is_news) = self.tags.compare(session, tag, intent.order(), record);
        self.tally.tag_echo(echo);
        if is_news {
            let (name, order_id) = (intent.name().cloned(), record.order_id.clone());
            out.push(Effect::Report(OrderEvent::TagEcho { intent: owner, name, order_id, echo }));
        }
    }

    /// Returns the records of a list that show more or less of a tag than before: a service may add a tag to a record later,
    /// or cease to show tags.
    pub(crate) fn tag_news(&self, source: Source, records: &[OrderRecord]) -> TagNews {
        let mut news = TagNews::default();
        if self.tags.is_unused() {
            return news;
        }
        for record in records.iter().filter(|record| !matcher::is_exit_leg(record)) {
            match self.listed.owner(&record.order_id) {
                None if self.tags.owner(record).is_some() => news.shown.push(record.clone()),
                Some(owner) if source.by_poller && self.is_unlike_its_tag(owner, source.session, record) => {
                    news.unlike.push((owner, record.clone()));
                }
                _ => {}
            }
        }
        news
    }

    fn is_unlike_its_tag(&self, owner: IntentNo, session: Session, record: &OrderRecord) -> bool {
        self.intents.get(&owner).is_some_and(|intent| {
            let is_acknowledged = matches!(intent.finding(), Some(Finding::Acknowledged { .. }));
            let unlike = |tag| self.tags.is_unlike(session, tag, intent.order(), is_acknowledged, record);
            intent.tag().is_some_and(unlike)
        })
    }

    /// Takes in what a list tells of tags.
    pub(crate) fn take_tag_news(&mut self, source: Source, news: TagNews, out: &mut Vec<Effect>) {
        for record in news.shown {
            let Some(fresh) = self.listed.fresh_of(record, source.session) else { continue };
            self.tags.keep(fresh);
        }
        for (owner, record) in news.unlike {
            // If this list is the first with this order, they have been compared by now.
            if !self.is_unlike_its_tag(owner, source.session, &record) {
                continue;
            }
            let Some(intent) = self.intents.get(&owner) else { continue };
            if matches!(intent.finding(), Some(Finding::Acknowledged { .. })) {
                self.prove_tag(owner, source.session, &record, out);
            } else {
                self.tags.miss(source.session, intent.order(), &record);
            }
        }
    }

    /// Returns listed orders without an owner that show the intent's tag, proved or not.
    pub(crate) fn tagged<'a>(&'a self, intent: &'a Intent) -> impl Iterator<Item = &'a Fresh> + 'a {
        let shown = intent.tag().into_iter().flat_map(|tag| self.tags.shown(tag));
        shown.filter(|fresh| {
            self.listed.owner(&fresh.order_id).is_none()
                && !self.listed.is_late(&fresh.order_id)
                && !self.listed.is_ambiguous(&fresh.order_id)
                && intent.could_own(fresh.first_seen)
        })
    }

    /// Returns listed orders like the intent's that pass for strangers' only because they show no tag.
    ///
    /// One list is not enough for that: the next one may show a tag.
    pub(crate) fn untagged_alike<'a>(&'a self, intent: &'a Intent) -> impl Iterator<Item = &'a Fresh> + 'a {
        self.listed.unowned.of(intent.key()).filter(|fresh| {
            intent.could_own(fresh.first_seen)
                && !fresh.late
                && matcher::loose(&fresh.record, intent.order())
                && self.is_excluded_by_tag(intent, fresh)
                && !self.tags.is_strangers(fresh)
        })
    }

    /// True if the tag of a listed order, or the lack of one, says that it is not the intent's. Such an order is
    /// no reason to doubt the intent's absence.
    pub(crate) fn is_excluded_by_tag(&self, intent: &Intent, fresh: &Fresh) -> bool {
        intent.tag().is_some_and(|tag| self.tags.excludes(tag, intent.order(), fresh))
    }

    /// True if a listed order carries another tag than the intent's, so that their likeness proves nothing.
    pub(crate) fn carries_anothers_tag(&self, intent: &Intent, fresh: &Fresh) -> bool {
        match intent.tag() {
            Some(tag) => self.tags.is_anothers(tag, fresh),
            // The intent was sent without a tag. The text that is shown may be its caller's own.
            None => {
                let owner = self.tags.proved_owner(fresh).and_then(|number| self.intents.get(&number));
                let shown = fresh.record.remarks.as_deref().unwrap_or_default().trim();
                owner.is_some_and(|owner| owner.tag().is_some())
                    && !intent.order().form().iter().any(|(_, own)| own.trim().eq_ignore_ascii_case(shown))
            }
        }
    }

    /// True if a listed order of a shared account carries a stranger's tag, and the intent has one of its own.
    pub(crate) fn is_strangers_by_tag(&self, intent: &Intent, fresh: &Fresh) -> bool {
        self.settings.account_mode == AccountMode::Shared
            && intent.tag().is_some()
            && self.tags.is_strangers(fresh)
    }

    /// Returns what the tags in lists say about an intent in doubt.
    pub(crate) fn by_tag(&self, intent: &Intent) -> ByTag {
        let Some(tag) = intent.tag().filter(|_| intent.day() == self.time.day()) else {
            return ByTag::Nothing;
        };
        let shown = self.tagged(intent).filter(|fresh| self.tags.supports(tag, fresh));
        let (mut exact, others): (Vec<_>, Vec<_>) =
            shown.partition(|fresh| matcher::strict(&fresh.record, intent.order()));
        exact.sort_by_key(|fresh| (fresh.first_seen, &fresh.order_id));
        match (exact.first(), others.as_slice()) {
            (None, []) => ByTag::Nothing,
            // Tags have moved from one order to the next: its own order may be the other one.
            (Some(_), []) if self.shows_misplaced_tag(intent) => ByTag::Copied,
            (Some(first), []) => ByTag::Its(first.order_id.clone()),
            (None, [only]) if !self.tags.proves(tag, only) || !self.may_be_changed_to(intent, only) => {
                ByTag::Nothing
            }
            // Its own order seems to show the tag of another one.
            (None, [_]) if self.shows_anothers_tag(intent) => ByTag::Copied,
            (None, [_]) if !self.has_looked(intent) => ByTag::Unclear,
            // Its own order may be listed without its tag, and this one be a copy of it.
            (None, [_]) if self.intent_strict(intent).next().is_some() => ByTag::Copied,
            (None, [only]) => ByTag::Its(only.order_id.clone()),
            _ => ByTag::Copied,
        }
    }

    /// True if tags may yet tell which order is the intent's, before its order would be absent.
    pub(crate) fn may_prove_tag(&self, intent: &Intent) -> bool {
        let may_tell = || intent.session().is_some_and(|session| self.tags.may_tell(session));
        intent.tag().is_some() && !self.has_looked(intent) && may_tell()
    }

    /// True if a listed order may be the intent's after a change: it is not on the other side, and not exactly what another
    /// order of ours asked for.
    fn may_be_changed_to(&self, intent: &Intent, fresh: &Fresh) -> bool {
        let record = &fresh.record;
        let same_side = !matches!(record.side, Some(Code::Known(side)) if side != intent.order().side());
        let asked = |key: &Key| {
            let mut standing = self.live_of(key).chain(self.dead_of(key)).chain(self.refused_of(key));
            standing
                .any(|(_, other)| other.could_own(fresh.first_seen) && matcher::strict(record, other.order()))
        };
        same_side && !Key::of_record(record).is_some_and(|key| asked(&key))
    }

    /// Returns the listed orders that are exactly the intent's but for the tag, each with the order of ours whose tag it is.
    fn with_anothers_tag<'a>(
        &'a self,
        intent: &'a Intent,
    ) -> impl Iterator<Item = (&'a Fresh, IntentNo)> + 'a {
        let alike = self.listed.unowned.strict(intent.key(), intent.order());
        let tagged = alike
            .filter(|fresh| intent.could_own(fresh.first_seen) && self.carries_anothers_tag(intent, fresh));
        tagged.filter_map(|fresh| Some((fresh, self.tags.owner(&fresh.record)?)))
    }

    /// True if a listed order is exactly the intent's but for the tag, which is that of another order of ours.
    fn shows_anothers_tag(&self, intent: &Intent) -> bool {
        self.with_anothers_tag(intent).next().is_some()
    }

    /// The same, and that other order asked for something else.
    fn shows_misplaced_tag(&self, intent: &Intent) -> bool {
        let asked_for_another = |fresh: &Fresh, owner| {
            let owner = self.intents.get(&owner);
            owner.is_some_and(|owner| !matcher::strict(&fresh.record, owner.order()))
        };
        self.with_anothers_tag(intent).any(|(fresh, owner)| asked_for_another(fresh, owner))
    }

    /// True if a listed order like the intent's carries the tag of another one of ours that may still claim it.
    pub(crate) fn may_be_claimed_by_tag(&self, intent: &Intent) -> bool {
        let awaited = |fresh: &Fresh| {
            let owner = self.tags.proved_owner(fresh).and_then(|number| self.intents.get(&number));
            owner.is_some_and(|owner| owner.finding().is_none())
        };
        !self.tags.is_unused() && self.near(intent).any(awaited)
    }

    /// Returns the order of ours whose proved tag a listed one carries, if it is exactly what was asked for.
    pub(crate) fn owner_by_tag(&self, fresh: &Fresh) -> Option<IntentNo> {
        let number = self.tags.proved_owner(fresh)?;
        let intent = self.intents.get(&number)?;
        let is_its = intent.could_own(fresh.first_seen) && matcher::strict(&fresh.record, intent.order());
        is_its.then_some(number)
    }
}
