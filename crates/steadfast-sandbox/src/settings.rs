use std::{collections::BTreeMap, time::Duration};

use steadfast_spec::{Paths, Zone};

use crate::enforce::{GatewayClock, Kind};

/// How a POST or PUT with a JSON body, or without a `Content-Type`, is refused: §7 names both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum JsonBody {
    /// 400 `Bad request`, from the gateway.
    #[default]
    BadRequest,
    /// 415, from the application.
    UnsupportedMediaType,
}

/// How a request from an address that is not on the app's whitelist is refused: §5.6 names both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum IpRefusal {
    /// 401 with no detail.
    #[default]
    Unauthorized,
    /// 403.
    Forbidden,
}

/// What happens to a user's eleventh login session: §8 says only that there are at most ten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EleventhSession {
    /// The oldest session's token dies.
    #[default]
    EvictOldest,
    /// The login is refused with 403.
    Refuse,
}

/// Which orders `GET /api/oms/orders` lists: "the session's orders" (§4.5) has two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListScope {
    /// Those placed with the same access token.
    #[default]
    LoginSession,
    /// All of the user's.
    User,
}

/// In which order `GET /api/oms/orders` lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListOrder {
    /// Oldest first.
    #[default]
    OldestFirst,
    /// Newest first.
    NewestFirst,
    /// In a new order for each read.
    Shuffled,
}

/// Whether a 429 says when to come back; the specification is silent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetryAfter {
    /// No `Retry-After` header.
    #[default]
    Absent,
    /// The whole seconds until a request would be admitted.
    Seconds,
    /// A number that nobody can mean.
    Absurd,
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

/// Everything about a sandbox that is a choice.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) seed: u64,
    pub(crate) paths: Paths,
    pub(crate) json_body: JsonBody,
    pub(crate) ip_refusal: IpRefusal,
    pub(crate) eleventh_session: EleventhSession,
    pub(crate) list_scope: ListScope,
    pub(crate) list_order: ListOrder,
    pub(crate) retry_after: RetryAfter,
    pub(crate) login_answer: LoginAnswer,
    pub(crate) totp_window: u64,
    pub(crate) lock_out_after: Option<u32>,
    pub(crate) gateway_timeout: Duration,
    pub(crate) late_by: (Duration, Duration),
    pub(crate) stale_by: Duration,
    pub(crate) accounting_lag: Duration,
    pub(crate) accounting_jitter: Duration,
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
            json_body: JsonBody::default(),
            ip_refusal: IpRefusal::default(),
            eleventh_session: EleventhSession::default(),
            list_scope: ListScope::default(),
            list_order: ListOrder::default(),
            retry_after: RetryAfter::default(),
            login_answer: LoginAnswer::default(),
            totp_window: 1,
            lock_out_after: None,
            gateway_timeout: Duration::from_millis(200),
            late_by: (Duration::from_secs(2), Duration::from_secs(8)),
            stale_by: Duration::from_secs(2),
            accounting_lag: Duration::ZERO,
            accounting_jitter: Duration::ZERO,
            clock: GatewayClock::new(),
            enforcers: BTreeMap::new(),
            large_scrip_master: None,
            kept_arrivals: 1_000_000,
        }
    }
}
