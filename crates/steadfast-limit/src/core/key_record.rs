use crate::core::{decision::ZoneId, time::Nanos};

/// The spent slots of one key, in the form kept beyond the end of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyRecord {
    pub(crate) zone: ZoneId,
    pub(crate) key: u64,
    /// How long after the export a 429 still closes the zone.
    pub(crate) closed_for: Nanos,
    /// In the form that [`Limiter::export`](crate::Limiter::export) returns.
    pub(crate) stamps: Vec<i64>,
}
