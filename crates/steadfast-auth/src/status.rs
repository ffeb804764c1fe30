use std::time::{Duration, SystemTime};

use steadfast_spec::ext::TokenGeneration;

/// Where in its life the token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenState {
    /// There has not been one.
    None,
    /// Usable, and no renewal is due.
    Valid,
    /// Usable; a renewal in the background is due.
    Advisory,
    /// Usable for a last minute; requests wait for its renewal.
    Mandatory,
    /// Its life is over.
    Expired,
    /// There is none that could be used, and only a person can fetch one.
    NeedsHuman,
    /// There is none that could be used, and logins have stopped so that the account is not locked.
    Latched,
    /// The service refuses it for a reason that its age does not explain.
    Suspect,
}

/// A [`TokenSource`](crate::TokenSource) at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Where in its life the token is.
    pub state: TokenState,
    /// Which token is held.
    pub generation: Option<TokenGeneration>,
    /// When it ends, by this machine's clock as it was when the token came; `None` if only the service knows, or there is none.
    pub expires_at: Option<SystemTime>,
    /// True if logins have stopped until a reset, whether or not a token is still usable.
    pub latched: bool,
    /// Sessions that this process has opened, or may have opened, in the last 24 hours; a user has ten (§5).
    pub sessions: usize,
    /// How far the service's clock is ahead, in milliseconds; `None` before the first sample.
    pub clock_offset_ms: Option<i64>,
}

/// A person will be needed soon: the token ends, and the configured login cannot run by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HumanNeeded {
    /// How long the token may still be used.
    pub within: Duration,
}
