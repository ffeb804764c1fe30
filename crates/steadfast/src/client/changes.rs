use std::collections::HashSet;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Request, Response};
use http_body_util::Full;
use steadfast_call::{BoxError, Outcome, Resend};
use steadfast_spec::{Code, Endpoint, LegType, Operation, OrderChange, OrderRecord, OrderStatus};

use super::{Client, Record, late_changes::EarlierChange};
use crate::error::{Error, ErrorKind, NothingToChange};

/// How many cancels of [`Client::cancel_all`] run at once. Each has a deadline, and the queue is bounded: with
/// thousands at once, the last would be given up before their turn. With this many, the last leaves in time at 400 a
/// minute. With far fewer, cancels that hang would block the others.
const CANCELS_AT_ONCE: usize = 512;

/// The result for one order of [`Client::cancel_all`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Cancellation {
    /// The order's id; empty if its record has none.
    pub order_id: String,
    /// The result, as of [`Client::cancel`].
    pub result: Result<(), Error>,
}

/// Changing orders that exist.
impl Client {
    /// Cancels an order, and decides by the list if no answer is clear.
    pub(super) async fn cancel_order(&self, order_id: &str) -> Result<(), Error> {
        self.send_cancel(order_id, self.request(&Operation::cancel_order(order_id))?).await.map(drop)
    }

    /// Sends the request that cancels an order, and decides by the list if no answer is clear. Returns the answer, or
    /// `None` if the list shows that the order was cancelled.
    pub(super) async fn send_cancel(
        &self,
        order_id: &str,
        request: Request<Full<Bytes>>,
    ) -> Result<Option<Response<Bytes>>, Error> {
        let error = match self.confirmed(request).await.map_err(|error| error.safe(true)) {
            Ok(answer) => return Ok(Some(answer)),
            Err(error) => error,
        };
        let (error, records) = self.records_in_doubt(Endpoint::CancelOrder, error, order_id).await?;
        // The order may still be open as long as any of its records may be.
        if records.is_empty() || records.iter().any(may_be_open) {
            return Err(error);
        }
        let ended_otherwise = records.iter().find_map(|record| match record.status {
            Some(Code::Known(status)) if status != OrderStatus::Cancelled => Some(status),
            _ => None,
        });
        ended_otherwise.map_or(Ok(None), |status| Err(error.not_open(status.to_string())))
    }

    /// Cancels every order of the list that may be open.
    pub(super) async fn cancel_orders(&self) -> Result<Vec<Cancellation>, Error> {
        let mut seen = HashSet::new();
        let (open, nameless) = self.open_orders().await?;
        let open = open.into_iter().filter(|order_id| seen.insert(order_id.clone())).enumerate();
        let cancels = open.map(|(at, order_id)| async move {
            let result = self.cancel(&order_id).await;
            (at, Cancellation { order_id, result })
        });
        let mut cancelled: Vec<_> = stream::iter(cancels).buffer_unordered(CANCELS_AT_ONCE).collect().await;
        cancelled.sort_unstable_by_key(|(at, _)| *at);
        let cancelled = cancelled.into_iter().map(|(_, cancellation)| cancellation);
        Ok(cancelled.chain(nameless).collect())
    }

    /// Changes an order, unless an earlier change of it may still be made, and decides by the list if no answer is clear.
    pub(super) async fn change_order(&self, order_id: &str, change: &OrderChange) -> Result<(), Error> {
        if change.is_empty() {
            return Err(Error::invalid(NothingToChange));
        }
        change.check(order_id).map_err(Error::invalid)?;
        let request = self.request(&Operation::modify_order(order_id, change))?;
        self.send_change(order_id, change, request).await.map(drop)
    }

    /// Sends the request that changes an order, as [`change_order`](Self::change_order) does. Returns the answer, or
    /// `None` if the list shows the change.
    pub(super) async fn send_change(
        &self,
        order_id: &str,
        change: &OrderChange,
        request: Request<Full<Bytes>>,
    ) -> Result<Option<Response<Bytes>>, Error> {
        if let Some(until) = self.late_changes.bar(order_id, change) {
            let refused = Error::new(ErrorKind::Refused, Outcome::NotSent).because(EarlierChange);
            return Err(refused.ready_from(until));
        }
        let error = match self.confirmed(request).await {
            Ok(answer) => return Ok(Some(answer)),
            Err(error) => error,
        };
        let only_one =
            error.was_in_doubt() && self.late_changes.note(order_id, change, &error, self.tracker.settings());
        let (error, mut records) = self.records_in_doubt(Endpoint::ModifyOrder, error, order_id).await?;
        // Only the main leg of a bracket order is changed.
        records.retain(|order| order.leg_type.as_ref().is_none_or(|leg| leg.is(LegType::Main)));
        if records.iter().any(|record| change.is_shown_by(record) == Some(true)) {
            if only_one {
                self.late_changes.made(order_id);
            }
            return Ok(None);
        }
        match records.first().and_then(|record| record.status.as_ref()) {
            Some(Code::Known(status)) if !records.iter().any(may_be_open) => {
                Err(error.not_open(status.to_string()))
            }
            // A change that the list does not show yet may be made late.
            _ => Err(error),
        }
    }

    /// Returns the ids of the orders that may be open, and a failed cancellation for each record without an id.
    async fn open_orders(&self) -> Result<(Vec<String>, Vec<Cancellation>), Error> {
        let Some(body) = self.read_for_cancel(&Operation::orders()).await? else {
            return Ok(Default::default());
        };
        let unexpected = |source: BoxError| {
            Error::unexpected(Outcome::Unknown { resend: Resend::Never }, source).safe(true)
        };
        let records = Record::payloads_of(&body).map_err(|error| unexpected(error.into()))?;
        let (names, mut open, mut nameless) =
            (self.tracker.settings().record_names(), Vec::new(), Vec::new());
        for record in records {
            match record.order(names) {
                Ok(order) if may_be_open(&order) => open.push(order.order_id),
                Ok(_) => {}
                Err(unreadable) => match record.text_of(&names.order_id) {
                    Some(order_id) => open.push(order_id),
                    None => nameless.push(Cancellation {
                        order_id: String::new(),
                        result: Err(unexpected(unreadable.into())),
                    }),
                },
            }
        }
        Ok((open, nameless))
    }

    /// Returns the order's records in the list (there may be several), with the error to return if they do not decide.
    ///
    /// # Errors
    ///
    /// The same error, if nothing was in doubt or the list cannot be read.
    async fn records_in_doubt(
        &self,
        of: Endpoint,
        error: Error,
        order_id: &str,
    ) -> Result<(Error, Vec<OrderRecord>), Error> {
        if !error.was_in_doubt() {
            return Err(error);
        }
        let (error, orders) = (error.in_doubt(of), self.orders().await);
        let Ok(mut records) = orders else { return Err(error) };
        records.retain(|order| order.order_id == order_id);
        Ok((error, records))
    }

    /// Sends a request that the service must confirm.
    async fn confirmed(&self, request: Request<Full<Bytes>>) -> Result<Response<Bytes>, Error> {
        // "No records" is no confirmation.
        let unconfirmed =
            || Error::new(ErrorKind::UnexpectedAnswer, Outcome::Unknown { resend: Resend::Never });
        self.success(request).await?.ok_or_else(unconfirmed)
    }
}

// A missing or unknown status, such as a pending trigger, may belong to an open order.
fn may_be_open(order: &OrderRecord) -> bool {
    matches!(&order.status, None | Some(Code::Other(_) | Code::Known(OrderStatus::Open)))
}
