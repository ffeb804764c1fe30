use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use steadfast_spec::{Code, OrderRecord, OrderRequest, OrderStatus, SymId};

use crate::{
    numbers::{IntentNo, LogicalTime, Session},
    protocol::{
        copies::{Copies, Doubled},
        crowd::{Crowds, EntryNo},
        fresh::Fresh,
        key::Key,
        matcher,
        session_list::SessionList,
    },
};

/// Every order that was listed or acknowledged on the day.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListedOrders {
    entries: BTreeMap<Arc<str>, Entry>,
    sessions: BTreeMap<Session, SessionList>,
    /// Identifiers that were named to an intent, by their folded spelling; without those that are folded already.
    named: BTreeMap<Box<str>, Arc<str>>,
    /// Folded identifiers that today's answers gave to orders sent before the day began. Today's lists may hold those
    /// orders, or others with the same identifiers.
    overnight: BTreeSet<Box<str>>,
    /// Acknowledged orders that no list has shown yet: since when, and in which session.
    unlisted: BTreeSet<(Duration, Arc<str>, Session)>,
    /// A list has shown an order that had ended.
    ended: bool,
    /// Folded identifiers of our orders of the day before.
    yesterdays: BTreeSet<Box<str>>,
    /// Orders that were acknowledged on the day before, and that no list of that day has shown or contradicted.
    unshown_yesterday: Vec<IntentNo>,
    /// The position from which the first valid list of the day counts.
    first_list: Option<LogicalTime>,
    /// When the latest list was taken in, a caller's included.
    taken_in: LogicalTime,
    /// Orders without an owner that an intent could still own, by key.
    fresh: BTreeMap<Key, Vec<Fresh>>,
    /// The same, for records that do not show their key.
    vague: Vec<Fresh>,
    /// Orders for which neither had room.
    crowds: Crowds,
    /// Acknowledged orders that no list of their own session has shown, since when.
    missing: BTreeSet<(Session, Duration, Arc<str>)>,
    /// Identifiers of answers that are withdrawn only because no list shows them, by the intent that got them.
    unshown: BTreeMap<IntentNo, Arc<str>>,
    /// The latest orders without an owner on an instrument that none of ours has. It may be ours under another name.
    strange: VecDeque<Fresh>,
    /// When the latest of those without room there was seen.
    strange_before: LogicalTime,
    /// The latest acknowledged orders that lists show with other fields than were ordered: another intent's, or
    /// changed.
    disputed: VecDeque<Fresh>,
    /// When the latest of those without room there was seen.
    disputed_before: LogicalTime,
    /// Acknowledged orders that were reported as unconfirmed, and the listed orders that were named with each.
    unconfirmed: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// One identifier was listed for two orders.
    doubled: Doubled,
    /// Folded instruments under whose names lists have shown orders of ours.
    recognised: BTreeSet<SymId>,
    /// Identifiers that were just taken from the intents whose answers named them. The next list shows these orders
    /// as new; they may have been there before others of the key.
    recalled: Vec<Recalled>,
}

/// An order that lost its owner, until a list shows what it is.
#[derive(Clone, Debug)]
struct Recalled {
    order_id: Arc<str>,
    key: Key,
    first_seen: LogicalTime,
    /// When it was taken back, as a position.
    since: LogicalTime,
    /// From when on a list that lacks it counts.
    until: Duration,
}

/// How many orders of other instruments are kept: they only have to exist, and to be reported.
const STRANGE: usize = 100;

/// How many acknowledged orders with other fields are kept. Where lists show all orders so, more of them do not
/// matter.
const DISPUTED: usize = 1_000;

/// How many orders without an owner are kept that can only veto an absence, for each key and without one.
const NEAR: usize = 100;

/// How many are kept for each key in total.
const KEPT: usize = 256;

/// How many identifiers are kept in a day. A longer list is no evidence; real accounts place less than half as many
/// orders.
pub(crate) const IDS: usize = 200_000;

/// How a listed order without an owner relates to our orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// It could be one of ours, as it is.
    Ours,
    /// It could be one of ours after a change.
    Near,
    /// It could be one of ours if the list spells instruments in a way of its own.
    Strange,
    /// It is a stranger's.
    No,
}

#[derive(Clone, Debug)]
struct Entry {
    number: EntryNo,
    /// When a list that held it was complete, or its acknowledgement arrived; set once.
    first_seen: LogicalTime,
    owner: Option<IntentNo>,
    /// The sessions that list it, since when, and the latest list that did.
    listed: Vec<Listed>,
    acknowledged: Option<(Session, Duration)>,
    /// The list of ours whose record was compared with the owning intent's order; position 0 once that is over.
    compared: Option<LogicalTime>,
    /// Which of its legs were listed, one bit each; none if only its identifier is known.
    legs: u16,
    copies: Copies,
    /// A list has shown it, perhaps in an earlier run or under another spelling.
    shown: bool,
    /// Answers gave it to more than one intent, or to one for which no list shows it. Answers that name it are not
    /// believed.
    contested: bool,
    /// The intent that got it from an answer which was withdrawn.
    told: Option<IntentNo>,
    /// When the first list was read that should have shown it after its acknowledgement and did not.
    missed: Option<Duration>,
    /// As in [`Fresh`], which may be dropped meanwhile.
    flagged: bool,
    late: bool,
    /// Whether it has an event of its own, and was not only named as a candidate.
    reported: bool,
}

impl Entry {
    fn new(number: EntryNo, seen: LogicalTime) -> Self {
        Self {
            number,
            first_seen: seen,
            owner: None,
            listed: Vec::new(),
            acknowledged: None,
            compared: None,
            legs: 0,
            copies: Copies::default(),
            shown: false,
            contested: false,
            told: None,
            missed: None,
            flagged: false,
            reported: false,
            late: false,
        }
    }

    /// Notes that a list of a session, read by the poller, held it.
    fn list(&mut self, its: &mut SessionList, session: Session, seen: LogicalTime) {
        its.begin(seen);
        match self.listed.iter_mut().find(|listed| listed.session == session) {
            // Repeated in the same list.
            Some(listed) if listed.last == seen => return,
            Some(listed) => listed.last = seen,
            None => {
                self.listed.push(Listed { session, first: seen, last: seen });
                its.count_first();
            }
        }
        its.count_held();
    }

    /// True if no list has shown this leg of the order yet: legs may share an identifier.
    fn shows_another_leg(&mut self, record: &OrderRecord) -> bool {
        let leg = 1 << matcher::leg(record);
        let new = self.legs & leg == 0;
        self.legs |= leg;
        new
    }
}

/// How a list became known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) session: Session,
    /// A complete read by the poller: a later list of the session must hold at least the same.
    pub(crate) own: bool,
}

/// The news in a list.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Orders seen for the first time.
    pub(crate) seen: Vec<Arc<str>>,
    /// Acknowledged orders whose record is seen for the first time.
    pub(crate) owned: Vec<(IntentNo, OrderRecord)>,
}

#[derive(Clone, Copy, Debug)]
struct Listed {
    session: Session,
    first: LogicalTime,
    last: LogicalTime,
}

/// The result of comparing a list with what it should hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListCheck {
    Intact,
    /// An order acknowledged long enough ago is not there yet: this list is stale.
    Stale,
    /// An order that was there is gone: no list of this session proves an absence.
    Gone(Arc<str>),
}

/// How an order stands that was acknowledged, and that no list has shown or contradicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unconfirmed {
    /// Lists are read until one does.
    Awaited,
    /// No list can: its session's lists are gone or lose orders, or they may not show an order that has ended.
    GivenUp,
}

/// The result of taking in an identifier that the service gave to an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claimed {
    Clean,
    /// Another intent owns it, it was there before the send, or answers that name it are not believed.
    Conflict,
}

impl ListedOrders {
    /// Forgets the day that is over, except the identifiers of our orders.
    pub(crate) fn begin_day(&mut self) {
        let owned = self.entries.iter().filter(|(_, entry)| entry.owner.is_some());
        let yesterdays = owned.clone().map(|(id, _)| folded(id).into()).collect();
        let unshown = owned.filter(|(id, _)| self.unconfirmed(id).is_some());
        let unshown_yesterday = unshown.filter_map(|(_, entry)| entry.owner).collect();
        *self = Self { yesterdays, unshown_yesterday, ..Self::default() };
    }

    /// Returns the orders that were acknowledged on the day before, and that no list of that day has shown or
    /// contradicted.
    pub(crate) fn unshown_yesterday(&self) -> impl Iterator<Item = IntentNo> {
        self.unshown_yesterday.iter().copied()
    }

    /// True if an identifier belonged to one of our orders on the day before.
    pub(crate) fn was_owned_yesterday(&self, order_id: &str) -> bool {
        self.yesterdays.contains(&*folded(order_id))
    }

    /// Notes yesterday's orders of ours in a list that may still be yesterday's.
    pub(crate) fn list_overnight(&mut self, records: &[OrderRecord]) {
        let listed = records.iter().map(|record| folded(&record.order_id));
        let ours = listed.filter(|id| self.yesterdays.contains(&**id)).map(|id| id.into());
        self.overnight.extend(ours);
    }

    /// Returns what the lists of a session have shown, if the session is known.
    pub(crate) fn session(&self, session: Session) -> Option<&SessionList> {
        self.sessions.get(&session)
    }

    /// Returns the same, for a session that is known from now on.
    pub(crate) fn meet(&mut self, session: Session) -> &mut SessionList {
        self.sessions.entry(session).or_default()
    }

    /// Notes that a list which counts from this position is valid.
    pub(crate) fn note_valid(&mut self, seen: LogicalTime) {
        self.first_list.get_or_insert(seen);
    }

    /// True if no valid list of the day came before the one that showed an order first.
    pub(crate) fn is_of_the_first_list(&self, fresh: &Fresh) -> bool {
        self.first_list.is_none_or(|first| fresh.first_seen <= first)
    }

    /// True if a list was taken in after this position, a caller's included.
    pub(crate) fn has_list_since(&self, position: LogicalTime) -> bool {
        self.taken_in > position
    }

    /// Takes in a list; `keep` classifies orders without an owner.
    ///
    /// A repeated identifier counts once for each leg of the order, and makes no earlier order absent.
    pub(crate) fn list(
        &mut self,
        source: Source,
        seen: LogicalTime,
        records: Vec<OrderRecord>,
        mut keep: impl FnMut(Option<&Key>, &OrderRecord) -> Keep,
    ) -> News {
        let mut news = News::default();
        self.taken_in = seen;
        let mut its = source.own.then(|| self.sessions.remove(&source.session).unwrap_or_default());
        if let Some(its) = &mut its {
            its.begin(seen);
        }
        for record in records {
            let order_id: Arc<str> = match self.entries.get_key_value(record.order_id.as_str()) {
                Some((known, _)) => known.clone(),
                None => {
                    if let Some(spelled) = self.spelled_otherwise(&record.order_id) {
                        self.stop_auditing(&spelled);
                    }
                    record.order_id.as_str().into()
                }
            };
            let mut new = false;
            let number = self.next_number();
            let entry = self.entries.entry(order_id.clone()).or_insert_with(|| {
                new = true;
                Entry::new(number, seen)
            });
            self.doubled.note(&mut entry.copies, &record, seen);
            if let Some(its) = &mut its {
                entry.list(its, source.session, seen);
                if let Some((session, at)) =
                    entry.acknowledged.filter(|(session, _)| *session == source.session)
                {
                    self.missing.remove(&(session, at, order_id.clone()));
                }
            }
            if !std::mem::replace(&mut entry.shown, true)
                && let Some((session, at)) = entry.acknowledged
            {
                self.unlisted.remove(&(at, order_id.clone(), session));
            }
            self.ended |= matches!(record.status, Some(Code::Known(status)) if status != OrderStatus::Open);
            if new {
                news.seen.push(order_id.clone());
            }
            if let Some(owner) = entry.owner {
                // A list may hold it more than once, by its legs.
                let compared = entry.compared.is_some_and(|list| list != seen);
                if !compared && !matcher::is_exit_leg(&record) {
                    entry.compared = entry.compared.or(source.own.then_some(seen));
                    news.owned.push((owner, record));
                }
                continue;
            }
            self.recalled.retain(|recalled| recalled.order_id != order_id);
            if !entry.shows_another_leg(&record) {
                continue;
            }
            let key = Key::of_record(&record);
            let kept = keep(key.as_ref(), &record);
            if matches!(kept, Keep::Ours | Keep::Near) {
                let on_shelf =
                    key.as_ref().map_or(self.vague.len(), |key| self.fresh.get(key).map_or(0, Vec::len));
                let room = if kept == Keep::Ours && key.is_some() { KEPT } else { NEAR };
                if on_shelf >= room {
                    if matcher::is_exit_leg(&record) {
                        continue;
                    }
                    let first_seen = entry.first_seen;
                    // The next list may find more room.
                    entry.legs &= !(1 << matcher::leg(&record));
                    self.crowds.add(key, first_seen, entry.number);
                    continue;
                }
                self.crowds.remove(&key, entry.first_seen, entry.number);
            }
            if kept != Keep::No {
                let (first_seen, flagged, late) = (entry.first_seen, entry.flagged, entry.late);
                self.end_dispute(&order_id);
                let fresh = Fresh {
                    order_id,
                    first_seen,
                    record: Arc::new(record),
                    session: source.session,
                    flagged,
                    late,
                };
                match key {
                    _ if kept == Keep::Strange => self.add_strange(fresh),
                    Some(key) => self.fresh.entry(key).or_default().push(fresh),
                    None => self.vague.push(fresh),
                }
            }
        }
        if let Some(its) = its {
            self.sessions.insert(source.session, its);
        }
        news
    }

    /// True unless these records exceed the number of identifiers up to which a list is evidence.
    pub(crate) fn has_room_for(&self, records: &[OrderRecord]) -> bool {
        let known = self.entries.len();
        known + records.len() <= IDS || {
            let new = |record: &&OrderRecord| !self.entries.contains_key(record.order_id.as_str());
            known + records.iter().filter(new).count() <= IDS
        }
    }

    /// True if more orders than are kept could belong to a send at `sent`; with `seen`, only those seen before it.
    pub(crate) fn is_crowded(&self, key: &Key, sent: LogicalTime, seen: Option<LogicalTime>) -> bool {
        self.crowds.has(key, sent, seen)
    }

    fn add_strange(&mut self, fresh: Fresh) {
        if matcher::is_exit_leg(&fresh.record) {
            return;
        }
        if self.strange.len() >= STRANGE
            && let Some(oldest) = self.strange.pop_front()
        {
            self.strange_before = self.strange_before.max(oldest.first_seen);
        }
        self.strange.push_back(fresh);
    }

    /// True if an order sent at `sent` may be listed under the identifier of another one, beside that one.
    pub(crate) fn may_be_doubled(&self, order: &OrderRequest, sent: LogicalTime) -> bool {
        self.doubled.may_hide(order, sent)
    }

    /// Returns orders without an owner on instruments that none of ours has, and whether dropped ones were seen after
    /// `sent`.
    pub(crate) fn strange(&self, sent: LogicalTime) -> (impl Iterator<Item = &Fresh>, bool) {
        (self.strange.iter().filter(move |fresh| fresh.first_seen > sent), self.strange_before > sent)
    }

    /// Notes that a list shows an acknowledged order with other fields than were ordered.
    pub(crate) fn dispute(&mut self, record: &OrderRecord, session: Session) {
        let Some((order_id, entry)) = self.entries.get_key_value(record.order_id.as_str()) else { return };
        if self.disputed.iter().any(|fresh| fresh.order_id == *order_id) {
            return;
        }
        let fresh = Fresh {
            order_id: order_id.clone(),
            first_seen: entry.first_seen,
            record: Arc::new(record.clone()),
            session,
            // It may have been reported before an answer gave it to an intent.
            flagged: entry.flagged,
            late: false,
        };
        if self.disputed.len() >= DISPUTED
            && let Some(oldest) = self.disputed.pop_front()
        {
            self.disputed_before = self.disputed_before.max(oldest.first_seen);
        }
        self.disputed.push_back(fresh);
    }

    /// Returns acknowledged orders with other fields, and whether dropped ones were seen after `sent`.
    pub(crate) fn disputed(&self, sent: LogicalTime) -> (impl Iterator<Item = &Fresh>, bool) {
        (self.disputed.iter().filter(move |fresh| fresh.first_seen > sent), self.disputed_before > sent)
    }

    /// Drops a disputed order: without an owner, it is kept with the others once a list shows it.
    fn end_dispute(&mut self, order_id: &str) {
        self.disputed.retain(|fresh| &*fresh.order_id != order_id);
    }

    /// Returns all disputed orders that are kept.
    pub(crate) fn disputes(&self) -> impl Iterator<Item = &Fresh> {
        self.disputed.iter()
    }

    /// Returns those that were not reported as another intent's.
    pub(crate) fn unreported_disputes(&self) -> impl Iterator<Item = &Fresh> {
        self.disputes().filter(|fresh| !fresh.flagged)
    }

    pub(crate) fn report_dispute(&mut self, order_id: &str) {
        let disputed = self.disputed.iter_mut().filter(|fresh| &*fresh.order_id == order_id);
        disputed.for_each(Fresh::flag);
    }

    /// Notes that a list has shown an order of ours under its instrument's name.
    pub(crate) fn recognise(&mut self, instrument: SymId) {
        self.recognised.insert(instrument);
    }

    /// True if lists use our name for this instrument.
    pub(crate) fn recognises(&self, instrument: &SymId) -> bool {
        self.recognised.contains(instrument)
    }

    /// Takes in an order that a list had shown in an earlier run of the process.
    pub(crate) fn know(&mut self, source: Source, seen: LogicalTime, order_id: Arc<str>) {
        let number = self.next_number();
        let entry = self.entries.entry(order_id).or_insert_with(|| Entry::new(number, seen));
        entry.shown = true;
        if source.own {
            entry.list(self.sessions.entry(source.session).or_default(), source.session, seen);
        }
    }

    /// Gives an order to an intent on a user's word or that of the journal.
    pub(crate) fn adopt(&mut self, order_id: &Arc<str>, owner: IntentNo, seen: LogicalTime) {
        self.take_fresh(order_id);
        self.name(order_id);
        let number = self.next_number();
        let entry = self.entries.entry(order_id.clone()).or_insert_with(|| Entry::new(number, seen));
        entry.owner.get_or_insert(owner);
    }

    fn next_number(&self) -> EntryNo {
        EntryNo(self.entries.len())
    }

    fn name(&mut self, order_id: &Arc<str>) {
        let folded = folded(order_id);
        if *folded != **order_id {
            self.named.entry(folded.into()).or_insert_with(|| order_id.clone());
        }
    }

    /// Returns the order that an answer named with another spelling of this identifier.
    fn spelled_otherwise(&self, order_id: &str) -> Option<Arc<str>> {
        let folded = folded(order_id);
        let same = self.entries.get_key_value(&*folded).map(|(known, _)| known);
        same.filter(|known| &***known != order_id).or_else(|| self.named.get(&*folded)).cloned()
    }

    /// Notes that a list shows an acknowledged order, in any spelling.
    fn stop_auditing(&mut self, order_id: &Arc<str>) {
        if let Some(entry) = self.entries.get_mut(order_id)
            && let Some((session, at)) = entry.acknowledged
        {
            entry.shown = true;
            self.unlisted.remove(&(at, order_id.clone(), session));
        }
    }

    /// True if an order may be one that an intent owns already, under another spelling of its identifier.
    pub(crate) fn is_respelled(&self, order_id: &str) -> bool {
        let folded = folded(order_id);
        let is_owned = |id: &str| id != order_id && self.owner(id).is_some();
        is_owned(&folded) || self.named.get(&*folded).is_some_and(|named| is_owned(named))
    }

    /// True if a listed order without an owner may be one that an answer gave to one of our orders.
    pub(crate) fn is_ambiguous(&self, order_id: &str) -> bool {
        self.is_respelled(order_id) || self.overnight.contains(&*folded(order_id))
    }

    /// Notes that an answer gave an order to an intent of the day before.
    pub(crate) fn acknowledge_overnight(&mut self, order_id: &str) {
        self.overnight.insert(folded(order_id).into());
    }

    /// Returns when a list or an answer first named an order.
    pub(crate) fn first_seen(&self, order_id: &str) -> Option<LogicalTime> {
        Some(self.entries.get(order_id)?.first_seen)
    }

    /// Returns the intent that owns an order.
    pub(crate) fn owner(&self, order_id: &str) -> Option<IntentNo> {
        self.entries.get(order_id)?.owner
    }

    /// Compares the list that was just taken in with what it should hold.
    pub(crate) fn check(
        &self,
        session: Session,
        started: LogicalTime,
        started_at: Duration,
        seen: LogicalTime,
        lateness: Duration,
    ) -> ListCheck {
        // Younger acknowledgements prove nothing: lists lag.
        let old = |(acknowledged_in, at): (Session, Duration)| {
            acknowledged_in == session && at.saturating_add(lateness) < started_at
        };
        // A list with every order that its session has shown lacks nothing. Only search the others.
        let whole = self.sessions.get(&session).is_some_and(|its| its.is_whole(seen));
        for (order_id, entry) in (!whole).then_some(&self.entries).into_iter().flatten() {
            let listed = entry.listed.iter().find(|listed| listed.session == session);
            if listed.is_some_and(|listed| listed.last >= seen) {
                continue;
            }
            // Only lists that were complete before this read left are a lower bound for it.
            if listed.is_some_and(|listed| listed.first < started) {
                return ListCheck::Gone(order_id.clone());
            }
        }
        // Withdrawn identifiers count too: a list that hides an order looks the same.
        let mut missing = self.missing.range((session, Duration::ZERO, Arc::default())..);
        let lacks_some = missing.next().is_some_and(|(told_in, at, _)| old((*told_in, *at)));
        if lacks_some { ListCheck::Stale } else { ListCheck::Intact }
    }

    /// True if an answer gave the order to this intent and was withdrawn.
    pub(crate) fn was_told(&self, order_id: &str, number: IntentNo) -> bool {
        self.entries.get(order_id).is_some_and(|entry| entry.told == Some(number))
    }

    /// Notes a user's word that an intent's order is not the one its answer named: no list has to show that one.
    pub(crate) fn excuse(&mut self, number: IntentNo) {
        self.unshown.remove(&number);
        let entries = &self.entries;
        self.missing.retain(|(_, _, id)| entries.get(id).is_none_or(|entry| entry.told != Some(number)));
    }

    /// Returns orders without an owner that could be of this key.
    pub(crate) fn fresh(&self, key: &Key) -> impl Iterator<Item = &Fresh> {
        self.fresh.get(key).into_iter().flatten().chain(&self.vague)
    }

    /// Returns orders without an owner that match this order in all fields they show.
    pub(crate) fn strict<'a>(
        &'a self,
        key: &Key,
        order: &'a OrderRequest,
    ) -> impl Iterator<Item = &'a Fresh> + 'a {
        self.fresh.get(key).into_iter().flatten().filter(move |fresh| matcher::strict(&fresh.record, order))
    }

    /// Gives an order to an intent that found it in the list.
    pub(crate) fn claim(&mut self, order_id: &str, owner: IntentNo) -> Option<Fresh> {
        let entry = self.entries.get_mut(order_id)?;
        debug_assert!(entry.owner.is_none(), "a claim is never revoked");
        entry.owner = Some(owner);
        self.unshown.retain(|&number, id| number != owner && **id != *order_id);
        let fresh = self.take_fresh(order_id)?;
        self.name(&fresh.order_id);
        Some(fresh)
    }

    /// Gives an order to the intent whose answer named it.
    pub(crate) fn acknowledge(
        &mut self,
        order_id: &Arc<str>,
        owner: IntentNo,
        sent: LogicalTime,
        session: Session,
        seen: LogicalTime,
        at: Duration,
    ) -> Claimed {
        let number = self.next_number();
        let entry = self.entries.entry(order_id.clone()).or_insert_with(|| Entry::new(number, seen));
        let others = entry.owner.is_some_and(|other| other != owner);
        if others || entry.contested || entry.first_seen < sent {
            return Claimed::Conflict;
        }
        entry.owner = Some(owner);
        let (session, at) = *entry.acknowledged.get_or_insert((session, at));
        if !entry.shown {
            self.unlisted.insert((at, order_id.clone(), session));
        }
        if !entry.listed.iter().any(|listed| listed.session == session) {
            self.missing.insert((session, at, order_id.clone()));
        }
        self.take_fresh(order_id);
        self.name(order_id);
        Claimed::Clean
    }

    /// Withdraws all answers that name this order; returns the intent that owned it by one.
    ///
    /// The next list that shows the order shows it as new. An intent that has claimed it from a list since keeps it.
    pub(crate) fn contest(&mut self, order_id: &str) -> Option<IntentNo> {
        let entry = self.entries.get_mut(order_id)?;
        if std::mem::replace(&mut entry.contested, true) {
            self.unshown.retain(|_, id| **id != *order_id);
            return None;
        }
        let owner = entry.owner.take();
        if owner.is_some() {
            (entry.compared, entry.legs, entry.told) = (None, 0, owner);
        }
        self.stop_awaiting(order_id);
        owner
    }

    /// Does the same where the only objection is that no list shows it: if one does after all, its owner gets it
    /// back.
    pub(crate) fn contest_unshown(&mut self, order_id: &Arc<str>) {
        if let Some(owner) = self.contest(order_id) {
            self.unshown.insert(owner, order_id.clone());
        }
    }

    /// Returns the identifier that an answer gave to an intent and that is believed again once a list shows it.
    pub(crate) fn unshown(&self, owner: IntentNo) -> Option<&Arc<str>> {
        self.unshown.get(&owner)
    }

    pub(crate) fn has_unshown(&self) -> bool {
        !self.unshown.is_empty()
    }

    /// Waits for a list to show the order again. A list that lacks it counts if it starts after `since` and past the bound.
    pub(crate) fn recall(&mut self, order_id: &Arc<str>, key: &Key, since: LogicalTime, lateness: Duration) {
        let Some(entry) = self.entries.get(order_id).filter(|entry| entry.owner.is_none()) else { return };
        let until = entry.acknowledged.map_or(Duration::ZERO, |(_, at)| at.saturating_add(lateness));
        let (order_id, key, first_seen) = (order_id.clone(), key.clone(), entry.first_seen);
        self.recalled.push(Recalled { order_id, key, first_seen, since, until });
    }

    /// Ends that wait after a list that started here and should have shown the orders.
    pub(crate) fn end_recalls(&mut self, started: LogicalTime, started_at: Duration) {
        self.recalled.retain(|recalled| started <= recalled.since || started_at < recalled.until);
    }

    /// True if a send at `sent` may own an order that was taken back and was there before `seen`.
    pub(crate) fn awaits_recalled(&self, key: &Key, sent: LogicalTime, seen: LogicalTime) -> bool {
        let mut its = self.recalled.iter().filter(|recalled| recalled.key == *key);
        its.any(|recalled| sent < recalled.first_seen && recalled.first_seen < seen)
    }

    /// Ends the audit of an acknowledged order. A list that lacks it still proves no absence.
    pub(crate) fn stop_awaiting(&mut self, order_id: &str) {
        if let Some((order_id, entry)) = self.entries.get_key_value(order_id)
            && let Some((session, at)) = entry.acknowledged
        {
            self.unlisted.remove(&(at, order_id.clone(), session));
        }
    }

    /// True if lists of a session have shown an order that was acknowledged in another one.
    pub(crate) fn shows_some_of(&self, told_in: Session, session: Session) -> bool {
        self.entries.values().any(|entry| {
            entry.acknowledged.is_some_and(|(its, _)| its == told_in)
                && entry.listed.iter().any(|listed| listed.session == session)
        })
    }

    /// Returns acknowledged orders from before `end` that no list has shown: since when, which, and in which session.
    pub(crate) fn unlisted_before(&self, end: Duration) -> Vec<(Duration, Arc<str>, Session)> {
        self.unlisted.iter().take_while(|(at, ..)| *at < end).cloned().collect()
    }

    /// Returns the oldest acknowledgement since `start` of an order that no list has shown.
    pub(crate) fn unlisted_from(&self, start: Duration) -> Option<Duration> {
        self.unlisted.range((start, Arc::default(), Session::default())..).next().map(|(at, ..)| *at)
    }

    /// Returns how an order stands that was acknowledged, if no list has shown or contradicted it.
    pub(crate) fn unconfirmed(&self, order_id: &str) -> Option<Unconfirmed> {
        let (order_id, entry) = self.entries.get_key_value(order_id)?;
        let (session, at) = entry.acknowledged.filter(|_| !entry.shown && !entry.contested)?;
        let is_awaited = self.unlisted.contains(&(at, order_id.clone(), session));
        Some(if is_awaited { Unconfirmed::Awaited } else { Unconfirmed::GivenUp })
    }

    /// Notes that the list asked for at `at` lacks an order; returns when the first such list was asked for.
    pub(crate) fn miss(&mut self, order_id: &str, at: Duration) -> Duration {
        self.entries.get_mut(order_id).map_or(at, |entry| *entry.missed.get_or_insert(at))
    }

    /// Notes that an acknowledged order is reported as unconfirmed, with the orders that may be it; false if it was
    /// before, with all of them.
    pub(crate) fn note_unconfirmed(&mut self, order_id: &Arc<str>, candidates: &[Arc<str>]) -> bool {
        let is_first = !self.unconfirmed.contains_key(order_id);
        let told = self.unconfirmed.entry(order_id.clone()).or_default();
        let before = told.len();
        told.extend(candidates.iter().cloned());
        is_first || told.len() > before
    }

    /// Returns when such lists were asked for, for orders acknowledged before `end`.
    pub(crate) fn missed_before(&self, end: Duration) -> impl Iterator<Item = Duration> {
        let old = self.unlisted.iter().take_while(move |(at, ..)| *at < end);
        old.filter_map(|(_, order_id, _)| self.entries.get(order_id)?.missed)
    }

    /// Notes that a list has shown the acknowledged order: other records under its identifier are its legs.
    pub(crate) fn end_comparison(&mut self, order_id: &str) {
        if let Some(entry) = self.entries.get_mut(order_id) {
            entry.compared = Some(LogicalTime::default());
        }
    }

    pub(crate) fn has_compared(&self, order_id: &str) -> bool {
        self.entries.get(order_id).is_some_and(|entry| entry.compared == Some(LogicalTime::default()))
    }

    /// True if a list has shown an order that had ended.
    pub(crate) fn shows_ended(&self) -> bool {
        self.ended
    }

    /// Marks orders as reported candidates.
    pub(crate) fn flag_all(&mut self, order_ids: &BTreeSet<Arc<str>>) {
        for fresh in self.fresh.values_mut().flatten().chain(&mut self.vague) {
            if order_ids.contains(&fresh.order_id) {
                fresh.flag();
            }
        }
        for order_id in order_ids {
            if let Some(entry) = self.entries.get_mut(order_id) {
                entry.flagged = true;
            }
        }
    }

    /// Lets candidates be reported: the order that they may have been is resolved.
    ///
    /// The next list shows those again that were dropped meanwhile.
    pub(crate) fn unflag_all(&mut self, candidates: &BTreeSet<Arc<str>>) {
        let reported = |id: &Arc<str>| self.entries.get(id).is_some_and(|entry| entry.reported);
        let order_ids: BTreeSet<_> = candidates.iter().filter(|id| !reported(id)).cloned().collect();
        let mut dropped = order_ids.clone();
        for fresh in self.fresh.values_mut().flatten().chain(&mut self.vague) {
            if order_ids.contains(&fresh.order_id) && !fresh.late {
                fresh.unflag();
            }
            dropped.remove(&fresh.order_id);
        }
        for order_id in &order_ids {
            let entry = self.entries.get_mut(order_id);
            if let Some(entry) = entry.filter(|entry| entry.owner.is_none() && !entry.late) {
                entry.flagged = false;
                if dropped.contains(order_id) {
                    entry.legs = 0;
                }
            }
        }
    }

    /// Marks an order as reported by an event of its own.
    pub(crate) fn flag(&mut self, order_id: &str) {
        self.mark(order_id, Fresh::flag);
        if let Some(entry) = self.entries.get_mut(order_id) {
            (entry.flagged, entry.reported) = (true, true);
        }
    }

    /// Marks an order as reported, as that of a send taken for dead.
    pub(crate) fn flag_late(&mut self, order_id: &str) {
        self.mark(order_id, Fresh::flag_late);
        if let Some(entry) = self.entries.get_mut(order_id) {
            (entry.flagged, entry.late) = (true, true);
        }
    }

    /// Lets the next list show dropped records without an owner again: an intent needs them now.
    pub(crate) fn show_again(&mut self) {
        let kept = self.fresh.values().flatten().chain(&self.vague).chain(&self.strange);
        let held: BTreeSet<Arc<str>> = kept.map(|fresh| fresh.order_id.clone()).collect();
        for (_, entry) in
            self.entries.iter_mut().filter(|(id, entry)| entry.owner.is_none() && !held.contains(*id))
        {
            entry.legs = 0;
        }
    }

    fn mark(&mut self, order_id: &str, set: impl Fn(&mut Fresh)) {
        let all = self.fresh.values_mut().flatten().chain(&mut self.vague);
        all.filter(|fresh| &*fresh.order_id == order_id).for_each(set);
    }

    /// Drops the records of a key that no intent in flight or in doubt can own any more.
    pub(crate) fn prune(&mut self, key: &Key, needed: impl Fn(&Fresh) -> bool) {
        if let Some(fresh) = self.fresh.get_mut(key) {
            fresh.retain(&needed);
            if fresh.is_empty() {
                self.fresh.remove(key);
            }
        }
    }

    /// Drops the note of orders that are too many where no intent in flight or in doubt can own one of them.
    pub(crate) fn prune_crowd(&mut self, key: Option<&Key>, needed: impl Fn(LogicalTime) -> bool) {
        self.crowds.prune(key, needed);
    }

    /// Drops the records without a key that no intent in flight or in doubt can own any more.
    pub(crate) fn prune_vague(&mut self, needed: impl Fn(&Fresh) -> bool) {
        self.vague.retain(needed);
    }

    /// Returns orders without an owner whose records do not show their key.
    pub(crate) fn vague(&self) -> impl Iterator<Item = &Fresh> {
        self.vague.iter()
    }

    pub(crate) fn has_vague(&self) -> bool {
        !self.vague.is_empty()
    }

    pub(crate) fn fresh_keys(&self) -> Vec<Key> {
        self.fresh.keys().cloned().collect()
    }

    /// Returns when an order was first seen, its owner, and whether it can still be claimed.
    #[cfg(test)]
    pub(crate) fn known(&self, order_id: &str) -> (LogicalTime, Option<IntentNo>, bool) {
        let fresh = self.fresh.values().flatten().any(|fresh| &*fresh.order_id == order_id);
        self.entries.get(order_id).map_or((LogicalTime(0), None, false), |e| (e.first_seen, e.owner, fresh))
    }

    /// Returns the session whose list showed an order first, while it can still be claimed.
    #[cfg(test)]
    pub(crate) fn shown_by(&self, order_id: &str) -> Option<Session> {
        self.fresh.values().flatten().find(|fresh| &*fresh.order_id == order_id).map(|fresh| fresh.session)
    }

    fn take_fresh(&mut self, order_id: &str) -> Option<Fresh> {
        self.end_dispute(order_id);
        let mut taken = None;
        let entry = self.entries.get(order_id)?;
        self.crowds.own(entry.first_seen, entry.number);
        // An order that no list has shown is in none of these.
        if entry.legs == 0 {
            return None;
        }
        // All of its legs go with it.
        for list in self.fresh.values_mut().chain([&mut self.vague]) {
            list.retain_mut(|fresh| {
                let other = &*fresh.order_id != order_id;
                if !other {
                    taken.get_or_insert_with(|| fresh.clone());
                }
                other
            });
        }
        self.fresh.retain(|_, list| !list.is_empty());
        self.strange.retain(|fresh| &*fresh.order_id != order_id);
        taken
    }
}

/// Returns an identifier without what a service may lose when it converts it: leading zeros, spaces around it,
/// capitals.
fn folded(order_id: &str) -> Cow<'_, str> {
    let text = order_id.trim();
    if text.bytes().all(|b| b.is_ascii_digit()) {
        text.trim_start_matches('0').into()
    } else if text.bytes().any(|b| b.is_ascii_uppercase()) {
        text.to_ascii_lowercase().into()
    } else {
        text.into()
    }
}
