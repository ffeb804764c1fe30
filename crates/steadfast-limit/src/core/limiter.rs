use steadfast_call::Lane;
use steadfast_spec::{Scope, Zone};

use crate::{
    core::{
        decision::{Ask, Decision, WaiterId, ZoneId},
        event::Event,
        rules::{Rules, ceilings::LANES},
        settings::Settings,
        time::{LATEST, Nanos},
    },
    error::Refusal,
};

mod absent;
mod dispatch;
mod ends;
mod estimate;
mod grant;
mod key_table;
mod report;
mod restart;
mod waiters;

use self::{key_table::KeyTable, waiters::Waiters};

/// Decides, for every zone and key, which request may be sent and when.
///
/// The pure core of [`ZoneLimiter`](crate::ZoneLimiter): instants and events go in, decisions come out. It has no
/// clock, lock or timer, so simulations drive it with instants of their own and see the same decisions. Every call
/// may grant or refuse other waiters; [`take_woken`](Self::take_woken) names them. A caller that was given an
/// [alarm](Decision::Queued) polls its waiter at that instant.
///
/// # Example
///
/// ```
/// use steadfast_limit::{Answer, Ask, Decision, Lane, Profile, Quota, SECOND, Scope, Zone, ZoneLimiter};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut limiter = ZoneLimiter::builder()
///     .zone(Quota::new(Zone::OTP, Scope::ClientIp).limit(1, SECOND).profile(Profile::WindowLog))
///     .build_core()?;
/// let otp = limiter.zone_id(Zone::OTP).ok_or("no such zone")?;
/// let ask = Ask { zones: &[(otp, 7)], lane: Lane::Normal, send_by: None, head_of_lane: false };
///
/// let Decision::Granted(grant) = limiter.acquire(&ask, 0) else { return Err("not granted".into()) };
/// // The window opens a second, and a margin, after the *answer*; until there is one, nothing is known.
/// let Decision::Queued { waiter, alarm: None } = limiter.acquire(&ask, 1) else {
///     return Err("not queued".into());
/// };
/// limiter.settle(grant, Answer::Accepted, 20_000_000);
/// assert_eq!(limiter.take_woken(), [waiter]);
/// let Some(Decision::Queued { alarm: Some(alarm), .. }) = limiter.poll(waiter, 20_000_000) else {
///     return Err("not waiting".into());
/// };
/// assert_eq!(alarm, 20_000_000 + 1_001_500_000);
/// assert!(matches!(limiter.poll(waiter, alarm), Some(Decision::Granted(_))));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Limiter {
    settings: Settings,
    keys: KeyTable,
    waiters: Waiters,
    /// The latest instant seen. No decision is made for an earlier one.
    clock: Nanos,
    next_sweep: Nanos,
    events: Vec<Event>,
    /// Keys whose queues must be examined again.
    dirty: Vec<usize>,
    scratch: Vec<Nanos>,
    /// Nothing is remembered: every answer is computed afresh.
    #[cfg(test)]
    scans_plainly: bool,
}

impl Limiter {
    /// How often idle keys are removed.
    const SWEEP: Nanos = 10_000_000_000;

    pub(crate) fn new(rules: Box<[Rules]>, settings: Settings) -> Self {
        Self {
            keys: KeyTable::new(rules, settings.most_keys),
            settings,
            waiters: Waiters::default(),
            clock: 0,
            next_sweep: 0,
            events: Vec::new(),
            dirty: Vec::new(),
            scratch: Vec::new(),
            #[cfg(test)]
            scans_plainly: false,
        }
    }

    /// Returns the id of the zone with that name.
    #[must_use]
    pub fn zone_id(&self, zone: Zone) -> Option<ZoneId> {
        (0_u8..).zip(self.keys.rules()).find(|(_, rules)| rules.zone == zone).map(|(id, _)| ZoneId(id))
    }

    /// Returns all zones and their scopes, in the order of their configuration.
    pub(crate) fn zones(&self) -> impl Iterator<Item = (Zone, Scope)> {
        self.keys.rules().iter().map(|rules| (rules.zone, rules.scope))
    }

    /// Returns the rules of all zones, in the order of their configuration.
    pub(crate) fn rules(&self) -> &[Rules] {
        self.keys.rules()
    }

    pub(crate) fn queue_bounds(&self) -> [u32; LANES] {
        self.settings.queue_bounds
    }

    /// True if the previous call met a 429 in `zone` that this limiter's own log does not explain.
    pub(crate) fn is_mismatched(&self, zone: Zone) -> bool {
        self.events.iter().any(|event| matches!(event, Event::ModelMismatch { zone: z, .. } if *z == zone))
    }

    /// Asks for the right to send one request.
    ///
    /// # Panics
    ///
    /// If a zone of `ask` is not this limiter's.
    pub fn acquire(&mut self, ask: &Ask<'_>, now: Nanos) -> Decision {
        self.acquire_at(ask, None, now)
    }

    /// Does the same for a request that waited before as `former`, which gets its old place back.
    pub(crate) fn acquire_at(&mut self, ask: &Ask<'_>, former: Option<WaiterId>, now: Nanos) -> Decision {
        let now = self.advance(now);
        let keys = match self.keys.open(ask.zones, now) {
            Ok(keys) => keys,
            Err(refusal) => return Decision::Refused(refusal),
        };
        if ask.send_by.is_none_or(|send_by| now <= send_by)
            && let Some(grant) = self.grant(keys, ask.lane, now)
        {
            return Decision::Granted(grant);
        }
        if let Some(refusal) = self.hopeless(keys, ask, former, now)
            && (!self.drop_absent(keys, now) || self.hopeless(keys, ask, former, now).is_some())
        {
            return Decision::Refused(refusal);
        }
        let id = self.enqueue(keys, ask, former, now);
        self.dispatch(keys, now);
        self.decision(id)
    }

    /// Polls a waiter again: after it was woken, and at its alarm.
    ///
    /// Returns `None` if the waiter does not exist, or no longer does. A waiter that is not polled within a second
    /// of its grant loses the grant. One that is woken and not polled for half a second may lose its place. It then asks
    /// again, [at the head of its lane](Ask::head_of_lane).
    pub fn poll(&mut self, waiter: WaiterId, now: Nanos) -> Option<Decision> {
        let now = self.advance(now);
        let known = self.waiters.polled(waiter, now)?;
        if known.waits() {
            let (keys, send_by) = (known.keys(), known.send_by());
            self.dispatch(keys, now);
            if send_by.is_some_and(|send_by| send_by <= now) {
                self.refuse_late(waiter, now);
                self.dispatch(keys, now);
            }
        }
        Some(self.decision(waiter))
    }

    /// Removes a waiter. If it had been granted a slot, the slot goes to the next one.
    pub fn cancel(&mut self, waiter: WaiterId, now: Nanos) {
        let now = self.advance(now);
        let Some(known) = self.waiters.remove(waiter) else { return };
        let (keys, place) = (known.keys(), known.place());
        match known.into_outcome() {
            Some(Ok(grant)) => self.give_back(grant, now),
            Some(Err(_)) => {}
            None => {
                self.dequeue(keys, place);
                self.dispatch(keys, now);
            }
        }
    }

    /// Returns when a request that came now would be granted at the earliest, if no request ahead of it gave up.
    ///
    /// # Errors
    ///
    /// [`Refusal::NoZone`] if `zones` is empty.
    ///
    /// # Panics
    ///
    /// If a zone is not this limiter's.
    pub fn earliest(&mut self, zones: &[(ZoneId, u64)], lane: Lane, now: Nanos) -> Result<Nanos, Refusal> {
        self.earliest_in(zones, lane, false, now)
    }

    /// Returns the same for a request that would go to the head of its lane if `head` is true.
    pub(crate) fn earliest_in(
        &mut self,
        zones: &[(ZoneId, u64)],
        lane: Lane,
        head: bool,
        now: Nanos,
    ) -> Result<Nanos, Refusal> {
        let now = self.advance(now);
        if zones.is_empty() {
            return Err(Refusal::NoZone);
        }
        let each = zones.iter().map(|(zone, key)| match self.keys.find(*zone, *key) {
            Some(id) => self.estimate(id, lane, head, now),
            // A key that is not in use has only what the limiter's start counts as spent.
            None => {
                let state = self.keys.new_state(*zone, *key, now);
                self.estimate_of(&state, self.keys.rules_of(*zone), lane, 0, now)
            }
        });
        Ok(each.fold(now, Nanos::max))
    }

    /// Returns the waiters granted, refused or given an alarm since the last call. Poll them.
    #[must_use = "a waiter that is not polled again waits for ever"]
    pub fn take_woken(&mut self) -> Vec<WaiterId> {
        self.waiters.take_woken()
    }

    /// Returns the events since the last call that an operator may want to know.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Moves the clock to `now`, never backwards: callers may get the lock in any order.
    fn advance(&mut self, now: Nanos) -> Nanos {
        self.clock = self.clock.max(now.min(LATEST));
        if self.clock >= self.waiters.next_check() {
            self.examine_uncollected(self.clock);
        }
        if self.clock >= self.next_sweep {
            self.sweep(self.clock);
        }
        self.clock
    }

    /// Drops idle keys, and memory that is not needed.
    fn sweep(&mut self, now: Nanos) {
        self.next_sweep = now + Self::SWEEP;
        self.keys.sweep(now);
        if self.waiters.is_empty() {
            self.waiters.shrink();
            self.dirty = Vec::new();
            self.scratch = Vec::new();
        }
    }
}
