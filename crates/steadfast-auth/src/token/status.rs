use std::time::{Duration, SystemTime};

use steadfast_call::ext::TokenGeneration;

/// The phase of a token's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenPhase {
    /// There has been no token yet.
    None,
    /// Usable, and no renewal is due.
    Valid,
    /// Usable; a renewal in the background is due.
    Advisory,
    /// Usable for a last minute; requests wait for the renewal.
    Mandatory,
    /// It has expired.
    Expired,
    /// No token is usable, and only a person can fetch one.
    NeedsHuman,
    /// No token is usable, and logins have stopped so that the account is not locked.
    Latched,
    /// The service refuses it for a reason that its age does not explain.
    Suspect,
}

/// The status of a [`TokenSource`](crate::TokenSource) at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// The phase of the token.
    pub phase: TokenPhase,
    /// The generation of the held token.
    pub generation: Option<TokenGeneration>,
    /// When it ends, by this machine's clock as it was when the token came; `None` if there is no token, or only the
    /// service knows.
    pub expires_at: Option<SystemTime>,
    /// True if requests that need a token fail now: the service refuses it, or there is none and no login may start.
    pub unusable: bool,
    /// When the next login starts by itself, if `unusable` and one will.
    pub next_login_at: Option<SystemTime>,
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
