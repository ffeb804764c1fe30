use std::future::Future;

use steadfast::dedup::Reason;

use crate::orders::workload::Wanted;

/// A client that a seed's callers trade with.
pub(crate) trait Trader: Send + Sync + 'static {
    /// Places an order, and says what its caller is told.
    fn place(&self, wanted: &Wanted) -> impl Future<Output = Told> + Send;

    /// Cancels an order, as far as that goes.
    fn cancel(&self, order_id: &str) -> impl Future<Output = ()> + Send;

    /// Looks at the list of orders, after the order of this number; some never do.
    fn look(&self, after: u64) -> impl Future<Output = ()> + Send {
        let _ = after;
        std::future::ready(())
    }
}

/// What the caller of an order is told in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// It is placed under this identifier.
    Placed(String),
    /// It is not placed.
    Rejected,
    /// It was looked for beyond the lateness bound and is not there.
    NotObserved,
    /// Nobody knows, and this is why.
    Unresolved(&'static str),
    /// This, which says neither whether it is placed nor that this is not known.
    Nonsense(String),
    /// The caller went away before.
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
