use std::{
    fmt,
    net::IpAddr,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use steadfast_spec::{Lane, Scope, Zone, ext, zones};
use tokio::time::{Duration, Instant};

use crate::{
    core::{
        decision::ZoneId,
        event::Event,
        limiter::Limiter,
        rules::{Rules, quota::Quota},
        settings::Settings,
        snapshot::Snapshot,
        time::{LONGEST, Nanos},
        trust::demotion::Demotions,
    },
    error::Refusal,
    layer::RateLimitLayer,
    persist::{journal::Journal, record::Entry, restart::Beginning},
    request::keys::{ScopeKeys, Seed},
    shell::{
        acquire::{Acquire, Zones},
        builder::{Builder, Observer},
        hand_off::HandOff,
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
/// let refused = cancel().deadline(soon).await;
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
#[derive(Clone)]
pub struct ZoneLimiter {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) origin: Instant,
    pub(crate) seed: Seed,
    pub(crate) observer: Option<Observer>,
    /// Names and scopes of the zones, as in the core, readable without the lock.
    pub(crate) zones: Box<[(Zone, Scope)]>,
    pub(crate) hand_off: HandOff,
    pub(crate) demotions: Option<Mutex<Demotions>>,
    pub(crate) journal: Option<Journal>,
    pub(crate) beginning: Beginning,
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
        Self::of(Arc::new(Shared::new(Limiter::new(rules, Settings::default()))))
    }

    pub(crate) fn of(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    pub(crate) fn downgrade(&self) -> Weak<Shared> {
        Arc::downgrade(&self.shared)
    }

    pub(crate) fn journal(&self) -> Option<&Journal> {
        self.shared.journal.as_ref()
    }

    /// Returns the entries for the journal.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.shared.entries()
    }

    /// Returns a layer that takes a permit for every request.
    #[must_use]
    pub fn layer(&self) -> RateLimitLayer {
        RateLimitLayer::new(self.clone())
    }

    /// Returns the keys of requests to `authority` (host and port) with the credentials of `account`, from the
    /// default local address. The case of the host and a port of 80 or 443 make no difference.
    #[must_use]
    pub fn keys(&self, authority: &str, account: &ext::Account) -> ScopeKeys {
        self.keys_from(authority, None, account)
    }

    /// Does the same for a separate local address: zones that count client addresses count it apart.
    #[must_use]
    pub fn keys_from(&self, authority: &str, from: Option<IpAddr>, account: &ext::Account) -> ScopeKeys {
        ScopeKeys::new(&self.shared.seed, authority, from, account.as_str())
    }

    /// Waits until all of `zones` admit a request of `lane`.
    ///
    /// The future resolves to a [`Permit`](crate::Permit), or to a [`Refusal`] if a zone is unknown, the queue is
    /// full or the [deadline](Acquire::deadline) cannot be met. It does nothing until it is polled.
    pub fn acquire(&self, zones: &[Zone], keys: ScopeKeys, lane: Lane) -> Acquire {
        Acquire::new(self.clone(), self.resolve(zones.iter().copied(), keys), lane)
    }

    /// Returns when a request that came now would get its permit at the earliest, if none ahead of it gave up.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if a zone is unknown, or none is given.
    pub fn earliest(&self, zones: &[Zone], keys: ScopeKeys, lane: Lane) -> Result<Instant, Refusal> {
        let zones = self.resolve(zones.iter().copied(), keys)?;
        let at = self.with(|core, now| core.earliest(zones.as_slice(), lane, now))?;
        Ok(self.instant(at))
    }

    /// Returns what every zone and lane holds now. Idle keys are dropped first.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.with(|core, now| core.snapshot(now))
    }

    /// Converts an instant to the core's.
    pub(crate) fn nanos(&self, instant: Instant) -> Nanos {
        self.shared.nanos(instant)
    }

    /// Converts an instant of the core to a timer's.
    pub(crate) fn instant(&self, nanos: Nanos) -> Instant {
        self.shared.origin + Duration::from_nanos(nanos.saturating_sub(Shared::START))
    }

    pub(crate) fn hand_off(&self) -> &HandOff {
        &self.shared.hand_off
    }

    /// Calls the core with the current instant.
    pub(crate) fn with<T>(&self, call: impl FnOnce(&mut Limiter, Nanos) -> T) -> T {
        let now = self.nanos(Instant::now());
        let (result, events) = self.shared.hand_off.with(|core| call(core, now));
        self.report_all(&events);
        result
    }

    pub(crate) fn resolve(
        &self,
        zones: impl Iterator<Item = Zone>,
        keys: ScopeKeys,
    ) -> Result<Zones, Refusal> {
        let mut resolved = Zones::default();
        for zone in zones {
            let (id, (_, scope)) = (0_u8..)
                .zip(&self.shared.zones)
                .find(|(_, (name, _))| *name == zone)
                .ok_or(Refusal::UnknownZone(zone))?;
            resolved.push((ZoneId(id), keys.of(*scope)))?;
        }
        Ok(resolved)
    }

    pub(crate) fn report_all(&self, events: &[Event]) {
        events.iter().for_each(|event| self.report(event));
    }

    /// Logs the event and calls the observer. No lock is held.
    pub(crate) fn report(&self, event: &Event) {
        event.log();
        if let Some(observer) = &self.shared.observer {
            observer(event);
        }
    }
}

impl Shared {
    /// The core's instant at which the limiter was made. It is large, so that stamps of an earlier process lie after
    /// the core's origin.
    pub(crate) const START: Nanos = 30 * 86_400 * 1_000_000_000;

    pub(crate) fn new(core: Limiter) -> Self {
        Self {
            origin: Instant::now(),
            seed: Seed::random(),
            observer: None,
            zones: core.zones().collect(),
            hand_off: HandOff::new(core),
            demotions: None,
            journal: None,
            beginning: Beginning::Asks,
        }
    }

    pub(crate) fn nanos(&self, instant: Instant) -> Nanos {
        let since = instant.saturating_duration_since(self.origin).as_nanos();
        Self::START + u64::try_from(since).map_or(LONGEST, |since| since.min(LONGEST))
    }
}

impl fmt::Debug for ZoneLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZoneLimiter").field("zones", &self.shared.zones).finish_non_exhaustive()
    }
}
