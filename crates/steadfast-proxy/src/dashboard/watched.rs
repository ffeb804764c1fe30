//! Calls and orders on their way, which are entered when they end, also by being dropped.

use std::sync::Arc;

use http::{Response, StatusCode};
use steadfast::{
    Error, Outcome,
    call::{causes, one_line},
    dedup::Resolution,
    ext::IntentId,
    retry::AttemptTrail,
    spec::{Endpoint, OrderRequest},
};
use tokio::time::Instant;

use super::{
    Dashboard, OrderEnd,
    calls::{Call, End},
};

/// A call on its way.
#[must_use = "a call that is dropped at once counts as one whose caller went away"]
pub(crate) struct WatchedCall<'a> {
    dashboard: &'a Dashboard,
    endpoint: Option<Endpoint>,
    since: Instant,
    end: End,
    is_repeated: bool,
}

/// An order whose caller waits.
#[must_use = "an order that is dropped at once counts as one whose caller went away"]
pub(crate) struct WatchedOrder {
    dashboard: Arc<Dashboard>,
    name: IntentId,
    end: Option<OrderEnd>,
}

impl Dashboard {
    pub(crate) fn call(&self, endpoint: Option<Endpoint>) -> WatchedCall<'_> {
        WatchedCall {
            dashboard: self,
            endpoint,
            since: Instant::now(),
            end: End::Dropped,
            is_repeated: false,
        }
    }

    pub(crate) fn order(self: &Arc<Self>, name: &IntentId, order: &OrderRequest) -> WatchedOrder {
        self.board.lock().order_asked(self.now(), name.as_str(), order);
        WatchedOrder { dashboard: self.clone(), name: name.clone(), end: Some(OrderEnd::CallerLeft) }
    }

    /// Enters the end of an order that nothing waits for.
    pub(crate) fn order_ended(&self, name: &IntentId, end: OrderEnd) {
        self.board.lock().order_ended(self.now(), name.as_str(), end);
    }
}

impl WatchedCall<'_> {
    /// Enters the end of the call.
    pub(crate) fn ends<B>(mut self, result: &Result<Response<B>, Error>) {
        let (outcome, trail) = match result {
            Ok(answer) => (Outcome::of(answer.extensions()), answer.extensions().get::<AttemptTrail>()),
            Err(error) => (Some(error.outcome()), error.trail()),
        };
        self.end = match outcome {
            Some(Outcome::Accepted { .. }) => End::Accepted,
            Some(Outcome::Rejected) => End::Rejected,
            Some(Outcome::NotExecuted) => End::NotExecuted,
            Some(Outcome::NotSent) => End::NotSent,
            _ => End::Unknown,
        };
        self.is_repeated = trail.is_some_and(|trail| trail.attempts().len() > 1);
    }
}

impl Drop for WatchedCall<'_> {
    fn drop(&mut self) {
        let took_us = u64::try_from(self.since.elapsed().as_micros()).unwrap_or(u64::MAX);
        let endpoint = self.endpoint.map_or("other paths", Endpoint::as_str);
        let call = Call { endpoint, end: self.end, is_repeated: self.is_repeated, took_us };
        self.dashboard.board.lock().call_ended(self.dashboard.now(), call);
    }
}

impl WatchedOrder {
    /// Enters the end of an order's call, if the order is watched.
    pub(crate) fn end(order: Option<Self>, end: OrderEnd) {
        if let Some(mut order) = order {
            order.end = Some(end);
        }
    }
}

impl OrderEnd {
    pub(crate) fn of_error(error: &Error, in_doubt: bool) -> Self {
        if in_doubt {
            Self::InDoubt(error.unresolved().map(Into::into))
        } else {
            Self::NotPlaced(one_line(causes(error)))
        }
    }

    /// Returns the end of an order that the service refused or rejected.
    pub(crate) fn of_status(status: StatusCode) -> Self {
        Self::NotPlaced(format!("answered {status}"))
    }

    /// Returns the end of an order that the service accepted.
    pub(crate) fn of_answer(resolution: Option<&Resolution>, order_id: Option<String>) -> Self {
        match resolution {
            Some(Resolution::Recovered { .. }) => Self::Placed { how: "recovered", order_id },
            Some(Resolution::Resent) => Self::Placed { how: "resent", order_id },
            _ => Self::Acknowledged,
        }
    }
}

impl Drop for WatchedOrder {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            self.dashboard.order_ended(&self.name, end);
        }
    }
}
