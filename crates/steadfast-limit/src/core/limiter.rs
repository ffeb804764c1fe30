use std::{
    collections::{BTreeSet, HashMap},
    hash::BuildHasherDefault,
};

use slab::Slab;
use steadfast_spec::{Lane, Scope, Zone};

use crate::{
    core::settings::Settings,
    core::{
        decision::{Answer, Ask, Decision, Grant, LedgerSet, Loss, WaiterId, ZoneId},
        event::Event,
        key_state::Ledger,
        queue::Answered,
        rules::{Rules, ceilings::LANES},
        snapshot::Snapshot,
        start::Start,
        time::{LATEST, Nanos},
        trust::circuit_breaker::Verdict,
    },
    error::Refusal,
};

mod absent;
mod dispatch;
mod memory;
mod restart;

pub(crate) use self::restart::Kept;
use self::{
    dispatch::Waiter,
    memory::{KeyHasher, LATELY},
};

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
/// let ask = Ask { zones: &[(otp, 7)], lane: Lane::Normal, deadline: None, head_of_lane: false };
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
    rules: Box<[Rules]>,
    settings: Settings,
    /// How much new keys count as spent.
    start: Start,
    ledgers: Slab<Ledger>,
    index: HashMap<(ZoneId, u64), u32, BuildHasherDefault<KeyHasher>>,
    /// The indices in `ledgers` of the keys asked for most recently.
    lately: [u32; LATELY],
    waiters: Slab<Waiter>,
    /// Grants not yet collected by their waiters, and when each is due for a check.
    uncollected: BTreeSet<(Nanos, WaiterId)>,
    /// The first of these instants.
    tends_at: Nanos,
    /// The latest instant seen. No decision is made for an earlier one.
    clock: Nanos,
    next_sweep: Nanos,
    arrivals: i64,
    woken: Vec<WaiterId>,
    events: Vec<Event>,
    /// Ledgers whose queues must be examined again.
    stirred: Vec<usize>,
    /// The last result for a key without a queue, and the index of its ledger.
    recent: Option<(usize, Answered)>,
    scratch: Vec<Nanos>,
}

impl Limiter {
    /// After a connection has ended, the gateway counts its requests within this time or never.
    const AFTER_RESET: Nanos = 1_000_000_000;

    pub(crate) fn new(rules: Box<[Rules]>, settings: Settings) -> Self {
        Self {
            rules,
            settings,
            start: Start::Empty,
            ledgers: Slab::new(),
            index: HashMap::default(),
            lately: [0; LATELY],
            waiters: Slab::new(),
            uncollected: BTreeSet::new(),
            tends_at: Nanos::MAX,
            clock: 0,
            next_sweep: 0,
            arrivals: 0,
            woken: Vec::new(),
            events: Vec::new(),
            stirred: Vec::new(),
            recent: None,
            scratch: Vec::new(),
        }
    }

    /// Returns the id of the zone with that name.
    #[must_use]
    pub fn zone_id(&self, zone: Zone) -> Option<ZoneId> {
        (0_u8..).zip(&self.rules).find(|(_, rules)| rules.zone == zone).map(|(id, _)| ZoneId(id))
    }

    /// Returns all zones and their scopes, in the order of their configuration.
    pub(crate) fn zones(&self) -> impl Iterator<Item = (Zone, Scope)> {
        self.rules.iter().map(|rules| (rules.zone, rules.scope))
    }

    /// Returns the rules of all zones, in the order of their configuration.
    pub(crate) fn rules(&self) -> &[Rules] {
        &self.rules
    }

    pub(crate) fn queue_bounds(&self) -> [u32; LANES] {
        self.settings.queue_bounds
    }

    /// True if the previous call met a 429 in `zone` that this limiter's own log does not explain.
    pub(crate) fn is_mismatched(&self, zone: Zone) -> bool {
        self.events.iter().any(|event| matches!(event, Event::ModelMismatch { zone: z, .. } if *z == zone))
    }

    /// Asks for the right to send one request.
    pub fn acquire(&mut self, ask: &Ask<'_>, now: Nanos) -> Decision {
        self.acquire_at(ask, None, now)
    }

    /// Does the same for a request that waited before as `former`, which gets its old place back.
    pub(crate) fn acquire_at(&mut self, ask: &Ask<'_>, former: Option<WaiterId>, now: Nanos) -> Decision {
        let now = self.advance(now);
        let ledgers = match self.lately_all(ask.zones) {
            Some(ledgers) => ledgers,
            None => match self.open(ask.zones, now) {
                Ok(ledgers) => ledgers,
                Err(refusal) => return Decision::Refused(refusal),
            },
        };
        if ask.deadline.is_none_or(|deadline| now <= deadline)
            && let Some(grant) = self.grant(ledgers, ask.lane, now)
        {
            return Decision::Granted(grant);
        }
        if let Some(refusal) = self.hopeless(ledgers, ask, now)
            && (!self.makes_room(ledgers, now) || self.hopeless(ledgers, ask, now).is_some())
        {
            return Decision::Refused(refusal);
        }
        let id = self.enqueue(ledgers, ask, former, now);
        self.pump(ledgers, now);
        self.decision(id)
    }

    /// Polls a waiter again: after it was woken, and at its alarm.
    ///
    /// Returns `None` if the waiter does not exist, or no longer does. A waiter that is not polled within a second
    /// of its grant loses the grant. One that is woken and not polled for half a second may lose its place. Its next
    /// request returns to the head of its lane.
    pub fn poll(&mut self, waiter: WaiterId, now: Nanos) -> Option<Decision> {
        let now = self.advance(now);
        let known = self.waiters.get_mut(waiter.slot()).filter(|known| known.place.waiter == waiter)?;
        known.seen = now;
        if known.outcome.is_none() {
            let (ledgers, deadline) = (known.ledgers, known.deadline);
            self.pump(ledgers, now);
            if deadline.is_some_and(|deadline| deadline <= now) {
                self.refuse_late(waiter, now);
                self.pump(ledgers, now);
            }
        }
        Some(self.decision(waiter))
    }

    /// Removes a waiter. If it had been granted a slot, the slot goes to the next one.
    pub fn cancel(&mut self, waiter: WaiterId, now: Nanos) {
        let now = self.advance(now);
        if self.waiters.get(waiter.slot()).is_none_or(|known| known.place.waiter != waiter) {
            return;
        }
        let known = self.waiters.remove(waiter.slot());
        if let Some(Ok(grant)) = &known.outcome {
            self.expect_no_more(&known, grant);
        }
        match known.outcome {
            Some(Ok(grant)) => self.give_back(grant, now),
            Some(Err(_)) => {}
            None => {
                self.dequeue(&known);
                self.pump(known.ledgers, now);
            }
        }
        self.woken.retain(|woken| *woken != waiter);
    }

    /// Records that the head of an answer arrived at `now`.
    pub fn settle(&mut self, grant: Grant, answer: Answer, now: Nanos) {
        let now = self.advance(now);
        for (bit, id) in grant.ledgers.iter().enumerate() {
            let ledger = &mut self.ledgers[id];
            let rules = &self.rules[usize::from(ledger.zone.0)];
            let probe = grant.probes & (1 << bit) != 0;
            ledger.changed();
            ledger.stamp(rules, grant.at, now);
            match answer {
                Answer::Accepted => {
                    if let Some(caution) = &mut ledger.caution {
                        caution.freeze.answered(probe);
                        let change = caution.ladder.clean(rules.profile, rules.shortest_limit(), now);
                        self.report_change(id, change);
                    }
                }
                Answer::TooManyRequests { retry_after } => {
                    let verdict = ledger.caution().freeze.refused(grant.at, probe, retry_after, now);
                    if let Verdict::Stopped { pause, again } = verdict {
                        self.stop(id, pause, again, grant.lenient, now);
                    }
                }
            }
            self.ledgers[id].tried_no_more(grant.tried(bit));
        }
        self.pump(grant.ledgers, now);
    }

    /// Records that the request left at `sent` and that its answer will never be seen.
    pub fn lose(&mut self, grant: Grant, sent: Nanos, loss: Loss, now: Nanos) {
        let ended = match loss {
            Loss::Reset => Some(now),
            Loss::GivenUp => None,
        };
        self.lose_ended(grant, sent, ended, now);
    }

    /// Does the same, where nothing of the request could reach the service after `ended`. `None` means that this
    /// instant is unknown.
    pub(crate) fn lose_ended(&mut self, grant: Grant, sent: Nanos, ended: Option<Nanos>, now: Nanos) {
        let now = self.advance(now);
        let counted = match ended {
            Some(ended) => ended.min(now) + Self::AFTER_RESET,
            None => now.saturating_add(self.settings.arrives_within).min(LATEST),
        };
        // A request whose patience has already run out is not waited for again.
        let given_up = now.min(sent.saturating_add(Ledger::PATIENCE));
        for (bit, id) in grant.ledgers.iter().enumerate() {
            let ledger = &mut self.ledgers[id];
            ledger.changed();
            ledger.lose(&self.rules[usize::from(ledger.zone.0)], grant.at, (given_up, counted), now);
            ledger.tried_no_more(grant.tried(bit));
            ledger.unanswered(grant.probes & (1 << bit) != 0, now);
        }
        self.pump(grant.ledgers, now);
    }

    /// Records that the request certainly never left: its slots are free again.
    pub fn refund(&mut self, grant: Grant, now: Nanos) {
        let now = self.advance(now);
        self.give_back(grant, now);
    }

    fn give_back(&mut self, grant: Grant, now: Nanos) {
        for (bit, id) in grant.ledgers.iter().enumerate() {
            let ledger = &mut self.ledgers[id];
            ledger.changed();
            ledger.in_flight.leave(grant.at);
            ledger.tried_no_more(grant.tried(bit));
            ledger.unpace(grant.lane);
            ledger.unanswered(grant.probes & (1 << bit) != 0, now);
        }
        self.pump(grant.ledgers, now);
    }

    /// Returns when a request that came now would be granted at the earliest, if no request ahead of it gave up.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if the zones cannot be used at all.
    pub fn earliest(&mut self, zones: &[(ZoneId, u64)], lane: Lane, now: Nanos) -> Result<Nanos, Refusal> {
        let now = self.advance(now);
        if zones.is_empty() {
            return Err(Refusal::NoZone);
        }
        let mut at = now;
        for (zone, key) in zones {
            at = at.max(match self.index.get(&(*zone, *key)) {
                Some(id) => self.estimate(*id as usize, lane, false, now),
                // A key without a ledger has only what the limiter's start counts as spent.
                None => {
                    let rules = &self.rules[usize::from(zone.0)];
                    let strict = self.settings.strict_critical;
                    let ledger = self.new_ledger(*zone, *key);
                    let alone = ledger.estimate_alone(rules, lane, strict, now);
                    alone.max(ledger.estimate(rules, lane, 0, strict, now))
                }
            });
        }
        Ok(at)
    }

    /// Forgets what one key has spent in one zone. For a renewed token, whose windows at the gateway are new.
    /// Requests on their way stay counted.
    pub fn reset(&mut self, zone: ZoneId, key: u64, now: Nanos) {
        let now = self.advance(now);
        let Some(id) = self.index.get(&(zone, key)).map(|id| *id as usize) else { return };
        let ledger = &mut self.ledgers[id];
        ledger.changed();
        ledger.log.clear();
        ledger.lost.clear();
        if let Some(caution) = &mut ledger.caution {
            caution.full_until = 0;
        }
        ledger.pacer = None;
        let mut ledgers = LedgerSet::default();
        ledgers.insert(id as u32);
        self.pump(ledgers, now);
    }

    /// Returns the instants from which the spent slots of one key age, relative to `now` and ascending. Requests on
    /// their way count as if the gateway counted them at the last possible instant.
    pub fn export(&mut self, zone: ZoneId, key: u64, now: Nanos) -> Vec<i64> {
        let now = self.advance(now);
        let Some(id) = self.index.get(&(zone, key)) else { return Vec::new() };
        let ledger = &self.ledgers[*id as usize];
        let rules = &self.rules[usize::from(zone.0)];
        let latest = now + self.settings.gateway_timeout + rules.settle;
        let on_their_way = ledger.in_flight.granted().iter().map(|_| latest);
        let mut stamps: Vec<_> = ledger.spent(rules, now).chain(on_their_way).collect();
        stamps.sort_unstable();
        stamps.into_iter().map(|stamp| stamp as i64 - now as i64).collect()
    }

    /// Adds what one key had spent in one zone at `exported`, in the form that [`export`](Self::export) returned.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooManyKeys`] if there is no room for the key.
    pub fn import(
        &mut self,
        zone: ZoneId,
        key: u64,
        stamps: &[i64],
        exported: Nanos,
        now: Nanos,
    ) -> Result<(), Refusal> {
        let now = self.advance(now);
        let id = self.open(&[(zone, key)], now)?;
        let rules = &self.rules[usize::from(zone.0)];
        let at = |offset: &i64| exported.saturating_add_signed(*offset);
        for id in id.iter() {
            self.ledgers[id].changed();
            self.ledgers[id].restore(rules, stamps.iter().map(at), now);
        }
        self.pump(id, now);
        Ok(())
    }

    /// Counts all windows of one key in one zone as spent until they have passed, except for cancels and
    /// verifications. For a token shared with a program that has just stopped.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooManyKeys`] if there is no room for the key.
    pub fn assume_spent(&mut self, zone: ZoneId, key: u64, now: Nanos) -> Result<(), Refusal> {
        let now = self.advance(now);
        for id in self.open(&[(zone, key)], now)?.iter() {
            self.ledgers[id].fill(now + self.rules[usize::from(zone.0)].longest());
        }
        Ok(())
    }

    /// Returns the waiters granted, refused or given an alarm since the last call. Poll them.
    pub fn take_woken(&mut self) -> Vec<WaiterId> {
        std::mem::take(&mut self.woken)
    }

    /// Returns the events since the last call that an operator may want to know.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Returns what the limiter holds at `now`. Idle keys are dropped first.
    pub fn snapshot(&mut self, now: Nanos) -> Snapshot {
        let now = self.advance(now);
        self.sweep(now);
        let mut zones: Vec<_> = self.ledgers.iter().map(|(id, _)| self.zone_snapshot(id, now)).collect();
        zones.sort_by_key(|(order, zone)| (*order, zone.key));
        Snapshot { zones: zones.into_iter().map(|(_, zone)| zone).collect(), bytes: self.heap_bytes() }
    }
}
