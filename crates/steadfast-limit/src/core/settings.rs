use crate::core::{rules::ceilings::LANES, time::Nanos};

/// The settings that belong to no zone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) gateway_timeout: Nanos,
    pub(crate) arrives_within: Nanos,
    pub(crate) queue_bounds: [u32; LANES],
    pub(crate) most_keys: usize,
    pub(crate) strict_critical: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            gateway_timeout: 30_000_000_000,
            arrives_within: 120_000_000_000,
            queue_bounds: [1_024, 1_024, 2_048, 1_024, 256],
            most_keys: 4_096,
            strict_critical: false,
        }
    }
}
