use crate::core::{rules::ceilings::LANES, time::Nanos};

/// The settings that belong to no zone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// A request may be counted for this long after the end of its connection, if that end is unknown.
    pub(crate) arrives_within: Nanos,
    /// The connections of a process end abortively with it.
    pub(crate) ends_with_process: bool,
    pub(crate) queue_bounds: [u32; LANES],
    pub(crate) most_keys: usize,
    pub(crate) strict_critical: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            arrives_within: 120_000_000_000,
            ends_with_process: false,
            queue_bounds: [1_024, 1_024, 2_048, 1_024, 256],
            most_keys: 4_096,
            strict_critical: false,
        }
    }
}

impl Settings {
    /// A request may be counted for this long after an abortive end of its connection.
    pub(crate) const AFTER_RESET: Nanos = 1_000_000_000;

    /// Returns how long the requests of a process may be counted after its end.
    pub(crate) fn after_process(&self) -> Nanos {
        if self.ends_with_process { Self::AFTER_RESET } else { self.arrives_within }
    }
}
