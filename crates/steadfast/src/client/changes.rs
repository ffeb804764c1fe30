use futures_util::future::join_all;
use steadfast_spec::{Code, Operation, OrderChange, OrderRecord, OrderStatus, Outcome, Resend};

use super::Client;
use crate::error::{Error, ErrorKind, NothingToChange};

/// What became of one order of [`Client::cancel_all`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Cancellation {
    /// The order's identifier.
    pub order_id: String,
    /// As [`Client::cancel`] says.
    pub result: Result<(), Error>,
}

/// What changes orders that exist.
impl Client {
    /// Cancels an order (§4.5). Cancelling twice is as good as once, so it is repeated in doubt; if that ends without a
    /// clear answer, the order's status in the list decides.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotOpen`](crate::ErrorKind::NotOpen) if the order ended otherwise,
    /// [`ErrorKind::InDoubt`](crate::ErrorKind::InDoubt) if nobody knows, and what the service refuses it for.
    pub async fn cancel(&self, order_id: &str) -> Result<(), Error> {
        let Err(error) = self.confirmed(&Operation::cancel_order(order_id)).await else { return Ok(()) };
        if !error.was_in_doubt() {
            return Err(error);
        }
        let Ok(orders) = self.orders().await else { return Err(error.in_doubt()) };
        let order = orders.into_iter().find(|order| order.order_id == order_id);
        match order.and_then(|order| order.status) {
            Some(Code::Known(OrderStatus::Cancelled)) => Ok(()),
            Some(Code::Known(status)) if status != OrderStatus::Open => {
                Err(error.not_open(status.to_string()))
            }
            _ => Err(error.in_doubt()),
        }
    }

    /// Cancels every order of the session's list that may still be open, all at once, ahead of whatever else waits.
    ///
    /// Orders that are in flight or in doubt are not in the list yet: stop placing first, and call it again once
    /// [`in_doubt`](Self::in_doubt) is zero.
    ///
    /// # Errors
    ///
    /// [`Error`] if the list cannot be read; then nothing was cancelled.
    pub async fn cancel_all(&self) -> Result<Vec<Cancellation>, Error> {
        let open = self.orders().await?.into_iter().filter(may_be_open);
        let cancelled = open.map(|order| async move {
            let result = self.cancel(&order.order_id).await;
            Cancellation { order_id: order.order_id, result }
        });
        Ok(join_all(cancelled).await)
    }

    /// Changes an open order (§4.5), once its path is set. A change that may or may not have been made is never sent
    /// again: the order's record in the list decides.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidRequest`](crate::ErrorKind::InvalidRequest) if there is nothing to change or no path,
    /// [`ErrorKind::NotOpen`](crate::ErrorKind::NotOpen) if the order has ended meanwhile,
    /// [`ErrorKind::InDoubt`](crate::ErrorKind::InDoubt) if the list does not show the change, and what the service
    /// refuses it for.
    pub async fn modify(&self, order_id: &str, change: &OrderChange) -> Result<(), Error> {
        if change.is_empty() {
            return Err(Error::invalid(NothingToChange));
        }
        let Err(error) = self.confirmed(&Operation::modify_order(order_id, change)).await else {
            return Ok(());
        };
        if !error.was_in_doubt() {
            return Err(error);
        }
        let Ok(orders) = self.orders().await else { return Err(error.in_doubt()) };
        let Some(order) = orders.into_iter().find(|order| order.order_id == order_id) else {
            return Err(error.in_doubt());
        };
        if change.is_shown_by(&order) == Some(true) {
            return Ok(());
        }
        match order.status {
            Some(Code::Known(status)) if status != OrderStatus::Open => {
                Err(error.not_open(status.to_string()))
            }
            // A change that the list does not show yet may be made late.
            _ => Err(error.in_doubt()),
        }
    }

    /// Sends what the service must confirm.
    async fn confirmed(&self, operation: &Operation) -> Result<(), Error> {
        match self.read(operation).await? {
            Some(_) => Ok(()),
            // "No records" is no confirmation.
            None => Err(Error::new(ErrorKind::UnexpectedAnswer, Outcome::Unknown { resend: Resend::Never })),
        }
    }
}

// A status that is missing or unknown, such as a trigger that is pending, may be that of an open order.
fn may_be_open(order: &OrderRecord) -> bool {
    matches!(&order.status, None | Some(Code::Other(_) | Code::Known(OrderStatus::Open)))
}
