/// What one zone has spent, as data that outlives the process.
///
/// A limiter that starts with empty windows while the gateway's are full sends what the gateway must refuse.
/// [`ZoneLimiter::export`](crate::ZoneLimiter::export) makes one for every zone in use, and
/// [`ZoneLimiter::import`](crate::ZoneLimiter::import) takes them back. It holds no secret and no key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spent {
    /// The zone's name.
    pub zone: String,
    /// The instants from which each spent slot ages, in nanoseconds relative to the export, ascending: negative for
    /// an answer that was back, positive for a request that the gateway may still have counted after it.
    pub stamps: Vec<i64>,
}

impl Spent {
    /// What a zone had spent, read back from where it was kept.
    #[must_use]
    pub fn new(zone: impl Into<String>, stamps: impl Into<Vec<i64>>) -> Self {
        Self { zone: zone.into(), stamps: stamps.into() }
    }
}
