use std::{error::Error, fmt, io, path::PathBuf, time::Duration};

use steadfast_spec::{Lane, Zone, file::NotOwn};

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
        /// The lower lane, which has more.
        zone: Zone,
        /// The lower lane, which is left more.
        lane: Lane,
    },
    /// The burst of a paced profile is more than half of a window, or the window is too small to be paced.
    BurstTooLarge(Zone),
    /// A lane's queue has no room.
    ZeroQueue(Lane),
    /// The limit on keys is zero.
    ZeroKeys,
    /// The gateway's timeout is too long for exact counting.
    TimeoutTooLong,
    /// A demotion names a target zone that was not added, or is the same zone.
    UnknownDemotion(Zone),
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
            Self::BurstTooLarge(zone) => write!(f, "burst of zone {zone} is more than half of a window"),
            Self::ZeroQueue(lane) => write!(f, "queue of lane {lane} holds nothing"),
            Self::ZeroKeys => f.write_str("limiter may keep no key"),
            Self::TimeoutTooLong => f.write_str("gateway timeout is too long to count exactly"),
            Self::UnknownDemotion(zone) => {
                write!(f, "demotion names zone {zone}, which is not another zone of the limiter")
            }
            Self::Journal { path, kind } => write!(f, "journal {} cannot be kept: {kind}", path.display()),
            Self::JournalNotOwn { path, why } => write!(f, "journal {} is not used: {why}", path.display()),
            Self::JournalInUse(path) => write!(f, "journal {} is kept by another limiter", path.display()),
            Self::JournalInCore => f.write_str("pure core keeps no journal"),
        }
    }
}

steadfast_spec::debug_in_one_line!(InvalidLimiter);

impl Error for InvalidLimiter {}
