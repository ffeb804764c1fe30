use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use steadfast_call::{Call, Outcome, ext};
use steadfast_dedup::{Resolution, Unresolved};
use steadfast_spec::{Operation, OrderRequest, PlacedOrder};

use super::Client;
use crate::error::Error;

/// An order that the service accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placed {
    /// The order id.
    pub order_id: String,
    /// The text beside the id; empty if there was none.
    pub msg: String,
    /// How the result was reached, if it is not simply the answer to the first send.
    pub resolution: Option<Resolution>,
}

/// Placing orders.
impl Client {
    /// Places an order (§4.4), at most once if every applied order is listed within the lateness bound.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InDoubt`](crate::ErrorKind::InDoubt) if it is not known whether the order was placed,
    /// [`ErrorKind::NotObserved`](crate::ErrorKind::NotObserved) if it was not found beyond the lateness bound. Every
    /// other kind means that it was not placed.
    pub async fn place_order(&self, order: &OrderRequest) -> Result<Placed, Error> {
        self.place(order, None).await
    }

    /// Places an order under a name of the caller's. Calls with the same name place at most one order between them,
    /// within a trading day and among its last 100,000 orders.
    ///
    /// # Errors
    ///
    /// As [`place_order`](Self::place_order).
    pub async fn place_order_as(&self, order: &OrderRequest, intent: ext::IntentId) -> Result<Placed, Error> {
        self.place(order, Some(intent)).await
    }

    async fn place(&self, order: &OrderRequest, intent: Option<ext::IntentId>) -> Result<Placed, Error> {
        if order.is_eos_outside_bse() {
            tracing::warn!("validity eos is for BSE only, and the service may refuse the order");
        }
        let mut request = self.request(&Operation::place_order(order))?;
        if let Some(intent) = intent {
            Call::of_mut(request.extensions_mut()).set_intent(intent);
        }
        self.placed(request).await.map_err(Error::in_doubt_if_unknown)
    }

    async fn placed(&self, request: Request<Full<Bytes>>) -> Result<Placed, Error> {
        let (parts, body) = self.answer(request).await?;
        let resolution = parts.extensions.get().cloned();
        // The answer has a placeholder text instead of an order id.
        let is_unknown = Outcome::of(&parts.extensions).is_some_and(Outcome::is_unknown);
        match PlacedOrder::parse(&body) {
            // A contradicted answer, or one that could be, does not belong to this order.
            Ok(placed)
                if parts.status == StatusCode::OK
                    && !is_unknown
                    && parts.extensions.get::<Unresolved>().is_none() =>
            {
                Ok(Placed { order_id: placed.order_id, msg: placed.msg, resolution })
            }
            _ => Err(Error::of_answer(&parts, self.text_of(&body))),
        }
    }
}
