use std::time::Duration;

use steadfast_spec::Zone;

use crate::WindowUse;

/// Something that an operator may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The gateway answered 429: the zone stops for everybody.
    Frozen {
        /// The zone.
        zone: Zone,
        /// The key, as in [`ZoneSnapshot`](crate::ZoneSnapshot).
        key: u64,
        /// For how long.
        pause: Duration,
        /// True if the try after a pause was refused again.
        again: bool,
    },
    /// The gateway answered 429 although the limiter's own log kept every limit.
    ///
    /// Either the gateway counts in a way that the zone's profile is not safe against, or somebody else uses the
    /// same token, key or address. The two cannot be told apart from here.
    ModelMismatch {
        /// The zone.
        zone: Zone,
        /// The key, as in [`ZoneSnapshot`](crate::ZoneSnapshot).
        key: u64,
        /// What the limiter's own log holds.
        ours: Vec<WindowUse>,
    },
    /// An adaptive zone is trusted less after a mismatch, or more after a clean minute.
    Stepped {
        /// The zone.
        zone: Zone,
        /// The key, as in [`ZoneSnapshot`](crate::ZoneSnapshot).
        key: u64,
        /// The step it is on now: 0 the log, 1 universal, 2 paced, from 3 on a tenth less each.
        step: u8,
    },
}
