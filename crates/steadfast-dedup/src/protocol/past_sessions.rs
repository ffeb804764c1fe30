//! Reads the lists of sessions that are over, for orders that only those show.
//!
//! Orders that were refused, given up or found absent are watched for. Where a list shows one login session's orders,
//! the current list never shows those sent in an earlier session. So that session's list is read, as often as the
//! current one is for others, with the token of that session, while it is kept and accepted. When it no longer is, a
//! refused order (429) is unresolved unless a list of its session has lacked it once it could not be late any more:
//! nothing more can be learnt about it.

use std::time::Duration;

use crate::{
    numbers::Session,
    protocol::{
        listed_orders::session_list::SessionList, order_protocol::OrderProtocol, reads::ReadStart, schedule,
    },
};

impl OrderProtocol {
    /// Returns since when each order sent in this session is watched for.
    fn watched_in(&self, session: Session) -> impl Iterator<Item = Duration> {
        self.watches.iter().filter_map(move |(number, since)| {
            self.intents.get(&number)?.was_sent_in(session).then_some(since)
        })
    }

    /// True if an order sent in this session is watched for.
    pub(crate) fn is_watched_in(&self, session: Session) -> bool {
        self.watched_in(session).next().is_some()
    }

    /// Returns when the next watch of a past session's list is due, and of which session.
    pub(crate) fn next_own_look(&self) -> Option<(Duration, Session)> {
        let next = |session| {
            let look = self.watches.own_look(session);
            // Until the session was over, its lists were read anyway.
            let before = self.listed.lists.session(session).and_then(SessionList::complete_at);
            let last = look.last.or(before.map(|at| at.saturating_sub(self.time.slept())));
            let due = |since: Duration| {
                let late = schedule::late_look(since.saturating_add(self.settings.lateness));
                let watch = schedule::next_watch(since, last, look.failed);
                if last.is_none_or(|last| last < late) { watch.min(late) } else { watch }
            };
            let due = self.watched_in(session).map(due).min()?;
            let due = self.day_end(last).map_or(due, |end| end.min(due));
            // After a failed read, a late order does not make the next one come sooner.
            let due = match last.filter(|_| look.failed) {
                Some(last) => due.max(schedule::next_try(last)),
                None => due,
            };
            Some((if look.wanted { self.time.now().max(self.refusals_show()) } else { due }, session))
        };
        self.sessions.past().filter_map(next).min()
    }

    /// Asks for one more read of each past session with watched orders.
    pub(crate) fn want_own_looks(&mut self) {
        let watched: Vec<_> = self.sessions.past().filter(|&session| self.is_watched_in(session)).collect();
        for session in watched {
            self.watches.want_own_look(session);
        }
    }

    /// True while such a read is due.
    pub(crate) fn awaits_own_looks(&self) -> bool {
        self.sessions
            .past()
            .any(|session| self.watches.own_look(session).wanted && self.is_watched_in(session))
    }

    /// Notes the end of a read of a past session's list; `looked`: it brought a list that is not older than the read.
    pub(crate) fn end_own_look(&mut self, started: Option<ReadStart>, looked: bool) {
        let tried = match started {
            Some(start) => vec![(start.session, start.at)],
            // A refusal of this read may refuse each of them as fast.
            None => self.sessions.past().map(|session| (session, self.time.now())).collect(),
        };
        for (session, at) in tried {
            self.watches.end_own_look(session, at, looked);
        }
    }
}
