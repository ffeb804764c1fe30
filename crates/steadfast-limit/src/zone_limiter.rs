use std::{fmt, hash::RandomState, net::IpAddr, sync::Arc, task::Waker};

use parking_lot::Mutex;
use steadfast_spec::{Lane, Scope, Zone, ext, zones};
use tokio::time::{Duration, Instant};

use crate::{
    Acquire, Builder, Event, Limiter, Nanos, Quota, RateLimitLayer, Refusal, ScopeKeys, Snapshot, Spent,
    WaiterId, ZoneId,
    acquire::Zones,
    builder::{Observer, Settings},
    rules::Rules,
    time::LONGEST,
};

/// Hands out permits to send, for every zone of one service.
///
/// The layer's own state, usable without tower: [`acquire`](Self::acquire) a [`Permit`](crate::Permit), send, and
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
/// Dropping an [`Acquire`] leaves its queue at once; if it had been granted meanwhile, the permit goes to the next
/// in line. Dropping a [`Permit`](crate::Permit) gives it back if the request has not been sent, and otherwise
/// holds it as long as the gateway may still count it.
#[derive(Clone)]
pub struct ZoneLimiter {
    shared: Arc<Shared>,
}

struct Shared {
    origin: Instant,
    hasher: RandomState,
    observer: Option<Observer>,
    /// Which zone is which, and whom it counts together: as in the core, but to be read without the lock.
    zones: Box<[(Zone, Scope)]>,
    state: Mutex<State>,
}

struct State {
    core: Limiter,
    /// The tasks of those who wait, by the slots of their names.
    wakers: Vec<Option<Waker>>,
}

impl ZoneLimiter {
    /// Configures a limiter, zone by zone, starting from none.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// The five zones of the service's own table (§8), with every setting at its default.
    #[must_use]
    pub fn preset() -> Self {
        // The table is a constant, and a test builds it with every check.
        let rules = zones().iter().filter_map(|row| Rules::new(&Quota::preset(row)).ok()).collect();
        Self::from_core(Limiter::new(rules, Settings::default()), None)
    }

    pub(crate) fn from_core(core: Limiter, observer: Option<Observer>) -> Self {
        let zones = core.zones().collect();
        let state = Mutex::new(State { core, wakers: Vec::new() });
        let (origin, hasher) = (Instant::now(), RandomState::new());
        Self { shared: Arc::new(Shared { origin, hasher, observer, zones, state }) }
    }

    /// A layer that takes a permit for every request.
    #[must_use]
    pub fn layer(&self) -> RateLimitLayer {
        RateLimitLayer::new(self.clone())
    }

    /// The keys of requests to `authority` (host and port) with the credentials of `account`, from the default
    /// local address. Neither the case of the host nor a port of 80 or 443 makes a difference.
    #[must_use]
    pub fn keys(&self, authority: &str, account: &ext::Account) -> ScopeKeys {
        self.keys_from(authority, None, account)
    }

    /// The same for requests from a local address of their own: zones that count client addresses count it apart.
    #[must_use]
    pub fn keys_from(&self, authority: &str, from: Option<IpAddr>, account: &ext::Account) -> ScopeKeys {
        ScopeKeys::new(&self.shared.hasher, authority, from, account.as_str())
    }

    /// Waits until all of `zones` admit a request of `lane`.
    ///
    /// The future resolves to a [`Permit`](crate::Permit), or to a [`Refusal`] if one of the zones is unknown, the
    /// queue is full or the [deadline](Acquire::deadline) cannot be met. It does nothing until it is polled.
    pub fn acquire(&self, zones: &[Zone], keys: ScopeKeys, lane: Lane) -> Acquire {
        Acquire::new(self.clone(), self.resolve(zones, keys), lane)
    }

    /// When a request that came now would get its permit at the earliest, if nobody ahead of it gave up.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if a zone is unknown, or none is named.
    pub fn earliest(&self, zones: &[Zone], keys: ScopeKeys, lane: Lane) -> Result<Instant, Refusal> {
        let zones = self.resolve(zones, keys)?;
        let at = self.with(|core, _, now| core.earliest(zones.as_slice(), lane, now))?;
        Ok(self.instant(at))
    }

    /// Forgets what these keys have spent in the zones that count a token, because a renewed token has windows of
    /// its own. Requests on their way stay counted. Without it a renewed token inherits what the old one spent.
    pub fn reset(&self, keys: ScopeKeys) {
        let zones = || (0_u8..).zip(&self.shared.zones).filter(|(_, (_, scope))| *scope == Scope::AuthToken);
        self.with(|core, _, now| {
            for (id, _) in zones() {
                core.reset(ZoneId(id), keys.of(Scope::AuthToken), now);
            }
        });
    }

    /// What these keys have spent in every zone, to be kept until the next start. It is true at the instant of the
    /// call: keep the wall clock's time beside it.
    #[must_use]
    pub fn export(&self, keys: ScopeKeys) -> Vec<Spent> {
        let zones = || (0_u8..).zip(&self.shared.zones);
        self.with(|core, _, now| {
            zones()
                .map(|(id, (zone, scope))| {
                    Spent::new(zone.as_str(), core.export(ZoneId(id), keys.of(*scope), now))
                })
                .filter(|spent| !spent.stamps.is_empty())
                .collect()
        })
    }

    /// Takes back what was exported `ago`, by an earlier process. What names no zone of this limiter is left out.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooManyKeys`] if there is no room for a key.
    pub fn import(&self, keys: ScopeKeys, spent: &[Spent], ago: Duration) -> Result<(), Refusal> {
        let ago = u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX);
        let zones = || (0_u8..).zip(&self.shared.zones);
        self.with(|core, _, now| {
            for (id, (zone, scope)) in zones() {
                for spent in spent.iter().filter(|spent| spent.zone == zone.as_str()) {
                    let exported = now.saturating_sub(ago);
                    core.import(ZoneId(id), keys.of(*scope), &spent.stamps, exported, now)?;
                }
            }
            Ok(())
        })
    }

    /// Takes all windows of these keys for spent until they have gone by, except for cancels and verifications: for
    /// who shares a token with a program that has just stopped, and has nothing to import.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooManyKeys`] if there is no room for a key.
    pub fn assume_spent(&self, keys: ScopeKeys) -> Result<(), Refusal> {
        let mut zones = (0_u8..).zip(&self.shared.zones);
        self.with(|core, _, now| {
            zones.try_for_each(|(id, (_, scope))| core.assume_spent(ZoneId(id), keys.of(*scope), now))
        })
    }

    /// What every zone and lane holds now. Idle keys leave first.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.with(|core, _, now| core.snapshot(now))
    }

    /// The core's instant when the limiter was made: far enough in, that what an earlier process has spent lies
    /// after the core's origin.
    const START: Nanos = 30 * 86_400 * 1_000_000_000;

    /// The same instant for the core.
    pub(crate) fn nanos(&self, instant: Instant) -> Nanos {
        let since = instant.saturating_duration_since(self.shared.origin).as_nanos();
        Self::START + u64::try_from(since).map_or(LONGEST, |since| since.min(LONGEST))
    }

    /// The same instant for a timer.
    pub(crate) fn instant(&self, nanos: Nanos) -> Instant {
        self.shared.origin + Duration::from_nanos(nanos.saturating_sub(Self::START))
    }

    /// One call of the core under the lock; whoever it concerns is woken after it.
    ///
    /// A slot that becomes free belongs to a waiter before the lock is released, so nobody is woken in vain and
    /// nobody can take it meanwhile.
    pub(crate) fn with<T>(&self, call: impl FnOnce(&mut Limiter, &mut Wakers<'_>, Nanos) -> T) -> T {
        let now = self.nanos(Instant::now());
        let mut state = self.shared.state.lock();
        let State { core, wakers } = &mut *state;
        let result = call(core, &mut Wakers(wakers), now);
        let woken = core.take_woken();
        let events = core.take_events();
        if woken.is_empty() && events.is_empty() {
            return result;
        }
        let woken: Vec<_> =
            woken.into_iter().filter_map(|w| wakers.get_mut(w.slot()).and_then(Option::take)).collect();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        events.iter().for_each(|event| self.report(event));
        result
    }

    fn resolve(&self, zones: &[Zone], keys: ScopeKeys) -> Result<Zones, Refusal> {
        let mut resolved = Zones::default();
        for zone in zones {
            let (id, (_, scope)) = (0_u8..)
                .zip(&self.shared.zones)
                .find(|(_, (name, _))| name == zone)
                .ok_or(Refusal::UnknownZone(*zone))?;
            resolved.push((ZoneId(id), keys.of(*scope)))?;
        }
        Ok(resolved)
    }

    fn report(&self, event: &Event) {
        match event {
            Event::Frozen { zone, pause, again, .. } => {
                tracing::warn!(%zone, ?pause, again, "zone stopped after a 429");
            }
            Event::ModelMismatch { zone, ours, .. } => {
                tracing::warn!(%zone, ?ours, "429 although the limits were kept: another counter, or another user");
            }
            Event::Stepped { zone, step, .. } => tracing::info!(%zone, step, "zone moved on its ladder"),
        }
        if let Some(observer) = &self.shared.observer {
            observer(event);
        }
    }
}

impl fmt::Debug for ZoneLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZoneLimiter").field("zones", &self.shared.zones).finish_non_exhaustive()
    }
}

/// The tasks of those who wait.
pub(crate) struct Wakers<'a>(&'a mut Vec<Option<Waker>>);

impl Wakers<'_> {
    /// `waiter` is to be woken by `waker`.
    pub(crate) fn keep(&mut self, waiter: WaiterId, waker: &Waker) {
        if self.0.len() <= waiter.slot() {
            self.0.resize(waiter.slot() + 1, None);
        }
        match &mut self.0[waiter.slot()] {
            Some(kept) => kept.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    /// `waiter` no longer waits.
    pub(crate) fn forget(&mut self, waiter: WaiterId) {
        if let Some(kept) = self.0.get_mut(waiter.slot()) {
            *kept = None;
        }
        while self.0.last().is_some_and(Option::is_none) {
            self.0.pop();
        }
        if self.0.is_empty() {
            *self.0 = Vec::new();
        }
    }
}
