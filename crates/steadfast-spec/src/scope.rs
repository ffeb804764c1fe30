use std::fmt;

/// The requests that a rate-limit zone counts together (§8, column "Scope").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Scope {
    /// All requests from one client IP address, whichever user sends them.
    ClientIp,
    /// All requests with one API key.
    ApiKey,
    /// All requests with one access token.
    AuthToken,
    /// All requests to the server, wherever they come from and whatever they carry. No zone of this service; for
    /// others.
    Shared,
}

impl Scope {
    /// Returns the scope's name for configuration, metrics and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClientIp => "client_ip",
            Self::ApiKey => "api_key",
            Self::AuthToken => "auth_token",
            Self::Shared => "shared",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
