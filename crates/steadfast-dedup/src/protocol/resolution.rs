use std::fmt;

use serde::{Deserialize, Serialize};

/// The response header that marks an answer made by this crate.
pub const RESOLUTION_HEADER: &str = "x-steadfast-resolution";

/// How an order came to its answer, if its outcome was lost or it had been asked for before.
///
/// In the extensions of every answer that is not simply the service's answer to a first send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Resolution {
    /// The order was found in the list; the answer was made from that.
    Recovered {
        /// The order's identifier.
        order_id: String,
        /// Its status in the list, as far as shown: `rejected` and `cancelled` orders were processed too.
        status: Option<String>,
    },
    /// The order was found absent and sent again; the answer is that send's own.
    Resent,
    /// An earlier call with the same intent id placed the order; the answer was made from that.
    Attached {
        /// The order's identifier.
        order_id: String,
    },
}

/// An order that could not be resolved.
///
/// In the extensions of the original answer, or in the chain of the original error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unresolved {
    /// Why.
    pub reason: Reason,
    /// The identifiers of listed orders that may be this one: the oldest, at most [`MOST_CANDIDATES`](Self::MOST_CANDIDATES).
    pub candidates: Vec<String>,
    /// The identifier that the service's answer gave it, if there was one: unconfirmed, because no list shows it, or
    /// something contradicts it.
    pub answered: Option<String>,
}

impl Unresolved {
    /// How many candidates are named at most.
    pub const MOST_CANDIDATES: usize = 100;
}

/// Why an order could not be resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// It was absent beyond the lateness bound and was not sent again. Placing it again is as safe as the bound.
    NotObserved,
    /// It was absent, and so were its resends.
    ResendsExhausted,
    /// The service answered 200 without a readable order id, and no order was found.
    AcceptedUnknownId,
    /// A listed order is similar to it, but not equal.
    NearMatch,
    /// A listed order is equal to it, but others place orders in the account too.
    AmbiguousOwner,
    /// A listed order is equal to it, but may have been there before: no list was known before the send.
    NoBaseline,
    /// The list drops orders that it has shown, so absence proves nothing.
    ListNotMonotone,
    /// The list could be read only in another login session than that of the send.
    SessionChanged,
    /// The trading day ended. If the order could still appear by then, later ones of its instrument and side are
    /// [`Tainted`](Self::Tainted).
    EpochChanged,
    /// The list cannot be used: forbidden, too long, or not understood; or it could not be read to confirm a 401.
    Unverifiable,
    /// An acknowledged order was listed in a form that does not match it.
    Uncalibrated,
    /// No acknowledged order has been recognised in a list yet.
    NoPositiveControl,
    /// The verification budget was spent first.
    Budget,
    /// The caller's deadline came first; the search goes on.
    Deadline,
    /// The settings do not verify this kind of outcome.
    NotVerified,
    /// An earlier order of the same instrument and side ended without certainty. Nothing can be concluded about later
    /// ones until that is resolved.
    Tainted,
    /// Another process owns the account's orders now, or may. It looks for this one.
    OwnerChanged,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::NotObserved,
        Self::ResendsExhausted,
        Self::AcceptedUnknownId,
        Self::NearMatch,
        Self::AmbiguousOwner,
        Self::NoBaseline,
        Self::ListNotMonotone,
        Self::SessionChanged,
        Self::EpochChanged,
        Self::Unverifiable,
        Self::Uncalibrated,
        Self::NoPositiveControl,
        Self::Budget,
        Self::Deadline,
        Self::NotVerified,
        Self::Tainted,
        Self::OwnerChanged,
    ];

    /// True if the order was absent beyond the lateness bound, in reads that could have shown it.
    #[must_use]
    pub const fn is_absence(self) -> bool {
        matches!(self, Self::NotObserved | Self::ResendsExhausted | Self::NoPositiveControl)
    }

    /// Returns the reason's name in logs, metrics and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotObserved => "not_observed",
            Self::ResendsExhausted => "resends_exhausted",
            Self::AcceptedUnknownId => "accepted_unknown_id",
            Self::NearMatch => "near_match",
            Self::AmbiguousOwner => "ambiguous_owner",
            Self::NoBaseline => "no_baseline",
            Self::ListNotMonotone => "list_not_monotone",
            Self::SessionChanged => "session_changed",
            Self::EpochChanged => "epoch_changed",
            Self::Unverifiable => "unverifiable",
            Self::Uncalibrated => "uncalibrated",
            Self::NoPositiveControl => "no_positive_control",
            Self::Budget => "budget",
            Self::Deadline => "deadline",
            Self::NotVerified => "not_verified",
            Self::Tainted => "tainted",
            Self::OwnerChanged => "owner_changed",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Unresolved {
    pub(crate) fn new(reason: Reason, candidates: Vec<String>) -> Self {
        Self { reason, candidates, answered: None }
    }
}

/// How an order stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It placed nothing: it was not sent, or every send was refused.
    NotPlaced,
    /// It is being sent or searched for.
    Pending,
    /// The service answered with its identifier.
    Acknowledged {
        /// The identifier.
        order_id: String,
    },
    /// It was found in the list.
    Recovered {
        /// The identifier.
        order_id: String,
        /// The status, as far as shown.
        status: Option<String>,
    },
    /// It was found absent and may be sent again if it is still absent at the body poll.
    Resend,
    /// It could not be resolved.
    Unresolved(Unresolved),
}
