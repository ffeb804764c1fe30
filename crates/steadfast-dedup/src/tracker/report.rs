use crate::protocol::order_event::OrderEvent;

/// Writes an event to the log.
pub(crate) fn trace(account: &str, event: &OrderEvent) {
    match event {
        OrderEvent::Recovered { intent, order_id, .. } => {
            tracing::info!(account, intent = intent.0, order_id, "order in doubt recovered");
        }
        OrderEvent::Absent { intent, .. } => {
            tracing::info!(account, intent = intent.0, "order in doubt absent");
        }
        OrderEvent::Unresolved { intent, unresolved, .. } => {
            tracing::warn!(account, intent = intent.0, reason = %unresolved.reason, "order unresolved");
        }
        OrderEvent::LateDuplicate { intent, order_id, kept, .. } => {
            tracing::error!(account, intent = intent.0, order_id, ?kept, "order appeared late");
        }
        OrderEvent::RefusedButPlaced { intent, order_id, kept, .. } => {
            tracing::error!(
                account,
                intent = intent.0,
                order_id,
                ?kept,
                "order refused and placed all the same"
            );
        }
        OrderEvent::RefusalUnconfirmed { intent, .. } => {
            tracing::error!(account, intent = intent.0, "refusal of an order that no list has confirmed");
        }
        OrderEvent::AckUnconfirmed { intent, order_id, candidates, .. } => {
            tracing::error!(
                account,
                intent = intent.0,
                order_id,
                ?candidates,
                "acknowledged order that no list has confirmed"
            );
        }
        OrderEvent::PlacedUnheard { intent, order_id, .. } => {
            tracing::warn!(account, intent = intent.0, order_id, "order placed whose call was dropped");
        }
        OrderEvent::MayBeDoubled { intent, kept, .. } => {
            tracing::error!(
                account,
                intent = intent.0,
                ?kept,
                "order sent again by lists that prove less now"
            );
        }
        OrderEvent::Excess { intent, order_id } => {
            tracing::error!(account, intent = intent.0, order_id, "more orders than were asked for");
        }
        OrderEvent::Conflict { intent, other, order_id, .. } => {
            let other = other.map(|other| other.0);
            tracing::error!(account, intent = intent.0, other, order_id, "order id contradicts the books");
        }
        OrderEvent::AckNotListed { intent, order_id, .. } => {
            tracing::error!(account, intent = intent.0, order_id, "acknowledged order is in no list");
        }
        OrderEvent::ListNotMonotone { order_id } => {
            tracing::warn!(account, order_id, "order list lost an order: no resends in this session");
        }
        OrderEvent::AckMismatch { intent, order_id, .. } => {
            tracing::error!(account, intent = intent.0, order_id, "order id is listed as another order");
        }
        OrderEvent::Uncalibrated { intent, order_id, .. } => {
            tracing::warn!(
                account,
                intent = intent.0,
                order_id,
                "acknowledged order not recognised in the list"
            );
        }
        OrderEvent::TagEcho { intent, order_id, echo, .. } => {
            let echo = echo.as_str();
            tracing::info!(account, intent = intent.0, order_id, echo, "tag of an acknowledged order listed");
        }
        OrderEvent::ClockStepped { by, forward } => {
            tracing::warn!(
                account,
                ?by,
                forward,
                "wall clock and the time known so far differ: the trading day goes on as it was"
            );
        }
    }
}
