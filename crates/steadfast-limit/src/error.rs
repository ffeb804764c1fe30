use std::{error::Error, fmt, io, path::PathBuf, sync::Arc, time::Duration};

use steadfast_call::{Lane, file::NotOwn};
use steadfast_spec::Zone;

/// The limiter refused a request: nothing was sent or spent, and an immediate retry is useless.
///
/// The layer returns it inside a refused [`Failure`](steadfast_call::Failure), which no layer retries.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The zone cannot admit the request before the instant by which it must have left.
    WouldMissDeadline {
        /// The zone that would admit it last.
        zone: Zone,
        /// The time from the refusal until the zone could admit it at the earliest. Zero if only the deadline
        /// prevents it.
        earliest: Duration,
    },
    /// The request was granted, but the inner service was not ready before the instant by which it must have left.
    NotReadyInTime,
    /// The lane's queue in that zone is full.
    QueueFull {
        /// The zone.
        zone: Zone,
        /// The lane.
        lane: Lane,
    },
    /// The limiter holds its maximum number of keys, and all of them are in use.
    TooManyKeys {
        /// The zone of the new key.
        zone: Zone,
    },
    /// The count that the zone shares with other processes could not be asked.
    NotShared {
        /// The zone.
        zone: Zone,
        /// The reason, which names the store.
        why: Arc<str>,
    },
    /// The limiter has no such zone.
    UnknownZone(Zone),
    /// The request has no zone, so there is no limit to keep.
    NoZone,
    /// The request has more zones than one request may fall under.
    TooManyZones {
        /// The maximum.
        most: usize,
    },
}

impl Refusal {
    /// Returns the zone that refused, if one did.
    #[must_use]
    pub fn zone(&self) -> Option<Zone> {
        match self {
            Self::WouldMissDeadline { zone, .. }
            | Self::QueueFull { zone, .. }
            | Self::TooManyKeys { zone }
            | Self::NotShared { zone, .. }
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
            Self::NotShared { zone, why } => write!(f, "shared count of zone {zone} is not known: {why}"),
            Self::UnknownZone(zone) => write!(f, "zone {zone} is not configured"),
            Self::NoZone => f.write_str("request falls under no zone"),
            Self::TooManyZones { most } => write!(f, "request falls under more than {most} zones"),
        }
    }
}

steadfast_call::debug_in_one_line!(Refusal);

impl Error for Refusal {}

/// A limiter cannot be built from its quotas.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidLimiter {
    /// There is no zone at all.
    NoZones,
    /// There are more zones than a limiter can hold.
    TooManyZones {
        /// The maximum.
        most: usize,
    },
    /// Two quotas name the same zone.
    DuplicateZone(Zone),
    /// An adjustment names a zone that was not added before it.
    UnknownZone(Zone),
    /// A zone has no window.
    NoWindows(Zone),
    /// A zone has more windows than a limiter can hold.
    TooManyWindows {
        /// The zone.
        zone: Zone,
        /// The maximum.
        most: usize,
    },
    /// Two windows of one zone have the same period.
    DuplicatePeriod {
        /// The zone.
        zone: Zone,
        /// The period.
        period: Duration,
    },
    /// A window allows no request.
    ZeroLimit(Zone),
    /// A window has no length.
    ZeroPeriod(Zone),
    /// A window's limit or period, or the settle time, is too large for exact counting.
    TooLarge(Zone),
    /// The headroom leaves no slot of a window.
    HeadroomTakesAll(Zone),
    /// The ceilings leave a lane no slot of a window.
    StarvedLane {
        /// The zone.
        zone: Zone,
        /// The lane.
        lane: Lane,
    },
    /// The ceilings leave a lane more than the lane above it.
    InvertedCeilings {
        /// The zone.
        zone: Zone,
        /// The lower lane, which is left more.
        lane: Lane,
    },
    /// The time for which a request may be [counted late](crate::Quota::settle) is too long for exact counting.
    CountedTooLate(Zone),
    /// The burst of a paced profile is more than half of a window, or the window is too small to be paced.
    BurstTooLarge(Zone),
    /// A lane's queue has no room.
    ZeroQueue(Lane),
    /// The limit on keys is zero.
    ZeroKeys,
    /// The time within which a request [arrives](crate::Builder::arrives_within) is too long for exact counting.
    ArrivalTooLong,
    /// A [move of refused routes](crate::Builder::move_refused_routes) names a zone that was not added, or the same
    /// zone twice.
    InvalidMove(Zone),
    /// The journal cannot be read or written.
    Journal {
        /// The file.
        path: PathBuf,
        /// The system's error.
        kind: io::ErrorKind,
    },
    /// Another limiter, of this or another process, holds the journal.
    JournalInUse(PathBuf),
    /// The journal or its lock may be foreign: a link, another user's file, or a file that others can access.
    JournalNotOwn {
        /// The journal's path.
        path: PathBuf,
        /// The reason.
        why: NotOwn,
    },
    /// The pure core was given a journal; only [`Builder::build`](crate::Builder::build) opens one.
    JournalInCore,
}

impl fmt::Display for InvalidLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoZones => f.write_str("limiter has no zone"),
            Self::TooManyZones { most } => write!(f, "limiter has more than {most} zones"),
            Self::DuplicateZone(zone) => write!(f, "zone {zone} is configured twice"),
            Self::UnknownZone(zone) => write!(f, "zone {zone} is adjusted but not configured"),
            Self::NoWindows(zone) => write!(f, "zone {zone} has no window"),
            Self::TooManyWindows { zone, most } => write!(f, "zone {zone} has more than {most} windows"),
            Self::DuplicatePeriod { zone, period } => {
                write!(f, "zone {zone} has two windows of {period:?}")
            }
            Self::ZeroLimit(zone) => write!(f, "zone {zone} has a window of zero requests"),
            Self::ZeroPeriod(zone) => write!(f, "zone {zone} has a window of zero length"),
            Self::TooLarge(zone) => write!(f, "zone {zone} has a window too large to count exactly"),
            Self::HeadroomTakesAll(zone) => write!(f, "headroom of zone {zone} leaves nothing of a window"),
            Self::StarvedLane { zone, lane } => {
                write!(f, "ceilings of zone {zone} leave nothing to lane {lane}")
            }
            Self::InvertedCeilings { zone, lane } => {
                write!(f, "ceilings of zone {zone} leave more to lane {lane} than to the lane above it")
            }
            Self::CountedTooLate(zone) => {
                write!(f, "zone {zone} counts requests too late after their answers to count exactly")
            }
            Self::BurstTooLarge(zone) => write!(f, "burst of zone {zone} is more than half of a window"),
            Self::ZeroQueue(lane) => write!(f, "queue of lane {lane} holds nothing"),
            Self::ZeroKeys => f.write_str("limiter may keep no key"),
            Self::ArrivalTooLong => {
                f.write_str("time within which a request arrives is too long to count exactly")
            }
            Self::InvalidMove(zone) => {
                write!(
                    f,
                    "move of refused routes names zone {zone}, which is not another zone of the limiter"
                )
            }
            Self::Journal { path, kind } => write!(f, "journal {} cannot be kept: {kind}", path.display()),
            Self::JournalNotOwn { path, why } => write!(f, "journal {} is not used: {why}", path.display()),
            Self::JournalInUse(path) => write!(f, "journal {} is kept by another limiter", path.display()),
            Self::JournalInCore => f.write_str("pure core keeps no journal"),
        }
    }
}

steadfast_call::debug_in_one_line!(InvalidLimiter);

impl Error for InvalidLimiter {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c06_debug_of_refusals_reads_like_display() {
        let refusal = Refusal::QueueFull { zone: Zone::GENERAL, lane: Lane::Bulk };
        assert_eq!(format!("{refusal:?}"), "queue of lane bulk in zone general is full");
        let invalid = InvalidLimiter::ZeroQueue(Lane::Bulk);
        assert_eq!(format!("{invalid:?}"), "queue of lane bulk holds nothing");
    }

    #[test]
    fn a_refusal_says_why_and_names_the_zone_that_refused_if_one_did() {
        let (zone, lane) = (Zone::GENERAL, Lane::Bulk);
        let late = |seconds| Refusal::WouldMissDeadline { zone, earliest: Duration::from_secs(seconds) };
        for (refusal, says, of) in [
            (late(0), "deadline of the request passed", Some(zone)),
            (late(7), "in 7s at the earliest", Some(zone)),
            (Refusal::QueueFull { zone, lane }, "queue of lane bulk in zone general is full", Some(zone)),
            (Refusal::TooManyKeys { zone }, "no room for another key in zone general", Some(zone)),
            (
                Refusal::NotShared { zone, why: "store is away".into() },
                "not known: store is away",
                Some(zone),
            ),
            (Refusal::UnknownZone(zone), "zone general is not configured", Some(zone)),
            (Refusal::NotReadyInTime, "before its transport was ready", None),
            (Refusal::NoZone, "falls under no zone", None),
            (Refusal::TooManyZones { most: 4 }, "more than 4 zones", None),
        ] {
            assert!(refusal.to_string().contains(says), "{refusal}");
            assert_eq!(refusal.zone(), of, "{refusal}");
        }
    }
}
