use std::time::Duration;

use steadfast_call::Lane;
use steadfast_spec::Zone;

use crate::core::{rules::ceilings::LANES, trust::trust_step::TrustStep};

/// The state of a limiter at one instant, for metrics and dashboards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Every key in use, in the order of the zones' configuration.
    pub zones: Vec<ZoneSnapshot>,
    /// The bytes that all keys and waiters of the core take on the heap.
    pub bytes: usize,
}

/// One key of one zone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ZoneSnapshot {
    /// The zone.
    pub zone: Zone,
    /// The key's hash, stable for the life of the limiter.
    pub key: u64,
    /// Requests granted and not yet answered.
    pub in_flight: u32,
    /// Requests whose answer was lost and whose slots are still held.
    pub lost: usize,
    /// The zone's windows, the shortest first.
    pub windows: Vec<WindowUse>,
    /// The rest of a pause after a 429, for all lanes but the critical one.
    pub paused_for: Option<Duration>,
    /// How far the zone trusts its profile.
    pub step: TrustStep,
    /// The lanes, in the order of [`Lane::ALL`].
    pub lanes: [LaneSnapshot; LANES],
}

/// One window of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WindowUse {
    /// How many requests it allows, after headroom.
    pub limit: u32,
    /// The length of the window.
    pub period: Duration,
    /// How many slots are spent: on their way, answered within the period, or lost and still held.
    pub used: usize,
}

impl WindowUse {
    /// Returns how many slots are free.
    #[must_use]
    pub fn free(&self) -> usize {
        (self.limit as usize).saturating_sub(self.used)
    }
}

/// One lane in one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaneSnapshot {
    /// The lane.
    pub lane: Lane,
    /// How many requests wait in it.
    pub waiting: u32,
    /// How long a request that came now would wait at least, if none ahead of it gives up.
    pub next_free: Duration,
    /// The limit of the shortest window that 429s have taught this lane, if it is not the documented one. The critical
    /// lane learns from its own 429s, all others learn together.
    pub learned: Option<u32>,
}
