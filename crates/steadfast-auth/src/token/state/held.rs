use std::time::Duration;

use super::Now;

/// The token in use, and what the service has said of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) generation: u64,
    pub(super) issued: i64,
    /// `None`: only the service knows.
    pub(super) expires: Option<i64>,
    /// How far the service's wall clock was ahead of the aging clock when the token came.
    pub(super) ahead: i64,
    pub(super) worked: bool,
    /// Another process fetched it moments before, and the service has not yet accepted it from this process.
    pub(super) fresh: bool,
    /// When the service first refused it, before accepting it at all or before accepting it from this process.
    pub(super) refused: Option<Duration>,
    /// When the service first refused it after it had worked, if it has not accepted it since.
    pub(super) denied: Option<Duration>,
    /// The store has been told of that.
    pub(super) denial_told: bool,
    pub(super) doubted: bool,
    /// A person has been told that it is refused.
    pub(super) called: bool,
}

impl Held {
    pub(super) fn is_over(&self, now: Now) -> bool {
        self.expires.is_some_and(|e| self.wall(now) >= e)
    }

    /// Returns the service's wall clock, carried on from when the token came. Setting the clock does not age the token.
    pub(super) fn wall(&self, now: Now) -> i64 {
        now.aging.saturating_add(self.ahead)
    }
}
