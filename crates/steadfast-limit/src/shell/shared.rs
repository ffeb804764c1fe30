use std::{fmt, sync::Arc};

use steadfast_call::Lane;
use steadfast_spec::{Scope, Zone};
use tokio::time::{Duration, Instant};

use crate::{
    core::{
        decision::ZoneId,
        event::Event,
        limiter::Limiter,
        time::{LONGEST, Nanos},
    },
    error::Refusal,
    persist::{journal::Journal, record::Content},
    request::keys::{ScopeKeys, Seed},
    shell::{
        hand_off::HandOff,
        route_mover::RouteMover,
        shared_count::{SharedAcquire, SharedAsk, SharedCount},
        zone_keys::ZoneKeys,
        zone_settings::ZoneSettings,
    },
};

/// A callback for events.
pub(crate) type Observer = Arc<dyn Fn(&Event) + Send + Sync>;

/// The state of a limiter, shared by its clones, futures and permits.
pub(crate) struct Shared {
    origin: Instant,
    seed: Seed,
    observer: Option<Observer>,
    /// Names and scopes of the zones, as in the core, readable without the lock.
    zones: Box<[(Zone, Scope)]>,
    hand_off: HandOff,
    route_mover: Option<RouteMover>,
    /// Nothing is known of the time before the start, so the origin of each token decides.
    decides_by_token: bool,
    journal: Option<Journal>,
    others: Option<Others>,
}

/// The other processes that it counts with, and the settings of all zones, in the order of their configuration.
struct Others {
    count: Arc<dyn SharedCount>,
    zones: Box<[ZoneSettings]>,
    arrives_within: Duration,
}

impl Others {
    /// Returns the questions about some zones for requests with `keys`.
    fn asks(&self, keys: ScopeKeys, of: impl Fn(&ZoneSettings) -> bool) -> Vec<SharedAsk<'_>> {
        let arrives_within = self.arrives_within;
        let zones = self.zones.iter().filter(|zone| of(zone));
        zones.map(|zone| SharedAsk { zone, key: keys.of(zone.scope), arrives_within }).collect()
    }
}

impl Shared {
    /// The core's instant at which the limiter was made. It is large, so that stamps of an earlier process lie after
    /// the core's origin.
    pub(crate) const START: Nanos = 30 * 86_400 * 1_000_000_000;

    /// Starts the clock over `core`.
    pub(crate) fn new(core: Limiter, decides_by_token: bool, journal: Option<Journal>) -> Self {
        Self {
            origin: Instant::now(),
            seed: journal.as_ref().map_or_else(Seed::random, Journal::seed),
            observer: None,
            zones: core.zones().collect(),
            hand_off: HandOff::new(core),
            route_mover: None,
            decides_by_token,
            journal,
            others: None,
        }
    }

    /// Counts together with other processes, by these settings of all zones.
    pub(crate) fn counting_with(
        &mut self,
        count: Arc<dyn SharedCount>,
        zones: Box<[ZoneSettings]>,
        arrives_within: Duration,
    ) {
        self.seed = Seed::shared();
        self.others = Some(Others { count, zones, arrives_within });
    }

    pub(crate) fn shared_count(&self) -> Option<&dyn SharedCount> {
        self.others.as_ref().map(|others| &*others.count)
    }

    /// Asks the other processes for a request in `zones`, if there are any.
    pub(crate) fn ask_shared(
        &self,
        zones: &[(ZoneId, u64)],
        lane: Lane,
        send_by: Option<Nanos>,
    ) -> Option<SharedAcquire> {
        let Others { count, zones: settings, arrives_within } = self.others.as_ref()?;
        let arrives_within = *arrives_within;
        let asks = zones.iter().filter_map(|(id, key)| {
            settings.get(usize::from(id.0)).map(|zone| SharedAsk { zone, key: *key, arrives_within })
        });
        let send_by = send_by.map(|send_by| self.instant(send_by));
        Some(count.acquire(&asks.collect::<Vec<_>>(), lane, send_by))
    }

    /// Tells the other processes, if there are any, that the token behind `keys` is new.
    pub(crate) fn tell_new_token(&self, keys: ScopeKeys) {
        let Some(others) = &self.others else { return };
        others.count.has_new_token(&others.asks(keys, |zone| zone.scope == Scope::AuthToken));
    }

    /// Tells what counts the other processes' requests, if there are any, that requests with `keys` may come.
    pub(crate) fn expect(&self, keys: ScopeKeys) {
        let Some(others) = &self.others else { return };
        others.count.expect(&others.asks(keys, |_| true));
    }

    /// Sets who is told of events, and which routes may be moved.
    pub(crate) fn observed(mut self, observer: Option<Observer>, route_mover: Option<RouteMover>) -> Self {
        self.observer = observer;
        self.route_mover = route_mover;
        self
    }

    pub(crate) fn hand_off(&self) -> &HandOff {
        &self.hand_off
    }

    pub(crate) fn seed(&self) -> &Seed {
        &self.seed
    }

    pub(crate) fn route_mover(&self) -> Option<&RouteMover> {
        self.route_mover.as_ref()
    }

    pub(crate) fn decides_by_token(&self) -> bool {
        self.decides_by_token
    }

    pub(crate) fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    /// Returns all zones, in the order of their configuration.
    pub(crate) fn zones(&self) -> impl Iterator<Item = (ZoneId, Zone, Scope)> {
        (0_u8..).zip(&self.zones).map(|(id, (zone, scope))| (ZoneId(id), *zone, *scope))
    }

    /// Returns the zones and the keys under which they count a request with `keys`.
    pub(crate) fn resolve(
        &self,
        zones: impl Iterator<Item = Zone>,
        keys: ScopeKeys,
    ) -> Result<ZoneKeys, Refusal> {
        let mut resolved = ZoneKeys::default();
        for zone in zones {
            let (id, _, scope) =
                self.zones().find(|(_, name, _)| *name == zone).ok_or(Refusal::UnknownZone(zone))?;
            resolved.push((id, keys.of(scope)))?;
        }
        Ok(resolved)
    }

    /// Converts an instant to the core's.
    pub(crate) fn nanos(&self, instant: Instant) -> Nanos {
        let since = instant.saturating_duration_since(self.origin).as_nanos();
        Self::START + u64::try_from(since).map_or(LONGEST, |since| since.min(LONGEST))
    }

    /// Returns the current instant of the core.
    pub(crate) fn now(&self) -> Nanos {
        self.nanos(Instant::now())
    }

    /// Converts an instant of the core to a timer's.
    pub(crate) fn instant(&self, nanos: Nanos) -> Instant {
        self.origin + Duration::from_nanos(nanos.saturating_sub(Self::START))
    }

    /// Calls the core with the current instant, and reports its events.
    pub(crate) fn with<T>(&self, call: impl FnOnce(&mut Limiter, Nanos) -> T) -> T {
        let now = self.now();
        let (result, events) = self.hand_off.with(|core| call(core, now));
        self.report_all(&events);
        result
    }

    /// Returns what the journal records.
    pub(crate) fn content(&self) -> Content {
        let now = self.now();
        let (content, events) = self.hand_off.with(|core| Content::of(core, now));
        debug_assert!(events.is_empty(), "a record settles nothing: {events:?}");
        content
    }

    pub(crate) fn report_all(&self, events: &[Event]) {
        events.iter().for_each(|event| self.report(event));
    }

    /// Logs the event and calls the observer. No lock is held.
    pub(crate) fn report(&self, event: &Event) {
        event.log();
        if let Some(observer) = &self.observer {
            observer(event);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(journal) = self.journal.take() {
            journal.close(|| self.content());
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("zones", &self.zones).finish_non_exhaustive()
    }
}
