use steadfast_sandbox::enforce::Kind;
use steadfast_spec::Zone;

/// A client of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Contender {
    /// steadfast with one profile for the zone, and no reserves.
    Steadfast(Profile),
    /// steadfast as the preset has it: profiles, lanes and reserves.
    Preset,
    /// steadfast with lanes, but nothing withheld from the lower ones.
    PriorityOnly,
    /// steadfast with everything in one lane.
    OneQueue,
    /// governor with the burst that the limit seems to allow; one limiter for each window.
    Governor,
    /// governor with a burst of one.
    GovernorPaced,
    /// tower's `RateLimit`, one for each window.
    Tower,
    /// tower-resilience's limiter with its sliding log, one for each window.
    TowerResilience,
    /// leaky-bucket, one for each window.
    LeakyBucket,
    /// An exact log of all windows at once, stamped when a request is sent.
    LogAtSend,
}

/// A profile of steadfast's limiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Profile {
    /// Safe against every known counter.
    Universal,
    /// Not safe against interpolating counters.
    WindowLog,
    /// At most this many back to back.
    Paced(u32),
    /// The log until a 429 that it cannot explain.
    Adaptive,
}

impl Contender {
    /// All clients of the matrix, the peers last.
    pub(super) const ALL: [Self; 12] = [
        Self::Steadfast(Profile::Universal),
        Self::Steadfast(Profile::WindowLog),
        Self::Steadfast(Profile::Adaptive),
        Self::Steadfast(Profile::Paced(1)),
        Self::Steadfast(Profile::Paced(5)),
        Self::Preset,
        Self::GovernorPaced,
        Self::Governor,
        Self::Tower,
        Self::TowerResilience,
        Self::LeakyBucket,
        Self::LogAtSend,
    ];

    /// Returns the program.
    #[must_use]
    pub(super) const fn client(self) -> &'static str {
        match self {
            Self::Steadfast(_) | Self::Preset | Self::PriorityOnly | Self::OneQueue => "steadfast",
            Self::Governor | Self::GovernorPaced => "governor",
            Self::Tower => "tower",
            Self::TowerResilience => "tower-resilience",
            Self::LeakyBucket => "leaky-bucket",
            Self::LogAtSend => "log at send",
        }
    }

    /// Returns its setup; empty if there is only one.
    #[must_use]
    pub(super) const fn profile(self) -> &'static str {
        match self {
            Self::Steadfast(Profile::Universal) => "universal",
            Self::Steadfast(Profile::WindowLog) => "window-log",
            Self::Steadfast(Profile::Adaptive) => "adaptive",
            Self::Steadfast(Profile::Paced(1)) => "paced 1",
            Self::Steadfast(Profile::Paced(_)) => "paced 5",
            Self::Preset => "preset",
            Self::PriorityOnly => "priority only",
            Self::OneQueue => "one queue",
            Self::Governor => "burst",
            Self::GovernorPaced => "paced",
            Self::Tower | Self::TowerResilience | Self::LeakyBucket | Self::LogAtSend => "",
        }
    }

    /// True for steadfast's own.
    #[must_use]
    pub(super) const fn is_ours(self) -> bool {
        matches!(self, Self::Steadfast(_) | Self::Preset | Self::PriorityOnly | Self::OneQueue)
    }

    /// True if it promises to stay within the limits of such a gateway.
    pub(super) fn keeps(self, zone: Zone, gateway: Kind) -> bool {
        let profile = match self {
            Self::Steadfast(profile) => profile,
            Self::Preset if zone == Zone::PLACE_ORDER => Profile::Adaptive,
            Self::Preset | Self::PriorityOnly | Self::OneQueue => Profile::Universal,
            _ => return false,
        };
        match (profile, gateway) {
            (Profile::Paced(spread), Kind::LeakyBucket { burst }) => spread <= burst + 1,
            (_, Kind::LeakyBucket { .. }) => false,
            (Profile::WindowLog | Profile::Adaptive, Kind::SlidingCounter { .. }) => false,
            (Profile::WindowLog | Profile::Adaptive, Kind::CountingRejects { .. }) => false,
            _ => true,
        }
    }
}
