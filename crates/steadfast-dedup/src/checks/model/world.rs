//! The service, the callers and the journal of a model, around a real protocol.

mod moves;

use std::{collections::HashSet, sync::Arc, time::Duration};

use steadfast_call::{Outcome, Resend};
use steadfast_spec::{OrderRecord, OrderRequest, Tag};

use super::{Echo, Lists, Model, Record, Served, at};
use crate::{
    numbers::{AttemptNo, IntentNo, ReadNo, Session, TradingDay},
    protocol::{
        effect::Effect,
        event::{Answer, Event},
        intent::Intent,
        order_event::OrderEvent,
        order_protocol::OrderProtocol,
        wake::Purpose,
    },
    settings::{
        Settings,
        policy::{AccountMode, ResendPolicy},
    },
};

/// One order of each kind.
pub(super) type Orders = [Arc<OrderRequest>; 2];

#[derive(Clone)]
pub(super) struct World {
    pub(super) protocol: OrderProtocol,
    /// The owner of every order; `None` for a stranger's.
    pub(super) orders: Vec<Option<u64>>,
    pub(super) served: Vec<Vec<Served>>,
    /// Reads under way: how many orders they saw, if they were evaluated.
    pub(super) reads: Vec<(ReadNo, Option<usize>)>,
    /// Whether the session was renewed.
    pub(super) renewed: bool,
    /// Whether each order was placed in the renewed session.
    pub(super) of_new_session: Vec<bool>,
    /// Flagged in this run of the process, and in all.
    pub(super) flagged: HashSet<String>,
    pub(super) ever_flagged: bool,
    /// Whether an answer named an order that another intent had taken.
    pub(super) double: bool,
    pub(super) sent: u64,
    pub(super) journal: Vec<Record>,
    pub(super) crashes: u32,
    /// The orders that the callers had been told of when the process crashed.
    pub(super) told: Vec<Option<usize>>,
    next_read: u64,
}

pub(super) fn orders() -> Orders {
    ["5", "6"].map(|price| {
        let fields = [
            ("symId", "S"),
            ("qty", "1"),
            ("side", "buy"),
            ("type", "limit"),
            ("limitPrice", price),
            ("product", "delivery"),
            ("validity", "day"),
        ];
        Arc::new(OrderRequest::from_fields(fields).unwrap())
    })
}

pub(super) fn records(count: usize) -> Vec<OrderRecord> {
    let list: Vec<_> =
        (0..count).map(|n| format!(r#"{{"orderId":"{n}","symId":"S","side":"buy","qty":1}}"#)).collect();
    let body = format!(r#"{{"s":"ok","d":[{}]}}"#, list.join(","));
    steadfast_spec::parse_order_list(body.as_bytes(), &Default::default()).unwrap()
}

impl World {
    pub(super) fn new(model: &Model, orders: &Orders) -> Self {
        let mut world = Self {
            protocol: protocol(model),
            orders: Vec::new(),
            served: vec![Vec::new(); at(model.intents)],
            reads: Vec::new(),
            renewed: false,
            of_new_session: Vec::new(),
            flagged: HashSet::new(),
            ever_flagged: false,
            double: false,
            sent: 0,
            journal: Vec::new(),
            crashes: 0,
            told: vec![None; at(model.intents)],
            next_read: 0,
        };
        for n in 0..model.intents {
            world.open(model, n, orders);
        }
        if model.own {
            world.step(Event::SessionKept(Session::default()));
        }
        // The list is known before the first order.
        world.open_read();
        world.close_read(model, 0, &[]);
        world
    }

    fn open(&mut self, model: &Model, n: u64, orders: &Orders) {
        let order = orders[kind(model, n)].clone();
        let opened = Event::Opened { intent: IntentNo(n), order, name: None };
        self.protocol.step(Duration::ZERO, opened);
        if model.echo.is_some() {
            self.protocol.step(Duration::ZERO, Event::Tagged { intent: IntentNo(n), tag: tag(n) });
        }
    }

    /// Returns the record of an order.
    fn record(&self, model: &Model, order: usize, all: &[OrderRecord]) -> OrderRecord {
        let mut record = all[order].clone();
        let whole = |order: usize| Some(tag(self.orders[order].unwrap_or(STRANGER)).to_string());
        record.remarks = match model.echo {
            None | Some(Echo::Nothing) => None,
            Some(Echo::Whole) => whole(order),
            Some(Echo::Cut) => whole(order).map(|text| text[..Tag::SHORTEST].to_owned()),
            Some(Echo::Some) => whole(order).filter(|_| order.is_multiple_of(2)),
            Some(Echo::Copied) => whole(if order.is_multiple_of(2) { order } else { order - 1 }),
        };
        record
    }

    fn step(&mut self, event: Event) {
        for effect in self.protocol.step(Duration::ZERO, event) {
            let Effect::Report(report) = effect else { continue };
            if let Some((intent, order_id)) = self.protocol.found_late(&report) {
                self.journal.push(Record::Found(intent.0, order_id.parse().unwrap()));
            }
            match report {
                OrderEvent::LateDuplicate { order_id, .. }
                | OrderEvent::RefusedButPlaced { order_id, .. }
                | OrderEvent::Excess { order_id, .. } => {
                    self.ever_flagged = true;
                    assert!(self.flagged.insert(order_id), "I11: flagged twice");
                }
                OrderEvent::Conflict { .. } => self.double = true,
                _ => {}
            }
        }
    }

    fn open_read(&mut self) {
        self.open_read_in(self.session(), Purpose::Verification);
    }

    fn open_read_in(&mut self, session: Session, purpose: Purpose) {
        let read = ReadNo(self.next_read);
        self.next_read += 1;
        self.step(Event::ReadOpened { read, purpose });
        self.step(Event::ReadStarted { read, session });
        self.reads.push((read, None));
    }

    fn close_read(&mut self, model: &Model, index: usize, all: &[OrderRecord]) {
        let (read, seen) = self.reads.remove(index);
        let shown = seen.unwrap_or(0);
        let session = self.protocol.read_start(read).unwrap().session;
        let new = session != Session::default();
        let of_it = |order: &usize| model.lists != Lists::OfTheSession || self.of_new_session[*order] == new;
        let list = (0..shown).filter(of_it).map(|order| self.record(model, order, all)).collect();
        let known = self.journal.iter().any(|record| matches!(record, Record::Seen(more) if *more >= shown));
        if !known {
            self.journal.push(Record::Seen(shown));
        }
        self.step(Event::ReadEnded { read, list: Ok(list) });
    }

    /// Sends an intent as the layers do, if the protocol permits it.
    fn send(&mut self, intent: u64) {
        let session = self.session();
        let Some(attempt) = self.protocol.next_attempt(IntentNo(intent), session) else { return };
        self.journal.push(Record::Begin(intent, attempt.index));
        self.step(Event::Begun { attempt, session });
        let wanted = self.protocol.may_send(attempt);
        self.step(if wanted { Event::Sent(attempt) } else { Event::Withheld(attempt) });
        let served = if wanted { Served::Pending } else { Served::Dropped };
        self.served[at(intent)].push(served);
    }

    /// Starts a new process from the journal; requests that are under way go on.
    fn crash(&mut self, model: &Model, keep: usize, orders: &Orders) {
        assert!(model.lists == Lists::OneSession, "the journal of this model knows one session");
        for (n, told) in self.told.iter_mut().enumerate() {
            let intent = self.protocol.intent(IntentNo(n as u64));
            *told = intent.and_then(|intent| intent.order_id()).map(|id| id.parse().unwrap());
        }
        let mut journal = std::mem::take(&mut self.journal);
        journal.truncate(keep);
        self.crashes += 1;
        self.protocol = protocol(model);
        self.reads.clear();
        self.flagged.clear();
        let number = |n, index| AttemptNo { intent: IntentNo(n), index };
        let begun = |n| journal.iter().any(|record| matches!(record, Record::Begin(other, _) if *other == n));
        for n in (0..model.intents).filter(|n| begun(*n)) {
            self.open(model, n, orders);
        }
        for record in &journal {
            match *record {
                Record::Begin(n, k) => {
                    self.step(Event::Begun { attempt: number(n, k), session: Session::default() });
                    self.step(Event::Sent(number(n, k)));
                }
                Record::Seen(shown) => {
                    let order_ids = (0..shown).map(|order| order.to_string()).collect();
                    self.step(Event::Known { session: Session::default(), order_ids, complete: true });
                }
                Record::Acknowledged(n, k, order) => {
                    self.close(number(n, k), Outcome::Accepted { order_id: Some(order.to_string().into()) });
                }
                Record::Refused(n, k) => self.close(number(n, k), Outcome::Rejected),
                Record::Limited(n, k) => self.close(number(n, k), Outcome::NotExecuted),
                Record::Found(n, order) => {
                    let order_id = order.to_string();
                    self.step(Event::Found { intent: IntentNo(n), order_id, status: None });
                }
            }
        }
        self.step(Event::Restarted);
        self.journal = journal;
        for n in 0..model.intents {
            if self.protocol.intent(IntentNo(n)).is_none() {
                self.open(model, n, orders);
            }
        }
    }

    pub(super) fn session(&self) -> Session {
        if self.renewed { Session::hashed(1) } else { Session::default() }
    }

    pub(super) fn intent(&self, n: u64) -> &Intent {
        self.protocol.intent(IntentNo(n)).unwrap()
    }

    fn close_for_good(&mut self, attempt: AttemptNo, answer: Answer) {
        self.step(Event::Closed { attempt, outcome: Outcome::Unknown { resend: Resend::Never }, answer });
    }

    fn close(&mut self, attempt: AttemptNo, outcome: Outcome) {
        self.step(Event::Closed { attempt, outcome, answer: Answer::Status(504) });
    }

    /// Returns how much of the journal is certainly on disk: everything up to the last send that was begun.
    pub(super) fn durable(&self) -> usize {
        let last = self.journal.iter().rposition(|record| matches!(record, Record::Begin(..)));
        last.map_or(0, |last| last + 1)
    }

    /// True if there are more orders of a kind than intents sent, or one that no intent sent.
    pub(super) fn has_duplicate(&self, model: &Model) -> bool {
        let too_many = |of: usize| {
            let own = self.orders.iter().flatten().filter(|owner| kind(model, **owner) == of).count();
            let sent =
                (0..model.intents).filter(|n| kind(model, *n) == of && !self.served[at(*n)].is_empty());
            own > sent.count()
        };
        self.own() > self.sent || too_many(0) || too_many(1)
    }

    /// True if a caller was told of an order of another kind than it had asked for.
    pub(super) fn has_wrong_claim(&self, model: &Model) -> bool {
        (0..model.intents).any(|n| {
            let order = self.protocol.intent(IntentNo(n)).and_then(|intent| intent.order_id());
            let owner = order.and_then(|id| self.orders[id.parse::<usize>().unwrap()]);
            match owner {
                Some(owner) => kind(model, owner) != kind(model, n),
                None => model.shared && order.is_some(),
            }
        })
    }

    pub(super) fn own(&self) -> u64 {
        self.orders.iter().flatten().count() as u64
    }
}

/// Returns the kind of order that an intent asks for.
fn kind(model: &Model, n: u64) -> usize {
    if model.mixed { at(n % 2) } else { 0 }
}

/// The number behind a stranger's tag.
const STRANGER: u64 = 99;

fn tag(number: u64) -> Tag {
    Tag::from_draw(number << 20)
}

fn protocol(model: &Model) -> OrderProtocol {
    let mode = if model.shared { AccountMode::Shared } else { AccountMode::Exclusive };
    let settings = Settings::default()
        .resend(ResendPolicy::AtMost(model.attempts - 1))
        .key_policy(model.key_policy)
        .account_mode(mode);
    OrderProtocol::new(Arc::new(settings), TradingDay(0)).with_rules(model.rules)
}
