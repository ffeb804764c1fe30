use std::{sync::Arc, time::Duration};

use http::StatusCode;
use steadfast_call::Outcome;

/// One send of a call, and the delay after it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// The outcome that its end proves.
    pub outcome: Outcome,
    /// The status of its answer; `None` if there was none.
    pub status: Option<StatusCode>,
    /// How long the policy waited before the next send; `None` after the last one.
    pub delay: Option<Duration>,
}

impl Attempt {
    /// Makes a send that ended in this way and has no follower yet.
    #[must_use]
    pub fn new(outcome: Outcome, status: Option<StatusCode>) -> Self {
        Self { outcome, status, delay: None }
    }
}

/// Every send of one call, in order.
///
/// It is in the extensions of an answer that took more than one send, or whose repeat was due and not made, and in
/// [`RetriesEnded`](crate::RetriesEnded).
///
/// # Clone
///
/// Clones share the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptTrail(Arc<[Attempt]>);

impl AttemptTrail {
    /// Returns the sends, oldest first. The last one brought the answer.
    #[must_use]
    pub fn attempts(&self) -> &[Attempt] {
        &self.0
    }

    /// True if any of the sends may have been executed without an answer that says so.
    ///
    /// An answer's outcome is that of the last send. If a cancel's first send was lost and its second is refused,
    /// the first may have done it.
    #[must_use]
    pub fn is_in_doubt(&self) -> bool {
        self.0.iter().any(|attempt| attempt.outcome.is_unknown())
    }
}

impl From<Vec<Attempt>> for AttemptTrail {
    fn from(attempts: Vec<Attempt>) -> Self {
        Self(attempts.into())
    }
}
