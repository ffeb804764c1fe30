//! Acknowledged orders that no list shows.

use std::{collections::BTreeMap, time::Duration};

use steadfast_call::Outcome;
use steadfast_dedup::{Event, IntentNo, ListShows, OrderEvent, Session};
use steadfast_spec::{OrderType, Validity};

use super::{history::History, run::Run};

/// How long after the lateness bound the report may come.
pub(super) const TOLD_AFTER: Duration = Duration::from_secs(5);
/// A slower read may be too late for a timely report.
const QUICK: Duration = Duration::from_millis(500);
/// The pause after a read that brought no list.
const LOOKED_AGAIN: Duration = Duration::from_secs(30);

/// One read, from when it was requested.
pub(super) struct Look {
    opened: Duration,
    session: Option<Session>,
    /// When it was over, and whether it brought a list.
    ended: Option<(Duration, bool)>,
}

/// I23: an acknowledged order that no list shows is reported within the lateness bound and five seconds, if lists can
/// be read then.
pub(crate) fn i23_an_unlisted_order_is_told_in_time(run: &Run) -> Result<(), String> {
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
            let at = history.steps[*closed].now;
            let by = at.saturating_add(run.lateness).saturating_add(TOLD_AFTER);
            let in_time = |step: usize| history.steps[step].now <= by;
            let ended_at_once = history.order(attempt.no.intent).is_none_or(|order| {
                order.order_type() == OrderType::Market || order.validity() == Validity::Ioc
            });
            let session = run.session_scope.then_some(attempt.session);
            if end <= by || ended_at_once || !can_be_read(&looks, session, at, by) {
                continue;
            }
            let listed = history.reads.iter().filter(|read| in_time(read.ended)).any(|read| {
                let mut records = read.list.iter().flatten();
                records.any(|record| is_same_id(&record.order_id, order_id))
            });
            let told = || {
                history
                    .reports
                    .iter()
                    .any(|(step, event)| in_time(*step) && is_told(event, attempt.no.intent, order_id))
            };
            if !listed && !told() {
                return Err(format!(
                    "{order_id} was given to {:?}, is in no list, and was not reported",
                    attempt.no
                ));
            }
        }
    }
    Ok(())
}

/// Returns false for a history with unusual time, lists that lose orders, or a ruling by a person.
fn is_ordinary(history: &History<'_>) -> bool {
    let unusual = history.steps.iter().any(|step| {
        matches!(
            step.event,
            Event::Slept(_)
                | Event::MidnightNear(true)
                | Event::Ruled { .. }
                | Event::Known { .. }
                | Event::SessionLost(_)
        )
    });
    let lossy = history.reports.iter().any(|(_, event)| matches!(event, OrderEvent::ListNotMonotone { .. }));
    !unusual && !lossy
}

pub(super) fn looks(history: &History<'_>) -> Vec<Look> {
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
    looks.into_values().collect()
}

/// Returns true if every read between these times, and during the pause before them, was quick and brought a list; if
/// `session` is set, a list of that session.
pub(super) fn can_be_read(looks: &[Look], session: Option<Session>, from: Duration, to: Duration) -> bool {
    let from = from.saturating_sub(LOOKED_AGAIN);
    let near = |look: &&Look| look.opened <= to && look.ended.is_none_or(|(ended, _)| ended >= from);
    looks.iter().filter(near).all(|look| {
        let quick = |(ended, list): (Duration, bool)| list && ended <= look.opened.saturating_add(QUICK);
        let its = look.session.is_some_and(|of| session.is_none_or(|session| session == of));
        its && look.ended.is_some_and(quick)
    })
}

/// Returns true if an event reports that an order's identifier may belong to another order.
pub(super) fn is_told(event: &OrderEvent, given: IntentNo, id: &str) -> bool {
    match event {
        OrderEvent::Conflict { order_id, .. } => order_id == id,
        OrderEvent::AckNotListed { intent, order_id, .. }
        | OrderEvent::AckMismatch { intent, order_id, .. } => *intent == given && order_id == id,
        _ => false,
    }
}

/// Compares identifiers loosely, because lists may spell them in their own way.
pub(super) fn is_same_id(one: &str, other: &str) -> bool {
    let plain = |id: &str| id.trim().trim_start_matches('0').to_ascii_lowercase();
    plain(one) == plain(other)
}
