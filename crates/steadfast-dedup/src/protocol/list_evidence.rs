//! Draws conclusions from a list: what it shows is known, and what a valid one lacks is missing.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use steadfast_spec::OrderRecord;

use crate::{
    numbers::{IntentNo, LogicalTime, ReadNo, Session},
    protocol::{
        doubt::Fault,
        effect::Effect,
        fidelity::{ListFidelity, Shows},
        intent::Intent,
        key::Key,
        keys::KeyIntents,
        listed_orders::{
            list_check::ListCheck, lists::Source, session_list::SessionList, taking::News, unowned::Relevance,
        },
        matcher,
        order_event::OrderEvent,
        order_protocol::OrderProtocol,
        phase::Finding,
        reads::{ListWorth, ReadStart, Taken},
    },
    settings::policy::AccountMode,
};

impl OrderProtocol {
    /// Takes in a part of a list. Conclusions wait for the rest of it.
    pub(crate) fn take_part(&mut self, number: ReadNo, records: Vec<OrderRecord>, out: &mut Vec<Effect>) {
        let Some(read) = self.reads.get(number).copied().filter(|read| read.day == self.time.day()) else {
            return;
        };
        let taken = read.taken.unwrap_or_else(|| Taken::none(self.time.tick()));
        let (order_ids, taken) = self.take_some(read.started, taken, records, out);
        if !order_ids.is_empty() {
            let session = self.session_of_read(read.started);
            out.push(Effect::Seen { session, order_ids, complete: false });
        }
        self.reads.take(number, taken);
    }

    fn take_some(
        &mut self,
        started: Option<ReadStart>,
        taken: Taken,
        records: Vec<OrderRecord>,
        out: &mut Vec<Effect>,
    ) -> (Vec<Arc<str>>, Taken) {
        if taken.too_long || !self.listed.has_room_for(&records) {
            return (Vec::new(), taken.overlong());
        }
        let session = self.session_of_read(started);
        let seen = match started {
            Some(start) if !self.rules.seen_at_completion => start.seq,
            _ => taken.completed,
        };
        let (order_ids, _) = self.take_records(Source { session, by_poller: true }, seen, records, out);
        let taken = taken.with_part(!order_ids.is_empty());
        (order_ids, taken)
    }

    /// Takes in a list, or the rest of it; returns how much it proves.
    pub(crate) fn take_list(
        &mut self,
        started: Option<ReadStart>,
        taken: Option<Taken>,
        records: Vec<OrderRecord>,
        out: &mut Vec<Effect>,
    ) -> ListWorth {
        let taken = taken.unwrap_or_else(|| Taken::none(self.time.tick()));
        let completed = taken.completed;
        let session = self.session_of_read(started);
        let seen = match started {
            Some(start) if !self.rules.seen_at_completion => start.seq,
            _ => completed,
        };
        let first = self.listed.lists.session(session).is_none_or(|list| !list.has_baseline());
        let (order_ids, taken) = self.take_some(started, taken, records, out);
        if taken.too_long {
            self.note_fault(Fault::Unusable);
            return ListWorth::Useless;
        }
        // Without a start on the wire, the list may answer an earlier read. Then only what it holds counts.
        let complete = match started {
            Some(start) => self.check_list(start, session, seen, completed, out),
            None => {
                self.note_fault(Fault::Failed);
                false
            }
        };
        if let Some(start) = started.filter(|_| complete) {
            self.unblock(start);
        }
        if first && complete || taken.news {
            out.push(Effect::Seen { session, order_ids, complete });
        }
        let mut shows = None;
        if let Some(start) = started {
            let is_whole = self.listed.lists.session(session).is_none_or(SessionList::is_monotone);
            self.audit(start, session, is_whole, out);
            self.listed.withdrawn.end_recalls(start.seq, start.at);
            // Lists that lose orders are not waited for without end.
            let spared = if is_whole { Duration::ZERO } else { self.settings.gateway_timeout };
            shows = start.at.checked_sub(spared);
        }
        // Do this before identifiers lose their owners: there may be no later list that shows them.
        self.report_disputed(out);
        self.judge_mismatches(shows, out);
        self.report_vague(out);
        for key in self.open_keys() {
            self.resolve(&key, out);
        }
        match self.listed.lists.session(session) {
            _ if complete => ListWorth::Valid,
            Some(list) if !list.is_monotone() => ListWorth::LacksOrders,
            _ => ListWorth::MayBeOld,
        }
    }

    /// Takes in a list that the caller read: what it holds counts, what it lacks does not.
    pub(crate) fn take_caller_list(
        &mut self,
        session: Session,
        records: Vec<OrderRecord>,
        out: &mut Vec<Effect>,
    ) {
        let (seen, session) = (self.time.tick(), self.scoped(session));
        if !self.listed.has_room_for(&records) {
            return;
        }
        let (order_ids, confirms) =
            self.take_records(Source { session, by_poller: false }, seen, records, out);
        if order_ids.is_empty() && !confirms {
            return;
        }
        if !order_ids.is_empty() {
            out.push(Effect::Seen { session, order_ids, complete: false });
        }
        self.judge_mismatches(None, out);
        self.report_vague(out);
        for key in self.open_keys() {
            self.resolve(&key, out);
        }
    }

    /// Takes in records; returns the identifiers that are new, and whether an acknowledged order is shown for the first
    /// time.
    fn take_records(
        &mut self,
        source: Source,
        seen: LogicalTime,
        records: Vec<OrderRecord>,
        out: &mut Vec<Effect>,
    ) -> (Vec<Arc<str>>, bool) {
        if self.may_list_yesterdays() {
            self.listed.yesterday.list(&records);
        }
        let keys = &self.keys;
        let is_known = |key: &Key| keys.get(key).is_some_and(KeyIntents::may_be_listed);
        let mode = self.settings.account_mode;
        // Every claim compares the quantity.
        let intents = &self.intents;
        let standing =
            keys.iter().flat_map(|(_, key)| key.live().iter().chain(key.dead()).chain(key.blockers()));
        let wanted: BTreeSet<_> = standing
            .filter_map(|number| intents.get(number))
            .map(|intent| (intent.key(), intent.order().qty()))
            .collect();
        let tag_news = self.tag_news(source, &records);
        let News { seen, owned, confirms } =
            self.listed.list(source, seen, records, |key, record| match key {
                Some(key) if is_known(key) && record.qty.is_some_and(|qty| wanted.contains(&(key, qty))) => {
                    Relevance::Ours
                }
                Some(key) if is_known(key) => Relevance::Near,
                // No other orders of ours show a spelling of this instrument.
                Some(key) if mode == AccountMode::Exclusive && !is_known(&key.opposite()) => {
                    Relevance::Strange
                }
                None if keys.iter().any(|(_, key)| key.may_be_listed()) => Relevance::Near,
                _ => Relevance::No,
            });
        for (owner, record) in owned {
            self.calibrate(owner, &record, source, out);
        }
        self.take_tag_news(source, tag_news, out);
        (seen, confirms)
    }

    /// Decides whether an order that the list lacks counts as missing; returns true if so.
    fn check_list(
        &mut self,
        start: ReadStart,
        session: Session,
        seen: LogicalTime,
        completed: LogicalTime,
        out: &mut Vec<Effect>,
    ) -> bool {
        match self.listed.check(session, start.seq, start.at, seen, self.settings.lateness) {
            ListCheck::Intact => {}
            ListCheck::Stale => {
                self.tally.fail_list();
                self.suspect_resends(session, out);
                self.note_fault(Fault::Failed);
                return false;
            }
            ListCheck::Gone(order_id) => {
                self.tally.fail_list();
                self.suspect_resends(session, out);
                if self.listed.lists.meet(session).lose_order() {
                    let order_id = order_id.to_string();
                    out.push(Effect::Report(OrderEvent::ListNotMonotone { order_id }));
                }
                self.note_fault(Fault::NotMonotone);
                return false;
            }
        }
        let list = self.listed.lists.meet(session);
        if !list.is_monotone() {
            self.note_fault(Fault::NotMonotone);
            return false;
        }
        list.complete(start.aging);
        self.listed.lists.note_valid(seen);
        self.give_baselines(session, start.aging);
        self.confirm_refusals(session, start.at);
        let evidence = if self.rules.evidence_at_start { start.seq } else { completed };
        for number in self.open_numbers() {
            let Some(intent) = self.intents.get_mut(&number) else { continue };
            intent.count_list(session, evidence);
        }
        true
    }

    /// Lets orders that were sent without a baseline be compared with a list that shows none like them: what a later
    /// list shows is new.
    fn give_baselines(&mut self, session: Session, asked: Duration) {
        let lacks_baseline = |intent: &Intent| {
            !intent.has_baseline()
                && intent.session() == Some(session)
                && self.settings.is_fresh(asked, intent.opened())
        };
        let lacking = self.live_intents().filter(|(_, intent)| lacks_baseline(intent));
        let unlike = lacking
            .filter(|(_, intent)| self.intent_strict(intent).next().is_none() && !self.is_vetoed(intent));
        for number in unlike.map(|(number, _)| number).collect::<Vec<_>>() {
            if let Some(intent) = self.intents.get_mut(&number) {
                intent.give_baseline();
            }
        }
    }

    pub(crate) fn note_fault(&mut self, fault: Fault) {
        for number in self.open_numbers() {
            if let Some(intent) = self.intents.get_mut(&number) {
                intent.note_fault(fault);
            }
        }
    }

    /// Compares a record with what its owner asked for. An acknowledged order must look like the one that was sent, or our
    /// orders cannot be recognised in lists.
    fn calibrate(&mut self, owner: IntentNo, record: &OrderRecord, source: Source, out: &mut Vec<Effect>) {
        let by_poller = source.by_poller;
        let Some(intent) = self.intents.get(&owner) else { return };
        // A leg of it says nothing, but it may be a leg of another order.
        if matcher::is_exit_leg(record) {
            if by_poller {
                self.note_mismatch(owner, record);
            }
            return;
        }
        if record.sym_id.is_some() && matcher::may_be_its_instrument(record, intent.order()) {
            self.listed.recognise(intent.order().sym_id().folded());
        }
        if !matches!(intent.finding(), Some(Finding::Acknowledged { .. })) {
            return;
        }
        let (order, name) = (intent.order().clone(), intent.name().cloned());
        let may_be_another = Shows::of(record, intent).is_some();
        if by_poller {
            self.prove_tag(owner, source.session, record, out);
        }
        // If the caller's own list shows it, the next list of ours is compared again.
        let is_another = by_poller && self.note_mismatch(owner, record);
        if !by_poller && may_be_another {
            self.listed.await_ours(&record.order_id);
        }
        if matcher::strict(record, &order) {
            return self.fidelity.recognise();
        }
        self.listed.dispute(record, self.sessions.current().unwrap_or_default());
        let found = if matcher::may_be_its_instrument(record, &order) {
            ListFidelity::Failed
        } else {
            ListFidelity::Unlike
        };
        // Each step is reported once, unless this order is reported anyway.
        if self.fidelity.worsen(found) && !is_another {
            let order_id = record.order_id.clone();
            out.push(Effect::Report(OrderEvent::Uncalibrated { intent: owner, name, order_id }));
        }
    }
}
