//! Acknowledged orders that lists have yet to show.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use crate::{
    numbers::Session,
    protocol::listed_orders::{entry::Acknowledged, lists::Source},
};

/// The acknowledged orders that lists have yet to show.
#[derive(Clone, Debug, Default)]
pub(crate) struct Awaited {
    /// Orders that no list has shown yet: since when, and in which session.
    unlisted: BTreeSet<(Duration, Arc<str>, Session)>,
    /// Orders that no list of their own session has shown, since when.
    missing: BTreeSet<(Session, Duration, Arc<str>)>,
    /// Orders that were reported as unconfirmed, and the listed orders that were named with each.
    reported: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
}

impl Awaited {
    /// Returns orders acknowledged before `end` that no list has shown: since when, which, and in which session.
    pub(crate) fn unlisted_before(&self, end: Duration) -> Vec<(Duration, Arc<str>, Session)> {
        self.unlisted.iter().take_while(|(at, ..)| *at < end).cloned().collect()
    }

    /// Returns the oldest acknowledgement since `start` of an order that no list has shown.
    pub(crate) fn unlisted_from(&self, start: Duration) -> Option<Duration> {
        let (oldest, ..) = self.unlisted.first()?;
        if *oldest >= start {
            // Nearly always, and asked for after each step: a search compares identifiers.
            return Some(*oldest);
        }
        self.unlisted.range((start, Arc::default(), Session::default())..).next().map(|(at, ..)| *at)
    }

    /// Notes that an order is reported as unconfirmed, with the orders that may be it; false if it was before, with all
    /// of them.
    pub(crate) fn note_unconfirmed(&mut self, order_id: &Arc<str>, candidates: &[Arc<str>]) -> bool {
        let is_first = !self.reported.contains_key(order_id);
        let told = self.reported.entry(order_id.clone()).or_default();
        let before = told.len();
        told.extend(candidates.iter().cloned());
        is_first || told.len() > before
    }

    /// Returns the identifiers of orders acknowledged before `end` that no list has shown.
    pub(super) fn order_ids_before(&self, end: Duration) -> impl Iterator<Item = &Arc<str>> {
        self.unlisted.iter().take_while(move |(at, ..)| *at < end).map(|(_, order_id, _)| order_id)
    }

    /// Waits for any list to show an order.
    pub(super) fn await_in_any_list(&mut self, order_id: &Arc<str>, acknowledged: Acknowledged) {
        let Acknowledged { session, at } = acknowledged;
        self.unlisted.insert((at, order_id.clone(), session));
    }

    /// Waits for a list of its own session to show an order.
    pub(super) fn await_in_its_session(&mut self, order_id: &Arc<str>, acknowledged: Acknowledged) {
        let Acknowledged { session, at } = acknowledged;
        self.missing.insert((session, at, order_id.clone()));
    }

    /// Ends the wait for any list.
    pub(super) fn end_in_any_list(&mut self, order_id: &Arc<str>, acknowledged: Acknowledged) {
        let Acknowledged { session, at } = acknowledged;
        self.unlisted.remove(&(at, order_id.clone(), session));
    }

    /// Notes that a list shows an order; `is_first`: no list had shown it before.
    pub(super) fn show(
        &mut self,
        order_id: &Arc<str>,
        acknowledged: Acknowledged,
        source: Source,
        is_first: bool,
    ) {
        let Acknowledged { session, at } = acknowledged;
        if source.by_poller && source.session == session {
            self.missing.remove(&(session, at, order_id.clone()));
        }
        if is_first {
            self.end_in_any_list(order_id, acknowledged);
        }
    }

    pub(super) fn awaits_in_any_list(&self, order_id: &Arc<str>, acknowledged: Acknowledged) -> bool {
        let Acknowledged { session, at } = acknowledged;
        self.unlisted.contains(&(at, order_id.clone(), session))
    }

    /// Returns when the oldest order was acknowledged that no list of this session, its own, has shown.
    pub(super) fn oldest_of(&self, session: Session) -> Option<Duration> {
        let (its, at, _) = self.missing.range((session, Duration::ZERO, Arc::default())..).next()?;
        (*its == session).then_some(*at)
    }

    /// Drops the orders that no list of their session has to show any more.
    pub(super) fn excuse(&mut self, is_excused: impl Fn(&str) -> bool) {
        self.missing.retain(|(_, _, order_id)| !is_excused(order_id));
    }
}
