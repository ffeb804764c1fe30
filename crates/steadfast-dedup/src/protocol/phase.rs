//! Where an intent stands, and how it ended.

use std::{sync::Arc, time::Duration};

use crate::{numbers::LogicalTime, protocol::resolution::Unresolved};

/// Where an intent stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No send of it may have placed an order, by the service's word: not sent yet, not executed, or rejected.
    Idle,
    /// A send of it is not answered.
    Sending,
    /// A send of it was answered in a way that proves nothing.
    Doubt,
    /// Found absent; may be sent again if it is still absent at the body poll.
    Granted,
    /// A send of it was refused without execution (401, 429): nothing is sent until a list agrees.
    Refused(RefusalCheck),
    /// A list agreed; may be sent again, unless a list shows it before the body poll.
    Cleared,
    /// Decided for good.
    Finished(Finding),
}

/// A refusal that no list has confirmed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RefusalCheck {
    /// When it came.
    pub(crate) since: Duration,
    /// The same as a position: only reads that start later can confirm it.
    pub(crate) from: LogicalTime,
    /// How long after that a list must be read to confirm it: lists lag.
    pub(crate) lag: Duration,
    /// It refused the token. Then the list may be refused as well.
    pub(crate) by_token: bool,
    /// The call has ended but for this check: its caller is told of the refusal once a list confirms it.
    pub(crate) is_last: bool,
}

/// How an intent ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// An answer named its order.
    Acknowledged { order_id: Arc<str> },
    /// A list or a ruling named its order.
    Recovered { order_id: Arc<str>, status: Option<String> },
    /// Nothing is certain.
    Unresolved(Unresolved),
    /// The service refused it without having executed it (401, 429), and its caller was told so.
    Refused,
    /// The service rejected it for good, and its caller was told so. It is reported if a list shows it all the same;
    /// no read is made, and no call is kept waiting, for it.
    Rejected,
}
