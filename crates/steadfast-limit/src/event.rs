use std::{io, time::Duration};

use steadfast_spec::{Endpoint, Zone};

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
    /// A zone is trusted less after a mismatch, or more after a clean minute.
    Stepped {
        /// The zone.
        zone: Zone,
        /// The key, as in [`ZoneSnapshot`](crate::ZoneSnapshot).
        key: u64,
        /// The step it is on now: 0 its own profile, 1 universal, 2 paced.
        step: u8,
    },
    /// A zone goes by another limit of its shortest window than before: the gateway refuses what the documented one
    /// allows, or does so no longer. Cancels keep the documented one.
    Learned {
        /// The zone.
        zone: Zone,
        /// The key, as in [`ZoneSnapshot`](crate::ZoneSnapshot).
        key: u64,
        /// The limit that the zone goes by now.
        limit: u32,
        /// The documented limit.
        documented: u32,
    },
    /// A route was refused several times although its zone's limits were kept: it is counted under a stricter zone
    /// for half an hour.
    Demoted {
        /// The route's endpoint; `None` for a path that is in no table.
        endpoint: Option<Endpoint>,
        /// The zone that it fell under.
        from: Zone,
        /// The zone that it falls under now.
        to: Zone,
    },
    /// A route falls under its own zone again.
    Restored {
        /// The route's endpoint; `None` for a path that is in no table.
        endpoint: Option<Endpoint>,
        /// The zone.
        zone: Zone,
    },
    /// The journal that was found cannot be understood, is out of date by its own word, or is gone: all windows are taken for spent, except for cancels and
    /// verifications. Reported once, when the limiter is built.
    JournalDamaged,
    /// The journal cannot be written. Nothing waits for it; but if the process ends now, the next one does not know what
    /// this one has sent, and the journal says so to it if it can. Reported once until it can be written again.
    JournalFailed {
        /// What the system says about it.
        kind: io::ErrorKind,
        /// What a process that starts before it can be written again will do.
        next: NextStart,
    },
    /// A record took longer than promised: if the process had been killed meanwhile, the next one might have sent
    /// too much.
    JournalLate {
        /// By how much.
        by: Duration,
    },
}

/// What the next process makes of a journal that could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NextStart {
    /// It takes all windows for spent, except for cancels and verifications: the file says that it is out of date, or is
    /// gone.
    Pessimistic,
    /// It believes the last record, because neither could the file be marked nor removed.
    Unaware,
}

impl Event {
    pub(crate) fn log(&self) {
        match self {
            Self::Frozen { zone, pause, again, .. } => {
                tracing::warn!(%zone, ?pause, again, "zone stopped after a 429");
            }
            Self::ModelMismatch { zone, ours, .. } => {
                tracing::warn!(%zone, ?ours, "429 although the limits were kept: another counter, or another user");
            }
            Self::Stepped { zone, step, .. } => tracing::info!(%zone, step, "zone moved on its ladder"),
            Self::Learned { zone, limit, documented, .. } => {
                tracing::warn!(%zone, limit, documented, "zone goes by another limit, as its gateway does");
            }
            Self::Demoted { endpoint, from, to } => {
                tracing::warn!(?endpoint, %from, %to, "route moved to a stricter zone after unexplained 429s");
            }
            Self::Restored { endpoint, zone } => {
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
