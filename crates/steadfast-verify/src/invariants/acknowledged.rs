//! Acknowledged orders, and how soon the layer can have known what lists show of them.

use std::{collections::BTreeMap, time::Duration};

use steadfast_call::Outcome;
use steadfast_dedup::{AttemptNo, Event, ListShows, OrderEvent, ReadNo, Session};

use super::{history::History, run::Run};

/// How long after the lateness bound the report may come.
pub(super) const TOLD_AFTER: Duration = Duration::from_secs(5);
/// A slower read may be too late for a timely report.
const QUICK: Duration = Duration::from_millis(500);
/// The pause after a read that brought no list.
const LOOKED_AGAIN: Duration = Duration::from_secs(30);

/// A send that was answered with an order's identifier.
pub(super) struct Acknowledged<'a> {
    pub(super) history: &'a History<'a>,
    pub(super) no: AttemptNo,
    pub(super) order_id: &'a str,
    /// The answer's step, and its time.
    pub(super) step: usize,
    pub(super) at: Duration,
    end: Duration,
    /// The session whose lists alone show the order, if sessions have lists of their own.
    session: Option<Session>,
    looks: &'a BTreeMap<ReadNo, Look>,
}

/// One read, from when it was requested.
struct Look {
    opened: Duration,
    session: Option<Session>,
    /// When it was over, and whether it brought a list.
    ended: Option<(Duration, bool)>,
}

/// Checks every acknowledged order of the histories that lie within one day and are ordinary, if their lists show
/// everything and may be read every second.
pub(super) fn each(
    run: &Run,
    is_ordinary: impl Fn(&History<'_>) -> bool,
    check: impl Fn(&Acknowledged<'_>) -> Result<(), String>,
) -> Result<(), String> {
    if run.settings.shows() != ListShows::Everything || run.spacing > Duration::from_secs(1) {
        return Ok(());
    }
    for history in run.histories().filter(|history| history.is_one_day() && is_ordinary(history)) {
        let looks = looks(&history);
        let Some(end) = history.steps.last().map(|step| step.now) else { continue };
        for attempt in &history.attempts {
            let Some((closed, Outcome::Accepted { order_id: Some(order_id) }, _)) = &attempt.closed else {
                continue;
            };
            check(&Acknowledged {
                history: &history,
                no: attempt.no,
                order_id,
                step: *closed,
                at: history.steps[*closed].now,
                end,
                session: run.session_scope.then_some(attempt.session),
                looks: &looks,
            })?;
        }
    }
    Ok(())
}

impl Acknowledged<'_> {
    /// True if the run went on after `by`, and every read until then, from the pause before the answer on, was quick and
    /// brought a list that can show the order.
    pub(super) fn can_be_read(&self, by: Duration) -> bool {
        let from = self.at.saturating_sub(LOOKED_AGAIN);
        let near = |look: &&Look| look.opened <= by && look.ended.is_none_or(|(ended, _)| ended >= from);
        self.end > by
            && self.looks.values().filter(near).all(|look| {
                let quick =
                    |(ended, list): (Duration, bool)| list && ended <= look.opened.saturating_add(QUICK);
                let its = look.session.is_some_and(|of| self.session.is_none_or(|session| session == of));
                its && look.ended.is_some_and(quick)
            })
    }

    /// True if a report by then says that the identifier may belong to another order, or one that is `also` wanted.
    pub(super) fn is_told(&self, by: Duration, also: impl Fn(&OrderEvent) -> bool) -> bool {
        let mut reports = self.history.reports.iter().filter(|(step, _)| self.history.steps[*step].now <= by);
        reports.any(|(_, event)| match event {
            OrderEvent::Conflict { order_id, .. } if order_id == self.order_id => true,
            OrderEvent::AckNotListed { intent, order_id, .. }
            | OrderEvent::AckMismatch { intent, order_id, .. }
                if *intent == self.no.intent && order_id == self.order_id =>
            {
                true
            }
            event => also(event),
        })
    }
}

fn looks(history: &History<'_>) -> BTreeMap<ReadNo, Look> {
    let mut looks = BTreeMap::new();
    for step in history.steps {
        match &step.event {
            Event::ReadOpened { read, .. } => {
                looks.insert(*read, Look { opened: step.now, session: None, ended: None });
            }
            Event::ReadStarted { read, session } => {
                looks.entry(*read).and_modify(|look| look.session = Some(*session));
            }
            Event::ReadEnded { read, list } => {
                let ended = Some((step.now, list.is_ok()));
                looks.entry(*read).and_modify(|look| look.ended = ended);
            }
            _ => {}
        }
    }
    looks
}

/// Compares identifiers loosely, because lists may spell them in their own way.
pub(super) fn is_same_id(one: &str, other: &str) -> bool {
    let plain = |id: &str| id.trim().trim_start_matches('0').to_ascii_lowercase();
    plain(one) == plain(other)
}
