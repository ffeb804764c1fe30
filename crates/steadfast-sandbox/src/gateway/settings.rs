use std::{collections::BTreeMap, time::Duration};

use steadfast_spec::{Paths, Zone};

use crate::{
    enforce::{GatewayClock, Kind},
    gateway::spec_reading::SpecReading,
};

/// The fate of a user's eleventh login session; §8 says only that there are at most ten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EleventhSession {
    /// The oldest session's token ends.
    #[default]
    EvictOldest,
    /// The login is refused with 403.
    Refuse,
}

/// The body of a successful individual login, which §4.3 does not show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoginAnswer {
    /// The token record inside the envelope, as §1 has it for every JSON response but that of §4.2.
    #[default]
    Enveloped,
    /// The bare token record, as in §4.2.
    Bare,
}

/// All settings of a sandbox.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) seed: u64,
    pub(crate) paths: Paths,
    /// Logins name no client, and records have the shape that a published client expects.
    pub(crate) published: bool,
    pub(crate) interpretation: SpecReading,
    pub(crate) eleventh_session: EleventhSession,
    pub(crate) login_answer: LoginAnswer,
    pub(crate) totp_window: u64,
    pub(crate) lock_out_after: Option<u32>,
    pub(crate) gateway_timeout: Duration,
    pub(crate) late_by: (Duration, Duration),
    pub(crate) stale_by: Duration,
    pub(crate) cached_for: Duration,
    pub(crate) accounting_lag: Duration,
    pub(crate) accounting_jitter: Duration,
    pub(crate) counted_after_answer: Option<Duration>,
    pub(crate) clock: GatewayClock,
    pub(crate) enforcers: BTreeMap<Zone, Kind>,
    pub(crate) large_scrip_master: Option<u64>,
    pub(crate) kept_arrivals: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 0,
            paths: Paths::public(),
            published: false,
            interpretation: SpecReading::default(),
            eleventh_session: EleventhSession::default(),
            login_answer: LoginAnswer::default(),
            totp_window: 1,
            lock_out_after: None,
            gateway_timeout: Duration::from_millis(200),
            late_by: (Duration::from_secs(2), Duration::from_secs(8)),
            stale_by: Duration::from_secs(2),
            cached_for: Duration::from_secs(30),
            accounting_lag: Duration::ZERO,
            accounting_jitter: Duration::ZERO,
            counted_after_answer: None,
            clock: GatewayClock::new(),
            enforcers: BTreeMap::new(),
            large_scrip_master: None,
            kept_arrivals: 1_000_000,
        }
    }
}
