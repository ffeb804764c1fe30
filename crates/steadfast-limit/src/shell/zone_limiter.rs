use std::{fmt, sync::Arc, time::Duration};

use steadfast_call::{Lane, ext};
use steadfast_spec::{Endpoint, Zone};
use tokio::time::Instant;

use crate::{
    core::{rules::ceilings::LANES, snapshot::Snapshot},
    error::Refusal,
    request::keys::ScopeKeys,
    shell::{
        acquire::Acquire, route_mover::WatchedRoute, shared::Shared, shared_count::SharedCount,
        zone_settings::ZoneSettings,
    },
};

/// Hands out permits to send, for every zone of one service.
///
/// Holds the layer's state, usable without tower: [`acquire`](Self::acquire) a [`Permit`](crate::Permit), send, and
/// settle it.
///
/// # Example
///
/// ```
/// use steadfast_limit::{Account, Answer, Lane, Zone, ZoneLimiter};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = ZoneLimiter::preset();
/// let keys = limiter.keys("api.example.com", &Account::default());
/// let cancel = || limiter.acquire(&[Zone::GENERAL], keys, Lane::Critical);
///
/// for _ in 0..10 {
///     let mut permit = cancel().await?;
///     permit.sent();
///     permit.settle(Answer::Accepted);
/// }
///
/// // The eleventh of a second waits. If it must not, it is told at once, and nothing is spent.
/// let soon = tokio::time::Instant::now() + std::time::Duration::from_millis(100);
/// let refused = cancel().send_by(soon).await;
/// assert_eq!(refused.err().and_then(|refusal| refusal.zone()), Some(Zone::GENERAL));
/// # Ok(())
/// # }
/// ```
///
/// # Clone
///
/// Clones share everything.
///
/// # Cancellation
///
/// Dropping an [`Acquire`] leaves its queue at once. A permit granted meanwhile goes to the next in line. Dropping a
/// [`Permit`](crate::Permit) gives it back if the request has not been sent; otherwise its slots are held as long as
/// the gateway may still count the request.
///
/// # Drop
///
/// A limiter with a [journal](crate::ColdStart::Journal) writes its last record when the last of its clones, layers,
/// futures and permits is dropped, on the thread that drops it.
#[derive(Clone)]
pub struct ZoneLimiter {
    pub(super) shared: Arc<Shared>,
}

impl ZoneLimiter {
    pub(super) fn new(shared: Shared) -> Self {
        Self { shared: Arc::new(shared) }
    }

    /// Counts together with other processes. For a limiter that nothing else holds yet.
    pub(super) fn counting_with(
        mut self,
        shared_count: Arc<dyn SharedCount>,
        arrives_within: Duration,
    ) -> Self {
        let settings = self.settings().into();
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.counting_with(shared_count, settings, arrives_within);
        }
        self
    }

    /// Returns the keys of requests to `authority` (host and port) with the credentials of `account`, from the
    /// default [local address](ScopeKeys::local_address) and with an [API key](ScopeKeys::api_key) without a name. The
    /// case of the host and a port of 80 or 443 make no difference.
    #[must_use]
    pub fn keys(&self, authority: &str, account: &ext::Account) -> ScopeKeys {
        ScopeKeys::new(self.shared.seed(), authority, account.as_str())
    }

    /// Says that requests with these keys may come. The facade's client does so by itself.
    ///
    /// It matters where the limiter [counts with](crate::Builder::count_with) other processes: a process that stands by
    /// then knows how old their requests are when its own first one comes.
    pub fn expect(&self, keys: ScopeKeys) {
        self.shared.expect(keys);
    }

    /// Waits until all of `zones` admit a request of `lane`.
    ///
    /// The future resolves to a [`Permit`](crate::Permit), or to a [`Refusal`] if a zone is unknown, the queue is
    /// full or it cannot [be sent in time](Acquire::send_by). It does nothing until it is polled.
    pub fn acquire(&self, zones: &[Zone], keys: ScopeKeys, lane: Lane) -> Acquire {
        let zones = self.shared.resolve(zones.iter().copied(), keys);
        Acquire::new(Arc::clone(&self.shared), zones, lane)
    }

    /// Returns when a request that came now would get its permit at the earliest, if none ahead of it gave up.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if a zone is unknown, or none is given.
    pub fn earliest(&self, zones: &[Zone], keys: ScopeKeys, lane: Lane) -> Result<Instant, Refusal> {
        let zones = self.shared.resolve(zones.iter().copied(), keys)?;
        let at = self.shared.with(|core, now| core.earliest(zones.as_slice(), lane, now))?;
        Ok(self.shared.instant(at))
    }

    /// Returns the same for a request that is sent again and goes to the head of its lane.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if a zone is unknown, or none is given.
    pub fn earliest_again(&self, zones: &[Zone], keys: ScopeKeys, lane: Lane) -> Result<Instant, Refusal> {
        let zones = self.shared.resolve(zones.iter().copied(), keys)?;
        let at = self.shared.with(|core, now| core.earliest_in(zones.as_slice(), lane, true, now))?;
        Ok(self.shared.instant(at))
    }

    /// Returns the settings of all zones, in the order of their configuration.
    #[must_use]
    pub fn settings(&self) -> Vec<ZoneSettings> {
        self.shared.with(|core, _| core.rules().iter().map(ZoneSettings::of).collect())
    }

    /// Returns how many requests may wait in each lane, in the order of [`Lane::ALL`].
    #[must_use]
    pub fn queue_bounds(&self) -> [u32; LANES] {
        self.shared.with(|core, _| core.queue_bounds())
    }

    /// Returns what every zone and lane holds now. Idle keys are dropped first.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.shared.with(|core, now| core.snapshot(now))
    }

    /// Returns the route of a request, if that may be counted under another zone than its own.
    pub(crate) fn watch(
        &self,
        zones: &[Zone],
        keys: ScopeKeys,
        endpoint: Option<Endpoint>,
        path: &str,
    ) -> Option<WatchedRoute> {
        self.shared.route_mover()?.watch(zones, keys, endpoint, path, self.shared.seed())
    }

    /// Does the same as [`acquire`](Self::acquire) for a request of the route `watched`.
    pub(crate) fn acquire_watched(
        &self,
        zones: &[Zone],
        keys: ScopeKeys,
        lane: Lane,
        watched: Option<WatchedRoute>,
    ) -> Acquire {
        let (Some(mover), Some(watched)) = (self.shared.route_mover(), watched) else {
            return self.acquire(zones, keys, lane);
        };
        let (zones, returned) = mover.zones_of(watched, zones, self.shared.now());
        self.shared.report_all(returned.as_slice());
        self.acquire(&zones, keys, lane)
    }
}

impl fmt::Debug for ZoneLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let zones: Vec<_> = self.shared.zones().map(|(_, zone, scope)| (zone, scope)).collect();
        f.debug_struct("ZoneLimiter").field("zones", &zones).finish_non_exhaustive()
    }
}
