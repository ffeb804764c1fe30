//! Several zones, scopes and windows at once, under everything that can become of a request; judged by the gateway's
//! own counters.
//!
//! Written from the rules alone: nothing here knows how the limiter keeps its books.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, HashSet},
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

/// What the gateway counts by, as far as a zone with that profile is promised to be safe.
fn kinds(profile: Profile, phase: Duration, whole_seconds: bool) -> Vec<Kind> {
    let mut kinds = vec![Kind::FixedWindow { phase }, Kind::FirstHit, Kind::SlidingLog, Kind::TokenBucket];
    // It counts what is shorter than a second by the second.
    if whole_seconds {
        kinds.push(Kind::WholeSecond);
    }
    if profile == Profile::Universal {
        kinds.extend([Kind::SlidingCounter { phase }, Kind::CountingRejects { phase }]);
    }
    kinds
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

/// What becomes of a request once it is granted.
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
    /// Dropped this long after it was asked, if it still waits then.
    patience: Option<Nanos>,
    grant: Option<(Grant, Nanos)>,
    waits: Option<WaiterId>,
    over: bool,
}

struct World {
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
    fn new(seed: u64, origin: Nanos) -> Self {
        let mut dice = Dice::new(seed);
        let count = 1 + dice.below(4) as usize;
        let mut builder = ZoneLimiter::builder()
            .strict_critical()
            .gateway_timeout(Duration::from_nanos(GATEWAY_TIMEOUT));
        let mut made = Vec::new();
        for zone in &ZONES[..count] {
            let profile = [Profile::Universal, Profile::WindowLog][dice.below(2) as usize];
            let periods: &[u64] = &[[50, 1_000, 20_000], [100, 700, 12_000], [1_000, 60_000, 61_000]]
                [dice.below(3) as usize][..=dice.below(3) as usize];
            let mut least = 0;
            let limits: Vec<_> = periods
                .iter()
                .map(|ms| {
                    least += 1 + dice.below(if least == 0 { 6 } else { 20 }) as u32;
                    (least, Duration::from_millis(*ms))
                })
                .collect();
            let settle = [0, 0, 30 * MS][dice.below(3) as usize];
            let headroom = u32::from(limits[0].0 > 1 && dice.below(4) == 0);
            let mut quota = Quota::new(*zone, Scope::AuthToken).profile(profile).headroom(headroom);
            // A zone that withholds all there is from a lane cannot be built.
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
            .map(|(zone, limits, kind, settle)| {
                ZoneOfWorld { id: limiter.zone_id(zone).unwrap(), limits, kind, settle }
            })
            .collect();
        let trip = [0, MS, 30 * MS, 400 * MS][dice.below(4) as usize];
        Self {
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
        let mut zones: Vec<_> = self
            .zones
            .iter()
            .filter_map(|zone| (dice.below(2) == 0).then(|| (zone.id, dice.below(2))))
            .collect();
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

    /// Lets everything happen; whoever waits when nothing more can happen was forgotten.
    fn run(&mut self) {
        while let Some(Reverse((now, _, happening, i))) = self.happenings.pop() {
            self.now = now;
            match happening {
                Happening::Asked => {
                    let request = &self.requests[i];
                    let ask = Ask {
                        zones: &request.zones,
                        lane: request.lane,
                        deadline: request.deadline,
                        head_of_lane: request.head,
                    };
                    let decision = self.limiter.acquire(&ask, now);
                    if let Some(patience) = request.patience {
                        self.happen(now + patience, Happening::GivenUp, i);
                    }
                    self.follow(i, decision);
                }
                Happening::Look(waiter) => {
                    if self.waiting.contains_key(&waiter) {
                        let decision = self.limiter.poll(waiter, now).unwrap();
                        self.follow(i, decision);
                    }
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
                        // What is lost is counted at the latest possible moment, at once, or never.
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
                assert!(alarm.is_none_or(|at| at > now), "an alarm that is due is a busy loop");
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
                assert!(earliest > by, "refused although it could leave in time: {earliest} by {by} at {now}");
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
        assert_eq!(verdict, Ok(()), "429 at {} for {:?}", self.now, self.requests[i].zones);
        for (key, part) in self.requests[i].zones.iter().zip(parts) {
            gateway.insert(*key, part);
        }
    }

    fn end(&mut self, i: usize) {
        let request = &mut self.requests[i];
        let (grant, sent) = request.grant.take().expect("ends once");
        request.over = true;
        match request.end {
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
            // One that was handed a slot and was not polled yet is on its way too.
            let waiting = self.requests.iter().filter(here).filter(|r| r.waits.is_some()).count();
            let told: u32 = zone.lanes.iter().map(|lane| lane.waiting).sum();
            let both = zone.in_flight as usize + told as usize;
            assert!(both <= in_flight + waiting, "{zone:?}: {in_flight} on their way, {waiting} waiting");
            assert!(both + zone.lost >= in_flight, "{zone:?}: {in_flight} on their way, {waiting} waiting");
            for window in &zone.windows {
                assert!(window.used <= window.limit as usize, "{zone:?}");
                assert_eq!(window.free() + window.used, window.limit as usize, "{zone:?}");
                assert!(window.used >= zone.in_flight as usize, "{zone:?}");
            }
        }
    }

    /// Asked for at the instant that `earliest` names, a request is granted; a nanosecond before, it is not.
    fn earliest_is_true(&mut self) {
        for lane in Lane::ALL {
            let zones: Vec<_> = self.zones.iter().map(|zone| (zone.id, 1)).collect();
            let Ok(at) = self.limiter.earliest(&zones, lane, self.now) else { panic!("room for all") };
            assert!(at >= self.now);
            let ask = Ask { zones: &zones, lane, deadline: None, head_of_lane: false };
            if at > self.now {
                match self.limiter.acquire(&ask, at - 1) {
                    Decision::Queued { waiter, .. } => self.limiter.cancel(waiter, at - 1),
                    other => panic!("{lane:?} {at}: {other:?}"),
                }
            }
            match self.limiter.acquire(&ask, at) {
                Decision::Granted(grant) => self.limiter.settle(grant, Answer::Accepted, at),
                other => panic!("{lane:?} {at}: {other:?}"),
            }
            self.now = at;
        }
    }
}

fn worlds() -> u64 {
    if std::env::var_os("STEADFAST_DEEP").is_some() { 20_000 } else { 150 }
}

#[test]
fn no_mixture_of_zones_windows_losses_and_drops_is_refused_or_forgotten() {
    let (mut granted, mut refused) = (0, 0);
    for seed in 0..worlds() {
        // Some worlds begin with their clock, and some 18 years before its end.
        let origin = [0, 1, 1_000 * S, Nanos::MAX / 8][seed as usize % 4];
        let mut world = World::new(seed, origin);
        for _ in 0..3 {
            let (burst, mut at) = (world.dice.below(60), world.now);
            for _ in 0..burst {
                at += [0, MS, 100 * MS][world.dice.below(3) as usize];
                world.offer(at);
            }
            world.run();
            world.earliest_is_true();
        }
        let gone = world.now + 300 * S;
        let snapshot = world.limiter.snapshot(gone);
        assert!(snapshot.zones.is_empty() && snapshot.bytes == 0, "seed {seed}: {snapshot:?}");
        granted += world.granted;
        refused += world.refused;
    }
    assert!(granted > 20 * worlds() as usize && refused > worlds() as usize, "{granted} {refused}");
}
