//! Invariants about evidence.

use std::collections::BTreeSet;

use steadfast_dedup::{Answer, Effect, Event, OrderEvent};

use super::{
    history::{History, Read, is_like, is_same},
    run::Run,
};

/// I5: an absence cites two reads that could have shown the order. The last was sent after all orders of the kind had
/// settled, and no similar order was listed.
pub(crate) fn i05_absence_cites_two_valid_reads(run: &Run) -> Result<(), String> {
    for history in run.histories() {
        for (at, event) in history.reports.iter().copied() {
            let OrderEvent::Absent { intent, .. } = event else { continue };
            let lost = history
                .attempts_of(*intent)
                .filter_map(|attempt| attempt.lost())
                .filter(|(lost, _)| *lost <= at);
            let Some(lost) = lost.map(|(lost, _)| lost).max() else {
                return Err(format!("{intent:?} is absent and was never lost"));
            };
            let valid = |read: &&Read| {
                read.ended <= at && read.list.is_some() && read.started.is_some_and(|(start, _)| start > lost)
            };
            let starts: Vec<usize> = history
                .reads
                .iter()
                .filter(valid)
                .filter_map(|read| read.started)
                .map(|(start, _)| start)
                .collect();
            if starts.len() < 2 {
                return Err(format!("{intent:?} is absent by {} reads", starts.len()));
            }
            let Some(last) = starts.iter().max() else { continue };
            let asked = history.steps[*last].now;
            for attempt in history.cohort(*intent) {
                let Some((closed, answer)) = attempt.lost().filter(|(closed, _)| *closed <= at) else {
                    continue;
                };
                let closed = history.steps[closed].now;
                // The gateway's own word is a success, a denial, or a documented error. Only such an error leaves the
                // order open to a resend.
                let own_word = match answer {
                    Answer::Denied | Answer::Status(200..=299) => true,
                    Answer::Status(_) => attempt.is_lost_until_absent(),
                    Answer::Ended | Answer::None | Answer::Cut => false,
                };
                let base = if own_word { closed } else { closed.saturating_add(run.gateway_timeout) };
                let stale = attempt.sent.is_some_and(|sent| sent < history.day_of(at));
                if !stale && asked < base.saturating_add(run.lateness) {
                    return Err(format!("{intent:?} is absent before {:?} had settled", attempt.no));
                }
            }
            if let Some(seen) = candidate(&history, *intent, at) {
                return Err(format!("{intent:?} is absent although {seen} is listed"));
            }
        }
    }
    Ok(())
}

/// Returns a listed order that could be the intent's and has no other owner.
fn candidate(history: &History<'_>, intent: steadfast_dedup::IntentNo, at: usize) -> Option<String> {
    let (order, sent) = (history.order(intent)?, history.first_sent(intent, at)?);
    let listed = history.known().filter_map(|order_id| Some((order_id, history.first_seen(order_id, at)?)));
    listed
        .filter_map(|(order_id, (seen, record))| Some((order_id, seen, record?)))
        .filter(|(order_id, seen, record)| {
            is_like(record, order)
                && *seen > sent
                && history.owners(order_id, at).is_empty()
                && !history.is_not_its_by_tag(intent, record, at)
        })
        .find(|(_, _, record)| {
            // A strict match of another intent that is still searched for belongs to that one.
            is_same(record, order)
                || !history.cohort(intent).any(|attempt| {
                    attempt.no.intent != intent
                        && attempt.sent.is_some_and(|sent| sent < at)
                        && history.order(attempt.no.intent).is_some_and(|order| is_same(record, order))
                })
        })
        .map(|(order_id, ..)| order_id.clone())
}

/// I6: an order becomes known once, when a list that holds it is complete.
pub(crate) fn i06_first_seen_is_written_once_at_completion(run: &Run) -> Result<(), String> {
    for history in run.histories() {
        let mut seen = BTreeSet::new();
        for (at, step) in history.steps.iter().enumerate() {
            if matches!(step.event, Event::DayBegan(_)) && history.day_of(at) == at && at > 0 {
                seen.clear();
            }
            for effect in &step.effects {
                let Effect::Seen { order_ids, .. } = effect else { continue };
                if !matches!(
                    step.event,
                    Event::ReadPart { .. } | Event::ReadEnded { list: Ok(_), .. } | Event::CallerList { .. }
                ) {
                    return Err(format!("{order_ids:?} were seen without a list"));
                }
                for order_id in order_ids {
                    let named = history.owners(order_id, at.saturating_sub(1));
                    if !seen.insert(order_id.clone()) || !named.is_empty() && history.is_one_day() {
                        return Err(format!("{order_id} was seen for the first time twice"));
                    }
                }
            }
        }
    }
    Ok(())
}

/// I9: a failed read, or one that was not our own from its start, proves no absence.
pub(crate) fn i09_failed_reads_prove_nothing(run: &Run) -> Result<(), String> {
    for history in run.histories() {
        for (at, event) in history.reports.iter().copied() {
            let OrderEvent::Absent { intent, .. } = event else { continue };
            let read = history.reads.iter().find(|read| read.ended == at);
            if read.is_some_and(|read| read.list.is_none() || read.started.is_none()) {
                return Err(format!("{intent:?} is absent by a read that proves nothing"));
            }
        }
    }
    Ok(())
}

/// I16: the registry's clock is monotonic.
pub(crate) fn i16_time_never_runs_backwards(run: &Run) -> Result<(), String> {
    for history in run.histories() {
        if let Some(pair) = history.steps.windows(2).find(|pair| pair[1].now < pair[0].now) {
            return Err(format!("{:?} after {:?}", pair[1].now, pair[0].now));
        }
    }
    Ok(())
}

/// I17: an absence is proved in the day and in the session of the send.
pub(crate) fn i17_a_new_day_or_session_proves_no_absence(run: &Run) -> Result<(), String> {
    for history in run.histories() {
        for (at, event) in history.reports.iter().copied() {
            let OrderEvent::Absent { intent, .. } = event else { continue };
            let Some(sent) = history.first_sent(*intent, at) else { continue };
            if sent < history.day_of(at) {
                return Err(format!("{intent:?} of another day is absent"));
            }
            let first = history.attempts_of(*intent).find(|attempt| attempt.sent == Some(sent));
            let Some(session) = first.map(|attempt| attempt.session).filter(|_| run.session_scope) else {
                continue;
            };
            let here = history.reads.iter().filter(|read| {
                read.ended <= at
                    && read.list.is_some()
                    && read.started.is_some_and(|(start, of)| start > sent && of == session)
            });
            if here.count() < 2 {
                return Err(format!("{intent:?} is absent in another session"));
            }
        }
    }
    Ok(())
}
