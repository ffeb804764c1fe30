/// The spent slots of one zone, as data that outlives the process.
///
/// A limiter that starts with empty windows while the gateway's are full sends requests that the gateway must
/// refuse. [`ZoneLimiter::export`](crate::ZoneLimiter::export) returns one value per zone in use, and
/// [`ZoneLimiter::import`](crate::ZoneLimiter::import) restores them. It holds no secret and no key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spent {
    /// The zone's name.
    pub zone: String,
    /// The instants from which each spent slot ages, in nanoseconds relative to the export, ascending. Negative for
    /// an answered request, positive for one that the gateway may have counted after the export.
    pub stamps: Vec<i64>,
}

impl Spent {
    /// Makes a value from stored data.
    #[must_use]
    pub fn new(zone: impl Into<String>, stamps: impl Into<Vec<i64>>) -> Self {
        Self { zone: zone.into(), stamps: stamps.into() }
    }
}
