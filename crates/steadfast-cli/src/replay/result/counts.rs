use serde::Serialize;

/// The number of rows by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    pub(crate) rows: usize,
    pub(crate) placed: usize,
    /// Placed rows whose orders were sent by an earlier run.
    pub(crate) placed_before: usize,
    /// Placed rows whose orders no list has confirmed, as none could be read.
    pub(crate) unconfirmed: usize,
    pub(crate) refused: usize,
    /// Rows whose orders have an identifier, and that the order list shows as rejected.
    pub(crate) rejected: usize,
    /// Rows that were placed or refused by this run, which was left before its last look for their orders.
    pub(crate) not_looked_for: usize,
    /// Rows whose requests the service refused without looking at the orders (401, 429).
    pub(crate) not_executed: usize,
    /// Rows that are not orders; nothing was sent for them.
    pub(crate) bad: usize,
    pub(crate) not_observed: usize,
    pub(crate) unresolved: usize,
    /// Rows of which nothing has left.
    pub(crate) not_sent: usize,
}
