use std::future::Future;

use steadfast_spec::OrderRequest;

/// A client that trades through the scenario.
///
/// Each call's name is stored in the gateway's ground truth, by the header [`INTENT`](crate::placement::INTENT).
pub(crate) trait Contender: Send + Sync + 'static {
    /// Does what comes before the first order, such as a login.
    fn prepare(&self) -> impl Future<Output = Result<(), String>> + Send;

    /// Places an order, and returns what the caller is told.
    fn place(&self, name: &str, order: &OrderRequest) -> impl Future<Output = Told> + Send;

    /// Cancels an order. An order that is not open any more stays as it is.
    fn cancel(&self, name: &str, order_id: &str) -> impl Future<Output = ()> + Send;

    /// Reads the order list.
    fn poll(&self, name: &str) -> impl Future<Output = ()> + Send;

    /// Returns how many orders are in doubt, as far as the client knows.
    fn in_doubt(&self) -> usize;

    /// Waits until nothing is in doubt any more.
    fn finish(&self) -> impl Future<Output = ()> + Send;
}

/// The final result for the caller of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// It is placed under this id.
    Placed { order_id: String, how: How },
    /// It was refused.
    Rejected,
    /// It was looked for and not found.
    NotObserved,
    /// The outcome is not known, for this reason.
    Unresolved(&'static str),
}

/// How a client got an order's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// From the service's answer.
    Acknowledged,
    /// From the order list.
    Found,
    /// The order was sent again.
    SentAgain,
}

impl How {
    /// Returns the word used in reports.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Acknowledged => "answered",
            Self::Found => "found",
            Self::SentAgain => "sent again",
        }
    }
}
