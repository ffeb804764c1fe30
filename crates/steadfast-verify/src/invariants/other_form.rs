//! Acknowledged orders that lists show with another quantity.

use steadfast_dedup::{Event, OrderEvent};
use steadfast_spec::{Decimal, OrderRecord, OrderRequest};

use super::{
    acknowledged::{self, TOLD_AFTER, is_same_id},
    history::History,
    run::Run,
};

/// I24: an acknowledged order that lists show with another quantity is reported within the lateness bound and five
/// seconds, if lists can be read then: as another order, or as unconfirmed.
pub(crate) fn i24_an_order_of_another_quantity_is_told_in_time(run: &Run) -> Result<(), String> {
    acknowledged::each(run, is_ordinary, |send| {
        let history = send.history;
        let Some(order) = history.order(send.no.intent) else { return Ok(()) };
        let shows_another = |list: &[OrderRecord]| {
            let is_its = |record: &&OrderRecord| is_same_id(&record.order_id, send.order_id);
            let mut its = list.iter().filter(is_its).peekable();
            its.peek().is_some() && its.all(|record| is_of_another_quantity(record, order))
        };
        let mut read = history.reads.iter().filter(|read| read.started.is_some() && read.ended > send.step);
        let Some(shown) = read.find(|read| read.list.as_deref().is_some_and(shows_another)) else {
            return Ok(());
        };
        let late = send.at.saturating_add(run.lateness);
        let by = late.max(history.steps[shown.ended].now).saturating_add(TOLD_AFTER);
        let is_unconfirmed = |event: &OrderEvent| {
            matches!(event, OrderEvent::AckUnconfirmed { intent, order_id, .. }
                if *intent == send.no.intent && order_id == send.order_id)
        };
        if !send.can_be_read(by) || send.is_told(by, is_unconfirmed) {
            return Ok(());
        }
        Err(format!(
            "{} was given to {:?}, is listed with another quantity, and was not reported",
            send.order_id, send.no
        ))
    })
}

/// Returns true for a record that shows the order's instrument and side, and a quantity of another order.
fn is_of_another_quantity(record: &OrderRecord, order: &OrderRequest) -> bool {
    record.sym_id.as_deref() == Some(order.sym_id().as_str())
        && record.side.as_ref().is_some_and(|side| side.is(order.side()))
        && record.qty.is_some_and(|qty| qty != order.qty() && qty != Decimal::default())
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
