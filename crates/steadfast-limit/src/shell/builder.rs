mod build;

use std::{fmt, sync::Arc, time::Duration};

use steadfast_call::{BootClock, Lane, WallClock};
use steadfast_spec::{Zone, zones};

use crate::{
    core::{
        event::Event,
        limiter::Limiter,
        rules::{Rules, ceilings::LANES, quota::Quota},
        settings::Settings,
    },
    persist::cold_start::ColdStart,
    shell::{
        shared::{Observer, Shared},
        shared_count::SharedCount,
        zone_limiter::ZoneLimiter,
    },
};

/// Configures a [`ZoneLimiter`], zone by zone.
///
/// # Example
///
/// ```
/// use steadfast_limit::{InvalidLimiter, MINUTE, Profile, Quota, SECOND, Scope, Zone, ZoneLimiter};
///
/// # fn main() -> Result<(), InvalidLimiter> {
/// let limiter = ZoneLimiter::builder()
///     .preset()
///     // On a local network, with a gateway known not to interpolate.
///     .adjust(Zone::GENERAL, |general| general.profile(Profile::WindowLog).headroom(1))
///     .zone(Quota::new(Zone::new("reports"), Scope::ApiKey).limit(20, MINUTE))
///     .build()?;
///
/// // A quota that cannot be kept is refused by name, not rounded.
/// let zero = Quota::new(Zone::new("reports"), Scope::ApiKey).limit(0, SECOND);
/// let refused = ZoneLimiter::builder().zone(zero).build();
/// assert_eq!(refused.err(), Some(InvalidLimiter::ZeroLimit(Zone::new("reports"))));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Builder {
    quotas: Vec<Quota>,
    unknown: Option<Zone>,
    arrives_within: Duration,
    ends_with_process: bool,
    queue_bounds: [u32; LANES],
    most_keys: usize,
    strict_critical: bool,
    moved_routes: Option<(Zone, Zone)>,
    cold_start: ColdStart,
    wall_clock: WallClock,
    boot_clock: BootClock,
    observer: Option<Observer>,
    shared_count: Option<Arc<dyn SharedCount>>,
}

impl ZoneLimiter {
    /// Returns a builder without zones.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Returns a limiter with the five zones of the service's own table (§8) and default settings.
    #[must_use]
    pub fn preset() -> Self {
        // The table is a constant, and a test builds it with every check.
        let rules = zones().iter().filter_map(|row| Rules::new(&Quota::preset(row)).ok()).collect();
        let core = Limiter::new(rules, Settings::default());
        Self::new(Shared::new(core, true, None))
    }
}

impl Builder {
    /// Makes a builder without a zone.
    pub(crate) fn new() -> Self {
        let Settings { arrives_within, ends_with_process, queue_bounds, most_keys, strict_critical } =
            Settings::default();
        Self {
            quotas: Vec::new(),
            unknown: None,
            arrives_within: Duration::from_nanos(arrives_within),
            ends_with_process,
            queue_bounds,
            most_keys,
            strict_critical,
            moved_routes: None,
            cold_start: ColdStart::default(),
            wall_clock: WallClock::system(),
            boot_clock: BootClock::system(),
            observer: None,
            shared_count: None,
        }
    }

    /// Adds the five zones of the service's own table (§8).
    #[must_use]
    pub fn preset(mut self) -> Self {
        self.quotas.extend(zones().iter().map(Quota::preset));
        self
    }

    /// Adds a zone.
    #[must_use]
    pub fn zone(mut self, quota: impl Into<Quota>) -> Self {
        self.quotas.push(quota.into());
        self
    }

    /// Changes a zone that was added before. If there is none of that name, [`build`](Self::build) fails.
    #[must_use]
    pub fn adjust(mut self, zone: Zone, change: impl FnOnce(Quota) -> Quota) -> Self {
        match self.quotas.iter_mut().find(|quota| quota.zone == zone) {
            Some(quota) => *quota = change(quota.clone()),
            None => self.unknown = self.unknown.or(Some(zone)),
        }
        self
    }

    /// Sets how long a request may still be counted after it was given up, or its process ended, if the end of its
    /// connection is unknown: an operating system goes on sending the rest of a closed connection for a while. Default:
    /// 120 seconds.
    ///
    /// A request whose connection is known to have ended abortively may be counted for a second from that instant.
    #[must_use]
    pub fn arrives_within(mut self, time: Duration) -> Self {
        self.arrives_within = time;
        self
    }

    /// Declares that connections end abortively with their process, as those with `SO_LINGER` of zero do. After a start
    /// its requests may then be counted for a second, and not for as long as they may [arrive](Self::arrives_within).
    /// A client over its own transport, without a proxy, declares it for the limiter that it makes.
    ///
    /// Only [`ColdStart::Journal`] and [`ZoneLimiter::import`] use it.
    #[must_use]
    pub fn ends_with_process(mut self) -> Self {
        self.ends_with_process = true;
        self
    }

    /// Sets how many requests may wait in `lane`, in each zone and key. Defaults: critical, verification and normal
    /// 1,024, trading 2,048, bulk 256.
    #[must_use]
    pub fn queue_bound(mut self, lane: Lane, most: u32) -> Self {
        self.queue_bounds[lane as usize] = most;
        self
    }

    /// Sets how many keys may be in use at the same time. Every zone of a request has a key of its own. Default: 4,096.
    #[must_use]
    pub fn max_keys(mut self, most: usize) -> Self {
        self.most_keys = most;
        self
    }

    /// Lets requests without an answer hold back critical requests and verifications as long as all others.
    ///
    /// By default a lost request holds these back only for the length of the window, and a request on its way for
    /// three seconds more, because getting out of a position comes before a 429.
    #[must_use]
    pub fn strict_critical(mut self) -> Self {
        self.strict_critical = true;
        self
    }

    /// Counts a route of the zone `from` under `to` for half an hour after it was answered 429 three times within a
    /// minute although the limits of `from` were kept. Off by default. The last call applies.
    ///
    /// The service's pages disagree whether some market and account data fall under [`Zone::DATA`] or
    /// [`Zone::GENERAL`]. `move_refused_routes(Zone::DATA, Zone::GENERAL)` finds out for each route and reports it by
    /// [`Event::RouteMoved`]. Only the layer does so, because [`ZoneLimiter::acquire`] knows no routes.
    #[must_use]
    pub fn move_refused_routes(mut self, from: Zone, to: Zone) -> Self {
        self.moved_routes = Some((from, to));
        self
    }

    /// Sets how much counts as spent when the limiter starts. Default: [`ColdStart::Auto`].
    #[must_use]
    pub fn cold_start(mut self, cold_start: ColdStart) -> Self {
        self.cold_start = cold_start;
        self
    }

    /// Sets the clock that dates the [journal](ColdStart::Journal) if the machine has rebooted since it was written,
    /// or has no [boot clock](Self::boot_clock). It has no other use.
    #[must_use]
    pub fn wall_clock(mut self, clock: WallClock) -> Self {
        self.wall_clock = clock;
        self
    }

    /// Sets the clock that dates the [journal](ColdStart::Journal) as long as the machine has not rebooted. A boot
    /// clock cannot be set.
    #[must_use]
    pub fn boot_clock(mut self, clock: BootClock) -> Self {
        self.boot_clock = clock;
        self
    }

    /// Counts all requests together with other processes as well. A request then leaves when its own limiter and
    /// `shared` admit it. All processes must be given the same zones and be of one build.
    ///
    /// `shared` outlives the process, so [`cold_start`](Self::cold_start) is not used.
    #[must_use]
    pub fn count_with(mut self, shared: Arc<dyn SharedCount>) -> Self {
        self.shared_count = Some(shared);
        self
    }

    /// Calls `observer` with every [`Event`], outside all locks, on the thread that met it: requests wait while it
    /// runs. The last observer given applies.
    #[must_use]
    pub fn on_event(mut self, observer: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("quotas", &self.quotas)
            .field("arrives_within", &self.arrives_within)
            .field("ends_with_process", &self.ends_with_process)
            .field("queue_bounds", &self.queue_bounds)
            .field("most_keys", &self.most_keys)
            .field("strict_critical", &self.strict_critical)
            .field("moved_routes", &self.moved_routes)
            .field("cold_start", &self.cold_start)
            .field("observer", &self.observer.is_some())
            .field("shared_count", &self.shared_count)
            .finish_non_exhaustive()
    }
}
