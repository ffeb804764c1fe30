//! Invariants about sends and their ends.

use std::time::Duration;

use steadfast_call::Outcome;
use steadfast_dedup::{Event, IntentNo, OrderEvent, Step};

use super::{
    history::{Attempt, History, name_of},
    run::Run,
};

/// I1: no send without its record.
pub(crate) fn i01_nothing_leaves_unrecorded(run: &Run) -> Result<(), String> {
    let mut sent = 0;
    for history in run.histories() {
        for attempt in history.attempts.iter().filter(|attempt| attempt.sent.is_some()) {
            sent += 1;
            if attempt.begun.is_none_or(|begun| Some(begun) > attempt.sent) {
                return Err(format!("{:?} left without having been begun", attempt.no));
            }
        }
    }
    if run.posts.len() > sent {
        return Err(format!("{} posts, {sent} of them recorded", run.posts.len()));
    }
    Ok(())
}

/// I4: an attempt follows an earlier one only if that is void, or absent by a verdict, and the caller waits.
pub(crate) fn i04_a_resend_needs_every_earlier_attempt_dead(run: &Run) -> Result<(), String> {
    for history in run.histories() {
        for attempt in history.attempts.iter().filter(|attempt| attempt.no.index > 0) {
            // The verdict for a resend of an earlier process is in that process's history.
            let Some(sent) = attempt.sent.filter(|&sent| history.restart().is_none_or(|at| sent > at)) else {
                continue;
            };
            for earlier in history.attempts_of(attempt.no.intent).filter(|a| a.no.index < attempt.no.index) {
                if earlier.is_void(sent) {
                    continue;
                }
                let Some((lost, _)) = earlier.lost().filter(|(at, _)| *at < sent) else {
                    return Err(format!("{:?} left while {:?} was open", attempt.no, earlier.no));
                };
                let absent = history.reports.iter().copied().any(|(at, event)| {
                    at > lost
                        && at < sent
                        && matches!(event, OrderEvent::Absent { intent, .. } if *intent == attempt.no.intent)
                });
                if !absent {
                    return Err(format!("{:?} left without a verdict on {:?}", attempt.no, earlier.no));
                }
            }
            if left(&history, attempt.no.intent, sent) {
                return Err(format!("{:?} left without a caller", attempt.no));
            }
        }
    }
    Ok(())
}

/// I13: the same name is the same intent, unless the earlier one left nothing behind.
pub(crate) fn i13_one_name_one_order(run: &Run) -> Result<(), String> {
    for history in run.histories() {
        for (at, step) in history.steps.iter().enumerate() {
            let (Some(name), Event::Opened { intent, .. }) = (name_of(step), &step.event) else { continue };
            let day = history.day_of(at);
            for (before, earlier) in history.steps[..at].iter().enumerate().skip(day) {
                let Event::Opened { intent: other, .. } = &earlier.event else { continue };
                if name_of(earlier) != Some(name) || other == intent {
                    continue;
                }
                let ruled = history.steps[before..at]
                    .iter()
                    .any(|step| matches!(&step.event, Event::Ruled { intent, .. } if intent == other));
                if !ruled && history.attempts_of(*other).any(|attempt| !attempt.is_void(at)) {
                    return Err(format!("{name:?} stands for {other:?} and {intent:?}"));
                }
            }
        }
    }
    Ok(())
}

/// I14: after the caller has left nothing is sent, and doubt still ends.
pub(crate) fn i14_a_caller_that_leaves_stops_resends_only(run: &Run) -> Result<(), String> {
    for history in run.histories() {
        for attempt in &history.attempts {
            let intent = attempt.no.intent;
            if attempt.sent.is_some_and(|sent| left(&history, intent, sent)) {
                return Err(format!("{:?} left after its caller", attempt.no));
            }
            let gone = left(&history, intent, history.steps.len());
            if gone && run.quiet && attempt.lost().is_some() && ends(&history, intent) == 0 {
                return Err(format!("{:?} was given up with its caller", attempt.no));
            }
        }
    }
    Ok(())
}

/// I15: nothing begun before a restart is sent after it, unless a caller of the new process asks for it again. I4
/// covers what may be sent then.
pub(crate) fn i15_a_restart_sends_nothing(run: &Run) -> Result<(), String> {
    for history in run.histories() {
        let Some(restart) = history.restart() else { continue };
        let opened = |intent: IntentNo| {
            history.steps.iter().rposition(
                |step| matches!(&step.event, Event::Opened { intent: other, .. } if *other == intent),
            )
        };
        for attempt in &history.attempts {
            let old = opened(attempt.no.intent).is_some_and(|at| at < restart);
            let asked = |sent| reopened(&history, attempt.no.intent, restart, sent);
            if old && attempt.sent.is_some_and(|sent| sent > restart && !asked(sent)) {
                return Err(format!("{:?} was sent by a restart", attempt.no));
            }
        }
    }
    Ok(())
}

/// I20: every intent that was sent ends once, within the budget, and once more for each contradiction of its end.
pub(crate) fn i20_every_order_ends_once_and_in_time(run: &Run) -> Result<(), String> {
    for history in run.histories() {
        let mut intents: Vec<_> = history.attempts.iter().map(|attempt| attempt.no.intent).collect();
        intents.dedup();
        for intent in intents {
            let standing = history.attempts_of(intent).any(|attempt| !attempt.is_void(usize::MAX));
            let ends = ends(&history, intent);
            let allowed = 1 + history.contradictions(intent).count();
            // An end that was contradicted shortly before the run ended may still be searched for.
            let over = history.steps.last().map_or(Duration::ZERO, |step| step.now);
            let pending = |at: usize| over.saturating_sub(history.steps[at].now) <= run.budget;
            let is_open = ends + 1 == allowed && history.contradictions(intent).max().is_some_and(pending);
            if ends < allowed && run.quiet && standing && !is_open {
                return Err(format!("{intent:?} never ended"));
            }
            if ends > allowed {
                return Err(format!("{intent:?} ended more than once"));
            }
            let lost =
                history.attempts_of(intent).filter_map(|attempt| attempt.lost()).map(|(at, _)| at).max();
            let voided =
                history.attempts_of(intent).filter_map(|attempt| attempt.closed.as_ref()).map(|(at, ..)| *at);
            let (Some(lost), Some(end)) = (lost, end_of(&history, intent)) else { continue };
            // After a contradiction it is searched for again, however long ago it was lost.
            let contradicted = history.contradictions(intent).max();
            let from = lost.max(voided.chain(contradicted).max().unwrap_or(lost)).min(end);
            let took = history.steps[end].now.saturating_sub(history.steps[from].now);
            // An intent that only waits for others of its key may take as long as one of them needs to settle, plus a
            // read under way, which takes at most 30 s.
            let settles = run.settings.gateway_bound().saturating_add(run.settings.lateness_bound());
            // One that was refused bars it too, until a list confirms that.
            let others = history.cohort(intent).filter(|other| other.no.intent != intent);
            let refused = |other: &Attempt| match &other.closed {
                Some((at, Outcome::NotExecuted, _)) => Some(*at),
                _ => None,
            };
            let barred = others.filter_map(|other| other.lost().map(|(at, _)| at).or_else(|| refused(other)));
            let waits = barred.min().is_some_and(|first| first < end);
            let longest = run.budget.saturating_add(if waits { settles } else { Duration::ZERO });
            if took > longest.saturating_add(Duration::from_secs(31)) {
                return Err(format!("{intent:?} took {took:?} to end"));
            }
        }
    }
    Ok(())
}

/// True if the caller of an intent has left before a step, and no other has asked for it since.
fn left(history: &History<'_>, intent: IntentNo, before: usize) -> bool {
    let abandoned = |step: &Step| matches!(&step.event, Event::Abandoned(other) if *other == intent);
    let gone = history.steps[..before].iter().rposition(abandoned);
    gone.is_some_and(|at| !reopened(history, intent, at, before))
}

/// True if a caller asked again for a refused order between two steps.
fn reopened(history: &History<'_>, intent: IntentNo, after: usize, before: usize) -> bool {
    let asked = |step: &Step| matches!(&step.event, Event::Reopened(other) if *other == intent);
    history.steps[after..before].iter().any(asked)
}

/// Returns how often an intent ended.
fn ends(history: &History<'_>, intent: IntentNo) -> usize {
    let acked = history
        .attempts_of(intent)
        .filter(|attempt| matches!(&attempt.closed, Some((_, Outcome::Accepted { order_id: Some(_) }, _))));
    let told = history.reports.iter().copied().filter(|(_, event)| is_end(event, intent));
    acked.count() + told.count()
}

fn end_of(history: &History<'_>, intent: IntentNo) -> Option<usize> {
    let from = history.contradictions(intent).max().unwrap_or(0);
    history.reports.iter().find(|(at, event)| *at >= from && is_end(event, intent)).map(|(at, _)| *at)
}

fn is_end(event: &OrderEvent, intent: IntentNo) -> bool {
    matches!(event, OrderEvent::Recovered { intent: other, .. } | OrderEvent::Unresolved { intent: other, .. }
        if *other == intent)
}
