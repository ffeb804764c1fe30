use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The gateway's clock: tokio's, which tests can pause, plus skipped time.
#[derive(Debug)]
pub(crate) struct Clock {
    start: Instant,
    skipped: Mutex<Duration>,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), skipped: Mutex::new(Duration::ZERO) }
    }

    /// Returns the gateway's time since the sandbox was started.
    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed().saturating_add(*self.skipped.lock())
    }

    /// Skips `by`. The clock stops after a century, far from any overflow.
    pub(crate) fn advance(&self, by: Duration) {
        const CENTURY: Duration = Duration::from_secs(100 * 366 * 86_400);
        let mut skipped = self.skipped.lock();
        *skipped = skipped.saturating_add(by).min(CENTURY);
    }
}
