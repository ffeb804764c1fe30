//! An exhaustive model over the real [`Registry`]: every interleaving of sends, answers, late orders, settling and
//! two-step reads, for a few intents on one key.
//!
//! The world decides what happens; the registry is driven exactly as the layers drive it. A state is two books: what
//! the service did, and what the registry knows. States that differ only in the names of their positions are one.

use std::{
    collections::{HashMap, HashSet, VecDeque, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use steadfast_spec::{OrderRecord, OrderRequest, Outcome, Resend};

use crate::{
    attempt::{Attempt, AttemptState},
    event::{Answer, Effect, Event, OrderEvent},
    intent::{Finding, Intent, Phase},
    registry::{Purpose, Registry},
    settings::{ResendPolicy, Rules, Settings},
    stamp::{AttemptNo, Epoch, IntentNo, ReadNo, Seq, Session},
};

/// How large the model is, and what may go wrong in it.
#[derive(Clone, Copy)]
struct Model {
    intents: u64,
    attempts: u32,
    foreign: usize,
    reads: usize,
    /// Whether orders appear before their attempt settles.
    bounded: bool,
    refusals: bool,
    rules: Rules,
}

const SMALL: Model = Model {
    intents: 2,
    attempts: 2,
    foreign: 0,
    reads: 1,
    bounded: true,
    refusals: false,
    rules: Rules { negatives: 1, ..Rules::PROTOCOL },
};

/// What the service did with one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Served {
    Pending,
    Applied(usize),
    Dropped,
}

/// What happens next; an attempt is named by its intent and its place.
#[derive(Clone, Copy, Debug)]
enum Move {
    Send(u64),
    Resend(u64),
    Leave(u64),
    Apply(u64, usize),
    Drop(u64, usize),
    Acknowledge(u64, usize),
    Doubt(u64, usize),
    Refuse(u64, usize),
    Limit(u64, usize),
    Settle(u64, usize),
    Foreign,
    Read,
    Evaluate(usize),
    List(usize),
}

fn at(n: u64) -> usize {
    usize::try_from(n).unwrap()
}

#[derive(Clone)]
struct World {
    registry: Registry,
    /// The owner of every order; `None` for somebody else's.
    orders: Vec<Option<u64>>,
    served: Vec<Vec<Served>>,
    /// Reads under way: how many orders they saw, if they were evaluated.
    reads: Vec<(ReadNo, Option<usize>)>,
    flagged: HashSet<String>,
    /// Answers that named an order which another intent had taken.
    double: bool,
    sent: u64,
    next_read: u64,
}

#[derive(Default, Debug)]
struct Found {
    states: usize,
    duplicates: usize,
    double_claims: usize,
    undetected: usize,
    lost: usize,
    trace: Option<String>,
}

fn order() -> Arc<OrderRequest> {
    let fields = [
        ("symId", "S"),
        ("qty", "1"),
        ("side", "buy"),
        ("type", "market"),
        ("product", "delivery"),
        ("validity", "day"),
    ];
    Arc::new(OrderRequest::from_fields(fields).unwrap())
}

fn records(count: usize) -> Vec<OrderRecord> {
    let list: Vec<_> =
        (0..count).map(|n| format!(r#"{{"orderId":"{n}","symId":"S","side":"buy","qty":1}}"#)).collect();
    let body = format!(r#"{{"s":"ok","d":[{}]}}"#, list.join(","));
    steadfast_spec::parse_order_list(body.as_bytes(), &Default::default()).unwrap()
}

impl World {
    fn new(model: &Model, order: &Arc<OrderRequest>) -> Self {
        let settings = Settings::default().resend(ResendPolicy::AtMost(model.attempts - 1));
        let mut registry = Registry::new(Arc::new(settings), Epoch(0));
        registry.rules = model.rules;
        for n in 0..model.intents {
            let opened = Event::Opened { intent: IntentNo(n), order: order.clone(), name: None };
            registry.step(Duration::ZERO, opened);
        }
        let mut world = Self {
            registry,
            orders: Vec::new(),
            served: vec![Vec::new(); usize::try_from(model.intents).unwrap()],
            reads: Vec::new(),
            flagged: HashSet::new(),
            double: false,
            sent: 0,
            next_read: 0,
        };
        // The list is known before the first order.
        world.open_read();
        world.close_read(0, &[]);
        world
    }

    fn step(&mut self, event: Event) {
        for effect in self.registry.step(Duration::ZERO, event) {
            match effect {
                Effect::Report(
                    OrderEvent::LateDuplicate { order_id, .. } | OrderEvent::Excess { order_id, .. },
                ) => {
                    assert!(self.flagged.insert(order_id), "I11: flagged twice");
                }
                Effect::Report(OrderEvent::Conflict { .. }) => self.double = true,
                _ => {}
            }
        }
    }

    fn open_read(&mut self) {
        let read = ReadNo(self.next_read);
        self.next_read += 1;
        self.step(Event::ReadOpened { read, purpose: Purpose::Verification });
        self.step(Event::ReadStarted { read, session: Session::default() });
        self.reads.push((read, None));
    }

    fn close_read(&mut self, index: usize, all: &[OrderRecord]) {
        let (read, seen) = self.reads.remove(index);
        let list = all[..seen.unwrap_or(0)].to_vec();
        self.step(Event::ReadEnded { read, list: Ok(list) });
    }

    /// Sends an intent as the layers do, if the registry lets it go.
    fn send(&mut self, intent: u64) {
        let Some(attempt) = self.registry.next_attempt(IntentNo(intent), Session::default()) else { return };
        self.step(Event::Begun { attempt, session: Session::default() });
        let wanted = self.registry.may_send(attempt);
        self.step(if wanted { Event::Sent(attempt) } else { Event::Withheld(attempt) });
        let served = if wanted { Served::Pending } else { Served::Dropped };
        self.served[at(intent)].push(served);
    }

    fn intent(&self, n: u64) -> &Intent {
        &self.registry.intents[&IntentNo(n)]
    }

    fn close(&mut self, attempt: AttemptNo, outcome: Outcome) {
        self.step(Event::Closed { attempt, outcome, answer: Answer::Status(504) });
    }

    /// Everything that can happen next.
    fn moves(&self, model: &Model, out: &mut Vec<Move>) {
        out.clear();
        for n in 0..model.intents {
            let intent = self.intent(n);
            let first = n == 0 || !self.served[at(n - 1)].is_empty();
            if intent.phase == Phase::Idle && intent.attempts.is_empty() && first {
                out.push(Move::Send(n));
            }
            if intent.phase == Phase::Granted {
                out.push(Move::Leave(n));
                // Sends refused for rate could go on for ever.
                if intent.attempts.len() < 3 {
                    out.push(Move::Resend(n));
                }
            }
            for (k, attempt) in intent.attempts.iter().enumerate() {
                self.moves_of(model, n, k, attempt, out);
            }
        }
        if self.orders.iter().filter(|owner| owner.is_none()).count() < model.foreign {
            out.push(Move::Foreign);
        }
        if self.reads.len() < model.reads {
            out.push(Move::Read);
        }
        for (index, (_, seen)) in self.reads.iter().enumerate() {
            out.push(if seen.is_none() { Move::Evaluate(index) } else { Move::List(index) });
        }
    }

    fn moves_of(&self, model: &Model, n: u64, k: usize, attempt: &Attempt, out: &mut Vec<Move>) {
        let served = self.served[at(n)][k];
        if served == Served::Pending && !matches!(attempt.state, AttemptState::Void) {
            out.extend([Move::Apply(n, k), Move::Drop(n, k)]);
        }
        match attempt.state {
            AttemptState::InFlight(_) => {
                out.push(Move::Doubt(n, k));
                match served {
                    Served::Applied(_) => out.push(Move::Acknowledge(n, k)),
                    Served::Dropped if model.refusals => out.extend([Move::Refuse(n, k), Move::Limit(n, k)]),
                    _ => {}
                }
            }
            AttemptState::Doubt { settled: None, .. } if !model.bounded || served != Served::Pending => {
                out.push(Move::Settle(n, k));
            }
            _ => {}
        }
    }

    fn make(&mut self, made: Move, all: &[OrderRecord]) {
        let number = |n, index| AttemptNo { intent: IntentNo(n), index };
        match made {
            Move::Send(n) => {
                self.send(n);
                self.sent += 1;
            }
            Move::Resend(n) => self.send(n),
            Move::Leave(n) => self.step(Event::Concluded(IntentNo(n))),
            Move::Apply(n, k) => {
                self.served[at(n)][k] = Served::Applied(self.orders.len());
                self.orders.push(Some(n));
            }
            Move::Drop(n, k) => self.served[at(n)][k] = Served::Dropped,
            Move::Acknowledge(n, k) => {
                let Served::Applied(order) = self.served[at(n)][k] else { unreachable!() };
                self.close(number(n, k), Outcome::Accepted { order_id: Some(order.to_string()) });
            }
            Move::Doubt(n, k) => self.close(number(n, k), Outcome::Unknown { resend: Resend::AfterAbsence }),
            Move::Refuse(n, k) => self.close(number(n, k), Outcome::Rejected),
            Move::Limit(n, k) => self.close(number(n, k), Outcome::NotExecuted),
            Move::Settle(n, k) => {
                self.registry.unsettled.retain(|(_, other)| *other != number(n, k));
                self.registry.settle(number(n, k));
            }
            Move::Foreign => self.orders.push(None),
            Move::Read => self.open_read(),
            Move::Evaluate(index) => self.reads[index].1 = Some(self.orders.len()),
            Move::List(index) => self.close_read(index, all),
        }
    }

    /// Everything that can matter later, with positions named by their rank.
    fn key(&self) -> Box<[u8]> {
        let mut stamps: Vec<Seq> = Vec::new();
        let mut text = Vec::new();
        let mut parts: Vec<(usize, Seq)> = Vec::new();
        let mut stamp = |seq: Seq, text: &mut Vec<u8>| {
            parts.push((text.len(), seq));
            stamps.push(seq);
            text.push(0);
        };
        for (n, served) in self.served.iter().enumerate() {
            let intent = self.intent(n as u64);
            text.push(match &intent.phase {
                Phase::Idle => 0,
                Phase::Sending => 1,
                Phase::Doubt => 2,
                Phase::Granted => 3,
                Phase::Finished(Finding::Unresolved(_)) => 4,
                Phase::Finished(_) => 5,
            });
            text.push(intent.order_id().map_or(255, |id| id.parse().unwrap()));
            text.push(u8::from(intent.reopened));
            if let Some(doubt) =
                intent.doubt.as_ref().filter(|_| intent.is_open() || intent.phase == Phase::Sending)
            {
                stamp(doubt.from, &mut text);
                text.push(doubt.here.reads.min(self.registry.rules.negatives));
                stamp(doubt.here.latest, &mut text);
            }
            for (attempt, served) in intent.attempts.iter().zip(served) {
                text.push(match served {
                    Served::Pending => 254,
                    Served::Dropped => 253,
                    Served::Applied(order) => u8::try_from(*order).unwrap(),
                });
                match &attempt.state {
                    AttemptState::Open => text.push(0),
                    AttemptState::Void => text.push(1),
                    AttemptState::InFlight(sent) => {
                        text.push(2);
                        stamp(sent.seq, &mut text);
                    }
                    AttemptState::Acknowledged(sent) => {
                        text.push(3);
                        stamp(sent.seq, &mut text);
                    }
                    AttemptState::Doubt { sent, settled, .. } => {
                        text.push(4);
                        stamp(sent.seq, &mut text);
                        stamp(settled.unwrap_or_default(), &mut text);
                    }
                }
            }
            text.push(250);
        }
        for (order, owner) in self.orders.iter().enumerate() {
            text.push(owner.map_or(249, |owner| u8::try_from(owner).unwrap()));
            let (first_seen, owner, fresh) = self.registry.book.known(&order.to_string());
            stamp(first_seen, &mut text);
            text.push(owner.map_or(248, |owner| u8::try_from(owner.0).unwrap()));
            text.push(u8::from(fresh) * 2 + u8::from(self.flagged.contains(&order.to_string())));
        }
        text.push(247);
        for (read, seen) in &self.reads {
            let started = self.registry.reads[read].started.unwrap();
            stamp(started.seq, &mut text);
            text.push(seen.map_or(246, |seen| u8::try_from(seen).unwrap()));
        }
        if let Some(key) = self.registry.keys.values().next() {
            stamp(key.last_settled, &mut text);
        }
        stamps.sort_unstable();
        stamps.dedup();
        for (at, seq) in parts {
            text[at] = u8::try_from(stamps.binary_search(&seq).unwrap()).unwrap();
        }
        text.into_boxed_slice()
    }

    fn own(&self) -> u64 {
        self.orders.iter().flatten().count() as u64
    }

    fn judge(&self, found: &mut Found) -> Option<&'static str> {
        let mut wrong = None;
        if self.own() > self.sent {
            found.duplicates += 1;
            wrong = Some("duplicate");
        }
        if self.double {
            found.double_claims += 1;
            wrong = Some("double claim");
        }
        let intents = &self.registry.intents;
        let ended = intents.values().all(|intent| intent.finding().is_some() || intent.phase == Phase::Idle);
        let seen =
            (0..self.orders.len()).all(|order| self.registry.book.known(&order.to_string()).0 > Seq(0));
        let served = self.served.iter().flatten().all(|served| *served != Served::Pending);
        if ended && seen && served && self.reads.is_empty() {
            // I10: what is listed is owned or flagged, except what the caller was told of as a candidate.
            if self.own() > self.sent && self.flagged.is_empty() {
                found.undetected += 1;
                wrong = Some("undetected duplicate");
            }
            let placed = intents.values().filter(|intent| intent.order_id().is_some()).count() as u64;
            if placed > self.own() {
                found.lost += 1;
            }
        }
        wrong
    }
}

fn explore(model: Model, until_wrong: bool) -> Found {
    explore_up_to(usize::MAX, model, until_wrong)
}

/// Visits at most so many states, those that are reached in the fewest moves first.
fn explore_up_to(most: usize, model: Model, until_wrong: bool) -> Found {
    let order = order();
    let all = records(8);
    let mut found = Found::default();
    let start = World::new(&model, &order);
    let mut index: HashMap<Box<[u8]>, u32> = HashMap::new();
    let mut parents = vec![(0, Move::Foreign)];
    index.insert(start.key(), 0);
    let mut queue = VecDeque::from([(0_u32, start)]);
    let mut moves = Vec::new();
    while let Some((number, world)) = queue.pop_front() {
        if let (Some(wrong), None) = (world.judge(&mut found), &found.trace) {
            found.trace = Some(format!("{wrong}: {:?}", path(&parents, number)));
            if until_wrong {
                break;
            }
        }
        if world.double {
            continue;
        }
        if parents.len() >= most {
            break;
        }
        world.moves(&model, &mut moves);
        for &made in &moves {
            let mut next = world.clone();
            next.make(made, &all);
            let fresh = u32::try_from(parents.len()).unwrap();
            if let Entry::Vacant(entry) = index.entry(next.key()) {
                entry.insert(fresh);
                parents.push((number, made));
                queue.push_back((fresh, next));
            }
        }
    }
    found.states = parents.len();
    found
}

/// The moves that led to a state.
fn path(parents: &[(u32, Move)], mut number: u32) -> Vec<Move> {
    let mut moves = Vec::new();
    while number != 0 {
        let (parent, made) = parents[number as usize];
        moves.push(made);
        number = parent;
    }
    moves.reverse();
    moves
}

fn assert_safe(model: Model) -> Found {
    let found = explore(model, false);
    assert_eq!((found.duplicates, found.double_claims, found.undetected), (0, 0, 0), "{found:?}");
    println!("{} states", found.states);
    found
}

/// The models of millions of states: all of them in a deep run, and as many as a debug build visits in a few seconds
/// in a plain one.
fn assert_safe_in_depth(model: Model) {
    let deep = std::env::var_os("STEADFAST_DEEP").is_some();
    let found = explore_up_to(if deep { usize::MAX } else { 40_000 }, model, false);
    assert_eq!((found.duplicates, found.double_claims, found.undetected), (0, 0, 0), "{found:?}");
    println!("{} states", found.states);
}

#[test]
fn two_intents_are_never_placed_three_times() {
    let found = assert_safe(SMALL);
    assert_eq!(found.lost, 0, "nobody else placed orders");
    assert!(found.states > 10_000);
}

#[test]
fn refused_resends_are_no_exception() {
    assert_safe(Model { refusals: true, intents: 1, ..SMALL });
}

#[test]
fn three_intents_are_never_placed_four_times() {
    assert_safe_in_depth(Model { intents: 3, attempts: 1, ..SMALL });
}

#[test]
fn refusals_and_a_foreign_twin_change_nothing_for_two_intents() {
    assert_safe_in_depth(Model { refusals: true, ..SMALL });
    assert_safe_in_depth(Model { foreign: 1, ..SMALL });
}

#[test]
fn a_foreign_twin_costs_an_omission_and_never_a_duplicate() {
    let found = assert_safe(Model { intents: 1, foreign: 1, reads: 2, ..SMALL });
    assert!(found.lost > 0, "the price of a false `Exclusive`");
}

#[test]
fn beyond_the_bound_every_duplicate_is_flagged() {
    let found = explore(Model { bounded: false, intents: 1, ..SMALL }, false);
    assert!(found.duplicates > 0, "without a bound there is no safe resend: {found:?}");
    assert_eq!((found.double_claims, found.undetected), (0, 0), "{found:?}");
}

/// Takes one rule out and expects the model to notice.
fn assert_needed(rules: Rules, reads: usize) {
    let found = explore(Model { rules: Rules { negatives: 1, ..rules }, reads, ..SMALL }, true);
    assert!(found.duplicates + found.double_claims > 0, "{found:?}");
    println!("{}", found.trace.unwrap_or_default());
}

#[test]
fn without_the_owner_wait_an_order_is_claimed_twice() {
    assert_needed(Rules { owner_wait: false, ..Rules::PROTOCOL }, 1);
}

#[test]
fn without_the_cohort_rule_an_order_is_placed_twice() {
    assert_needed(Rules { cohort: false, ..Rules::PROTOCOL }, 1);
}

#[test]
fn newest_first_places_an_order_twice() {
    assert_needed(Rules { oldest_first: false, ..Rules::PROTOCOL }, 1);
}

#[test]
fn a_baseline_stamped_at_the_reads_start_places_an_order_twice() {
    assert_needed(Rules { seen_at_completion: false, ..Rules::PROTOCOL }, 1);
}

#[test]
fn evidence_stamped_at_the_reads_end_places_an_order_twice() {
    assert_needed(Rules { evidence_at_start: false, ..Rules::PROTOCOL }, 1);
}
