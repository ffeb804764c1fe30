use std::{error::Error, fmt, str::FromStr};

macro_rules! faults {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)+) => {
        /// Something that the sandbox does wrong on demand, by the one name that is used everywhere.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Fault {
            $($(#[$doc])* $variant,)+
        }

        impl Fault {
            /// Every fault, by group.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The fault's name on the command line, in scripts and in reports.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

faults! {
    /// 504, and the order exists.
    Placement504Applied = "placement.504-applied",
    /// 504, and the order does not exist.
    Placement504NotApplied = "placement.504-not-applied",
    /// 504, and the order comes to exist some seconds later.
    Placement504Late = "placement.504-late",
    /// 502, and the order exists.
    Placement502Applied = "placement.502-applied",
    /// 502, and the order does not exist.
    Placement502NotApplied = "placement.502-not-applied",
    /// 502, and the order comes to exist some seconds later.
    Placement502Late = "placement.502-late",
    /// 500, and the order exists.
    Placement500Applied = "placement.500-applied",
    /// 500, and the order does not exist.
    Placement500NotApplied = "placement.500-not-applied",
    /// 500, and the order comes to exist some seconds later.
    Placement500Late = "placement.500-late",
    /// 503, and the order exists.
    Placement503Applied = "placement.503-applied",
    /// 503, and the order does not exist.
    Placement503NotApplied = "placement.503-not-applied",
    /// 503, and the order comes to exist some seconds later.
    Placement503Late = "placement.503-late",
    /// 400 with the internal-error text, and the order exists.
    Placement400InternalApplied = "placement.400-internal-applied",
    /// 400 with the internal-error text, and the order does not exist.
    Placement400InternalNotApplied = "placement.400-internal-not-applied",
    /// 400 with the internal-error text, and the order comes to exist some seconds later.
    Placement400InternalLate = "placement.400-internal-late",
    /// The order exists, and the body of its 200 breaks off.
    Placement200Truncated = "placement.200-truncated",
    /// The order exists, and its 200 does not hold the identifier.
    Placement200NoOrderId = "placement.200-no-order-id",
    /// The order does not exist, and the answer is a 200 whose envelope is an error.
    Placement200Error = "placement.200-error",
    /// The order exists, and the connection is reset.
    PlacementResetApplied = "placement.reset-applied",
    /// The request was read, the order does not exist, and the connection is reset.
    PlacementResetNotApplied = "placement.reset-not-applied",
    /// The gateway forwards the request twice: two orders, one answer.
    PlacementDoubleForward = "placement.double-forward",

    /// The order list is `no-data` although orders exist.
    ListEmpty = "list.empty",
    /// Every other order is missing from the list.
    ListPartial = "list.partial",
    /// The list is as it was some time ago.
    ListStale = "list.stale",
    /// The list shows open orders only.
    ListOpenOnly = "list.open-only",
    /// Each order is listed twice.
    ListDuplicatedIds = "list.duplicated-ids",
    /// Identifiers are numbers.
    ListNumericIds = "list.numeric-ids",
    /// Statuses are texts that §2 does not have.
    ListUnknownEnums = "list.unknown-enums",
    /// Records lack `legType`.
    ListMissingLegType = "list.missing-leg-type",
    /// Records lack their prices.
    ListMissingPrice = "list.missing-price",
    /// Prices and quantities are texts with four decimals.
    ListPricesReformatted = "list.prices-reformatted",
    /// Market orders are listed as limit orders.
    ListMarketAsLimit = "list.market-as-limit",
    /// The body of the list breaks off.
    ListTruncated = "list.truncated",
    /// The list is answered with 504.
    List504 = "list.504",
    /// The list is answered with 429 although the quota is not used up.
    List429 = "list.429",
    /// The list is answered with 401 although the token is good.
    List401 = "list.401",

    /// The request's token dies before the request is looked at.
    AuthTokenRevoked = "auth.token-revoked",
    /// All tokens die, as at a night roll-over.
    AuthAllTokensRevoked = "auth.all-tokens-revoked",
    /// The user's oldest session is evicted.
    AuthSessionEvicted = "auth.session-evicted",
    /// The client's address is taken off the app's whitelist.
    AuthIpRemoved = "auth.ip-removed",
    /// The `Date` header is up to ten seconds off.
    AuthDateSkew = "auth.date-skew",
    /// A login is answered with 500 after its session was opened.
    AuthLogin5xx = "auth.login-5xx",
    /// The account is locked: every login is refused from now on.
    AuthLockOut = "auth.lock-out",

    /// Somebody else uses up the request's quota just before it.
    QuotaForeign = "quota.foreign",
    /// All limits are half of what the specification says, from now on.
    QuotaHalved = "quota.halved",
    /// 429 although the quota is not used up.
    QuotaStorm = "quota.storm",
    /// 429 although the quota is not used up, with `Retry-After: 2`.
    QuotaStormRetryAfter = "quota.storm-retry-after",
    /// 429 although the quota is not used up, with a `Retry-After` that nobody can mean.
    QuotaStormAbsurd = "quota.storm-absurd",

    /// The connection is reset before the request is looked at.
    ConnectionResetBefore = "connection.reset-before",
    /// The request is executed, and the connection is reset instead of an answer.
    ConnectionResetAfter = "connection.reset-after",
    /// The request is executed, and the connection breaks in the middle of the answer's body.
    ConnectionResetMidBody = "connection.reset-mid-body",
}

/// The part of a request's way through the gateway at which a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Before the request is looked at.
    Connection,
    /// Before its credentials are checked.
    Credentials,
    /// When its quota is decided.
    Quota,
    /// In place of, or around, placing an order.
    Placement,
    /// In place of, or around, listing orders.
    List,
    /// In place of, or around, a login.
    Login,
    /// After the request was executed.
    Answer,
}

impl Fault {
    pub(crate) fn stage(self) -> Stage {
        match self {
            Self::ConnectionResetBefore => Stage::Connection,
            Self::ConnectionResetAfter | Self::ConnectionResetMidBody | Self::AuthDateSkew => Stage::Answer,
            Self::AuthLogin5xx | Self::AuthLockOut => Stage::Login,
            _ => match self.as_str().split('.').next() {
                Some("placement") => Stage::Placement,
                Some("list") => Stage::List,
                Some("quota") => Stage::Quota,
                _ => Stage::Credentials,
            },
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(name: &str) -> Result<Self, UnknownFault> {
        let known = Self::ALL.iter().copied().find(|fault| fault.as_str() == name);
        known.ok_or_else(|| UnknownFault { name: name.chars().take(80).collect() })
    }
}

/// A name that is no fault's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFault {
    name: String,
}

impl fmt::Display for UnknownFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no fault is named {:?}", self.name)?;
        let group = self.name.split('.').next().unwrap_or_default();
        let near: Vec<_> =
            Fault::ALL.iter().map(|f| f.as_str()).filter(|n| n.split('.').next() == Some(group)).collect();
        if near.is_empty() {
            f.write_str("; the groups are placement, list, auth, quota, connection")
        } else {
            write!(f, "; there are {}", near.join(", "))
        }
    }
}

impl Error for UnknownFault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_found_by_its_name() {
        for &fault in Fault::ALL {
            assert_eq!(fault.as_str().parse(), Ok(fault));
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_ones_of_its_group() {
        let error = "list.nonsense".parse::<Fault>().unwrap_err().to_string();
        assert!(error.contains("list.empty") && !error.contains("placement"), "{error}");
        assert!("x".parse::<Fault>().unwrap_err().to_string().contains("the groups are"));
    }
}
