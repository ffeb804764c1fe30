use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use serde::{Deserialize, Serialize};
use steadfast_call::{Call, Outcome, ext};
use steadfast_dedup::{Resolution, Unresolved};
use steadfast_spec::{Operation, OrderRequest, PlacedOrder};

use super::Client;
use crate::error::Error;

/// An order that the service accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
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
    /// Places an order, under a name if it has one.
    pub(super) async fn place(
        &self,
        order: &OrderRequest,
        intent: Option<ext::IntentId>,
    ) -> Result<Placed, Error> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placed_order_is_read_as_it_was_written() {
        let recovered = Resolution::Recovered { order_id: "7".into(), status: None };
        for (resolution, written) in [
            (Some(recovered), r#"{"recovered":{"orderId":"7","status":null}}"#),
            (Some(Resolution::Resent), r#""resent""#),
            (None, "null"),
        ] {
            let placed = Placed { order_id: "7".into(), msg: "ok".into(), resolution };
            let text = serde_json::to_string(&placed).unwrap();
            assert_eq!(text, format!(r#"{{"orderId":"7","msg":"ok","resolution":{written}}}"#));
            assert_eq!(serde_json::from_str::<Placed>(&text).unwrap(), placed);
        }
        let intent = ext::IntentId::new("row 1");
        let text = serde_json::to_string(&intent).unwrap();
        assert_eq!((text.as_str(), serde_json::from_str(&text).ok()), (r#""row 1""#, Some(intent)));
    }
}
