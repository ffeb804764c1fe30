use std::{fmt, num::NonZeroU32, time::Duration};

use crate::Scope;

/// A rate-limit zone, by name.
///
/// The five zones of §8 are constants; a user's own zone is `Zone::new("name")`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Zone(&'static str);

impl Zone {
    /// Logins with a two-factor code: 3 per second for one client IP address (§8).
    pub const OTP: Self = Self("otp");
    /// Endpoints that accept only an API key: 100 per second for one key (§8).
    pub const API_KEY: Self = Self("api_key");
    /// Market data and account data: 100 per second for one token (§8).
    pub const DATA: Self = Self("data");
    /// `POST /api/oms/place-order`: 10 per second for one token (§8).
    pub const PLACE_ORDER: Self = Self("place_order");
    /// Every other authenticated endpoint: 10 per second and 400 per minute for one token (§8).
    pub const GENERAL: Self = Self("general");

    /// The five zones of §8, in the order of its table.
    pub const ALL: [Self; 5] = [Self::OTP, Self::API_KEY, Self::DATA, Self::PLACE_ORDER, Self::GENERAL];

    /// Creates a zone with another name.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// Returns the zone's name for configuration, metrics and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

/// One zone is a list of one, where a request may fall under several.
impl AsRef<[Self]> for Zone {
    fn as_ref(&self) -> &[Self] {
        std::slice::from_ref(self)
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({})", self.0)
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// At most `limit` requests in any stretch of `period`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    limit: NonZeroU32,
    period: Duration,
}

impl Window {
    /// `limit` requests per `period`.
    #[must_use]
    pub const fn new(limit: NonZeroU32, period: Duration) -> Self {
        Self { limit, period }
    }

    /// `limit` requests per second.
    #[must_use]
    pub const fn per_second(limit: NonZeroU32) -> Self {
        Self::new(limit, Duration::from_secs(1))
    }

    /// `limit` requests per minute.
    #[must_use]
    pub const fn per_minute(limit: NonZeroU32) -> Self {
        Self::new(limit, Duration::from_secs(60))
    }

    /// Returns the number of requests.
    #[must_use]
    pub const fn limit(self) -> NonZeroU32 {
        self.limit
    }

    /// Returns the stretch of time.
    #[must_use]
    pub const fn period(self) -> Duration {
        self.period
    }
}

/// One row of the zone table (§8), as data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneSpec {
    /// The zone's name.
    pub zone: Zone,
    /// The requests that it counts together.
    pub scope: Scope,
    /// Its windows; a request must satisfy all of them.
    pub windows: Vec<Window>,
}

impl ZoneSpec {
    /// Creates a zone with the given scope and windows.
    #[must_use]
    pub fn new(zone: Zone, scope: Scope, windows: impl Into<Vec<Window>>) -> Self {
        Self { zone, scope, windows: windows.into() }
    }
}

/// Returns the zone table of §8.
#[must_use]
pub fn zones() -> [ZoneSpec; 5] {
    const N3: NonZeroU32 = NonZeroU32::MIN.saturating_add(2);
    const N10: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);
    const N100: NonZeroU32 = NonZeroU32::MIN.saturating_add(99);
    const N400: NonZeroU32 = NonZeroU32::MIN.saturating_add(399);
    [
        ZoneSpec::new(Zone::OTP, Scope::ClientIp, [Window::per_second(N3)]),
        ZoneSpec::new(Zone::API_KEY, Scope::ApiKey, [Window::per_second(N100)]),
        ZoneSpec::new(Zone::DATA, Scope::AuthToken, [Window::per_second(N100)]),
        ZoneSpec::new(Zone::PLACE_ORDER, Scope::AuthToken, [Window::per_second(N10)]),
        ZoneSpec::new(Zone::GENERAL, Scope::AuthToken, [Window::per_second(N10), Window::per_minute(N400)]),
    ]
}
