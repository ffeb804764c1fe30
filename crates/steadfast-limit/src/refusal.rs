use std::{error::Error, fmt, time::Duration};

use steadfast_spec::{Lane, Zone};

/// A request was refused on this side: nothing was sent, nothing was spent, and asking again at once is in vain.
///
/// The layer returns it inside a refused [`Failure`](steadfast_spec::Failure), which nothing retries.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The zone cannot admit the request before the instant by which it must have left.
    WouldMissDeadline {
        /// The zone that would admit it last.
        zone: Zone,
        /// How long, counted from the refusal, until the zone could admit it at the earliest; zero if only the deadline
        /// is in the way.
        earliest: Duration,
    },
    /// The request was granted, but what is to send it was not ready before the instant by which it must have left.
    NotReadyInTime,
    /// The lane's queue in that zone is full.
    QueueFull {
        /// The zone.
        zone: Zone,
        /// The lane.
        lane: Lane,
    },
    /// The limiter keeps as many keys as it may, and all of them are in use.
    TooManyKeys {
        /// The zone that the new key belongs to.
        zone: Zone,
    },
    /// The limiter has no such zone.
    UnknownZone(Zone),
    /// The request names no zone; what no zone counts cannot be kept within any.
    NoZone,
    /// The request names more zones than one request may fall under.
    TooManyZones {
        /// The most that it may.
        most: usize,
    },
}

impl Refusal {
    /// The zone that refused, where one did.
    #[must_use]
    pub fn zone(&self) -> Option<Zone> {
        match self {
            Self::WouldMissDeadline { zone, .. }
            | Self::QueueFull { zone, .. }
            | Self::TooManyKeys { zone }
            | Self::UnknownZone(zone) => Some(*zone),
            Self::NotReadyInTime | Self::NoZone | Self::TooManyZones { .. } => None,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WouldMissDeadline { earliest, .. } if earliest.is_zero() => {
                f.write_str("deadline of the request passed before it could be sent")
            }
            Self::WouldMissDeadline { zone, earliest } => {
                write!(
                    f,
                    "zone {zone} admits the request only after its deadline, in {earliest:?} at the earliest"
                )
            }
            Self::NotReadyInTime => {
                f.write_str("deadline of the request passed before its transport was ready")
            }
            Self::QueueFull { zone, lane } => write!(f, "queue of lane {lane} in zone {zone} is full"),
            Self::TooManyKeys { zone } => write!(f, "no room for another key in zone {zone}"),
            Self::UnknownZone(zone) => write!(f, "zone {zone} is not configured"),
            Self::NoZone => f.write_str("request falls under no zone"),
            Self::TooManyZones { most } => write!(f, "request falls under more than {most} zones"),
        }
    }
}

impl Error for Refusal {}
