//! Acknowledged orders that lists show with another quantity.

use std::time::Duration;

use steadfast_call::Outcome;
use steadfast_dedup::{Event, IntentNo, ListShows, OrderEvent};
use steadfast_spec::{Decimal, OrderRecord, OrderRequest};

use super::{
    history::History,
    run::Run,
    unlisted::{TOLD_AFTER, can_be_read, is_same_id, is_told, looks},
};

/// I24: an acknowledged order that lists show with another quantity is reported within the lateness bound and five
/// seconds, if lists can be read then: as another order, or as unconfirmed.
pub(crate) fn i24_an_order_of_another_quantity_is_told_in_time(run: &Run) -> Result<(), String> {
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
            let Some(order) = history.order(attempt.no.intent) else { continue };
            let shows_another = |step: usize, list: &[OrderRecord]| {
                let mut its = list.iter().filter(|record| is_same_id(&record.order_id, order_id)).peekable();
                step > *closed
                    && its.peek().is_some()
                    && its.all(|record| is_of_another_quantity(record, order))
            };
            let shown = history.reads.iter().find(|read| {
                read.started.is_some()
                    && read.list.as_deref().is_some_and(|list| shows_another(read.ended, list))
            });
            let Some(shown) = shown.map(|read| history.steps[read.ended].now) else { continue };
            let at = history.steps[*closed].now;
            let by = at.saturating_add(run.lateness).max(shown).saturating_add(TOLD_AFTER);
            let session = run.session_scope.then_some(attempt.session);
            let is_reported = || {
                let mut reports = history.reports.iter().filter(|(step, _)| history.steps[*step].now <= by);
                reports.any(|(_, event)| is_doubted(event, attempt.no.intent, order_id))
            };
            if end > by && can_be_read(&looks, session, at, by) && !is_reported() {
                return Err(format!(
                    "{order_id} was given to {:?}, is listed with another quantity, and was not reported",
                    attempt.no
                ));
            }
        }
    }
    Ok(())
}

/// Returns true for a record that shows the order's instrument and side, and a quantity of another order.
fn is_of_another_quantity(record: &OrderRecord, order: &OrderRequest) -> bool {
    record.sym_id.as_deref() == Some(order.sym_id().as_str())
        && record.side.as_ref().is_some_and(|side| side.is(order.side()))
        && record.qty.is_some_and(|qty| qty != order.qty() && qty != Decimal::default())
}

/// Returns true if an event says that an order may not be the one that its answer named.
fn is_doubted(event: &OrderEvent, given: IntentNo, id: &str) -> bool {
    match event {
        OrderEvent::AckUnconfirmed { intent, order_id, .. } => *intent == given && order_id == id,
        event => is_told(event, given, id),
    }
}

/// Returns false for a history with unusual time, changed orders, or a ruling by a person.
fn is_ordinary(history: &History<'_>) -> bool {
    !history.steps.iter().any(|step| {
        matches!(
            step.event,
            Event::Slept(_)
                | Event::MidnightNear(true)
                | Event::Ruled { .. }
                | Event::SessionLost(_)
                | Event::Changed
        )
    })
}
