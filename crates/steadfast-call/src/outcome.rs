#![expect(
    clippy::disallowed_types,
    reason = "plain data for services, which convert to tokio's Instant; nothing here reads a clock"
)]

use std::{fmt, sync::Arc, time::Instant};

use http::Extensions;

use crate::ext::Sent;

/// The conclusion about a request from its answer, or from the lack of one.
///
/// There is one for every physical send. Everything that is not provably *not executed* is
/// [`Unknown`](Outcome::Unknown). [`of`](Self::of) reads that of an answer, and
/// [`Failure::outcome_of`](crate::Failure::outcome_of) that of an error.
///
/// # Example
///
/// ```
/// use http::Response;
/// use steadfast_call::Outcome;
///
/// fn is_placed<B>(answer: &Response<B>) -> bool {
///     matches!(Outcome::of(answer.extensions()), Some(Outcome::Accepted { .. }))
/// }
/// # assert!(!is_placed(&Response::new(())));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// No byte of the request reached the service: refused locally, never connected, or its body never polled.
    NotSent,
    /// The service answered, and its answer proves that it did not execute the request (429, 401).
    NotExecuted,
    /// The service executed its checks and refused the request for good (403, 404, 405, 415, two texts of 400).
    Rejected,
    /// The service accepted the request.
    Accepted {
        /// The order's identifier, for `POST /api/oms/place-order` only.
        order_id: Option<Arc<str>>,
    },
    /// It is unknown whether the service executed the request.
    Unknown {
        /// Whether the request may be sent again once its absence has been established.
        resend: Resend,
    },
}

/// Whether a request in doubt may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resend {
    /// After a verified absence.
    AfterAbsence,
    /// Never: the answer says that the service may have accepted it.
    Never,
}

impl Outcome {
    /// Returns the outcome of the answer with these extensions, if a layer has [set](Sent::set_outcome) one.
    #[must_use]
    pub fn of(extensions: &Extensions) -> Option<&Self> {
        debug_assert!(extensions.get::<Self>().is_none(), "Sent::set_outcome sets the outcome of an answer");
        Sent::of(extensions).outcome()
    }

    /// True if the service certainly did not execute the request.
    #[must_use]
    pub fn is_not_executed(&self) -> bool {
        matches!(self, Self::NotSent | Self::NotExecuted | Self::Rejected)
    }

    /// True if it is unknown whether the service executed the request.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotSent => "not sent",
            Self::NotExecuted => "not executed",
            Self::Rejected => "rejected",
            Self::Accepted { .. } => "accepted",
            Self::Unknown { .. } => "unknown",
        })
    }
}

/// How far one physical send got, as the transport saw it.
///
/// The transport puts it into its error, so that layers need not know the transport. An answer counts as answered unless its
/// extensions say otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// No byte of the request was handed to a connection.
    NeverLeft,
    /// It may have left, but the service promises by its protocol that it was not processed. It may be sent again as if
    /// it had never left, but a gateway in front may have counted it.
    Unprocessed,
    /// A response head came back.
    Answered,
    /// Part of the request may have left, and no response head came back.
    Lost {
        /// The instant at which the connection ended, so that nothing more of the request can reach the service: its
        /// descriptor was closed abortively, and the kernel sends nothing more. `None` if the transport cannot promise
        /// that; such a request may still arrive at any time.
        ended: Option<Instant>,
    },
}
