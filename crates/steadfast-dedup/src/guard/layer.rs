use tower_layer::Layer;

use crate::{guard::send_guard::SendGuard, tracker::order_tracker::OrderTracker};

/// Accounts for every physical send of an order and of the reads that search for it.
///
/// The inner half of [`DedupLayer`](crate::DedupLayer), made from the same [`OrderTracker`].
///
/// 1. An attempt is opened before the request goes down, and closed with the [`Outcome`](steadfast_call::Outcome) that
///    comes back up.
/// 2. The first poll of the body is the send. It decides whether the order is still wanted and in time; if not, the
///    body fails and no byte leaves.
/// 3. An error before that poll proves that nothing was sent, whatever the transport reports.
/// 4. An order that would be the first to leave in a new login session is withheld once: its list is read first, so
///    that older orders in it are known.
/// 5. If the tracker has a [journal](crate::journal), an order goes down when its attempt is durable. If the journal
///    fails, the order is withheld. If it takes longer than a second, the order is left unsent, and an outer layer
///    tries again with a new permit. So it is if the trading day of its entry is over when its body is polled.
/// 6. An order that was answered by 401 or 429 is sent again only when a valid list, read a second after that, does
///    not show it. Until then the repeat waits here, for two seconds at most, after which it is left unsent as in 5.
///    If the list shows it or cannot be read, the order is in doubt, and the repeat is withheld.
/// 7. While orders are [halted](OrderTracker::halt), the first poll withholds orders and changes of orders.
/// 8. The [`SendStamp`](steadfast_call::ext::SendStamp) in the request's [`Call`](steadfast_call::Call) tells the layers
///    below when the body was polled.
///
/// # Example
///
/// ```
/// use bytes::Bytes;
/// use http::{Request, Response};
/// use http_body_util::{BodyExt, Full};
/// use steadfast_dedup::{GuardedBody, OrderTracker, SendGuardLayer, Settings};
/// use steadfast_call::{BoxError, Call};
/// use tower::{ServiceBuilder, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// let tracker = OrderTracker::new(Settings::default());
/// let service = ServiceBuilder::new()
///     .layer(SendGuardLayer::new(&tracker))
///     .service(service_fn(async |request: Request<GuardedBody<Full<Bytes>>>| {
///         let stamp = Call::of(request.extensions()).send().cloned().ok_or("no stamp")?;
///         assert!(stamp.began().is_none(), "nothing has left yet");
///         // A transport polls the body: that is the send.
///         let body = request.into_body().collect().await?.to_bytes();
///         assert!(stamp.began().is_some());
///         Ok::<_, BoxError>(Response::new(body))
///     }));
/// let request = Request::post("https://api.example/v2/api/oms/place-order").body(Full::from("qty=10"))?;
/// assert_eq!(service.oneshot(request).await?.into_body(), "qty=10");
/// # Ok(())
/// # }
/// ```
///
/// # Order
///
/// Below everything that waits or sends again (rate limits, the `Authorization` header), above the layers that
/// classify answers and time them out. A debug build panics at a wrong [order](steadfast_call::ext::Place).
///
/// # Clone
///
/// Clones, and the services that they make, share the tracker.
///
/// # Cost
///
/// About 870 instructions and no allocation for other requests (`cargo xtask bench overhead`).
///
/// # Cancellation
///
/// A future dropped before the send closes its attempt as not sent; one dropped after it, as unknown and never to be
/// sent again.
#[derive(Clone, Debug)]
pub struct SendGuardLayer {
    tracker: OrderTracker,
}

impl SendGuardLayer {
    /// Returns a layer that writes to `tracker`.
    #[must_use]
    pub fn new(tracker: &OrderTracker) -> Self {
        Self { tracker: tracker.clone() }
    }
}

impl<S> Layer<S> for SendGuardLayer {
    type Service = SendGuard<S>;

    fn layer(&self, inner: S) -> SendGuard<S> {
        self.tracker.set_guarded();
        SendGuard::new(inner, &self.tracker)
    }
}
