use std::sync::Arc;

use steadfast_call::Route;
use tower_layer::Layer;

use crate::{place::service::Dedup, tracker::order_tracker::OrderTracker};

/// Resolves orders whose outcome was lost, so that none is placed twice and none is lost silently.
///
/// Everything but `POST /api/oms/place-order` passes through unchanged. For an order:
///
/// 1. An answer that proves something is returned as it is.
/// 2. After one that proves nothing (a 504, a reset, a timeout, a cut body) the order list is read until the order is
///    found, or is absent beyond the lateness bound.
/// 3. Found: an answer is made, with [`Resolution`](crate::Resolution) in its extensions.
/// 4. Absent: sent again if the settings allow it; the answer is then that send's own.
/// 5. Neither: the original answer or error comes back, with [`Unresolved`](crate::Unresolved) and
///    [`DoNotRetry`](steadfast_call::ext::DoNotRetry).
///
/// Calls whose requests carry the same [`IntentId`](steadfast_call::ext::IntentId) count as one: a later call gets the
/// outcome of the first. It is sent as a new order if the first one certainly placed nothing.
///
/// # Example
///
/// ```
/// use steadfast_dedup::{DedupLayer, OrderTracker, SendGuardLayer, Settings};
/// use tower::ServiceBuilder;
/// # use http::{Request, Response};
/// # use http_body_util::Full;
/// # use bytes::Bytes;
/// # use steadfast_dedup::GuardedBody;
///
/// # async fn gateway(_: Request<GuardedBody<Full<Bytes>>>) -> Result<Response<Full<Bytes>>, std::convert::Infallible> {
/// #     Ok(Response::new(Full::default()))
/// # }
/// let tracker = OrderTracker::new(Settings::default());
/// let stack = ServiceBuilder::new()
///     .layer(DedupLayer::new(&tracker))
///     // Retries, token renewal, rate limits and the `Authorization` header stand here.
///     .layer(SendGuardLayer::new(&tracker))
///     .service(tower::service_fn(gateway));
/// # let _ = tower::util::BoxCloneSyncService::<Request<Full<Bytes>>, _, _>::new(stack);
/// assert_eq!(tracker.in_doubt(), 0);
/// ```
///
/// # Order
///
/// The outermost layer that may send: no layer above it may repeat an order or drop its future on a timeout. A
/// [`SendGuardLayer`](crate::SendGuardLayer) of the same tracker belongs below everything that waits or repeats;
/// without one, orders are withheld. Layers that classify answers belong below that; without them a 200 cannot be
/// read, and every order is looked up in the list. A debug build panics at a wrong [order](steadfast_call::ext::Place).
///
/// # Clone
///
/// All services made from layers of one tracker share its knowledge of orders, and one poller per account.
///
/// # Cost
///
/// About 640 instructions and no allocation for other requests (`cargo xtask bench overhead`); for an order some 9
/// allocations, including those of the guard below.
///
/// # Cancellation
///
/// A call dropped before its order was sent leaves nothing. Dropped after that, the rest of it moves to a task of its
/// own: the order is still searched for, and never sent again. A call that is kept after its order was sent is woken
/// every 10 s. If it is not polled then, it goes on as if it had been dropped; a later poll is given its result.
///
/// # Limits
///
/// The service is always ready and polls a clone of the inner service. The response of an order in doubt is held,
/// unread, while the order is searched for. The first order of a day waits up to a second for the list to be known.
/// Where no layer below sets the `Authorization` header, reads carry that of the account's latest order. An order
/// list that a caller reads through the same layer is read along: what it holds counts, what it lacks does not. Its
/// bytes are not changed.
#[derive(Clone, Debug)]
pub struct DedupLayer {
    tracker: OrderTracker,
    list_route: Option<Arc<Route>>,
}

impl DedupLayer {
    /// Returns a layer that uses `tracker`.
    #[must_use]
    pub fn new(tracker: &OrderTracker) -> Self {
        Self { tracker: tracker.clone(), list_route: None }
    }

    /// Sets the route of the reads that search for orders; by default the specification's route of the list.
    #[must_use]
    pub fn list_route(mut self, route: impl Into<Arc<Route>>) -> Self {
        self.list_route = Some(route.into());
        self
    }
}

impl<S> Layer<S> for DedupLayer {
    type Service = Dedup<S>;

    fn layer(&self, inner: S) -> Dedup<S> {
        Dedup::new(inner, self.tracker.clone(), self.list_route.clone())
    }
}
