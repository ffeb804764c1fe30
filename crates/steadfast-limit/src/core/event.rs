use std::{io, time::Duration};

use steadfast_spec::{Endpoint, Zone};

use crate::core::{snapshot::WindowUse, trust::trust_step::TrustStep};

/// An occurrence that an operator may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The gateway answered 429: the zone stops for all lanes, for cancels no longer than 8 s.
    Paused {
        /// The zone.
        zone: Zone,
        /// The key, as in [`ZoneSnapshot`](crate::ZoneSnapshot).
        key: u64,
        /// The length of the pause for all lanes but the critical one.
        pause: Duration,
        /// True if the probe after a pause was refused again.
        again: bool,
    },
    /// The gateway answered 429 although the limiter's own log kept every limit.
    ///
    /// Either the gateway counts in a way that the zone's profile is not safe against, or another program uses the
    /// same token, key or address. The limiter cannot distinguish the two.
    ModelMismatch {
        /// The zone.
        zone: Zone,
        /// The key, as in [`ZoneSnapshot`](crate::ZoneSnapshot).
        key: u64,
        /// The limiter's own log.
        ours: Vec<WindowUse>,
    },
    /// A zone is trusted less after a mismatch, or more after a clean minute.
    Stepped {
        /// The zone.
        zone: Zone,
        /// The key, as in [`ZoneSnapshot`](crate::ZoneSnapshot).
        key: u64,
        /// The new step.
        step: TrustStep,
    },
    /// A zone has changed the limit of its shortest window: the gateway refuses requests within the documented
    /// limit, or no longer does. Cancels keep the documented limit until their own 429s lower it, and have a limit of
    /// their own then.
    Learned {
        /// The zone.
        zone: Zone,
        /// The key, as in [`ZoneSnapshot`](crate::ZoneSnapshot).
        key: u64,
        /// True for the limit of cancels, the critical lane; false for that of all other lanes.
        critical: bool,
        /// The limit that the zone applies now.
        limit: u32,
        /// The documented limit.
        documented: u32,
    },
    /// A route was refused several times within its zone's limits. It is counted under a stricter zone for half an
    /// hour.
    RouteMoved {
        /// The route's endpoint; `None` for a path in no table.
        endpoint: Option<Endpoint>,
        /// The zone that it fell under.
        from: Zone,
        /// The zone that it falls under now.
        to: Zone,
    },
    /// A route falls under its own zone again.
    RouteReturned {
        /// The route's endpoint; `None` for a path in no table.
        endpoint: Option<Endpoint>,
        /// The zone.
        zone: Zone,
    },
    /// The journal cannot be understood, is marked as out of date, or is gone. All windows count as spent, except
    /// for cancels and verifications. Reported once, when the limiter is built.
    JournalDamaged,
    /// The journal cannot be written. No request waits for it. But if the process ends now, the next one does not
    /// know what this one has sent; the journal is marked if possible. Reported once until it can be written again.
    JournalFailed {
        /// The system's error.
        kind: io::ErrorKind,
        /// How a process starts if this one ends before it can write again.
        next: NextStart,
    },
    /// A record was written later than promised. If the process had been killed meanwhile, the next one might have
    /// sent too much.
    JournalLate {
        /// The delay beyond the promise.
        by: Duration,
    },
}

/// How the next process treats a journal that could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NextStart {
    /// It counts all windows as spent, except for cancels and verifications: the file is marked as out of date, or
    /// gone.
    Pessimistic,
    /// It trusts the last record, because the file could be neither marked nor removed.
    Unaware,
}

impl Event {
    pub(crate) fn log(&self) {
        match self {
            Self::Paused { zone, pause, again, .. } => {
                tracing::warn!(%zone, ?pause, again, "zone stopped after a 429");
            }
            Self::ModelMismatch { zone, ours, .. } => {
                tracing::warn!(%zone, ?ours, "429 although the limits were kept: another counter, or another user");
            }
            Self::Stepped { zone, step, .. } => tracing::info!(%zone, %step, "zone moved on its trust"),
            Self::Learned { zone, critical, limit, documented, .. } => {
                tracing::warn!(%zone, critical, limit, documented, "zone goes by another limit, as its gateway does");
            }
            Self::RouteMoved { endpoint, from, to } => {
                tracing::warn!(?endpoint, %from, %to, "route moved to a stricter zone after unexplained 429s");
            }
            Self::RouteReturned { endpoint, zone } => {
                tracing::info!(?endpoint, %zone, "route is back under its own zone");
            }
            Self::JournalDamaged => {
                tracing::warn!(
                    "journal of the limits is damaged or out of date: all windows are taken for spent"
                );
            }
            Self::JournalFailed { kind, next } => {
                tracing::warn!(%kind, ?next, "journal of the limits cannot be written");
            }
            Self::JournalLate { by } => tracing::warn!(?by, "journal of the limits was written late"),
        }
    }
}
