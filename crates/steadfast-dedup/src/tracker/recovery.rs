//! Orders that earlier processes left in doubt.

use std::sync::Arc;

use steadfast_call::ext;
use steadfast_spec::OrderRequest;

use crate::{numbers::IntentNo, protocol::resolution::Verdict};

/// An order that an earlier process left in doubt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveredOrder {
    /// The account.
    pub account: ext::Account,
    /// The order's number.
    pub intent: IntentNo,
    /// The caller's own name for it.
    pub name: Option<ext::IntentId>,
    /// The order.
    pub order: Arc<OrderRequest>,
    /// How it stands now. It is never sent again.
    pub verdict: Verdict,
}

/// Marks a request as a search for the orders that earlier processes left in doubt.
///
/// The request is one of the order list. The [`Dedup`](crate::Dedup) service does not send it. It reads the list
/// itself until every such order is decided, and then answers with an empty 204. Orders in doubt are also searched
/// for without it, once the account's first order shows the path to its list.
///
/// # Cancellation
///
/// Dropping its future does not stop the reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recover;
