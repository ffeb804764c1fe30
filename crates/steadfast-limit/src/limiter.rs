use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    time::Duration,
};

use slab::Slab;
use steadfast_spec::{Lane, Scope, Zone};

use crate::{
    Answer, Ask, Decision, Event, Grant, LaneSnapshot, Loss, Nanos, Refusal, Snapshot, WaiterId, ZoneId,
    ZoneSnapshot,
    builder::Settings,
    decision::{LedgerSet, MOST_ZONES},
    freeze::Verdict,
    ledger::Ledger,
    queue::{Alarm, Answered, Place},
    rules::Rules,
};

/// Decides, for every zone and key, which request may be sent and when.
///
/// The pure core of [`ZoneLimiter`](crate::ZoneLimiter): instants and events go in, decisions come out. It has no
/// clock, no lock and no timer of its own, so that simulations drive it with an instant of their own and see the
/// same decisions. Every call may grant or refuse others that wait; [`take_woken`](Self::take_woken) names them,
/// and whoever keeps an [alarm](Decision::Queued) polls its waiter then.
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
    ledgers: Slab<Ledger>,
    index: HashMap<(ZoneId, u64), u32, BuildHasherDefault<KeyHasher>>,
    waiters: Slab<Waiter>,
    /// The latest instant seen: nothing is ever decided for an earlier one.
    clock: Nanos,
    next_sweep: Nanos,
    arrivals: i64,
    woken: Vec<WaiterId>,
    events: Vec<Event>,
    /// Ledgers whose queues must be looked at again.
    stirred: Vec<usize>,
    scratch: Vec<Nanos>,
}

#[derive(Debug)]
struct Waiter {
    ledgers: LedgerSet,
    place: Place,
    deadline: Option<Nanos>,
    outcome: Option<Result<Grant, Refusal>>,
}

/// Why a waiter is not granted now, as seen from one of its queues.
enum Stop {
    /// This zone has no room; it opens then, or after an event.
    Here(Option<Nanos>),
    /// This zone has room, another has not.
    Elsewhere,
}

impl Limiter {
    /// How often idle keys are looked for.
    const SWEEP: Nanos = 10_000_000_000;

    pub(crate) fn new(rules: Box<[Rules]>, settings: Settings) -> Self {
        Self {
            rules,
            settings,
            ledgers: Slab::new(),
            index: HashMap::default(),
            waiters: Slab::new(),
            clock: 0,
            next_sweep: 0,
            arrivals: 0,
            woken: Vec::new(),
            events: Vec::new(),
            stirred: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// The zone of that name.
    #[must_use]
    pub fn zone_id(&self, zone: Zone) -> Option<ZoneId> {
        (0_u8..).zip(&self.rules).find(|(_, rules)| rules.zone == zone).map(|(id, _)| ZoneId(id))
    }

    /// All zones, in the order of their configuration, and whom each counts together.
    pub(crate) fn zones(&self) -> impl Iterator<Item = (Zone, Scope)> {
        self.rules.iter().map(|rules| (rules.zone, rules.scope))
    }

    /// Asks for the right to send one request.
    pub fn acquire(&mut self, ask: &Ask<'_>, now: Nanos) -> Decision {
        let now = self.advance(now);
        let ledgers = match self.open(ask.zones, now) {
            Ok(ledgers) => ledgers,
            Err(refusal) => return Decision::Refused(refusal),
        };
        if ask.deadline.is_none_or(|deadline| now <= deadline)
            && ledgers.iter().all(|id| self.ledgers[id].queue.is_none())
            && let Some(grant) = self.grant(ledgers, ask.lane, now)
        {
            return Decision::Granted(grant);
        }
        if let Some(refusal) = self.hopeless(ledgers, ask, now) {
            return Decision::Refused(refusal);
        }
        let id = self.enqueue(ledgers, ask);
        self.pump(ledgers, now);
        self.decision(id)
    }

    /// Looks at a waiter again: after it was woken, and at its alarm. `None` if there is no such waiter.
    pub fn poll(&mut self, waiter: WaiterId, now: Nanos) -> Option<Decision> {
        let now = self.advance(now);
        let known = self.waiters.get(waiter.slot()).filter(|known| known.place.waiter == waiter)?;
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

    /// A waiter no longer waits; what it was granted meanwhile goes to the next.
    pub fn cancel(&mut self, waiter: WaiterId, now: Nanos) {
        let now = self.advance(now);
        if self.waiters.get(waiter.slot()).is_none_or(|known| known.place.waiter != waiter) {
            return;
        }
        let known = self.waiters.remove(waiter.slot());
        match known.outcome {
            Some(Ok(grant)) => self.refund(grant, now),
            Some(Err(_)) => {}
            None => {
                self.dequeue(&known);
                self.pump(known.ledgers, now);
            }
        }
        self.woken.retain(|woken| *woken != waiter);
    }

    /// The head of an answer is back, at `now`.
    pub fn settle(&mut self, grant: Grant, answer: Answer, now: Nanos) {
        let now = self.advance(now);
        for (bit, id) in grant.ledgers.iter().enumerate() {
            let ledger = &mut self.ledgers[id];
            let rules = &self.rules[usize::from(ledger.zone.0)];
            let probe = grant.probes & (1 << bit) != 0;
            ledger.stamp(rules, now);
            match answer {
                Answer::Accepted => {
                    ledger.freeze.answered(probe);
                    if ledger.ladder.clean(now) {
                        let (zone, key, step) = (rules.zone, ledger.key, ledger.ladder.step());
                        self.events.push(Event::Stepped { zone, key, step });
                    }
                }
                Answer::TooManyRequests { retry_after } => {
                    let verdict = ledger.freeze.refused(grant.at, probe, retry_after, now);
                    if let Verdict::Stopped { pause, again } = verdict {
                        self.stop(id, pause, again, grant.lenient, now);
                    }
                }
            }
        }
        self.pump(grant.ledgers, now);
    }

    /// The request left at `sent`, and its answer will never be seen.
    pub fn lose(&mut self, grant: Grant, sent: Nanos, loss: Loss, now: Nanos) {
        let now = self.advance(now);
        let counted = match loss {
            Loss::Reset => now + Self::AFTER_RESET,
            Loss::GivenUp => now.max(sent.saturating_add(self.settings.gateway_timeout)),
        };
        for (bit, id) in grant.ledgers.iter().enumerate() {
            let ledger = &mut self.ledgers[id];
            ledger.lose(&self.rules[usize::from(ledger.zone.0)], counted, now);
            ledger.freeze.unanswered(grant.probes & (1 << bit) != 0, now);
        }
        self.pump(grant.ledgers, now);
    }

    /// The request certainly never left: its slots are free again.
    pub fn refund(&mut self, grant: Grant, now: Nanos) {
        let now = self.advance(now);
        for (bit, id) in grant.ledgers.iter().enumerate() {
            let ledger = &mut self.ledgers[id];
            ledger.in_flight = ledger.in_flight.saturating_sub(1);
            ledger.freeze.unanswered(grant.probes & (1 << bit) != 0, now);
        }
        self.pump(grant.ledgers, now);
    }

    /// When a request that came now would be granted at the earliest, if nobody ahead of it gave up.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if the zones are not to be had at all.
    pub fn earliest(&mut self, zones: &[(ZoneId, u64)], lane: Lane, now: Nanos) -> Result<Nanos, Refusal> {
        let now = self.advance(now);
        if zones.is_empty() {
            return Err(Refusal::NoZone);
        }
        let mut at = now;
        for (zone, key) in zones {
            // A key that nobody has used is free.
            if let Some(id) = self.index.get(&(*zone, *key)) {
                at = at.max(self.estimate(*id as usize, lane, false, now));
            }
        }
        Ok(at)
    }

    /// Forgets what one key has spent in one zone, because the gateway has: a renewed token has windows of its own.
    /// Requests on their way stay counted.
    pub fn reset(&mut self, zone: ZoneId, key: u64, now: Nanos) {
        let now = self.advance(now);
        let Some(id) = self.index.get(&(zone, key)).map(|id| *id as usize) else { return };
        let ledger = &mut self.ledgers[id];
        ledger.log.clear();
        ledger.lost.clear();
        ledger.full_until = 0;
        ledger.pacer = None;
        let mut ledgers = LedgerSet::default();
        ledgers.insert(id as u32);
        self.pump(ledgers, now);
    }

    /// The waiters that have been granted, refused, or given an alarm to keep since the last call: poll them.
    pub fn take_woken(&mut self) -> Vec<WaiterId> {
        std::mem::take(&mut self.woken)
    }

    /// What has happened since the last call that an operator may want to know.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// What the limiter holds at `now`. Idle keys leave first.
    pub fn snapshot(&mut self, now: Nanos) -> Snapshot {
        let now = self.advance(now);
        self.sweep(now);
        let mut zones: Vec<_> = self.ledgers.iter().map(|(id, _)| self.zone_snapshot(id, now)).collect();
        zones.sort_by_key(|(order, zone)| (*order, zone.key));
        Snapshot { zones: zones.into_iter().map(|(_, zone)| zone).collect(), bytes: self.heap_bytes() }
    }
}

/// What happens to queues.
impl Limiter {
    /// What the gateway had not counted by the end of a connection, it counts within this time or never.
    const AFTER_RESET: Nanos = 1_000_000_000;

    /// A zone stops after a 429.
    fn stop(&mut self, id: usize, pause: Nanos, again: bool, lenient: bool, now: Nanos) {
        let ledger = &mut self.ledgers[id];
        let rules = &self.rules[usize::from(ledger.zone.0)];
        let (zone, key) = (rules.zone, ledger.key);
        // The windows no longer than the pause empty while it lasts. That a longer one is spent is only likely
        // when the try after a pause fails as well; whoever must get out goes on trying after every pause.
        if again && rules.longest() > pause {
            ledger.full_until = now + rules.longest();
        }
        if !lenient {
            let before = ledger.ladder.step();
            ledger.ladder.mismatch(now);
            self.events.push(Event::ModelMismatch { zone, key, ours: ledger.uses(rules, now) });
            let step = ledger.ladder.step();
            if step != before && matches!(rules.profile, crate::Profile::Adaptive { .. }) {
                self.events.push(Event::Stepped { zone, key, step });
            }
        }
        self.events.push(Event::Frozen { zone, key, pause: Duration::from_nanos(pause), again });
        let doomed: Vec<_> = ledger.queue.iter().flat_map(|queue| queue.places()).map(|p| p.waiter).collect();
        for waiter in doomed {
            if self.waiters[waiter.slot()].deadline.is_some_and(|deadline| deadline < now + pause) {
                self.refuse_late(waiter, now);
            }
        }
    }

    /// Grants whatever can be granted in the queues of `ledgers`, foremost first, and sets their alarms.
    fn pump(&mut self, ledgers: LedgerSet, now: Nanos) {
        self.stirred.extend(ledgers.iter().filter(|id| self.ledgers[*id].queue.is_some()));
        while let Some(id) = self.stirred.pop() {
            if self.ledgers.get(id).is_some_and(|ledger| ledger.queue.is_some()) {
                self.pump_one(id, now);
            }
        }
    }

    /// A request may pass those ahead of it only if all of them would still find room: they are counted as if they
    /// were on their way. In a zone that nobody shares with another zone they wait for this very room, so nobody
    /// passes anybody. Whoever waits for another zone as well keeps its place here without stopping the rest.
    fn pump_one(&mut self, id: usize, now: Nanos) {
        let mut passed: Option<Place> = None;
        let mut ahead = 0;
        let mut alarm = None;
        while let Some(place) = self.ledgers[id].queue.as_ref().and_then(|q| q.behind(passed.as_ref())) {
            let waiter = &self.waiters[place.waiter.slot()];
            let ledgers = waiter.ledgers;
            if waiter.deadline.is_some_and(|deadline| deadline < now) {
                self.refuse_late(place.waiter, now);
                continue;
            }
            match self.stop_of(id, ledgers, &place, ahead, now) {
                Some(Stop::Here(opens)) => {
                    alarm = opens.map(|at| Alarm { waiter: place.waiter, at });
                    break;
                }
                Some(Stop::Elsewhere) => {
                    passed = Some(place);
                    ahead += 1;
                }
                None => {
                    // A pacer may still refuse, and then stops the waiter here or elsewhere the next time round.
                    if self.pace(ledgers, place.lane, now) {
                        let grant = self.spend(ledgers, place.lane, now);
                        self.conclude(place.waiter, Ok(grant));
                    }
                }
            }
        }
        let Some(queue) = self.ledgers[id].queue.as_mut() else { return };
        // The timer passes to whoever is foremost now, or is brought forward; a timer that is too early is polled
        // once in vain and set anew.
        let before = std::mem::replace(&mut queue.alarm, alarm);
        if let Some(alarm) = alarm
            && before.is_none_or(|before| before.waiter != alarm.waiter || alarm.at < before.at)
        {
            self.woken.push(alarm.waiter);
        }
        if queue.is_empty() {
            self.ledgers[id].queue = None;
        }
    }

    /// What stops the waiter at `place`, looked at from the queue of `here`, with `ahead` before it.
    fn stop_of(
        &mut self,
        here: usize,
        ledgers: LedgerSet,
        place: &Place,
        ahead: u32,
        now: Nanos,
    ) -> Option<Stop> {
        let opens = self.opens(here, place.lane, ahead, now);
        if opens.is_none_or(|opens| opens > now) {
            return Some(Stop::Here(opens));
        }
        ledgers
            .iter()
            .filter(|id| *id != here)
            .any(|id| {
                let ahead = self.ledgers[id].queue.as_ref().map_or(0, |queue| queue.ahead_of(place));
                self.opens(id, place.lane, ahead, now).is_none_or(|opens| opens > now)
            })
            .then_some(Stop::Elsewhere)
    }

    /// Grants at once if every zone has room and nobody waits.
    fn grant(&mut self, ledgers: LedgerSet, lane: Lane, now: Nanos) -> Option<Grant> {
        let free = ledgers.iter().all(|id| self.opens(id, lane, 0, now).is_some_and(|opens| opens <= now));
        (free && self.pace(ledgers, lane, now)).then(|| self.spend(ledgers, lane, now))
    }

    fn opens(&mut self, id: usize, lane: Lane, ahead: u32, now: Nanos) -> Option<Nanos> {
        let ledger = &mut self.ledgers[id];
        let (version, known) = (ledger.version, ledger.queue.as_ref().and_then(|queue| queue.answered));
        if let Some(known) = known
            && (known.version, known.lane, known.ahead) == (version, lane, ahead)
        {
            return known.opens;
        }
        let rules = &self.rules[usize::from(ledger.zone.0)];
        let opens = ledger.opens(rules, lane, ahead, self.settings.strict_critical, now, &mut self.scratch);
        if let Some(queue) = ledger.queue.as_mut() {
            queue.answered = Some(Answered { version, lane, ahead, opens });
        }
        opens
    }

    fn pace(&mut self, ledgers: LedgerSet, lane: Lane, now: Nanos) -> bool {
        ledgers.iter().all(|id| {
            let ledger = &mut self.ledgers[id];
            ledger.pace(&self.rules[usize::from(ledger.zone.0)], lane, now)
        })
    }

    /// Spends a slot in every zone.
    fn spend(&mut self, ledgers: LedgerSet, lane: Lane, now: Nanos) -> Grant {
        let (mut probes, mut lenient) = (0, false);
        for (bit, id) in ledgers.iter().enumerate() {
            let ledger = &mut self.ledgers[id];
            ledger.in_flight += 1;
            lenient |= ledger.is_lenient(lane, self.settings.strict_critical);
            probes |= u8::from(ledger.freeze.granted()) << bit;
        }
        Grant { ledgers, at: now, probes, lenient }
    }

    fn enqueue(&mut self, ledgers: LedgerSet, ask: &Ask<'_>) -> WaiterId {
        self.arrivals += 1;
        let entry = self.waiters.vacant_entry();
        let waiter = WaiterId { slot: entry.key() as u32, turn: self.arrivals };
        let turn = if ask.head_of_lane { -self.arrivals } else { self.arrivals };
        let place = Place { lane: ask.lane, turn, waiter };
        entry.insert(Waiter { ledgers, place, deadline: ask.deadline, outcome: None });
        for id in ledgers.iter() {
            self.ledgers[id].queue.get_or_insert_default().insert(place);
        }
        waiter
    }

    /// Takes a waiter out of all its queues; those behind it must be looked at again.
    fn dequeue(&mut self, waiter: &Waiter) {
        for id in waiter.ledgers.iter() {
            if let Some(queue) = self.ledgers[id].queue.as_mut() {
                queue.remove(&waiter.place);
                self.stirred.push(id);
            }
        }
    }

    /// Ends the wait of a waiter that still stands in its queues.
    fn conclude(&mut self, waiter: WaiterId, outcome: Result<Grant, Refusal>) {
        let known = &mut self.waiters[waiter.slot()];
        known.outcome = Some(outcome);
        for id in known.ledgers.iter() {
            if let Some(queue) = self.ledgers[id].queue.as_mut() {
                queue.remove(&known.place);
                self.stirred.push(id);
            }
        }
        self.woken.push(waiter);
    }

    fn refuse_late(&mut self, waiter: WaiterId, now: Nanos) {
        let known = &self.waiters[waiter.slot()];
        if known.outcome.is_some() {
            return;
        }
        let (ledgers, place) = (known.ledgers, known.place);
        let worst = ledgers.iter().map(|id| {
            let ahead = self.ledgers[id].queue.as_ref().map_or(0, |queue| queue.ahead_of(&place));
            (self.estimate_behind(id, place.lane, ahead, now), id)
        });
        let refusal = self.missed(worst.max(), now);
        self.conclude(waiter, Err(refusal));
    }

    /// Why a request need not even queue.
    fn hopeless(&self, ledgers: LedgerSet, ask: &Ask<'_>, now: Nanos) -> Option<Refusal> {
        if let Some(deadline) = ask.deadline {
            let estimates = ledgers.iter().map(|id| (self.estimate(id, ask.lane, ask.head_of_lane, now), id));
            let worst = estimates.max();
            if deadline < now || worst.is_some_and(|(at, _)| at > deadline) {
                return Some(self.missed(worst, now));
            }
        }
        let bound = self.settings.queue_bounds[ask.lane as usize];
        ledgers.iter().find_map(|id| {
            let ledger = &self.ledgers[id];
            let waiting = ledger.queue.as_ref()?.waiting()[ask.lane as usize];
            let zone = self.rules[usize::from(ledger.zone.0)].zone;
            (waiting >= bound).then_some(Refusal::QueueFull { zone, lane: ask.lane })
        })
    }

    fn missed(&self, worst: Option<(Nanos, usize)>, now: Nanos) -> Refusal {
        worst.map_or(Refusal::NoZone, |(at, id)| Refusal::WouldMissDeadline {
            zone: self.rules[usize::from(self.ledgers[id].zone.0)].zone,
            earliest: Duration::from_nanos(at - now),
        })
    }

    fn estimate(&self, id: usize, lane: Lane, head: bool, now: Nanos) -> Nanos {
        let ahead = self.ledgers[id].queue.as_ref().map_or(0, |queue| queue.ahead_of_new(lane, head));
        self.estimate_behind(id, lane, ahead, now)
    }

    fn estimate_behind(&self, id: usize, lane: Lane, ahead: u32, now: Nanos) -> Nanos {
        let ledger = &self.ledgers[id];
        let rules = &self.rules[usize::from(ledger.zone.0)];
        ledger.estimate(rules, lane, ahead, self.settings.strict_critical, now)
    }

    /// What to tell a waiter; its name ends here unless it still waits.
    fn decision(&mut self, waiter: WaiterId) -> Decision {
        if !self.woken.is_empty() {
            self.woken.retain(|woken| *woken != waiter);
        }
        let known = &mut self.waiters[waiter.slot()];
        let Some(outcome) = known.outcome.take() else {
            let alarms = known.ledgers.iter().filter_map(|id| self.ledgers[id].queue.as_ref()?.alarm);
            let own = alarms.filter(|alarm| alarm.waiter == waiter).map(|alarm| alarm.at);
            return Decision::Queued { waiter, alarm: own.chain(known.deadline).min() };
        };
        self.waiters.remove(waiter.slot());
        match outcome {
            Ok(grant) => Decision::Granted(grant),
            Err(refusal) => Decision::Refused(refusal),
        }
    }
}

/// Keys, their memory and their end.
impl Limiter {
    /// Time never runs backwards here, whatever order callers get the lock in.
    fn advance(&mut self, now: Nanos) -> Nanos {
        self.clock = self.clock.max(now);
        if self.clock >= self.next_sweep {
            self.sweep(self.clock);
        }
        self.clock
    }

    /// The ledgers of `zones`, made if they are new.
    fn open(&mut self, zones: &[(ZoneId, u64)], now: Nanos) -> Result<LedgerSet, Refusal> {
        let mut ledgers = LedgerSet::default();
        // Never between two keys of one request: the first, just made, would be idle.
        if self.ledgers.len() + zones.len() > self.settings.most_keys {
            self.sweep(now);
        }
        for (zone, key) in zones {
            let id = match self.index.get(&(*zone, *key)) {
                Some(id) => *id,
                None => self.open_new(*zone, *key)?,
            };
            if !ledgers.insert(id) {
                return Err(Refusal::TooManyZones { most: MOST_ZONES });
            }
        }
        if zones.is_empty() { Err(Refusal::NoZone) } else { Ok(ledgers) }
    }

    fn open_new(&mut self, zone: ZoneId, key: u64) -> Result<u32, Refusal> {
        if self.ledgers.len() >= self.settings.most_keys {
            return Err(Refusal::TooManyKeys { zone: self.rules[usize::from(zone.0)].zone });
        }
        let id = self.ledgers.insert(Ledger::new(zone, key)) as u32;
        self.index.insert((zone, key), id);
        Ok(id)
    }

    /// Lets idle keys go.
    fn sweep(&mut self, now: Nanos) {
        self.next_sweep = now + Self::SWEEP;
        let (rules, index) = (&self.rules, &mut self.index);
        let before = self.ledgers.len();
        self.ledgers.retain(|_, ledger| {
            let idle = ledger.is_idle(&rules[usize::from(ledger.zone.0)], now);
            if idle {
                index.remove(&(ledger.zone, ledger.key));
            }
            !idle
        });
        if self.ledgers.len() < before {
            self.ledgers.shrink_to_fit();
            self.index.shrink_to_fit();
        }
        if self.waiters.is_empty() {
            self.waiters.shrink_to_fit();
            self.stirred = Vec::new();
            self.scratch = Vec::new();
        }
    }

    fn zone_snapshot(&self, id: usize, now: Nanos) -> (ZoneId, ZoneSnapshot) {
        let ledger = &self.ledgers[id];
        let rules = &self.rules[usize::from(ledger.zone.0)];
        let waiting = ledger.queue.as_ref().map(|queue| queue.waiting()).unwrap_or_default();
        let snapshot = ZoneSnapshot {
            zone: rules.zone,
            key: ledger.key,
            in_flight: ledger.in_flight,
            lost: ledger.lost.counted().len(),
            windows: ledger.uses(rules, now),
            frozen_for: ledger.freeze.until(now).map(|until| Duration::from_nanos(until - now)),
            step: ledger.ladder.step(),
            lanes: Lane::ALL.map(|lane| LaneSnapshot {
                lane,
                waiting: waiting[lane as usize],
                next_free: Duration::from_nanos(self.estimate(id, lane, false, now) - now),
            }),
        };
        (ledger.zone, snapshot)
    }

    fn heap_bytes(&self) -> usize {
        let inner: usize = self.ledgers.iter().map(|(_, ledger)| ledger.heap_bytes()).sum();
        // A slab's entry is its value and a tag; a map's is its pair and a control byte.
        let ledgers = self.ledgers.capacity() * (size_of::<Ledger>() + size_of::<usize>());
        let index = self.index.capacity() * (size_of::<((ZoneId, u64), u32)>() + 1);
        let waiters = self.waiters.capacity() * (size_of::<Waiter>() + size_of::<usize>());
        inner + ledgers + index + waiters + self.scratch.capacity() * size_of::<Nanos>()
    }
}

/// Spreads keys that are hashes already.
#[derive(Debug, Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u8(*byte);
        }
    }

    fn write_u8(&mut self, n: u8) {
        self.write_u64(n.into());
    }

    fn write_u64(&mut self, n: u64) {
        // The multiplier is 2^64 divided by the golden ratio: neighbouring numbers end far apart.
        self.0 = (self.0.rotate_left(23) ^ n).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
