use std::future::Future;

use steadfast::dedup::Reason;

use crate::sim::orders::workload::Wanted;

/// A client that a seed's callers trade with.
pub(crate) trait Trader: Send + Sync + 'static {
    /// Places an order, and returns its caller's result.
    fn place(&self, wanted: &Wanted) -> impl Future<Output = Told> + Send;

    /// Cancels an order, as far as possible.
    fn cancel(&self, order_id: &str) -> impl Future<Output = ()> + Send;

    /// Reads the list of orders after this order; some clients never do.
    fn look(&self, after: u64) -> impl Future<Output = ()> + Send {
        let _ = after;
        std::future::ready(())
    }
}

/// The final result of an order's call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// It is placed under this identifier.
    Placed(String),
    /// It is not placed.
    Rejected,
    /// It was searched for beyond the lateness bound and is not there.
    NotObserved,
    /// It is unknown whether it is placed; says why.
    Unresolved(&'static str),
    /// An answer that says neither whether it is placed nor that this is unknown.
    Nonsense(String),
    /// The caller left before the end.
    Gone,
}

impl Told {
    pub(crate) fn in_doubt(reason: Reason) -> Self {
        match reason {
            Reason::NotObserved => Self::NotObserved,
            reason => Self::Unresolved(reason.as_str()),
        }
    }
}
