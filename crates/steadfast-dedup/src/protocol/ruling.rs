use std::{error::Error, fmt};

/// A user's ruling on an order that ended as [`Unresolved`](crate::Unresolved), for
/// [`OrderTracker::resolve`](crate::OrderTracker::resolve).
///
/// It is believed: it ends the block that the order put on later orders of its instrument and side.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ruling {
    /// It was placed, and this is its identifier.
    Placed {
        /// The identifier. One that only an answer gave to another order, and that is a candidate of this one, is
        /// taken from that order, which is then in doubt.
        order_id: String,
    },
    /// It was not placed, or is of no interest any more.
    NotPlaced,
}

/// Why a ruling is not accepted: it contradicts known facts, or its order was not unresolved.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidRuling {
    /// The order is not known, or no longer.
    UnknownIntent,
    /// The order did not end as unresolved.
    NotUnresolved,
    /// The identifier belongs to another order of ours.
    OrderOwned,
}

impl fmt::Display for InvalidRuling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownIntent => "order is not known",
            Self::NotUnresolved => "order did not end as unresolved",
            Self::OrderOwned => "order id belongs to another order",
        })
    }
}

steadfast_call::debug_in_one_line!(InvalidRuling);

impl Error for InvalidRuling {}
