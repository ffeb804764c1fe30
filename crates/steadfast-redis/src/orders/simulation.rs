//! Two to five processes for a minute and a half, from seeds: a store that loses its last writes, or whose place a replica takes
//! while it goes on, calls that are late or unanswered, processes that stop, go on or die, clocks that run apart.
//!
//! `model` looks at every course of two processes in large steps; this looks at some of more of them in small ones.

mod happening;
mod process;
mod server;

use std::{cmp::Reverse, collections::BinaryHeap};

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

use self::happening::{Call, Happening, Mistake, Of};
use super::{
    ledger::{Fence, Ledger},
    ownership::Ownership,
};
use crate::rule::Micros;

const S: Micros = 1_000_000;
const MS: Micros = 1_000;
const FAULTS_END: Micros = 45 * S;
const END: Micros = 90 * S;
/// How long a call may take for its caller.
const ANSWERS_WITHIN: Micros = S;
/// A server whose replicas are gone takes no writes after this.
const MAX_LAG: Micros = 10 * S;

struct Process {
    ownership: Ownership,
    life: u64,
    call: u64,
    /// The call that waits for its answer, and when it was made by the process's clock.
    asked: Option<(Call, Micros)>,
    entries: u64,
    renews_at: Micros,
    places_at: Micros,
    order: Option<String>,
    /// The orders that it knows to be sent: those of the journal that it has read, and its own.
    knows: Vec<String>,
    stopped_until: Micros,
    /// Its clock, beside the true time.
    ahead: Micros,
    ppm: Micros,
    /// True while it reaches a server whose place a replica has taken.
    reaches_old: bool,
}

struct Server {
    ledger: Ledger,
    run: u64,
    /// Its earlier states, with the instants of the writes.
    before: Vec<(Micros, Ledger)>,
}

struct World {
    now: Micros,
    happenings: BinaryHeap<Reverse<(Micros, u64, Happening)>>,
    processes: Vec<Process>,
    server: Server,
    /// The server whose place a replica has taken, and since when.
    old: Option<(Server, Micros)>,
    has_replicas: bool,
    /// The orders that were sent, and which of them a person has looked for.
    sent: Vec<String>,
    looked_for: usize,
    dice: ChaCha8Rng,
    next: u64,
    mistake: Mistake,
    wrong: Option<String>,
}

impl Process {
    fn clock(&self, now: Micros) -> Micros {
        now + self.ahead + now * self.ppm / 1_000_000
    }
}

impl World {
    fn new(seed: u64, mistake: Mistake) -> Self {
        let mut dice = ChaCha8Rng::seed_from_u64(seed);
        let mut ledger = Ledger::default();
        ledger.take("0", None, "", "", "first", 0);
        ledger.accept("0", "first");
        ledger.release(&Fence { counter: 0, owner: "first".to_owned() });
        let mut below = |most: u64| (dice.next_u64() % most) as Micros;
        let processes = (0..2 + below(4))
            .map(|at| Process {
                ownership: Ownership::new(format!("{at}.0")),
                life: 0,
                call: 0,
                asked: None,
                entries: 0,
                renews_at: 0,
                places_at: 0,
                order: None,
                knows: Vec::new(),
                stopped_until: 0,
                ahead: below(3_600_000_000),
                ppm: below(401) - 200,
                reaches_old: false,
            })
            .collect();
        let has_replicas = below(2) == 0;
        let server = Server { ledger, run: 0, before: Vec::new() };
        let happenings = BinaryHeap::new();
        let (sent, looked_for, old, wrong) = (Vec::new(), 0, None, None);
        let mut world = Self {
            now: 0,
            happenings,
            processes,
            server,
            old,
            has_replicas,
            sent,
            looked_for,
            dice,
            next: 0,
            mistake,
            wrong,
        };
        for at in 0..world.processes.len() {
            let (after, stops, dies) = (world.below(500) * MS, world.below(3), world.below(2));
            world.happen(after, Happening::Acts((at, 0, 0)));
            for _ in 0..stops {
                let when = world.below(FAULTS_END as u64);
                world.happen(when, Happening::Stops(at));
            }
            for _ in 0..dies {
                let when = world.below(FAULTS_END as u64);
                world.happen(when, Happening::Dies(at));
            }
        }
        for _ in 0..world.below(4) {
            let when = world.below(FAULTS_END as u64);
            let what = match world.below(4) {
                0 => Happening::Empties,
                _ if world.has_replicas => Happening::Promotes,
                _ => Happening::Restarts,
            };
            world.happen(when, what);
        }
        world
    }

    fn below(&mut self, most: u64) -> Micros {
        (self.dice.next_u64() % most) as Micros
    }

    /// A way to the store or back: most are short, some are long.
    fn way(&mut self) -> Micros {
        match self.below(20) {
            0 if self.now < FAULTS_END => self.below(2_500) * MS,
            _ => MS + self.below(20) * MS,
        }
    }

    fn happen(&mut self, after: Micros, happening: Happening) {
        self.next += 1;
        self.happenings.push(Reverse((self.now + after, self.next, happening)));
    }

    /// Returns what goes wrong.
    fn run(mut self) -> Result<usize, String> {
        while let Some(Reverse((now, _, happening))) = self.happenings.pop()
            && now < END
        {
            self.now = now;
            self.step(happening);
            if let Some(wrong) = self.wrong {
                return Err(wrong);
            }
        }
        let owns = |process: &Process| process.ownership.is_owner(process.clock(self.now));
        if self.processes.iter().any(owns) {
            Ok(self.sent.len())
        } else {
            Err("nobody owns the orders".to_owned())
        }
    }

    fn step(&mut self, happening: Happening) {
        // A stopped process does what it would have done when it goes on.
        if let Happening::Acts((at, ..))
        | Happening::Answered((at, ..), _)
        | Happening::GivesUp((at, ..))
        | Happening::Polls((at, ..), _) = &happening
            && self.processes[*at].stopped_until > self.now
        {
            let after = self.processes[*at].stopped_until - self.now;
            return self.happen(after, happening);
        }
        match happening {
            Happening::Acts(of) => self.act(of),
            Happening::Arrives(of, call, run) => self.arrive(of, call, run),
            Happening::Answered(of, answer) => self.answer(of, answer),
            Happening::GivesUp((at, life, call)) => {
                if self.is_current((at, life, call)) && self.processes[at].asked.take().is_some() {
                    // It connects again, to the server that is there now.
                    self.processes[at].reaches_old &= self.old.is_some() && self.below(2) == 0;
                    self.happen(50 * MS, Happening::Acts((at, life, call)));
                }
            }
            Happening::Polls(of, order) => self.poll(of, order),
            Happening::Stops(at) => self.processes[at].stopped_until = self.now + self.below(15_000) * MS,
            Happening::Dies(at) => self.begin_again(at),
            Happening::Restarts => {
                self.server.run += 1;
                self.lose_tail(0, 2 * S);
            }
            Happening::Empties => {
                self.server.ledger.flush();
                self.server.before.clear();
            }
            Happening::Promotes => {
                let Server { ledger, run, .. } = &self.server;
                let old = Server { ledger: ledger.clone(), run: *run, before: Vec::new() };
                self.old = Some((old, self.now));
                for at in 0..self.processes.len() {
                    self.processes[at].reaches_old = self.below(2) == 0;
                }
                self.server.run += 1;
                let kept = self.server.before.len();
                let journal = self.server.ledger.journal().len();
                // A replica has each write that it has confirmed, and all writes before it.
                let floor = match self.mistake {
                    Mistake::WaitsForNoReplica => 0,
                    _ => self
                        .server
                        .before
                        .iter()
                        .rposition(|(_, it)| it.journal().len() < journal)
                        .map_or(0, |it| it + 1),
                };
                self.lose_tail(floor.min(kept), S);
            }
            Happening::Accepts(mark) => {
                let run = self.server.run.to_string();
                if self.server.ledger.accept(&run, &mark) {
                    self.looked_for = self.sent.len();
                }
                self.server.before.clear();
            }
        }
    }

    /// Loses the writes of the last while, but none before that place.
    fn lose_tail(&mut self, floor: usize, within: Micros) {
        let since = self.now - self.below(within as u64);
        let before = std::mem::take(&mut self.server.before);
        if let Some((_, ledger)) = before.into_iter().skip(floor).find(|(at, _)| *at >= since) {
            self.server.ledger = ledger;
        }
    }

    fn is_current(&self, (at, life, call): Of) -> bool {
        let process = &self.processes[at];
        (process.life, process.call) == (life, call)
    }
}

fn seeds() -> u64 {
    if std::env::var_os("STEADFAST_DEEP").is_some() { 100_000 } else { 500 }
}

#[test]
fn who_sends_an_order_knows_all_that_were_sent_before() {
    let mut sent = 0;
    for seed in 0..seeds() {
        match World::new(seed, Mistake::None).run() {
            Ok(orders) => sent += orders,
            Err(wrong) => panic!("seed {seed}: {wrong}"),
        }
    }
    println!("{} seeds: {sent} orders sent", seeds());
    assert!(sent as u64 > 20 * seeds(), "{sent}");
}

#[test]
fn a_broken_rule_is_found() {
    for mistake in [
        Mistake::TakesAtOnce,
        Mistake::NumberAlone,
        Mistake::NoFence,
        Mistake::SendsUnasked,
        Mistake::TakesWhatMayLack,
        Mistake::RenewsInAnotherRun,
        Mistake::WaitsForNoReplica,
    ] {
        let found = (0..20_000).find_map(|seed| Some((seed, World::new(seed, mistake).run().err()?)));
        println!("{mistake:?}: {found:?}");
        assert!(found.is_some(), "{mistake:?}");
    }
}
