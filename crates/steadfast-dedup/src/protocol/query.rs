use std::sync::Arc;

use steadfast_call::ext;
use steadfast_spec::{OrderRequest, Tag};

use crate::{
    numbers::{AttemptNo, IntentNo, Session, TradingDay},
    protocol::{
        intent::Intent,
        key::Key,
        listed_orders::session_list::SessionList,
        order_event::OrderEvent,
        order_protocol::OrderProtocol,
        phase::{Finding, Phase},
        resolution::{Unresolved, Verdict},
        tally::Tally,
        trace::Step,
    },
};

impl OrderProtocol {
    /// Returns the current trading day.
    pub(crate) fn day(&self) -> TradingDay {
        self.time.day()
    }

    pub(crate) fn is_midnight_near(&self) -> bool {
        self.time.is_midnight_near()
    }

    /// Returns the session that anything was last sent in.
    pub(crate) fn session(&self) -> Option<Session> {
        self.sessions.current()
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Returns its history, if it keeps one.
    pub(crate) fn steps(&self) -> &[Step] {
        self.steps.as_deref().unwrap_or_default()
    }

    /// True if the session's list is unknown, and its read was not asked for yet or is still awaited.
    #[must_use]
    pub fn is_new(&self, session: Session) -> bool {
        let list = self.listed.lists.session(self.scoped(session));
        list.is_none_or(|list| !list.has_baseline() && (!list.is_asked() || self.awaits_baseline()))
    }

    /// True if a send has left and is not answered.
    #[must_use]
    pub fn has_left(&self, attempt: AttemptNo) -> bool {
        let intent = self.intents.get(&attempt.intent);
        intent.and_then(|intent| intent.attempt(attempt.index)).is_some_and(|a| a.in_flight().is_some())
    }

    /// Returns the intent that a caller's name stands for today, and its order.
    ///
    /// The intent may be of the day before while midnight is near, or if it ended without certainty.
    #[must_use]
    pub fn named(&self, name: &ext::IntentId) -> Option<(IntentNo, &Arc<OrderRequest>)> {
        let number = self.intents.holder(name)?;
        let intent = self.intents.get(&number)?;
        // A name of yesterday is free once every clock says that the day is over, unless the order's end is
        // uncertain.
        let stands = self.intents.is_named_on(number, self.time.day()) || self.time.is_midnight_near();
        stands.then(|| (number, intent.order()))
    }

    /// True if no order of the day has this tag or one that begins alike.
    pub(crate) fn is_free(&self, tag: Tag) -> bool {
        self.tags.is_free(tag)
    }

    /// Returns the tag that all sends of an intent carry.
    pub(crate) fn tag_of(&self, intent: IntentNo) -> Option<Tag> {
        self.intents.get(&intent)?.tag()
    }

    /// Returns the name and the order that a caller asked for.
    pub(crate) fn asked(&self, intent: IntentNo) -> Option<(Option<ext::IntentId>, Arc<OrderRequest>)> {
        self.intents.get(&intent).map(|intent| (intent.name().cloned(), intent.order().clone()))
    }

    /// True if lists are of another day, by the service's last date: they say nothing about ours.
    pub(crate) fn are_lists_of_another_day(&self) -> bool {
        self.time.is_another_by_date()
    }

    /// True if a name stands for an order, or stood for one on another day.
    pub(crate) fn has_named(&self, name: &ext::IntentId) -> bool {
        self.intents.holder(name).is_some()
    }

    /// True if a name stood for an order on another day.
    pub(crate) fn was_named_before(&self, name: &ext::IntentId) -> bool {
        let intent = self.intents.holder(name).and_then(|number| self.intents.get(&number));
        intent.is_some_and(|intent| intent.day() != self.time.day())
    }

    /// Returns the id of the order that a name stood for on another day, if it was placed.
    pub(crate) fn placed_before(&self, name: &ext::IntentId) -> Option<&Arc<str>> {
        self.intents.holder(name).and_then(|number| self.intents.get(&number))?.order_id()
    }

    /// True if this process has read a whole list of today in its current session.
    pub(crate) fn knows_list(&self) -> bool {
        let known = self.sessions.current().and_then(|session| self.listed.lists.session(session));
        known.is_some_and(SessionList::has_baseline)
    }

    /// Returns an undecided, unnamed intent for an equal order whose caller is gone.
    #[must_use]
    pub fn orphaned_twin(&self, order: &OrderRequest) -> Option<IntentNo> {
        let live = self.keys.get(&Key::of_order(order))?.live();
        live.iter().copied().find(|number| {
            self.intents.get(number).is_some_and(|intent| {
                intent.name().is_none() && !intent.has_caller() && **intent.order() == *order
            })
        })
    }

    /// If this event resolves an intent that had been given up, returns the intent and its order id.
    ///
    /// It does not if the order may be another's.
    pub(crate) fn found_late<'a>(&self, report: &'a OrderEvent) -> Option<(IntentNo, &'a str)> {
        let (OrderEvent::Recovered { intent, order_id, .. }
        | OrderEvent::LateDuplicate { intent, order_id, kept: None, .. }
        | OrderEvent::RefusedButPlaced { intent, order_id, kept: None, .. }) = report
        else {
            return None;
        };
        // The order id that the caller was told of, or will be told of when the call is repeated.
        let known = self.intents.get(intent).and_then(|intent| intent.order_id());
        known.is_some_and(|known| **known == **order_id).then_some((*intent, order_id))
    }

    /// Returns how an intent stands. An intent that placed nothing may be forgotten and counts as not placed.
    #[must_use]
    pub fn verdict(&self, intent: IntentNo) -> Verdict {
        let Some(intent) = self.intents.get(&intent) else { return Verdict::NotPlaced };
        match intent.phase() {
            Phase::Idle | Phase::Sending | Phase::Doubt | Phase::Refused(_) | Phase::Cleared => {
                Verdict::Pending
            }
            Phase::Granted => Verdict::Resend,
            Phase::Finished(Finding::Acknowledged { order_id }) => {
                Verdict::Acknowledged { order_id: order_id.to_string() }
            }
            Phase::Finished(Finding::Recovered { order_id, status }) => {
                Verdict::Recovered { order_id: order_id.to_string(), status: status.clone() }
            }
            Phase::Finished(Finding::Refused | Finding::Rejected) => Verdict::NotPlaced,
            Phase::Finished(Finding::Unresolved(unresolved)) => Verdict::Unresolved(unresolved.clone()),
        }
    }

    /// True if an intent was refused without having been executed, and its caller was told so.
    #[must_use]
    pub fn is_refused(&self, intent: IntentNo) -> bool {
        let finding = self.intents.get(&intent).and_then(|intent| intent.finding());
        finding == Some(&Finding::Refused)
    }

    /// True if the service refused or rejected an intent, and its caller was told so.
    pub(crate) fn was_told_not_placed(&self, intent: IntentNo) -> bool {
        self.intents.get(&intent).is_some_and(Intent::was_told_not_placed)
    }

    /// True if a caller may take over an intent that was refused without having been executed: its own caller was told
    /// so, or is gone.
    #[must_use]
    pub fn can_reopen(&self, intent: IntentNo) -> bool {
        let is_left = |it: &Intent| matches!(it.phase(), Phase::Refused(_)) && !it.has_caller();
        self.is_refused(intent) || self.intents.get(&intent).is_some_and(is_left)
    }

    /// Returns the status of the refusal (401, 429) that an intent ended with, and whether a list agrees with it.
    #[must_use]
    pub fn refusal(&self, intent: IntentNo) -> Option<(u16, bool)> {
        let found = self.intents.get(&intent).filter(|_| self.is_refused(intent))?;
        Some((if found.token_refused() { 401 } else { 429 }, !self.watches.is_unlisted(intent)))
    }

    /// True if the answer to a send of this intent gave an order id.
    #[must_use]
    pub fn is_acknowledged(&self, intent: IntentNo) -> bool {
        let finding = self.intents.get(&intent).and_then(|intent| intent.finding());
        matches!(finding, Some(Finding::Acknowledged { .. }))
    }

    /// True if an order of this intent may exist.
    #[must_use]
    pub fn is_sent(&self, intent: IntentNo) -> bool {
        self.intents.get(&intent).is_some_and(|intent| intent.first_sent().is_some())
    }

    /// Returns how many intents are being searched for.
    #[must_use]
    pub fn in_doubt(&self) -> usize {
        self.searches.len()
    }

    /// True if an intent is not forgotten.
    pub(crate) fn knows(&self, intent: IntentNo) -> bool {
        self.intents.get(&intent).is_some()
    }

    /// True if a user ruled on how an intent ended.
    pub(crate) fn is_ruled(&self, intent: IntentNo) -> bool {
        self.intents.get(&intent).is_some_and(Intent::is_ruled)
    }

    /// Returns the intents that ended without certainty, and that no user has ruled on.
    pub(crate) fn unresolved(&self) -> impl Iterator<Item = (IntentNo, &Intent, &Unresolved)> {
        self.intents.iter().filter_map(|(number, intent)| match intent.finding() {
            Some(Finding::Unresolved(unresolved)) if !intent.is_ruled() => Some((number, intent, unresolved)),
            _ => None,
        })
    }

    /// True if an order that was sent in this session is being searched for.
    pub(crate) fn is_searched_in(&self, session: Session) -> bool {
        self.open_intents().any(|(_, intent)| intent.session() == Some(session))
    }

    /// True if an order that was sent in this session is in flight or being searched for.
    pub(crate) fn stands_in(&self, session: Session) -> bool {
        self.live_intents().any(|(_, intent)| intent.was_sent_in(session))
    }

    /// Returns how many sends have not been answered.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.live_intents().filter(|(_, intent)| *intent.phase() == Phase::Sending).count()
    }

    /// Returns the identifiers of listed orders that could be an intent's.
    #[must_use]
    pub fn candidates(&self, intent: IntentNo) -> Vec<String> {
        self.intents
            .get(&intent)
            .map_or_else(Vec::new, |intent| self.candidates_among(intent, &self.matches_of(intent)))
    }
}
