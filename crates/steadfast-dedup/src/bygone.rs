//! Sessions that are over, and orders that only their lists show.
//!
//! What was told as refused, was given up or is taken for absent is watched for. Where a list shows the orders of one login
//! session, that of the current one never shows what was sent in a session before. So the list of that session is looked at
//! for it, as often as the current one is for others, with the token that it was sent with, as long as that is kept and
//! accepted. When it is not, an order that was told as refused (429), and that no list of its session has lacked when it
//! could not be late any more, is unresolved: nobody will learn more of it.

use std::time::Duration;

use crate::{
    attempt::Attempt,
    event::{Effect, OrderEvent},
    intent::{Finding, Intent},
    policy::OrdersScope,
    registry::{ReadStart, Registry},
    resolution::Reason,
    schedule,
    stamp::{IntentNo, Session},
};

/// When the list of a session that is over was looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnLook {
    last: Option<Duration>,
    /// That one came to nothing.
    failed: bool,
    /// One more is wanted before the account is let go of.
    wanted: bool,
}

impl Registry {
    /// Since when the orders are watched for that were sent in this session.
    fn watched_in(&self, session: Session) -> impl Iterator<Item = Duration> {
        self.watches.iter().filter_map(move |(number, &since)| {
            self.intents.get(number)?.was_sent_in(session).then_some(since)
        })
    }

    /// True if any is.
    pub(crate) fn is_watched_in(&self, session: Session) -> bool {
        self.watched_in(session).next().is_some() && !steadfast_spec::Planted::OwnWatchesForgotten.is_on()
    }

    /// Sessions that are over, and whose lists can be read all the same.
    fn bygone(&self) -> impl Iterator<Item = Session> {
        let readable = self
            .session
            .into_iter()
            .flat_map(|now| self.readable.iter().copied().filter(move |&session| session != now));
        readable.filter(|_| !steadfast_spec::Planted::OwnWatchesForgotten.is_on())
    }

    /// When the next list of a session that is over is looked at for what is watched for, and of which.
    pub(crate) fn next_own_look(&self) -> Option<(Duration, Session)> {
        let next = |session| {
            let look = self.own_looks.get(&session).copied().unwrap_or_default();
            // Until it was over, its lists were read anyway.
            let before = self.book.session(session).and_then(|book| book.complete_at);
            let last = look.last.or(before.map(|at| at.saturating_sub(self.slept)));
            let due = |since: Duration| {
                let late = schedule::late_look(since.saturating_add(self.settings.lateness));
                let watch = schedule::next_watch(since, last, look.failed);
                if last.is_none_or(|last| last < late) { watch.min(late) } else { watch }
            };
            let due = self.watched_in(session).map(due).min()?;
            let due = self.day_end(last).map_or(due, |end| end.min(due));
            // A list that could not be had comes no sooner for its being late.
            let due = match last.filter(|_| look.failed) {
                Some(last) => due.max(schedule::next_try(last)),
                None => due,
            };
            Some((if look.wanted { self.now.max(self.refusals_show()) } else { due }, session))
        };
        self.bygone().filter_map(next).min()
    }

    /// What is watched for in sessions that are over is looked for once more.
    pub(crate) fn want_own_looks(&mut self) {
        let watched: Vec<_> = self.bygone().filter(|&session| self.is_watched_in(session)).collect();
        for session in watched {
            self.own_looks.entry(session).or_default().wanted = true;
        }
    }

    /// True while that is due.
    pub(crate) fn awaits_own_looks(&self) -> bool {
        self.bygone().any(|session| {
            self.own_looks.get(&session).is_some_and(|look| look.wanted) && self.is_watched_in(session)
        })
    }

    /// A read for the list of a session that is over has ended; `looked`: with a list.
    pub(crate) fn end_own_look(&mut self, started: Option<ReadStart>, looked: bool) {
        let tried = match started {
            Some(start) => vec![(start.session, start.at)],
            // What refused it may refuse each of them as fast.
            None => self.bygone().map(|session| (session, self.now)).collect(),
        };
        for (session, at) in tried {
            self.own_looks.insert(session, OwnLook { last: Some(at), failed: !looked, wanted: false });
        }
    }

    /// A list of this session was valid, and was asked for then: what it lacks, and could not be late, was refused indeed.
    pub(crate) fn confirm_refusals(&mut self, session: Session, aging: Duration) {
        let (intents, lateness) = (&self.intents, self.settings.lateness);
        self.unconfirmed.retain(|number| {
            intents.get(number).and_then(Intent::last_refused).is_some_and(|(sent_in, sent)| {
                sent_in != session || aging < sent.aging.saturating_add(lateness)
            })
        });
    }

    /// Nobody will look any more for what was refused: the day ends, or the last look of a shutdown has failed.
    pub(crate) fn tell_unconfirmed(&mut self, out: &mut Vec<Effect>) {
        for number in std::mem::take(&mut self.unconfirmed) {
            self.tell_unconfirmed_one(number, out);
        }
    }

    /// False if there is nothing to tell.
    fn tell_unconfirmed_one(&self, number: IntentNo, out: &mut Vec<Effect>) -> bool {
        let refused = self.intents.get(&number).filter(|intent| {
            // A token that is refused later, too, confirms that it was refused before.
            intent.finding() == Some(&Finding::Refused)
                && !intent.token_refused
                && !steadfast_spec::Planted::UnconfirmedRefusalsBelieved.is_on()
        });
        let Some(intent) = refused else { return false };
        let name = intent.name.clone();
        out.push(Effect::Report(OrderEvent::RefusalUnconfirmed { intent: number, name }));
        true
    }

    /// Takes back the belief in refusals that nobody will ever confirm.
    pub(crate) fn doubt_unconfirmed(&mut self, out: &mut Vec<Effect>) {
        let Some(now) = self.session.filter(|_| !self.unconfirmed.is_empty()) else { return };
        if self.settings.orders_scope != OrdersScope::Session {
            return self.unconfirmed.clear();
        }
        let is_lost = |number: &&IntentNo| {
            let refused = self.intents.get(number).and_then(Intent::last_refused);
            refused.is_none_or(|(session, _)| session != now && !self.readable.contains(&session))
        };
        let lost: Vec<_> = self.unconfirmed.iter().filter(is_lost).copied().collect();
        for number in lost {
            self.unconfirmed.remove(&number);
            if !self.tell_unconfirmed_one(number, out) {
                continue;
            }
            let Some(key) = self.intents.get(&number).map(|intent| intent.key.clone()) else { continue };
            if let Some(book) = self.keys.get_mut(&key) {
                book.finished.remove(&number);
                book.refused.remove(&number);
            }
            self.finished.retain(|&other| other != number);
            self.watches.remove(&number);
            self.refused.insert(number);
            self.doubt_refused(number, out);
            self.finish_unresolved(number, Reason::SessionChanged, out);
            self.resolve(&key, out);
        }
    }
}

impl Intent {
    /// Its last send that was refused, and the session that it was sent in.
    fn last_refused(&self) -> Option<(Session, crate::attempt::Sent)> {
        let mut attempts = self.attempts.iter().rev();
        attempts.find_map(|attempt: &Attempt| Some((attempt.session, attempt.refused()?)))
    }
}
