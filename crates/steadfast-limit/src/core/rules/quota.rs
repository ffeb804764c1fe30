use std::{num::NonZeroU32, time::Duration};

use steadfast_spec::{Scope, Zone, ZoneSpec};

use crate::core::rules::{ceilings::Ceilings, profile::Profile};

/// One second, for [`Quota::limit`].
pub const SECOND: Duration = Duration::from_secs(1);

/// One minute, for [`Quota::limit`].
pub const MINUTE: Duration = Duration::from_secs(60);

/// The limits of one zone, its scope, and how it is kept.
///
/// A plain value, checked by [`Builder::build`](crate::Builder::build). [`steadfast_spec::zones`] is the service's
/// table; every row of it converts into a `Quota`.
///
/// # Example
///
/// ```
/// use steadfast_limit::{Ceilings, MINUTE, Profile, Quota, SECOND, Scope, Zone};
///
/// let reports = Quota::new(Zone::new("reports"), Scope::AuthToken)
///     .limit(5, SECOND)
///     .limit(100, MINUTE)
///     .ceilings(Ceilings::standard())
///     .profile(Profile::WindowLog);
/// assert_eq!(reports.zone().as_str(), "reports");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    pub(crate) zone: Zone,
    pub(crate) scope: Scope,
    pub(crate) limits: Vec<(u32, Duration)>,
    pub(crate) profile: Profile,
    pub(crate) ceilings: Ceilings,
    pub(crate) headroom: u32,
    pub(crate) settle: Duration,
}

impl Quota {
    /// Makes a quota for `zone`, counted per `scope`, with no limit yet.
    #[must_use]
    pub fn new(zone: Zone, scope: Scope) -> Self {
        Self {
            zone,
            scope,
            limits: Vec::new(),
            profile: Profile::default(),
            ceilings: Ceilings::default(),
            headroom: 0,
            settle: Duration::ZERO,
        }
    }

    /// Returns the zone's name.
    #[must_use]
    pub fn zone(&self) -> Zone {
        self.zone
    }

    /// Adds a window: at most `limit` requests in any stretch of `period`. A request must fit into all windows.
    #[must_use]
    pub fn limit(mut self, limit: u32, period: Duration) -> Self {
        self.limits.push((limit, period));
        self
    }

    /// Removes the windows added so far, to give a preset zone others.
    #[must_use]
    pub fn clear_limits(mut self) -> Self {
        self.limits.clear();
        self
    }

    /// Sets whom the zone counts together.
    #[must_use]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Sets which ways of counting the zone is safe against. Default: [`Profile::Universal`], which is safe against all
    /// that are known. It costs one request of each window, a tenth of ten a second: [`Profile`] compares them.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets what the zone withholds from its lower lanes. Default: nothing.
    #[must_use]
    pub fn ceilings(mut self, ceilings: Ceilings) -> Self {
        self.ceilings = ceilings;
        self
    }

    /// Leaves `slots` of every window to other programs on the same token. Default: 0.
    #[must_use]
    pub fn headroom(mut self, slots: u32) -> Self {
        self.headroom = slots;
        self
    }

    /// Sets how long after its answer a request may still be counted, for gateways that count late. Default: zero.
    #[must_use]
    pub fn settle(mut self, lag: Duration) -> Self {
        self.settle = lag;
        self
    }

    /// Returns the quota for a row of the service's own table.
    ///
    /// `general` and `data` are used by several lanes and have the standard ceilings. `place_order` starts with the
    /// log alone and learns, because bursts matter most there.
    pub(crate) fn preset(row: &ZoneSpec) -> Self {
        let quota = Self::from(row);
        match row.zone {
            Zone::GENERAL | Zone::DATA => quota.ceilings(Ceilings::standard()),
            Zone::PLACE_ORDER => quota.profile(Profile::Adaptive { burst: NonZeroU32::MIN }),
            _ => quota,
        }
    }
}

impl From<&ZoneSpec> for Quota {
    fn from(row: &ZoneSpec) -> Self {
        row.windows
            .iter()
            .fold(Self::new(row.zone, row.scope), |quota, w| quota.limit(w.limit().get(), w.period()))
    }
}

impl From<ZoneSpec> for Quota {
    fn from(row: ZoneSpec) -> Self {
        Self::from(&row)
    }
}
