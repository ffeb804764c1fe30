use std::{sync::Arc, time::Duration};

use http::StatusCode;
use steadfast_spec::Outcome;

/// One send of a call, and the delay after it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// What its end proves.
    pub outcome: Outcome,
    /// The status of its answer; `None` if there was none.
    pub status: Option<StatusCode>,
    /// How long the policy waited before the next send; `None` after the last one.
    pub delay: Option<Duration>,
}

impl Attempt {
    /// A send that ended so, and that nothing followed yet.
    #[must_use]
    pub fn new(outcome: Outcome, status: Option<StatusCode>) -> Self {
        Self { outcome, status, delay: None }
    }
}

/// Every send of one call, in order.
///
/// It is in the extensions of an answer that took more than one send, or that would have been repeated and was
/// not; and in [`RetriesEnded`](crate::RetriesEnded).
///
/// # Clone
///
/// Clones share the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptTrail(Arc<[Attempt]>);

impl AttemptTrail {
    /// The sends, oldest first; the last one is that of the answer.
    #[must_use]
    pub fn attempts(&self) -> &[Attempt] {
        &self.0
    }

    /// True if any of the sends may have been executed without an answer that says so.
    ///
    /// The outcome of an answer is that of the last send. A cancel whose first send was lost and whose second is
    /// refused may well have been done by the first.
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
