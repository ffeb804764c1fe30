use std::{
    fmt,
    hash::BuildHasher,
    net::IpAddr,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use steadfast_spec::{Endpoint, Lane, Scope, WallClock, Zone, ext, zones};
use tokio::time::{Duration, Instant};

use crate::{
    Acquire, Builder, ColdStart, Event, InvalidLimiter, Limiter, Nanos, Quota, RateLimitLayer, Refusal,
    ScopeKeys, Snapshot, Spent, TokenOrigin, ZoneId,
    acquire::Zones,
    builder::{Observer, Settings},
    demotion::{Demotions, Standing},
    hand_off::HandOff,
    journal::{Entry, Found, Journal},
    keys::Seed,
    limiter::Kept,
    rules::Rules,
    start::Start,
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

pub(crate) struct Shared {
    origin: Instant,
    seed: Seed,
    observer: Option<Observer>,
    /// Which zone is which, and whom it counts together: as in the core, but to be read without the lock.
    zones: Box<[(Zone, Scope)]>,
    pub(crate) hand_off: HandOff,
    demotions: Option<Mutex<Demotions>>,
    journal: Option<Journal>,
    beginning: Beginning,
}

/// How much a limiter knows of the time before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beginning {
    /// Nothing, and asks where each token came from.
    Asks,
    /// It carries on a journal.
    CarriesOn,
    /// It was told.
    Settled,
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
        Self::of(Arc::new(Shared::new(Limiter::new(rules, Settings::default()))))
    }

    /// A limiter that begins as `cold` says.
    pub(crate) fn start(
        mut core: Limiter,
        observer: Option<Observer>,
        demotions: Option<Demotions>,
        cold: ColdStart,
        clock: WallClock,
    ) -> Result<Self, InvalidLimiter> {
        let now = Shared::START;
        let (beginning, journal) = match cold {
            ColdStart::Auto => (Beginning::Asks, None),
            ColdStart::Empty => (Beginning::Settled, None),
            ColdStart::Pessimistic => {
                core.start(Start::Spent(now));
                (Beginning::Settled, None)
            }
            ColdStart::Journal(path) => {
                let (journal, found) = Journal::open(&path, clock)?;
                let beginning = resume(&mut core, &journal, found, now);
                (beginning, Some(journal))
            }
        };
        let mut shared = Shared::new(core);
        shared.observer = observer;
        shared.beginning = beginning;
        shared.demotions = demotions.map(Mutex::new);
        if let Some(journal) = journal {
            shared.seed = journal.seed();
            // On record before anything is sent: a process that ends before its next record leaves this one, and a
            // file that cannot be written is found here.
            journal.write(&journal.record(shared.entries(), false)).map_err(|error| {
                InvalidLimiter::Journal { path: journal.path().to_owned(), kind: error.kind() }
            })?;
            shared.journal = Some(journal);
        }
        Ok(Self::of(Arc::new(shared)))
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

    /// What is to go into the journal.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.shared.entries()
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
        ScopeKeys::new(&self.shared.seed, authority, from, account.as_str())
    }

    /// Waits until all of `zones` admit a request of `lane`.
    ///
    /// The future resolves to a [`Permit`](crate::Permit), or to a [`Refusal`] if one of the zones is unknown, the
    /// queue is full or the [deadline](Acquire::deadline) cannot be met. It does nothing until it is polled.
    pub fn acquire(&self, zones: &[Zone], keys: ScopeKeys, lane: Lane) -> Acquire {
        Acquire::new(self.clone(), self.resolve(zones.iter().copied(), keys), lane)
    }

    /// The same for a request of the route `watched`, which may be counted under another zone than its own.
    pub(crate) fn acquire_watched(
        &self,
        zones: &[Zone],
        keys: ScopeKeys,
        lane: Lane,
        watched: Option<Watched>,
    ) -> Acquire {
        let zones = match watched.and_then(|watched| self.moved(watched)) {
            Some((from, to)) => {
                self.resolve(zones.iter().map(|zone| if *zone == from { to } else { *zone }), keys)
            }
            None => self.resolve(zones.iter().copied(), keys),
        };
        Acquire::new(self.clone(), zones, lane)
    }

    /// When a request that came now would get its permit at the earliest, if nobody ahead of it gave up.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if a zone is unknown, or none is named.
    pub fn earliest(&self, zones: &[Zone], keys: ScopeKeys, lane: Lane) -> Result<Instant, Refusal> {
        let zones = self.resolve(zones.iter().copied(), keys)?;
        let at = self.with(|core, now| core.earliest(zones.as_slice(), lane, now))?;
        Ok(self.instant(at))
    }

    /// Forgets what these keys have spent in the zones that count a token, because a renewed token has windows of
    /// its own. Requests on their way stay counted. Without it a renewed token inherits what the old one spent.
    pub fn reset(&self, keys: ScopeKeys) {
        let zones = || (0_u8..).zip(&self.shared.zones).filter(|(_, (_, scope))| *scope == Scope::AuthToken);
        self.with(|core, now| {
            for (id, _) in zones() {
                core.reset(ZoneId(id), keys.of(Scope::AuthToken), now);
            }
        });
        self.touched();
    }

    /// Says where the token behind these keys came from, before its first request; the facade's client does so by
    /// itself.
    ///
    /// Only [`ColdStart::Auto`] goes by it. A token that this process [minted](TokenOrigin::Minted) has empty
    /// windows. Those of a token that was [given](TokenOrigin::Given) are taken for empty too, which a log line
    /// says. For one that was [stored](TokenOrigin::Stored) by an earlier process the limiter should carry on that
    /// process's journal; where it does not, all windows count as spent, except for cancels and verifications.
    pub fn begin(&self, keys: ScopeKeys, origin: TokenOrigin) {
        match (self.shared.beginning, origin) {
            (Beginning::Settled | Beginning::CarriesOn, _) | (_, TokenOrigin::Minted) => {}
            (Beginning::Asks, TokenOrigin::Given) => {
                tracing::info!(
                    "token was handed in: its windows are taken for empty; if another program has just used it, \
                     start pessimistic"
                );
            }
            (Beginning::Asks, TokenOrigin::Stored) => {
                tracing::warn!("token was stored without what it had spent: its windows are taken for spent");
                if let Err(refusal) = self.assume_spent(keys) {
                    tracing::warn!(%refusal, "token's windows could not be taken for spent");
                }
            }
        }
    }

    /// What these keys have spent in every zone, to be kept until the next start. It is true at the instant of the
    /// call: keep the wall clock's time beside it.
    #[must_use]
    pub fn export(&self, keys: ScopeKeys) -> Vec<Spent> {
        let zones = || (0_u8..).zip(&self.shared.zones);
        self.with(|core, now| {
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
        self.with(|core, now| {
            for (id, (zone, scope)) in zones() {
                for spent in spent.iter().filter(|spent| spent.zone == zone.as_str()) {
                    let exported = now.saturating_sub(ago);
                    core.import(ZoneId(id), keys.of(*scope), &spent.stamps, exported, now)?;
                }
            }
            Ok(())
        })
        .inspect(|()| self.touched())
    }

    /// Takes all windows of these keys for spent until they have gone by, except for cancels and verifications: for
    /// who shares a token with a program that has just stopped, and has nothing to import.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooManyKeys`] if there is no room for a key.
    pub fn assume_spent(&self, keys: ScopeKeys) -> Result<(), Refusal> {
        let mut zones = (0_u8..).zip(&self.shared.zones);
        self.with(|core, now| {
            zones.try_for_each(|(id, (_, scope))| core.assume_spent(ZoneId(id), keys.of(*scope), now))
        })
        .inspect(|()| self.touched())
    }

    /// What every zone and lane holds now. Idle keys leave first.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.with(|core, now| core.snapshot(now))
    }

    /// The same instant for the core.
    pub(crate) fn nanos(&self, instant: Instant) -> Nanos {
        self.shared.nanos(instant)
    }

    /// The same instant for a timer.
    pub(crate) fn instant(&self, nanos: Nanos) -> Instant {
        self.shared.origin + Duration::from_nanos(nanos.saturating_sub(Shared::START))
    }

    pub(crate) fn hand_off(&self) -> &HandOff {
        &self.shared.hand_off
    }

    /// One call of the core, at its instant of now.
    pub(crate) fn with<T>(&self, call: impl FnOnce(&mut Limiter, Nanos) -> T) -> T {
        let now = self.nanos(Instant::now());
        let (result, events) = self.shared.hand_off.with(|core| call(core, now));
        self.report_all(&events);
        result
    }

    /// The route of a request whose zones may change.
    pub(crate) fn watch(
        &self,
        zones: &[Zone],
        keys: ScopeKeys,
        endpoint: Option<Endpoint>,
        path: &str,
    ) -> Option<Watched> {
        let zone = self.shared.demotions.as_ref()?.lock().from;
        if !zones.contains(&zone) {
            return None;
        }
        let path = if endpoint.is_some() { "" } else { path };
        // The service counts a route the same for all its users, so it is watched for each gateway, not account.
        let server = keys.of(Scope::ClientIp);
        Some(Watched { route: self.shared.seed.hash_one((server, endpoint, path)), endpoint, zone })
    }

    /// Under which zone a route is counted instead of which.
    fn moved(&self, watched: Watched) -> Option<(Zone, Zone)> {
        let now = self.nanos(Instant::now());
        let mut demotions = self.shared.demotions.as_ref()?.lock();
        let (from, to) = (demotions.from, demotions.to);
        let standing = demotions.standing(watched.route, now);
        drop(demotions);
        match standing {
            Standing::Own => None,
            Standing::Demoted => Some((from, to)),
            Standing::Restored => {
                self.report(&Event::Restored { endpoint: watched.endpoint, zone: from });
                None
            }
        }
    }

    /// A request of the route was refused, and the limiter's own log does not explain it.
    pub(crate) fn unexplained(&self, watched: Watched) {
        let Some(demotions) = &self.shared.demotions else { return };
        let now = self.nanos(Instant::now());
        let mut demotions = demotions.lock();
        let (from, to) = (demotions.from, demotions.to);
        let demoted = demotions.unexplained(watched.route, now);
        drop(demotions);
        if demoted {
            self.report(&Event::Demoted { endpoint: watched.endpoint, from, to });
        }
    }

    fn resolve(&self, zones: impl Iterator<Item = Zone>, keys: ScopeKeys) -> Result<Zones, Refusal> {
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

    /// Tells everybody who wants to know. No lock is held.
    pub(crate) fn report(&self, event: &Event) {
        event.log();
        if let Some(observer) = &self.shared.observer {
            observer(event);
        }
    }
}

impl Shared {
    /// The core's instant when the limiter was made: far enough in, that what an earlier process has spent lies
    /// after the core's origin.
    const START: Nanos = 30 * 86_400 * 1_000_000_000;

    fn new(core: Limiter) -> Self {
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

    fn nanos(&self, instant: Instant) -> Nanos {
        let since = instant.saturating_duration_since(self.origin).as_nanos();
        Self::START + u64::try_from(since).map_or(LONGEST, |since| since.min(LONGEST))
    }

    fn entries(&self) -> Vec<Entry> {
        let now = self.nanos(Instant::now());
        let (kept, _) = self.hand_off.with(|core| core.export_all(now));
        let entry = |kept: Kept| Entry {
            zone: self.zones[usize::from(kept.zone.0)].0.as_str().to_owned(),
            key: kept.key,
            closed_for: kept.closed_for,
            stamps: kept.stamps,
        };
        kept.into_iter().map(entry).collect()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(journal) = self.journal.take() {
            journal.close(self.entries());
        }
    }
}

/// Takes back what a journal holds.
fn resume(core: &mut Limiter, journal: &Journal, found: Found, now: Nanos) -> Beginning {
    let path = journal.path().display();
    let record = match found {
        Found::Record(record) => record,
        Found::Nothing => {
            tracing::info!(%path, "no journal yet: windows start empty");
            return Beginning::Asks;
        }
        Found::Damaged => {
            tracing::warn!(%path, "journal is damaged: all windows are taken for spent");
            core.start(Start::Spent(now));
            return Beginning::CarriesOn;
        }
    };
    if !record.closed {
        core.start(Start::Unrecorded(now));
    }
    let ago = u64::try_from(journal.ago(&record).as_nanos()).unwrap_or(Nanos::MAX);
    let zones: Vec<_> = core.zones().map(|(zone, _)| zone).collect();
    for entry in record.keys {
        // A zone that is gone from the configuration limits nothing any longer.
        let Some((id, _)) = (0_u8..).zip(&zones).find(|(_, zone)| entry.is_of(zone.as_str())) else {
            continue;
        };
        let kept =
            Kept { zone: ZoneId(id), key: entry.key, closed_for: entry.closed_for, stamps: entry.stamps };
        if core.import_kept(&kept, now.saturating_sub(ago), now).is_err() {
            tracing::warn!(%path, "journal holds more keys than the limiter may: all others are taken for spent");
            core.start(Start::Spent(now));
            break;
        }
    }
    Beginning::CarriesOn
}

/// A route whose zones may change, as long as one request of it is on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched {
    route: u64,
    endpoint: Option<Endpoint>,
    /// The zone that it may be moved from.
    pub(crate) zone: Zone,
}

impl fmt::Debug for ZoneLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZoneLimiter").field("zones", &self.shared.zones).finish_non_exhaustive()
    }
}
