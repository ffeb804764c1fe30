use std::fmt;

/// How far a zone trusts that the gateway counts as the zone's profile assumes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TrustStep {
    /// It goes by its own profile.
    #[default]
    OwnProfile,
    /// It goes by the universal rule, after some time without a 429.
    Universal,
    /// It spreads requests over its shortest window, after a 429.
    Spread,
}

impl TrustStep {
    /// Returns the next step towards the zone's own profile.
    pub(crate) fn towards_profile(self) -> Self {
        match self {
            Self::Spread => Self::Universal,
            Self::Universal | Self::OwnProfile => Self::OwnProfile,
        }
    }

    /// Returns how many steps the zone's own profile is away.
    pub(crate) fn distance(self) -> u64 {
        match self {
            Self::OwnProfile => 0,
            Self::Universal => 1,
            Self::Spread => 2,
        }
    }
}

impl fmt::Display for TrustStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OwnProfile => "own profile",
            Self::Universal => "universal",
            Self::Spread => "spread",
        })
    }
}
