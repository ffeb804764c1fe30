//! Acknowledged orders that no list shows.

use steadfast_dedup::{Event, OrderEvent};
use steadfast_spec::{OrderType, Validity};

use super::{
    acknowledged::{self, TOLD_AFTER, is_same_id},
    history::History,
    run::Run,
};

/// I23: an acknowledged order that no list shows is reported within the lateness bound and five seconds, if lists can
/// be read then.
pub(crate) fn i23_an_unlisted_order_is_told_in_time(run: &Run) -> Result<(), String> {
    acknowledged::each(run, is_ordinary, |send| {
        let history = send.history;
        let by = send.at.saturating_add(run.lateness).saturating_add(TOLD_AFTER);
        let ended_at_once = history
            .order(send.no.intent)
            .is_none_or(|order| order.order_type() == OrderType::Market || order.validity() == Validity::Ioc);
        if ended_at_once || !send.can_be_read(by) {
            return Ok(());
        }
        let mut listed = history.reads.iter().filter(|read| history.steps[read.ended].now <= by);
        let is_listed = listed.any(|read| {
            let mut records = read.list.iter().flatten();
            records.any(|record| is_same_id(&record.order_id, send.order_id))
        });
        if is_listed || send.is_told(by, |_| false) {
            return Ok(());
        }
        Err(format!("{} was given to {:?}, is in no list, and was not reported", send.order_id, send.no))
    })
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
