//! Invariants about ownership.

use std::collections::{BTreeMap, BTreeSet};

use steadfast_dedup::{Event, IntentNo, OrderEvent, Unresolved};

use super::{
    history::{History, is_same},
    run::Run,
};

/// I2: an order has one owner, or its second one was reported: as a conflict, or because no list had shown the order to
/// the first owner for so long that its answer was no longer believed. A further exception is a refused order that a
/// list shows exactly, if the owner by an answer asked for another one and that owner's order appears nowhere: it may
/// have been changed.
pub(crate) fn i02_one_owner_per_order(run: &Run) -> Result<(), String> {
    for history in run.histories().filter(History::is_one_day) {
        for order_id in history.known() {
            let owners = history.owners(order_id, usize::MAX);
            let conflict = history.reports.iter().copied().any(|(_, event)| match event {
                OrderEvent::Conflict { order_id: id, .. }
                | OrderEvent::AckNotListed { order_id: id, .. }
                | OrderEvent::AckMismatch { order_id: id, .. }
                | OrderEvent::Uncalibrated { order_id: id, .. } => id == order_id,
                OrderEvent::RefusedButPlaced { intent, order_id: id, .. } => {
                    id == order_id && shows_only(&history, *intent, &owners, order_id)
                }
                _ => false,
            });
            if owners.len() > 1 && !conflict {
                return Err(format!("{order_id} belongs to {owners:?}"));
            }
        }
    }
    Ok(())
}

/// Returns true if an order is listed exactly as one of its owners asked for it and as no other owner did, while no
/// order is listed that another owner asked for and lacks.
fn shows_only(history: &History<'_>, owner: IntentNo, owners: &[IntentNo], order_id: &str) -> bool {
    let shown = |id: &str| history.first_seen(id, usize::MAX).and_then(|(_, record)| record);
    let is_its = |intent: IntentNo, id: &str| {
        shown(id).zip(history.order(intent)).is_some_and(|(record, order)| is_same(record, order))
    };
    let is_left_over = |id: &String, other| is_its(other, id) && history.owners(id, usize::MAX).is_empty();
    let others = || owners.iter().copied().filter(|&other| other != owner);
    is_its(owner, order_id)
        && others().all(|other| !is_its(other, order_id))
        && others().all(|other| !history.known().any(|id| is_left_over(id, other)))
}

/// I3: there are never more orders than were asked for, except those reported as excess.
pub(crate) fn i03_no_more_orders_than_intents(run: &Run) -> Result<(), String> {
    let ours = run.orders.iter().filter(|order| order.owner != "foreign");
    let mut placed: BTreeMap<&str, usize> = BTreeMap::new();
    for order in ours {
        *placed.entry(&order.owner).or_default() += 1;
    }
    let asked: BTreeSet<&str> = run.posts.iter().map(String::as_str).collect();
    let flagged: BTreeSet<String> = run.histories().flat_map(|history| flags(&history)).collect();
    let total: usize = placed.values().sum();
    // Twins are interchangeable, so the number is checked; orders that can be attributed are.
    let excess = total.saturating_sub(asked.len());
    if excess > flagged.len() {
        let ids: Vec<_> = run.orders.iter().map(|order| &order.id).collect();
        return Err(format!("{total} orders {ids:?} for {} intents, flagged {flagged:?}", asked.len()));
    }
    match placed.iter().find(|(owner, _)| !asked.contains(**owner)) {
        Some((owner, _)) => Err(format!("{owner} was placed and never sent")),
        None => Ok(()),
    }
}

/// I7: a claimed order matches exactly, appeared after the send, is the oldest of its kind, and cannot be named by an
/// outstanding answer.
pub(crate) fn i07_a_claim_is_strict_oldest_and_undisputed(run: &Run) -> Result<(), String> {
    for history in run.histories() {
        for (at, event) in history.reports.iter().copied() {
            let OrderEvent::Recovered { intent, order_id, .. } = event else { continue };
            // An earlier process has claimed it, and the list of that claim is lost.
            if matches!(history.steps[at].event, Event::Found { .. }) {
                continue;
            }
            let (Some(order), Some(sent)) = (history.order(*intent), history.first_left(*intent, at)) else {
                return Err(format!("{order_id} was claimed for {intent:?}, which was not sent"));
            };
            let Some((seen, Some(record))) = history.first_seen(order_id, at) else {
                return Err(format!("{order_id} was claimed and never listed"));
            };
            if seen > sent && history.is_its_by_tag(*intent, record, at) {
                continue;
            }
            if !history.shown(order_id, at).any(|record| is_same(record, order)) {
                return Err(format!("{order_id} is not what {intent:?} asked for"));
            }
            if seen <= sent {
                return Err(format!("{order_id} was there before {intent:?} was sent"));
            }
            let awaited = history.cohort(*intent).find(|attempt| {
                attempt.no.intent != *intent
                    && attempt.sent.is_some_and(|sent| sent < seen)
                    && attempt.closed.as_ref().is_none_or(|(closed, ..)| *closed > at)
            });
            if let Some(attempt) = awaited {
                return Err(format!(
                    "{order_id} was claimed while {:?} could still be told of it",
                    attempt.no
                ));
            }
            // Its own answer had named it, before lists lacked it for a while.
            if history.owners(order_id, at.saturating_sub(1)).contains(intent) {
                continue;
            }
            let older = history.known().find(|other| {
                *other != order_id
                    && history.first_seen(other, at).is_some_and(|(first, record)| {
                        let is_its = |record| {
                            is_same(record, order) && !history.is_not_its_by_tag(*intent, record, at)
                        };
                        first > sent && first < seen && record.is_some_and(is_its)
                    })
                    && history.owners(other, at).is_empty()
            });
            if let Some(older) = older {
                return Err(format!("{intent:?} took {order_id} and left the older {older}"));
            }
        }
    }
    Ok(())
}

/// I8: after a claim nothing else happens to the intent, unless an answer contradicts it.
pub(crate) fn i08_a_claim_is_never_revoked(run: &Run) -> Result<(), String> {
    for history in run.histories() {
        for (at, event) in history.reports.iter().copied() {
            let OrderEvent::Recovered { intent, .. } = event else { continue };
            let after = history.reports.iter().copied().find(|(later, event)| {
                *later > at
                    && matches!(event,
                        OrderEvent::Recovered { intent: other, .. }
                        | OrderEvent::Absent { intent: other, .. }
                        | OrderEvent::Unresolved { intent: other, .. } if other == intent)
            });
            let sent = history.attempts_of(*intent).any(|attempt| attempt.sent.is_some_and(|sent| sent > at));
            let contradicted = history.contradictions(*intent).any(|later| later > at);
            if sent || after.is_some() && !contradicted {
                return Err(format!("{intent:?} was found and then {after:?}, sent: {sent}"));
            }
        }
    }
    Ok(())
}

/// I10: in an exclusive account every listed order of ours has an owner, or was named to a caller or flagged.
pub(crate) fn i10_every_order_is_accounted_for(run: &Run) -> Result<(), String> {
    if !run.exclusive || !run.quiet {
        return Ok(());
    }
    for history in run.histories().filter(History::is_one_day) {
        let flagged = flags(&history);
        let candidates: Vec<_> = history
            .reports
            .iter()
            .copied()
            .filter_map(|(_, event)| match event {
                OrderEvent::Unresolved { unresolved, .. } => Some(&unresolved.candidates),
                OrderEvent::AckUnconfirmed { candidates, .. } => Some(candidates),
                _ => None,
            })
            .collect();
        // Where there are more candidates than are named, any listed order may be one of them.
        if candidates.iter().any(|named| named.len() == Unresolved::MOST_CANDIDATES) {
            continue;
        }
        let named: BTreeSet<&String> = candidates.into_iter().flatten().collect();
        for order_id in history.known() {
            let Some((seen, Some(record))) = history.first_seen(order_id, usize::MAX) else { continue };
            let asked = history.attempts.iter().any(|attempt| {
                let order = history.order(attempt.no.intent);
                let sent = history.first_sent(attempt.no.intent, usize::MAX);
                order.is_some_and(|order| is_same(record, order)) && sent.is_some_and(|sent| sent < seen)
            });
            let told = !history.owners(order_id, usize::MAX).is_empty()
                || flagged.contains(order_id)
                || named.contains(order_id);
            if asked && !told {
                return Err(format!("{order_id} has no owner and was not reported"));
            }
        }
    }
    Ok(())
}

/// I11: each excess order is reported once, and once more after a conflict, which makes its owner uncertain again.
pub(crate) fn i11_what_is_too_much_is_told_once(run: &Run) -> Result<(), String> {
    for history in run.histories().filter(History::is_one_day) {
        let mut told = BTreeSet::new();
        for (_, event) in history.reports.iter().copied() {
            match event {
                OrderEvent::LateDuplicate { order_id, .. }
                | OrderEvent::RefusedButPlaced { order_id, .. }
                | OrderEvent::Excess { order_id, .. } => {
                    told.insert(order_id).then_some(()).ok_or(format!("{order_id} was flagged twice"))?;
                }
                OrderEvent::Conflict { order_id, .. } => {
                    told.remove(order_id);
                }
                _ => {}
            }
        }
    }
    Ok(())
}

fn flags(history: &History<'_>) -> BTreeSet<String> {
    let flags = history.reports.iter().copied().filter_map(|(_, event)| match event {
        OrderEvent::LateDuplicate { order_id, .. }
        | OrderEvent::RefusedButPlaced { order_id, .. }
        | OrderEvent::Excess { order_id, .. } => Some(order_id.clone()),
        _ => None,
    });
    flags.collect()
}
