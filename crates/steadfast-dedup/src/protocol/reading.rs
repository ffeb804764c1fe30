//! Follows a read of the list from its start to its end.

use steadfast_spec::OrderRecord;

use crate::{
    numbers::{ReadNo, Session},
    protocol::{
        doubt::Fault,
        effect::Effect,
        order_protocol::OrderProtocol,
        read_fault::ReadFault,
        reads::{ListWorth, ReadStart},
        wake::Purpose,
    },
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

    /// Notes that a session's list cannot be read any more. It was the only one that could show some orders absent: other
    /// sessions' lists judge them now.
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
            ListWorth::Useless
        };
        let worth = match list {
            Ok(_) if stale => failed(self, Fault::Failed),
            Ok(records) => {
                let taken = read.and_then(|read| read.taken);
                self.take_list(started, taken, records, out)
            }
            Err(ReadFault::Failed) => failed(self, Fault::Failed),
            Err(ReadFault::Forbidden | ReadFault::TooLong | ReadFault::Unreadable) => {
                failed(self, Fault::Unusable)
            }
        };
        let valid = worth == ListWorth::Valid;
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
            self.end_own_look(started, worth.is_current());
        }
        // Late orders may have been sent in any session.
        if read.is_none_or(|read| read.purpose != Purpose::OwnSession) {
            self.reads.note_current(worth);
            if let Some(start) = started.filter(|_| worth.is_current()) {
                self.watches.end_late_looks(start.at);
                self.end_rejections(start.at);
            }
            self.go_on_looking(started, worth, out);
        }
    }

    pub(crate) fn session_of_read(&self, started: Option<ReadStart>) -> Session {
        started.map_or_else(|| self.sessions.current().unwrap_or_default(), |start| start.session)
    }
}
