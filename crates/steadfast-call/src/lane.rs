use std::fmt;

use steadfast_spec::Endpoint;

/// The priority of a request while it waits for its zones.
///
/// A lane is served only while every lane above it is empty; within a lane, first come, first served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Lane {
    /// Cancels, exits and logins.
    Critical,
    /// Reads that resolve an order in doubt.
    Verification,
    /// Placing and modifying orders.
    Trading,
    /// All other requests that a caller waits for.
    Normal,
    /// Polls and large downloads.
    Bulk,
}

impl Lane {
    /// All lanes, highest priority first.
    pub const ALL: [Self; 5] = [Self::Critical, Self::Verification, Self::Trading, Self::Normal, Self::Bulk];

    /// Returns the default lane of an endpoint.
    #[must_use]
    pub const fn of(endpoint: Endpoint) -> Self {
        match endpoint {
            Endpoint::CancelOrder
            | Endpoint::CancelSpecial
            | Endpoint::ExitOrder
            | Endpoint::Token
            | Endpoint::IndividualToken => Self::Critical,
            Endpoint::PlaceOrder
            | Endpoint::ModifyOrder
            | Endpoint::PlaceSpecial
            | Endpoint::ModifySpecial
            | Endpoint::ConvertPosition => Self::Trading,
            Endpoint::ScripMaster | Endpoint::SymbolStore | Endpoint::SymbolGroups => Self::Bulk,
            _ => Self::Normal,
        }
    }

    /// Returns the lane's name for configuration, metrics and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Verification => "verification",
            Self::Trading => "trading",
            Self::Normal => "normal",
            Self::Bulk => "bulk",
        }
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
