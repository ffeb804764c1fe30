//! A line to a gateway, in virtual time: the pure core at one end, the sandbox's counters at the other.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    time::Duration,
};

use steadfast_limit::{
    Answer, Ask, Decision, Grant, Lane, Limiter, Loss, Nanos, Quota, WaiterId, ZoneId, ZoneLimiter,
};
use steadfast_sandbox::enforce::{Enforcer, Kind, Window, decide};

use crate::drive::{MS, S};

/// How long a packet takes, one way.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Line {
    /// Always the same.
    Const(Nanos),
    /// A fifth of a millisecond, and a little.
    Lan,
    /// Two milliseconds, and about one more.
    Cloud,
    /// 40 ms and about 15 more; one packet in a hundred is sent again after 200 ms. Packets overtake each other.
    Internet,
}

pub(crate) const LINES: [Line; 4] = [Line::Const(20 * MS), Line::Lan, Line::Cloud, Line::Internet];

/// A generator of fixed sequences.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        let mut dice = Self(seed ^ 0x9E37_79B9_7F4A_7C15);
        dice.unit();
        dice
    }

    /// Evenly in `(0, 1]`.
    pub(crate) fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 11) as f64 + 1.0) / (1_u64 << 53) as f64
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((self.unit() * n as f64) as u64).min(n - 1)
    }

    /// Exponential with that mean.
    pub(crate) fn about(&mut self, mean: Nanos) -> Nanos {
        (-self.unit().ln() * mean as f64) as Nanos
    }
}

impl Line {
    fn takes(self, dice: &mut Dice) -> Nanos {
        match self {
            Self::Const(takes) => takes,
            Self::Lan => MS / 5 + dice.about(MS / 20),
            Self::Cloud => 2 * MS + dice.about(MS),
            Self::Internet => {
                let again = if dice.unit() < 0.01 { 200 * MS } else { 0 };
                40 * MS + dice.about(15 * MS) + again
            }
        }
    }
}

/// The observations of one run.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// When each request left, and in which lane.
    pub(crate) sent: Vec<(Nanos, Lane)>,
    /// When the gateway refused a request.
    pub(crate) refused: Vec<Nanos>,
    /// For each granted request: when it was asked, its lane, and how long it waited.
    pub(crate) waits: Vec<(Nanos, Lane, Nanos)>,
    /// When each accepted answer arrived.
    pub(crate) answered: Vec<Nanos>,
}

impl Seen {
    /// Returns the waits of one lane, ascending.
    pub(crate) fn waits_of(&self, lane: Lane) -> Vec<Nanos> {
        let mut waits: Vec<_> = self.waits.iter().filter(|w| w.1 == lane).map(|w| w.2).collect();
        waits.sort_unstable();
        waits
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Asked,
    Look(WaiterId),
    Counted,
    CountedLate,
    Ended,
}

struct Request {
    asked: Nanos,
    lane: Lane,
    /// How long after its end the request is asked again, if it is.
    again: Option<Nanos>,
    grant: Option<(Grant, Nanos)>,
    refused: bool,
}

/// The core, the line and the gateway.
pub(crate) struct Wire {
    pub(crate) limiter: Limiter,
    pub(crate) zone: ZoneId,
    pub(crate) gateway: Vec<Enforcer>,
    line: Line,
    /// How long after it has admitted a request the gateway may count it.
    pub(crate) lag: Nanos,
    /// The share of requests whose connection is reset after the gateway has counted them.
    pub(crate) resets: f64,
    /// When the gateway refuses every request, as if another program had used up the quota.
    pub(crate) outage: std::ops::Range<Nanos>,
    dice: Dice,
    requests: Vec<Request>,
    waiting: HashMap<WaiterId, usize>,
    happenings: BinaryHeap<Reverse<(Nanos, u64, Happening, usize)>>,
    order: u64,
    pub(crate) seen: Seen,
}

/// When every run starts.
pub(crate) const START: Nanos = 1_000 * S;

impl Wire {
    /// Makes a wire: a zone of `quota`, and a gateway that counts its `limits` by `kind`.
    pub(crate) fn new(quota: Quota, kind: Kind, limits: &[(u32, Duration)], line: Line, seed: u64) -> Self {
        let zone = quota.zone();
        let limiter = ZoneLimiter::builder().zone(quota).build_core().unwrap();
        let window = |(limit, period): &(u32, Duration)| Window::new(*limit, *period).unwrap();
        Self {
            zone: limiter.zone_id(zone).unwrap(),
            limiter,
            gateway: limits.iter().map(|limit| Enforcer::new(kind, window(limit))).collect(),
            line,
            lag: 0,
            resets: 0.0,
            outage: 0..0,
            dice: Dice::new(seed),
            requests: Vec::new(),
            waiting: HashMap::new(),
            happenings: BinaryHeap::new(),
            order: 0,
            seen: Seen::default(),
        }
    }

    /// Adds one request, asked at `at`.
    pub(crate) fn ask(&mut self, at: Nanos, lane: Lane) {
        self.offer(at, lane, None);
    }

    /// Adds `callers` requests, each asked again `pause` after its answer, without end.
    pub(crate) fn greedy(&mut self, lane: Lane, callers: usize, pause: Nanos) {
        for _ in 0..callers {
            self.offer(START, lane, Some(pause));
        }
    }

    /// Runs all events before `end`.
    pub(crate) fn run(&mut self, end: Nanos) {
        while let Some(Reverse((now, ..))) = self.happenings.peek()
            && *now < end
        {
            let Some(Reverse((now, _, happening, i))) = self.happenings.pop() else { break };
            match happening {
                Happening::Asked => {
                    let (zones, lane) = ([(self.zone, 7)], self.requests[i].lane);
                    let ask = Ask { zones: &zones, lane, send_by: None, head_of_lane: false };
                    let decision = self.limiter.acquire(&ask, now);
                    self.follow(i, decision, now);
                }
                Happening::Look(waiter) => {
                    if self.waiting.remove(&waiter).is_some() {
                        let decision = self.limiter.poll(waiter, now).unwrap();
                        self.follow(i, decision, now);
                    }
                }
                // The gateway admits by what it has counted so far.
                Happening::Counted if self.lag > 0 => {
                    let mut seen = self.gateway.clone();
                    let mut windows: Vec<_> = seen.iter_mut().collect();
                    self.requests[i].refused = decide(&mut windows, Duration::from_nanos(now)).is_err();
                    if !self.requests[i].refused {
                        let late = self.dice.below(self.lag);
                        self.happen(now + late, Happening::CountedLate, i);
                    }
                }
                Happening::Counted | Happening::CountedLate => {
                    let is_late = happening == Happening::CountedLate;
                    let mut windows: Vec<_> = self.gateway.iter_mut().collect();
                    let admitted = decide(&mut windows, Duration::from_nanos(now)).is_ok();
                    self.requests[i].refused |= !is_late && (!admitted || self.outage.contains(&now));
                }
                Happening::Ended => self.end(i, now),
            }
            for waiter in self.limiter.take_woken() {
                let i = self.waiting[&waiter];
                self.happen(now, Happening::Look(waiter), i);
            }
        }
    }

    fn offer(&mut self, at: Nanos, lane: Lane, again: Option<Nanos>) {
        self.requests.push(Request { asked: at, lane, again, grant: None, refused: false });
        self.happen(at, Happening::Asked, self.requests.len() - 1);
    }

    fn happen(&mut self, at: Nanos, happening: Happening, i: usize) {
        self.order += 1;
        self.happenings.push(Reverse((at, self.order, happening, i)));
    }

    fn follow(&mut self, i: usize, decision: Decision, now: Nanos) {
        match decision {
            Decision::Granted(grant) => {
                let request = &mut self.requests[i];
                request.grant = Some((grant, now));
                self.seen.sent.push((now, request.lane));
                self.seen.waits.push((request.asked, request.lane, now - request.asked));
                let counted = now + self.line.takes(&mut self.dice);
                let back = counted + self.line.takes(&mut self.dice);
                self.happen(counted, Happening::Counted, i);
                self.happen(back, Happening::Ended, i);
            }
            Decision::Queued { waiter, alarm } => {
                self.waiting.insert(waiter, i);
                if let Some(alarm) = alarm {
                    self.happen(alarm.max(now), Happening::Look(waiter), i);
                }
            }
            Decision::Refused(refusal) => panic!("{refusal}"),
        }
    }

    fn end(&mut self, i: usize, now: Nanos) {
        let request = &mut self.requests[i];
        let Some((grant, sent)) = request.grant.take() else { return };
        let (asked, lane, again, refused) = (request.asked, request.lane, request.again, request.refused);
        if self.dice.unit() <= self.resets {
            self.limiter.lose(grant, sent, Loss::Reset, now);
        } else if refused {
            self.seen.refused.push(now);
            self.limiter.settle(grant, Answer::TooManyRequests { retry_after: None }, now);
        } else {
            self.seen.answered.push(now);
            self.limiter.settle(grant, Answer::Accepted, now);
        }
        match again {
            Some(pause) => self.offer(now + pause, lane, again),
            // A refused request is asked again, as the layer above would do.
            None if refused => {
                self.offer(now, lane, None);
                let again = self.requests.len() - 1;
                self.requests[again].asked = asked;
            }
            None => {}
        }
    }
}
