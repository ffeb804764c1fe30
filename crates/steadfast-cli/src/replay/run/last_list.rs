//! The last list of a run: it shows which placed orders were rejected, and that the token is accepted.

use std::{collections::BTreeSet, pin::pin, time::Duration};

use steadfast::{
    deadline::DeadlineLayer,
    dedup::OrderEvent,
    spec::{Code, LegType, OrderRecord, OrderStatus},
};
use tokio::{sync::broadcast::Receiver, time::Instant};

use super::{QUIET, Replay, Stop, until};
use crate::{
    placement::{Hindrance, means_rejected},
    signal::Signals,
};

/// How long after its answer a list is asked for an order: an earlier one may not know the order's status yet.
const LAG: Duration = Duration::from_secs(1);

/// How long the list may take, waits for the quota included.
const PATIENCE: Duration = Duration::from_secs(30);

impl Replay {
    /// Reads the order list for the status of the placed orders, or to learn whether the token that was refused is good.
    /// Returns the orders that it shows as rejected.
    pub(super) async fn last_list(
        &mut self,
        events: &mut Receiver<OrderEvent>,
        signals: &mut Signals,
    ) -> BTreeSet<String> {
        let is_token_in_doubt = self.results.hindrances.contains(&Hindrance::Login);
        // If no list could be read for any placed row, that is told already.
        self.take_waiting(events);
        if !self.results.hold_confirmed() && !is_token_in_doubt {
            return BTreeSet::new();
        }
        let client = self.client.with_deadline(DeadlineLayer::new(PATIENCE));
        let due = self.answered.map(|at| at + LAG);
        let mut list = pin!(async move {
            until_due(due).await;
            client.orders().await
        });
        let mut quiet = Some(Instant::now() + QUIET);
        while self.stop != Stop::Left {
            tokio::select! {
                biased;
                () = signals.next() => self.interrupt(),
                event = events.recv() => self.take(event),
                () = until(quiet) => {
                    quiet = None;
                    self.note(format_args!(
                        "waiting: the order list, which shows whether a placed order was rejected; {} s at most",
                        PATIENCE.as_secs()
                    ));
                }
                listed = &mut list => match listed {
                    Ok(orders) => {
                        self.is_token_good = true;
                        return rejected(&orders);
                    }
                    Err(error) => {
                        self.results.hindrances.insert(Hindrance::of(&error));
                        self.note(format_args!(
                            "{error}: without a last list it is not known whether a placed order was rejected; the next run \
                             reads it"
                        ));
                        return BTreeSet::new();
                    }
                },
            }
        }
        BTreeSet::new()
    }
}

async fn until_due(due: Option<Instant>) {
    if let Some(due) = due {
        tokio::time::sleep_until(due).await;
    }
}

/// Returns the orders that a list shows as rejected and in no other state.
fn rejected(orders: &[OrderRecord]) -> BTreeSet<String> {
    let is_main = |order: &&OrderRecord| matches!(order.leg_type, None | Some(Code::Known(LegType::Main)));
    let (mut rejected, mut others) = (BTreeSet::new(), BTreeSet::new());
    for order in orders.iter().filter(is_main) {
        let state = if is_rejected(order) { &mut rejected } else { &mut others };
        state.insert(order.order_id.clone());
    }
    rejected.retain(|order_id| !others.contains(order_id));
    rejected
}

fn is_rejected(order: &OrderRecord) -> bool {
    match &order.status {
        Some(Code::Known(status)) => *status == OrderStatus::Rejected,
        Some(Code::Other(status)) => means_rejected(status),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_rejected_if_the_list_shows_no_other_state_of_its_main_leg() {
        let order = |id: &str, status: &str, leg: &str| -> OrderRecord {
            serde_json::from_value(serde_json::json!({"orderId": id, "status": status, "legType": leg}))
                .unwrap()
        };
        let orders = [
            order("1", "rejected", "main"),
            order("1", "open", "target"),
            order("2", "rejected", "main"),
            order("2", "completed", "main"),
            order("3", "completed", "main"),
            order("3", "rejected", "stoploss"),
            order("4", "REJECTED", "main"),
        ];
        assert_eq!(rejected(&orders), BTreeSet::from(["1", "4"].map(str::to_owned)));
    }
}
