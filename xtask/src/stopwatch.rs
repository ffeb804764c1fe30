#![expect(clippy::disallowed_types, reason = "the tooling times real processes; there is no clock to pause")]

use std::time::{Duration, Instant};

/// Measures how long a real process or stage took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
