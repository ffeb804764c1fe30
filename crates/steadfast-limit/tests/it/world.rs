//! Several zones, scopes and windows at once, with every possible fate of a request, judged by the gateway's own
//! counters.
//!
//! Written from the rules alone, without knowledge of the limiter's internals.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, HashSet},
    num::NonZeroU32,
    time::Duration,
};

use steadfast_limit::{
    Answer, Ask, Ceilings, Decision, Grant, Lane, Limiter, Loss, Nanos, Profile, Quota, Refusal, Scope,
    Snapshot, WaiterId, Zone, ZoneId, ZoneLimiter,
};
use steadfast_sandbox::enforce::{Enforcer, Kind, Window, decide};

use crate::{
    drive::{MS, S},
    wire::Dice,
};

const ZONES: [Zone; 4] = [Zone::GENERAL, Zone::DATA, Zone::PLACE_ORDER, Zone::OTP];
const GATEWAY_TIMEOUT: Nanos = 3 * S;

/// Returns the kinds of gateway at which a zone with that profile promises to be safe.
fn kinds(profile: Profile, phase: Duration, whole_seconds: bool) -> Vec<Kind> {
    let is_safe = |kind: &Kind| profile == Profile::Universal || !kind.interpolates();
    // Whole seconds: this kind rounds periods shorter than a second up to a second.
    let all =
        Kind::of_whole_limits(phase).into_iter().filter(|kind| whole_seconds || *kind != Kind::WholeSecond);
    all.filter(is_safe).collect()
}

struct ZoneOfWorld {
    id: ZoneId,
    limits: Vec<(u32, Duration)>,
    kind: Kind,
    settle: Nanos,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Asked,
    Look(WaiterId),
    GivenUp,
    Counted,
    Ended,
}

/// How a granted request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Answered,
    NeverLeft,
    Lost(Loss),
}

struct Request {
    zones: Vec<(ZoneId, u64)>,
    lane: Lane,
    deadline: Option<Nanos>,
    head: bool,
    end: End,
    /// How long after it was asked it is dropped, if it still waits then.
    patience: Option<Nanos>,
    grant: Option<(Grant, Nanos)>,
    waits: Option<WaiterId>,
    over: bool,
}

struct World {
    /// True if the gateway sometimes refuses for reasons of its own.
    unruly: bool,
    limiter: Limiter,
    zones: Vec<ZoneOfWorld>,
    gateway: HashMap<(ZoneId, u64), Vec<Enforcer>>,
    requests: Vec<Request>,
    waiting: HashMap<WaiterId, usize>,
    happenings: BinaryHeap<Reverse<(Nanos, u64, Happening, usize)>>,
    order: u64,
    dice: Dice,
    now: Nanos,
    trip: Nanos,
    granted: usize,
    refused: usize,
}

impl World {
    fn new(seed: u64, origin: Nanos, unruly: bool) -> Self {
        let mut dice = Dice::new(seed);
        let count = 1 + dice.below(4) as usize;
        let mut builder = ZoneLimiter::builder().arrives_within(Duration::from_nanos(GATEWAY_TIMEOUT));
        if !unruly {
            builder = builder.strict_critical();
        }
        let mut made = Vec::new();
        for zone in &ZONES[..count] {
            let burst = NonZeroU32::MIN;
            let profile = [
                Profile::Universal,
                Profile::WindowLog,
                Profile::Adaptive { burst },
                Profile::Paced { burst },
            ][dice.below(if unruly { 4 } else { 2 }) as usize];
            let is_paced = matches!(profile, Profile::Adaptive { .. } | Profile::Paced { .. });
            let periods: &[u64] = &[[50, 1_000, 20_000], [100, 700, 12_000], [1_000, 60_000, 61_000]]
                [dice.below(3) as usize][..=dice.below(3) as usize];
            let mut least = u32::from(is_paced);
            let limits: Vec<_> = periods
                .iter()
                .map(|ms| {
                    least += 1 + dice.below(if least < 2 { 6 } else { 20 }) as u32;
                    (least, Duration::from_millis(*ms))
                })
                .collect();
            let settle = [0, 0, 30 * MS][dice.below(3) as usize];
            let headroom = u32::from(limits[0].0 > 2 && dice.below(4) == 0);
            let mut quota = Quota::new(*zone, Scope::AuthToken).profile(profile).headroom(headroom);
            // A zone that withholds every slot from a lane cannot be built.
            if limits[0].0 - headroom > 2 && dice.below(2) == 0 {
                quota = quota.ceilings(Ceilings::standard());
            }
            quota = limits.iter().fold(quota, |quota, (n, period)| quota.limit(*n, *period));
            quota = quota.settle(Duration::from_nanos(settle));
            builder = builder.zone(quota);
            let phase = Duration::from_millis(dice.below(1_000));
            let kinds = kinds(profile, phase, periods[0] == 1_000);
            made.push((*zone, limits, kinds[dice.below(kinds.len() as u64) as usize], settle));
        }
        let limiter = builder.build_core().unwrap();
        let zones = made
            .into_iter()
            .map(|(zone, limits, kind, settle)| ZoneOfWorld {
                id: limiter.zone_id(zone).unwrap(),
                limits,
                kind,
                settle,
            })
            .collect();
        let trip = [0, MS, 30 * MS, 400 * MS][dice.below(4) as usize];
        Self {
            unruly,
            limiter,
            zones,
            gateway: HashMap::new(),
            requests: Vec::new(),
            waiting: HashMap::new(),
            happenings: BinaryHeap::new(),
            order: 0,
            dice,
            now: origin,
            trip,
            granted: 0,
            refused: 0,
        }
    }

    fn happen(&mut self, at: Nanos, happening: Happening, i: usize) {
        self.order += 1;
        self.happenings.push(Reverse((at, self.order, happening, i)));
    }

    fn offer(&mut self, at: Nanos) {
        let dice = &mut self.dice;
        let mut zones = Vec::new();
        for zone in &self.zones {
            if dice.below(2) == 0 {
                zones.push((zone.id, dice.below(2)));
            }
        }
        if zones.is_empty() {
            let zone = &self.zones[dice.below(self.zones.len() as u64) as usize];
            zones.push((zone.id, dice.below(2)));
        }
        if dice.below(2) == 0 {
            zones.reverse();
        }
        let end = match dice.below(20) {
            0 | 1 => End::NeverLeft,
            2 => End::Lost(Loss::Reset),
            3 => End::Lost(Loss::GivenUp),
            _ => End::Answered,
        };
        let deadline = (dice.below(4) == 0).then(|| match dice.below(6) {
            0 => at,
            1 => Nanos::MAX,
            2 => at.saturating_sub(S),
            _ => at + dice.below(5 * S),
        });
        let request = Request {
            zones,
            lane: Lane::ALL[dice.below(Lane::ALL.len() as u64) as usize],
            deadline,
            head: dice.below(8) == 0,
            end,
            patience: (dice.below(5) == 0).then(|| dice.below(3 * S)),
            grant: None,
            waits: None,
            over: false,
        };
        self.requests.push(request);
        self.happen(at, Happening::Asked, self.requests.len() - 1);
    }

    /// Runs all events. Requests that still wait at the end were forgotten.
    fn run(&mut self) {
        while let Some(Reverse((now, _, happening, i))) = self.happenings.pop() {
            let stale = match &happening {
                Happening::Look(waiter) => !self.waiting.contains_key(waiter),
                Happening::GivenUp => self.requests[i].waits.is_none(),
                _ => false,
            };
            if stale {
                continue;
            }
            assert!(now < Nanos::MAX, "{} wait for a slot that never comes", self.waiting.len());
            self.now = now;
            match happening {
                Happening::Asked => {
                    let request = &self.requests[i];
                    let ask = Ask {
                        zones: &request.zones,
                        lane: request.lane,
                        send_by: request.deadline,
                        head_of_lane: request.head,
                    };
                    let decision = self.limiter.acquire(&ask, now);
                    if let Some(patience) = request.patience {
                        self.happen(now + patience, Happening::GivenUp, i);
                    }
                    self.follow(i, decision);
                }
                Happening::Look(waiter) => {
                    let decision = self.limiter.poll(waiter, now).unwrap();
                    self.follow(i, decision);
                }
                Happening::GivenUp => {
                    if let Some(waiter) = self.requests[i].waits.take() {
                        self.waiting.remove(&waiter);
                        self.limiter.cancel(waiter, now);
                        self.requests[i].over = true;
                    }
                }
                Happening::Counted => self.count(i),
                Happening::Ended => self.end(i),
            }
            for waiter in self.limiter.take_woken() {
                if let Some(i) = self.waiting.get(&waiter).copied() {
                    self.happen(now, Happening::Look(waiter), i);
                }
            }
            if self.order.is_multiple_of(16) {
                let snapshot = self.limiter.snapshot(now);
                self.check(&snapshot);
            }
        }
        assert!(self.waiting.is_empty(), "{} wait for good at {}", self.waiting.len(), self.now);
        assert!(self.requests.iter().all(|request| request.over));
    }

    fn follow(&mut self, i: usize, decision: Decision) {
        let now = self.now;
        let request = &mut self.requests[i];
        if let Some(waiter) = request.waits.take() {
            self.waiting.remove(&waiter);
        }
        match decision {
            Decision::Granted(grant) => {
                assert!(request.deadline.is_none_or(|by| now <= by), "granted after its deadline");
                request.grant = Some((grant, now));
                self.granted += 1;
                let lag = request
                    .zones
                    .iter()
                    .map(|(id, _)| self.zones.iter().find(|zone| zone.id == *id).unwrap().settle)
                    .min()
                    .unwrap_or(0);
                let out = self.dice.below(self.trip + 1);
                let back = self.dice.below(self.trip + 1);
                match request.end {
                    End::NeverLeft => self.happen(now + out, Happening::Ended, i),
                    End::Answered => {
                        let late = if lag == 0 { 0 } else { self.dice.below(back + lag) };
                        self.happen(now + out + late, Happening::Counted, i);
                        self.happen(now + out + back, Happening::Ended, i);
                    }
                    End::Lost(loss) => {
                        // A lost request is counted at the latest possible instant, at once, or never.
                        let latest = match loss {
                            Loss::Reset => out + S,
                            _ => GATEWAY_TIMEOUT.max(out),
                        };
                        match self.dice.below(3) {
                            0 => self.happen(now, Happening::Counted, i),
                            1 => self.happen(now + latest, Happening::Counted, i),
                            _ => {}
                        }
                        self.happen(now + out, Happening::Ended, i);
                    }
                }
            }
            Decision::Queued { waiter, alarm } => {
                // Only the deadline itself may be due; the waiter is then polled once more.
                let due = alarm.is_some_and(|at| at <= now);
                assert!(!due || request.deadline == Some(now), "an alarm that is due is a busy loop");
                request.waits = Some(waiter);
                self.waiting.insert(waiter, i);
                if let Some(alarm) = alarm {
                    self.happen(alarm, Happening::Look(waiter), i);
                }
            }
            Decision::Refused(refusal) => {
                let Refusal::WouldMissDeadline { earliest, .. } = refusal else { panic!("{refusal}") };
                let by = request.deadline.expect("only a deadline is missed here");
                let earliest = now + u64::try_from(earliest.as_nanos()).unwrap();
                // At its deadline a request is refused, even if a slot comes free at that instant.
                assert!(
                    earliest > by || now >= by,
                    "refused although it could leave in time: {earliest} by {by} at {now}"
                );
                request.over = true;
                self.refused += 1;
            }
        }
    }

    fn count(&mut self, i: usize) {
        let (zones, gateway) = (&self.zones, &mut self.gateway);
        let mut parts = Vec::new();
        for key in &self.requests[i].zones {
            let zone = zones.iter().find(|zone| zone.id == key.0).unwrap();
            parts.push(gateway.remove(key).unwrap_or_else(|| {
                let window = |(n, period): &(u32, Duration)| Window::new(*n, *period).unwrap();
                zone.limits.iter().map(|limit| Enforcer::new(zone.kind, window(limit))).collect()
            }));
        }
        let mut windows: Vec<_> = parts.iter_mut().flatten().collect();
        let verdict = decide(&mut windows, Duration::from_nanos(self.now));
        assert!(self.unruly || verdict.is_ok(), "429 at {} for {:?}", self.now, self.requests[i].zones);
        for (key, part) in self.requests[i].zones.iter().zip(parts) {
            gateway.insert(*key, part);
        }
    }

    fn end(&mut self, i: usize) {
        let request = &mut self.requests[i];
        let (grant, sent) = request.grant.take().expect("ends once");
        request.over = true;
        match request.end {
            End::Answered if self.unruly && self.dice.below(5) == 0 => {
                let after = [None, Some(0), Some(3), Some(60), Some(u64::MAX)][self.dice.below(5) as usize];
                let retry_after = after.map(Duration::from_secs);
                self.limiter.settle(grant, Answer::TooManyRequests { retry_after }, self.now);
            }
            End::Answered => self.limiter.settle(grant, Answer::Accepted, self.now),
            End::NeverLeft => self.limiter.refund(grant, self.now),
            End::Lost(loss) => self.limiter.lose(grant, sent, loss, self.now),
        }
    }

    fn check(&self, snapshot: &Snapshot) {
        let mut seen = HashSet::new();
        for zone in &snapshot.zones {
            assert!(seen.insert((zone.zone, zone.key)), "one row for each key");
            let id = self.limiter.zone_id(zone.zone).unwrap();
            let here = |request: &&Request| request.zones.contains(&(id, zone.key));
            let in_flight = self.requests.iter().filter(here).filter(|r| r.grant.is_some()).count();
            // A request that was granted but not yet polled is on its way too.
            let waiting = self.requests.iter().filter(here).filter(|r| r.waits.is_some()).count();
            let told: u32 = zone.lanes.iter().map(|lane| lane.waiting).sum();
            let both = zone.in_flight as usize + told as usize;
            assert!(both <= in_flight + waiting, "{zone:?}: {in_flight} on their way, {waiting} waiting");
            assert!(both + zone.lost >= in_flight, "{zone:?}: {in_flight} on their way, {waiting} waiting");
            for window in &zone.windows {
                // Lost requests do not hold back a lane that must get out.
                assert!(self.unruly || window.used <= window.limit as usize, "{zone:?}");
                assert_eq!(window.free(), (window.limit as usize).saturating_sub(window.used), "{zone:?}");
                assert!(window.used >= zone.in_flight as usize, "{zone:?}");
            }
        }
    }

    /// Checks that a request is granted at the instant that `earliest` returns, and not a nanosecond before.
    fn earliest_is_true(&mut self) {
        for lane in Lane::ALL {
            let zones: Vec<_> = self.zones.iter().map(|zone| (zone.id, 1)).collect();
            let mut asked_in_vain = 0;
            loop {
                let at = self.limiter.earliest(&zones, lane, self.now).unwrap();
                assert!(at >= self.now);
                let ask = Ask { zones: &zones, lane, send_by: None, head_of_lane: false };
                // A bucket forgets stamps older than two periods, and may then open a little earlier.
                if at > self.now && !self.unruly {
                    match self.limiter.acquire(&ask, at - 1) {
                        Decision::Queued { waiter, .. } => self.limiter.cancel(waiter, at - 1),
                        other => panic!("{lane:?} {at}: {other:?}"),
                    }
                }
                self.now = at;
                match self.limiter.acquire(&ask, at) {
                    Decision::Granted(grant) => {
                        self.limiter.settle(grant, Answer::Accepted, at);
                        break;
                    }
                    // The spreading of the lanes that can wait is known only once it has stopped one of them.
                    Decision::Queued { waiter, .. }
                        if is_spread(lane) && asked_in_vain < self.zones.len() =>
                    {
                        self.limiter.cancel(waiter, at);
                        asked_in_vain += 1;
                    }
                    other => panic!("{lane:?} {at}: {other:?}"),
                }
            }
        }
    }
}

fn is_spread(lane: Lane) -> bool {
    !matches!(lane, Lane::Critical | Lane::Trading)
}

fn worlds() -> u64 {
    if std::env::var_os("STEADFAST_DEEP").is_some() { 10_000 } else { 150 }
}

/// Runs worlds of three bursts each. Returns how many requests were granted, and how many refused.
fn live(unruly: bool) -> (usize, usize) {
    let (mut granted, mut refused) = (0, 0);
    for seed in 0..worlds() {
        // Some worlds begin at the clock's start, others when an eighth of its range has passed.
        let origin = [0, 1, 1_000 * S, Nanos::MAX / 8][seed as usize % 4];
        let mut world = World::new(seed, origin, unruly);
        for _ in 0..3 {
            let (burst, mut at) = (world.dice.below(60), world.now);
            for _ in 0..burst {
                at += [0, MS, 100 * MS][world.dice.below(3) as usize];
                world.offer(at);
            }
            world.run();
            world.earliest_is_true();
        }
        let gone = world.now + 10_000 * S;
        let snapshot = world.limiter.snapshot(gone);
        assert!(snapshot.zones.is_empty() && snapshot.bytes == 0, "seed {seed}: {snapshot:?}");
        granted += world.granted;
        refused += world.refused;
    }
    (granted, refused)
}

#[test]
fn no_mixture_of_zones_windows_losses_and_drops_is_refused_or_forgotten() {
    let (granted, refused) = live(false);
    assert!(granted > 20 * worlds() as usize && refused > worlds() as usize, "{granted} {refused}");
}

#[test]
fn nobody_is_forgotten_whatever_the_gateway_answers() {
    let (granted, refused) = live(true);
    assert!(granted > 20 * worlds() as usize && refused > worlds() as usize, "{granted} {refused}");
}

/// Regression: the zone's smoother refused a waiter of two zones while the other zone examined it, and no waiter was
/// told when the smoother opens. The waiter then waited until some other request came.
#[test]
fn whoever_waits_for_two_zones_of_which_one_spreads_its_requests_keeps_a_timer() {
    fn ask(zones: &[(ZoneId, u64)]) -> Ask<'_> {
        Ask { zones, lane: Lane::Bulk, send_by: None, head_of_lane: false }
    }
    let second = Duration::from_secs(1);
    let quota = |zone, n| Quota::new(zone, Scope::AuthToken).limit(n, second).profile(Profile::WindowLog);
    let shared = quota(Zone::GENERAL, 10).limit(20, 60 * second).ceilings(Ceilings::standard());
    let plain = quota(Zone::PLACE_ORDER, 1);
    let mut limiter = ZoneLimiter::builder().zone(shared).zone(plain).build_core().unwrap();
    let [spread, plain] = [Zone::GENERAL, Zone::PLACE_ORDER].map(|zone| (limiter.zone_id(zone).unwrap(), 7));
    let mut now = 1_000 * S;
    // The burst is spent, and so is the other zone.
    for _ in 0..8 {
        let Decision::Granted(grant) = limiter.acquire(&ask(&[spread]), now) else { panic!() };
        limiter.settle(grant, Answer::Accepted, now);
    }
    now += 1_002 * MS;
    let Decision::Granted(last) = limiter.acquire(&ask(&[plain]), now) else { panic!() };
    let both = [plain, spread];
    let Decision::Queued { waiter, .. } = limiter.acquire(&ask(&both), now) else { panic!() };
    // The plain zone is free at once. Only the other zone knows for how long its smoother stops the waiter.
    limiter.refund(last, now);
    assert_eq!(limiter.take_woken(), [waiter], "it sets its timer");
    let Some(Decision::Queued { alarm: Some(at), .. }) = limiter.poll(waiter, now) else { panic!() };
    let Some(Decision::Granted(grant)) = limiter.poll(waiter, at) else { panic!() };
    limiter.refund(grant, at);
}

#[test]
fn the_end_of_the_clock_is_no_panic() {
    let second = Duration::from_secs(1);
    for now in [Nanos::MAX / 2 - 1, Nanos::MAX / 2, Nanos::MAX - 1, Nanos::MAX] {
        let quota = Quota::new(Zone::GENERAL, Scope::AuthToken).limit(1, second).limit(4, 60 * second);
        let mut limiter = ZoneLimiter::builder().zone(quota).build_core().unwrap();
        let zones = [(limiter.zone_id(Zone::GENERAL).unwrap(), 7)];
        let ask = Ask { zones: &zones, lane: Lane::Bulk, send_by: Some(Nanos::MAX), head_of_lane: false };
        let Decision::Granted(grant) = limiter.acquire(&ask, now) else { panic!() };
        let Decision::Queued { waiter, .. } = limiter.acquire(&ask, now) else { panic!() };
        limiter.lose(grant, Nanos::MAX, Loss::GivenUp, now);
        assert!(matches!(limiter.poll(waiter, now), Some(Decision::Queued { .. })), "it stands still there");
        assert!(limiter.earliest(&zones, Lane::Bulk, now).unwrap() > Nanos::MAX / 2);
        assert_eq!(limiter.snapshot(now).zones[0].lost, 1);
        limiter.cancel(waiter, now);
        assert_eq!(limiter.export(zones[0].0, 7, now).len(), 1);
    }
}
