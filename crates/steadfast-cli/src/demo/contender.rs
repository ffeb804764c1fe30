use std::future::Future;

use steadfast_spec::OrderRequest;

/// A client that trades through the scenario.
///
/// The name that a call is given goes to the gateway's ground truth with it, in the header [`INTENT`](crate::placement::INTENT).
pub(crate) trait Contender: Send + Sync + 'static {
    /// Logs in, or whatever else comes before the first order.
    fn prepare(&self) -> impl Future<Output = Result<(), String>> + Send;

    /// Places an order, and says what its caller is told.
    fn place(&self, name: &str, order: &OrderRequest) -> impl Future<Output = Told> + Send;

    /// Cancels an order; what is not open any more stays as it is.
    fn cancel(&self, name: &str, order_id: &str) -> impl Future<Output = ()> + Send;

    /// Reads the order list.
    fn poll(&self, name: &str) -> impl Future<Output = ()> + Send;

    /// How many orders are in doubt, as far as the client knows.
    fn in_doubt(&self) -> usize;

    /// Waits until nothing is in doubt any more.
    fn finish(&self) -> impl Future<Output = ()> + Send;
}

/// What the caller of an order is told in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// It is placed under this identifier.
    Placed { order_id: String, how: How },
    /// It was refused.
    Rejected,
    /// It was looked for and is not there.
    NotObserved,
    /// Nobody knows, and this is why.
    Unresolved(&'static str),
}

/// How a client came by an order's identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// The service answered with it.
    Acknowledged,
    /// It was found in the order list.
    Found,
    /// The order was sent again.
    SentAgain,
}

impl How {
    /// The word in reports.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Acknowledged => "answered",
            Self::Found => "found",
            Self::SentAgain => "sent again",
        }
    }
}
