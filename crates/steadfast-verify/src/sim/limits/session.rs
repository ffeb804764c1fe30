use std::{cmp::Reverse, collections::BinaryHeap};

use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use steadfast::limit::Lane;

use super::{
    client::{Client, Ending, RequestId},
    demand::{Demand, Happening},
    gateway::Gateway,
    load::{AFTER_ANSWER, EXCUSED, LAG, Load, Storm, TOLD},
    losses,
    restless::Restless,
    row::Row,
    seeds,
    tally::{BurstOfCancels, Tally},
};
use crate::sim::network::{End, Nanos, law::below};

/// One client, one gateway and the line between them: everything but the client's decisions.
#[derive(Debug)]
pub(super) struct Session {
    row: Row,
    demand: Demand,
    gateway: Gateway,
    line: ChaCha8Rng,
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    scheduled: u64,
    requests: Vec<Request>,
    free: Vec<RequestId>,
    waiting: usize,
    /// The current process; requests of former ones still count.
    process: u32,
    is_up: bool,
    endless: Vec<(Lane, u32)>,
    /// Until when another program's requests excuse 429s.
    excused_until: Nanos,
    tally: Tally,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A request reaches the gateway's counters.
    Arrived(RequestId),
    /// A gateway that counts late counts an admitted request.
    Counted,
    /// The client learns how a request ended.
    Ended(RequestId),
}

#[derive(Clone, Copy, Debug)]
struct Request {
    lane: Lane,
    endless: bool,
    asked: Nanos,
    sent: Nanos,
    end: End,
    refused: bool,
    /// When its answer is there; for a request without one, when it left.
    answered: Nanos,
    process: u32,
    /// The burst of cancels that it belongs to.
    burst: Option<u32>,
    /// How many events still refer to it.
    events: u8,
}

impl Session {
    /// The most requests that wait at the same time; further ones are dropped.
    const MOST_WAITING: usize = 600;

    /// How often a client may be woken at one instant.
    const MOST_WAKES: u32 = 10_000;

    pub(super) fn new(row: Row, seed: u64, number: u64) -> Self {
        let surroundings = row.surroundings();
        let part = |part| seeds::derive(seed, number, &format!("{part} {surroundings}"));
        let demand = Demand::new(row.zone, row.load, part("demand"));
        Self {
            row,
            endless: demand.endless(),
            demand,
            gateway: Gateway::new(row.zone, row.gateway, part("gateway")),
            line: ChaCha8Rng::seed_from_u64(part("line")),
            events: BinaryHeap::new(),
            scheduled: 0,
            requests: Vec::new(),
            free: Vec::new(),
            waiting: 0,
            process: 0,
            is_up: true,
            excused_until: 0,
            tally: Tally::default(),
        }
    }

    /// Runs until `end` with a client that is driven by instants.
    ///
    /// # Errors
    ///
    /// [`Restless`] if the client asks to be woken again and again while nothing happens.
    pub(super) fn run(mut self, client: &mut impl Client, end: Nanos) -> Result<(Tally, Gateway), Restless> {
        let (mut now, mut wakes) = (0, 0);
        self.start(client, now);
        loop {
            let next = self.next();
            let alarm = client.alarm().unwrap_or(Nanos::MAX);
            if alarm.min(next) >= end {
                return Ok(self.finish(end));
            }
            wakes = if alarm <= now { wakes + 1 } else { 0 };
            if wakes > Self::MOST_WAKES {
                return Err(Restless { row: self.row.to_string(), at: now, alarm });
            }
            if alarm < next {
                now = now.max(alarm);
                client.wake(now);
            } else {
                now = next;
                self.step(client);
            }
            self.send_all(client, now);
        }
    }

    /// Returns when the next event happens.
    pub(super) fn next(&self) -> Nanos {
        self.events.peek().map_or(Nanos::MAX, |Reverse((at, ..))| *at).min(self.demand.at())
    }

    /// Returns when a request is asked for next, or a process ends or starts.
    pub(super) fn next_demand(&self) -> Nanos {
        self.demand.at()
    }

    /// Processes the next event.
    pub(super) fn step(&mut self, client: &mut impl Client) {
        let demand = self.demand.at();
        let event = self.events.peek().map_or(Nanos::MAX, |Reverse((at, ..))| *at);
        if demand < event {
            if let Some(happening) = self.demand.take() {
                self.happen(happening, client, demand);
            }
        } else if let Some(Reverse((now, _, event))) = self.events.pop() {
            self.occur(event, client, now);
        }
    }

    /// Sends everything that the client lets go.
    pub(super) fn send_all(&mut self, client: &mut impl Client, now: Nanos) {
        while let Some(id) = client.leave(now) {
            self.send(id, now);
            let Request { lane, endless, .. } = self.requests[id];
            if endless && self.is_up {
                self.ask(client, lane, true, None, now);
            }
        }
    }

    /// Asks for the requests that always wait.
    pub(super) fn start(&mut self, client: &mut impl Client, now: Nanos) {
        for (lane, count) in self.endless.clone() {
            for _ in 0..count {
                self.ask(client, lane, true, None, now);
            }
        }
        self.send_all(client, now);
    }

    pub(super) fn finish(mut self, end: Nanos) -> (Tally, Gateway) {
        self.tally.close(self.gateway.used(end), self.row.network.slow_round_trip(), end);
        (self.tally, self.gateway)
    }

    fn happen(&mut self, happening: Happening, client: &mut impl Client, now: Nanos) {
        match happening {
            Happening::Asked { lane, count } => {
                let burst = (self.row.load == Load::CancelBursts).then(|| {
                    self.tally.bursts.push(BurstOfCancels { asked: now, left: 0, count, last: now });
                    self.tally.bursts.len() as u32 - 1
                });
                for _ in 0..count {
                    if self.waiting < Self::MOST_WAITING {
                        self.ask(client, lane, false, burst, now);
                    }
                }
            }
            Happening::Died => {
                client.die(now);
                self.is_up = false;
                self.process += 1;
                self.waiting = 0;
            }
            Happening::Started { remembers } => {
                self.is_up = true;
                client.start(remembers, now);
                self.start(client, now);
            }
            Happening::Lowered => self.gateway.lower(),
            Happening::Foreign { count } => {
                self.excused_until = now + EXCUSED;
                for _ in 0..count {
                    if self.gateway.admits(now) {
                        self.gateway.count_foreign(now);
                    }
                }
            }
        }
    }

    fn occur(&mut self, event: Event, client: &mut impl Client, now: Nanos) {
        match event {
            Event::Arrived(id) => {
                let admitted = self.gateway.admits(now);
                let is_excused = matches!(self.row.load, Load::Spread(_)) && now < self.excused_until;
                self.tally.arrived(admitted, is_excused, now);
                self.requests[id].refused = !admitted;
                if admitted && matches!(self.row.load, Load::Late(_)) {
                    let lag = below(&mut self.line, LAG + 1);
                    self.schedule(now + lag, Event::Counted);
                } else if admitted && self.row.load == Load::AfterAnswer {
                    let lag = below(&mut self.line, AFTER_ANSWER + 1);
                    self.schedule(self.requests[id].answered.max(now) + lag, Event::Counted);
                } else if admitted {
                    self.gateway.count(now);
                }
                self.release(id);
            }
            Event::Counted => self.gateway.count(now),
            Event::Ended(id) => {
                let Request { lane, end, refused, sent, process, .. } = self.requests[id];
                let told = self.row.load == Load::Cancels(Storm::Told) && lane != Lane::Critical;
                let retry_after = (refused && told).then_some(TOLD);
                self.tally.last_ended = now;
                if process == self.process {
                    client.ended(id, Ending { end, refused, retry_after, sent }, now);
                }
                self.release(id);
            }
        }
    }

    fn ask(&mut self, client: &mut impl Client, lane: Lane, endless: bool, burst: Option<u32>, now: Nanos) {
        let request = Request {
            lane,
            endless,
            asked: now,
            sent: now,
            end: End::Answered,
            refused: false,
            answered: now,
            process: self.process,
            burst,
            events: 0,
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.requests[id] = request;
                id
            }
            None => {
                self.requests.push(request);
                self.requests.len() - 1
            }
        };
        self.waiting += 1;
        client.ask(id, lane, now);
    }

    fn send(&mut self, id: RequestId, now: Nanos) {
        self.waiting = self.waiting.saturating_sub(1);
        let journey = losses::journey(self.row, now, &mut self.line);
        let request = &mut self.requests[id];
        (request.sent, request.end) = (now, journey.end);
        request.answered = if journey.end == End::Answered { journey.at } else { now };
        self.tally.left(request.lane, now - request.asked, now);
        if let Some(burst) = request.burst.and_then(|burst| self.tally.bursts.get_mut(burst as usize)) {
            burst.left += 1;
            burst.last = now;
        }
        request.events = 1 + u8::from(journey.counted.is_some());
        if let Some(at) = journey.counted {
            self.schedule(at, Event::Arrived(id));
        }
        self.schedule(journey.at, Event::Ended(id));
    }

    fn schedule(&mut self, at: Nanos, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((at, self.scheduled, event)));
    }

    fn release(&mut self, id: RequestId) {
        let request = &mut self.requests[id];
        request.events -= 1;
        if request.events == 0 {
            self.free.push(id);
        }
    }
}
