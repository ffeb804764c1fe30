//! Draws conclusions from a read of the list.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use steadfast_spec::OrderRecord;

use crate::{
    numbers::{IntentNo, LogicalTime, ReadNo, Session},
    protocol::{
        doubt::Fault,
        effect::Effect,
        fidelity::ListFidelity,
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
        read_fault::ReadFault,
        reads::{ReadStart, Taken},
        wake::Purpose,
    },
    settings::policy::AccountMode,
};

impl OrderProtocol {
    pub(crate) fn open_read(&mut self, read: ReadNo, purpose: Purpose) {
        let can_wait = self.can_wait(purpose);
        self.reads.open(read, purpose, can_wait, self.time.day(), self.time.now());
    }

    pub(crate) fn start_read(&mut self, number: ReadNo, session: Session) {
        let (seq, session) = (self.time.tick(), self.scoped(session));
        let start = ReadStart { seq, at: self.time.now(), aging: self.time.aging(), session };
        let Some(purpose) = self.reads.start(number, start) else { return };
        if purpose != Purpose::OwnSession {
            self.sessions.enter(session);
        }
        self.listed.lists.meet(session).ask();
    }

    pub(crate) fn meet(&mut self, session: Session) {
        let session = self.scoped(session);
        self.sessions.enter(session);
        self.listed.lists.meet(session);
    }

    // The lost list was the only one that could show some orders absent. Judge those by other sessions' lists now.
    pub(crate) fn lose(&mut self, session: Session, out: &mut Vec<Effect>) {
        if self.sessions.lose(self.scoped(session)) {
            for key in self.open_keys() {
                self.resolve(&key, out);
            }
        }
    }

    pub(crate) fn end_read(
        &mut self,
        read: ReadNo,
        list: Result<Vec<OrderRecord>, ReadFault>,
        out: &mut Vec<Effect>,
    ) {
        let read = self.reads.end(read);
        let started = read.and_then(|read| read.started);
        // A list asked for on the day before may hold that day's orders, so not even its contents count.
        let stale = read.is_some_and(|read| read.day != self.time.day());
        let failed = |protocol: &mut Self, fault| {
            protocol.note_fault(fault);
            None
        };
        let mut valid = false;
        let looked = match list {
            Ok(_) if stale => failed(self, Fault::Failed),
            Ok(records) => {
                let taken = read.and_then(|read| read.taken);
                self.take_list(started, taken, records, &mut valid, out)
            }
            Err(ReadFault::Failed) => failed(self, Fault::Failed),
            Err(ReadFault::Forbidden | ReadFault::TooLong | ReadFault::Unreadable) => {
                failed(self, Fault::Unusable)
            }
        };
        // The list of a past session may lack orders that were placed since.
        if read.is_some_and(|read| read.purpose != Purpose::OwnSession) {
            self.check_refusals(started, valid, out);
            if let Some(start) = started.filter(|_| valid) {
                self.release(start, out);
            }
        }
        let tried = match started {
            // A read in an earlier session says nothing about this one's list. Nor does one that started too early.
            Some(start) => (Some(start.session) == self.sessions.current()).then_some(start.seq),
            // A read that never left counts as an attempt for all who wait. Space the next one, whatever its purpose:
            // it may be refused just as fast.
            None => {
                self.reads.space(self.time.now());
                Some(self.time.tick())
            }
        };
        self.reads.end_try(tried, self.knows_list(), self.time.now());
        if read.is_some_and(|read| read.purpose == Purpose::OwnSession) {
            self.end_own_look(started, looked == Some(true));
        }
        // Late orders may have been sent in any session.
        if read.is_none_or(|read| read.purpose != Purpose::OwnSession) {
            self.reads.note_shared(looked);
            if let Some(start) = started.filter(|_| looked == Some(true)) {
                self.watches.end_believed(start.at);
                self.end_rejections(start.at);
            }
            self.go_on_looking(started, looked, out);
        }
    }

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

    fn session_of_read(&self, started: Option<ReadStart>) -> Session {
        started.map_or_else(|| self.sessions.current().unwrap_or_default(), |start| start.session)
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
        let (order_ids, _) = self.take_records(Source { session, own: true }, seen, records, out);
        let taken = taken.with_part(!order_ids.is_empty());
        (order_ids, taken)
    }

    /// Takes in a list, or the rest of it; sets `valid` if an order that it lacks counts as missing.
    ///
    /// Returns false if the list may be older than the read, and `None` if it is useless.
    fn take_list(
        &mut self,
        started: Option<ReadStart>,
        taken: Option<Taken>,
        records: Vec<OrderRecord>,
        valid: &mut bool,
        out: &mut Vec<Effect>,
    ) -> Option<bool> {
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
            return None;
        }
        // Without a start on the wire, the list may answer an earlier read. Then only what it holds counts.
        let complete = match started {
            Some(start) => self.check_list(start, session, seen, completed, out),
            None => {
                self.note_fault(Fault::Failed);
                false
            }
        };
        *valid = complete;
        if let Some(start) = started.filter(|_| complete) {
            self.unblock(start);
        }
        if first && complete || taken.news {
            out.push(Effect::Seen { session, order_ids, complete });
        }
        if let Some(start) = started {
            let is_whole = self.listed.lists.session(session).is_none_or(SessionList::is_monotone);
            self.audit(start, session, is_whole, out);
        }
        if let Some(start) = started {
            self.listed.withdrawn.end_recalls(start.seq, start.at);
        }
        // Do this before identifiers lose their owners: there may be no later list that shows them.
        self.report_disputed(out);
        self.judge_mismatches(out);
        self.report_vague(out);
        for key in self.open_keys() {
            self.resolve(&key, out);
        }
        // A list that lacks an old order still shows the new ones.
        Some(complete || self.listed.lists.session(session).is_some_and(|list| !list.is_monotone()))
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
        let (order_ids, confirms) = self.take_records(Source { session, own: false }, seen, records, out);
        if order_ids.is_empty() && !confirms {
            return;
        }
        if !order_ids.is_empty() {
            out.push(Effect::Seen { session, order_ids, complete: false });
        }
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

    fn note_fault(&mut self, fault: Fault) {
        for number in self.open_numbers() {
            if let Some(intent) = self.intents.get_mut(&number) {
                intent.note_fault(fault);
            }
        }
    }

    // An acknowledged order must look like the one that was sent. Otherwise our orders cannot be recognised in lists.
    fn calibrate(&mut self, owner: IntentNo, record: &OrderRecord, source: Source, out: &mut Vec<Effect>) {
        let own = source.own;
        let Some(intent) = self.intents.get(&owner) else { return };
        // A leg of it says nothing, but it may be a leg of another order.
        if matcher::is_exit_leg(record) {
            if own {
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
        if own {
            self.prove_tag(owner, source.session, record, out);
        }
        // If the caller's own list shows it, the next list of ours is compared again.
        let is_another = own && self.note_mismatch(owner, record);
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
