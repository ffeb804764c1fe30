use rand_chacha::rand_core::Rng;

use super::{
    load::{Counted, Load, Storm},
    row::Row,
};
use crate::sim::network::{AFTER_RESET, End, Journey, Nanos, ORPHANED, PATIENCE, law::below};

/// One answer in this many is lost in [`Load::Spread`] and [`Storm::Resets`].
const LOSSES: u64 = 30;

/// In [`Load::Spread`] one of these in so many never comes, and its connection has no known end. The others are lost to
/// resets.
const ENDLESS: u64 = 20;

/// Draws the course of a request that leaves at `sent`, with the losses of the row's line and load.
pub(super) fn journey(row: Row, sent: Nanos, rng: &mut impl Rng) -> Journey {
    let mut journey = row.network.journey(sent, rng);
    let loses = matches!(row.load, Load::Cancels(Storm::Resets) | Load::Spread(_));
    if loses && journey.end == End::Answered && below(rng, LOSSES) == 0 {
        journey.end = End::Reset;
    }
    let Load::Spread(counted) = row.load else { return journey };
    if journey.end == End::Reset && below(rng, ENDLESS) == 0 {
        (journey.at, journey.end) = (sent + PATIENCE, End::GivenUp);
    }
    let latest = match journey.end {
        End::Answered => return journey,
        End::Reset => journey.at + AFTER_RESET - 1,
        End::GivenUp => journey.at + ORPHANED - 1,
    };
    if counted == Counted::Late {
        journey.counted = Some(latest);
    }
    journey
}
