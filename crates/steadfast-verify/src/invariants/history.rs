//! Facts derived from a history.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use steadfast_call::{Outcome, Resend, ext};
use steadfast_dedup::{AttemptNo, Effect, Event, IntentNo, OrderEvent, ReadNo, Session, Step};
use steadfast_spec::{Code, LegType, OrderRecord, OrderRequest, Side, Tag};

/// One attempt, by the positions of its steps in the history.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) no: AttemptNo,
    pub(crate) begun: Option<usize>,
    pub(crate) session: Session,
    pub(crate) sent: Option<usize>,
    pub(crate) closed: Option<(usize, Outcome, steadfast_dedup::Answer)>,
}

impl Attempt {
    /// True if it placed nothing, as closed by that position.
    pub(crate) fn is_void(&self, by: usize) -> bool {
        self.sent.is_none_or(|at| at > by)
            || self.closed.as_ref().is_some_and(|(at, outcome, _)| {
                *at <= by && matches!(outcome, Outcome::NotSent | Outcome::NotExecuted | Outcome::Rejected)
            })
    }

    /// Returns the position and answer of its loss, if it was lost.
    pub(crate) fn lost(&self) -> Option<(usize, steadfast_dedup::Answer)> {
        let (at, outcome, answer) = self.closed.as_ref()?;
        let known = matches!(
            outcome,
            Outcome::NotSent
                | Outcome::NotExecuted
                | Outcome::Rejected
                | Outcome::Accepted { order_id: Some(_) }
        );
        (!known).then_some((*at, *answer))
    }
}

impl Attempt {
    /// True if its outcome does not bar a resend.
    pub(crate) fn is_lost_until_absent(&self) -> bool {
        let until_absent = Outcome::Unknown { resend: Resend::AfterAbsence };
        self.closed.as_ref().is_some_and(|(_, outcome, _)| *outcome == until_absent)
    }
}

/// One read, by the positions of its steps in the history.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub(crate) started: Option<(usize, Session)>,
    pub(crate) ended: usize,
    pub(crate) list: Option<Vec<OrderRecord>>,
}

/// One account's history, with the facts derived from it.
pub(crate) struct History<'a> {
    pub(crate) steps: &'a [Step],
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) reads: Vec<Read>,
    /// All reports, with the positions of their steps.
    pub(crate) reports: Vec<(usize, &'a OrderEvent)>,
    orders: HashMap<IntentNo, Arc<OrderRequest>>,
    tags: HashMap<IntentNo, Tag>,
    /// Intents of which later sends carry no tag.
    untagged: HashSet<IntentNo>,
    by_intent: HashMap<IntentNo, Vec<usize>>,
    by_key: HashMap<(String, Side), Vec<usize>>,
    /// The positions at which each order was first known on each day, with the record if a list showed it.
    seen: BTreeMap<String, Vec<(usize, Option<OrderRecord>)>>,
    owners: HashMap<String, Vec<(usize, IntentNo)>>,
    /// The start of the day of each step.
    days: Vec<usize>,
}

impl<'a> History<'a> {
    pub(super) fn of(steps: &'a [Step]) -> Self {
        let (mut attempts, mut reads, mut orders) = (Vec::<Attempt>::new(), Vec::new(), HashMap::new());
        let mut places: HashMap<AttemptNo, usize> = HashMap::new();
        let mut parts: HashMap<ReadNo, Vec<OrderRecord>> = HashMap::new();
        let mut starts: Vec<(ReadNo, usize, Session)> = Vec::new();
        let (mut opened, mut tags, days) = (HashMap::new(), HashMap::new(), days(steps));
        let mut untagged = HashSet::new();
        for (at, step) in steps.iter().enumerate() {
            match &step.event {
                Event::Opened { intent, order, .. } => drop(orders.insert(*intent, order.clone())),
                Event::Tagged { intent, tag } => drop(tags.insert(*intent, *tag)),
                Event::Untagged(intent) => drop(untagged.insert(*intent)),
                Event::Begun { attempt, session } => {
                    let begun = Attempt { begun: Some(at), ..Attempt::new(*attempt, *session) };
                    places.insert(*attempt, attempts.len());
                    attempts.push(begun);
                }
                Event::Sent(no) => match places.get(no).map(|&at| &mut attempts[at]) {
                    Some(attempt) => attempt.sent = Some(at),
                    None => {
                        attempts.push(Attempt { sent: Some(at), ..Attempt::new(*no, Session::default()) })
                    }
                },
                Event::Closed { attempt: no, outcome, answer } => {
                    let found = places.get(no).map(|&at| &mut attempts[at]);
                    if let Some(attempt) = found.filter(|attempt| attempt.closed.is_none()) {
                        // A lost request may have left even if its send was not seen.
                        if attempt.sent.is_none()
                            && !matches!(outcome, Outcome::NotSent | Outcome::NotExecuted | Outcome::Rejected)
                        {
                            attempt.sent = attempt.begun;
                        }
                        attempt.closed = Some((at, outcome.clone(), *answer));
                    }
                }
                // Attempts that were open at a restart get no answer any more: they are in doubt.
                Event::Restarted => {
                    let open = attempts.iter_mut().filter(|attempt| attempt.closed.is_none());
                    for attempt in open {
                        attempt.sent = attempt.sent.or(attempt.begun);
                        let outcome = Outcome::Unknown { resend: Resend::Never };
                        attempt.closed = Some((at, outcome, steadfast_dedup::Answer::None));
                    }
                }
                Event::ReadOpened { read, .. } => drop(opened.insert(*read, at)),
                Event::ReadStarted { read, session } => {
                    starts.retain(|(other, ..)| other != read);
                    starts.push((*read, at, *session));
                }
                Event::ReadPart { read, records } => {
                    parts.entry(*read).or_default().extend(records.iter().cloned());
                }
                Event::ReadEnded { read, list } => reads.push(Read {
                    started: starts
                        .iter()
                        .find(|(no, ..)| no == read)
                        .map(|(_, at, session)| (*at, *session)),
                    ended: at,
                    // A list requested yesterday is yesterday's.
                    list: list
                        .as_ref()
                        .ok()
                        .filter(|_| opened.get(read).is_none_or(|&opened| days[opened] == days[at]))
                        .map(|rest| [parts.remove(read).unwrap_or_default(), rest.clone()].concat()),
                }),
                Event::CallerList { records, .. } => {
                    reads.push(Read { started: None, ended: at, list: Some(records.clone()) });
                }
                _ => {}
            }
        }
        let mut history = Self {
            steps,
            attempts,
            reads,
            reports: reports(steps),
            orders,
            tags,
            untagged,
            by_intent: HashMap::new(),
            by_key: HashMap::new(),
            seen: BTreeMap::new(),
            owners: HashMap::new(),
            days,
        };
        history.index();
        history
    }

    fn index(&mut self) {
        for (at, attempt) in self.attempts.iter().enumerate() {
            self.by_intent.entry(attempt.no.intent).or_default().push(at);
            if let Some(order) = self.orders.get(&attempt.no.intent) {
                let key = (order.sym_id().as_str().to_owned(), order.side());
                self.by_key.entry(key).or_default().push(at);
            }
            if let Some((closed, Outcome::Accepted { order_id: Some(id) }, _)) = &attempt.closed {
                self.owners.entry(id.to_string()).or_default().push((*closed, attempt.no.intent));
                note(&mut self.seen, &self.days, id, *closed, None);
            }
        }
        for read in &self.reads {
            for record in read.list.iter().flatten() {
                note(&mut self.seen, &self.days, &record.order_id, read.ended, Some(record));
            }
        }
        for (at, step) in self.steps.iter().enumerate() {
            match &step.event {
                Event::Known { order_ids, .. } => {
                    for id in order_ids {
                        note(&mut self.seen, &self.days, id, at, None);
                    }
                }
                Event::Found { intent, order_id, .. } => {
                    self.owners.entry(order_id.clone()).or_default().push((at, *intent));
                }
                _ => {}
            }
        }
        for (at, event) in &self.reports {
            if let OrderEvent::Recovered { intent, order_id, .. }
            | OrderEvent::LateDuplicate { intent, order_id, kept: None, .. }
            | OrderEvent::RefusedButPlaced { intent, order_id, kept: None, .. } = event
            {
                self.owners.entry(order_id.clone()).or_default().push((*at, *intent));
            }
        }
    }

    pub(crate) fn order(&self, intent: IntentNo) -> Option<&OrderRequest> {
        self.orders.get(&intent).map(|order| &**order)
    }

    pub(crate) fn tag(&self, intent: IntentNo) -> Option<Tag> {
        self.tags.get(&intent).copied().filter(|_| !self.untagged.contains(&intent))
    }

    /// Returns the tags of all orders of ours.
    pub(crate) fn tags(&self) -> impl Iterator<Item = Tag> {
        self.tags.values().copied()
    }

    pub(crate) fn attempts_of(&self, intent: IntentNo) -> impl Iterator<Item = &Attempt> {
        self.by_intent.get(&intent).into_iter().flatten().map(|&at| &self.attempts[at])
    }

    /// Returns the attempts of the same instrument and side.
    pub(crate) fn cohort(&self, intent: IntentNo) -> impl Iterator<Item = &Attempt> {
        let key = self.order(intent).map(|order| (order.sym_id().as_str().to_owned(), order.side()));
        let cohort = key.and_then(|key| self.by_key.get(&key));
        cohort.into_iter().flatten().map(|&at| &self.attempts[at])
    }

    /// Returns the first send, up to a position, that may have placed an order.
    pub(crate) fn first_sent(&self, intent: IntentNo, by: usize) -> Option<usize> {
        self.attempts_of(intent)
            .filter(|attempt| !attempt.is_void(by))
            .filter_map(|attempt| attempt.sent)
            .min()
    }

    /// The same, if refusals were untrue.
    pub(crate) fn first_left(&self, intent: IntentNo, by: usize) -> Option<usize> {
        let refused = |attempt: &&Attempt| {
            let refusals = [Outcome::NotExecuted, Outcome::Rejected];
            attempt.closed.as_ref().is_some_and(|(_, outcome, _)| refusals.contains(outcome))
        };
        let left = self.attempts_of(intent).filter(|attempt| !attempt.is_void(by) || refused(attempt));
        left.filter_map(|attempt| attempt.sent).filter(|&sent| sent <= by).min()
    }

    /// Returns when an order was first known that day, up to a position, and the record that showed it.
    pub(crate) fn first_seen(&self, order_id: &str, by: usize) -> Option<(usize, Option<&OrderRecord>)> {
        let start = self.day_of(by);
        let seen = self.seen.get(order_id)?.iter().filter(|(at, _)| *at >= start && *at <= by);
        let first = seen.clone().map(|(at, _)| *at).min()?;
        let mut records = seen.filter_map(|(_, record)| record.as_ref());
        // Legs may share an identifier; those made by the service are not the requested order.
        let leg = |record: &&OrderRecord| {
            matches!(record.leg_type, Some(Code::Known(LegType::StopLoss | LegType::Target)))
        };
        let record = records.clone().find(|record| !leg(record)).or_else(|| records.next());
        Some((first, record))
    }

    /// Returns what lists of the day have shown of an order up to a position: it may have been changed meanwhile.
    pub(crate) fn shown(&self, order_id: &str, by: usize) -> impl Iterator<Item = &OrderRecord> {
        let today = self.day_of(by)..=by;
        let reads = self.reads.iter().filter(move |read| today.contains(&read.ended));
        reads.flat_map(|read| read.list.iter().flatten()).filter(move |record| record.order_id == order_id)
    }

    /// Returns every order that was ever listed or named.
    pub(crate) fn known(&self) -> impl Iterator<Item = &String> {
        self.seen.keys()
    }

    /// Returns the owners of an order up to a position, by an answer or a claim.
    pub(crate) fn owners(&self, order_id: &str, by: usize) -> Vec<IntentNo> {
        let owners = self.owners.get(order_id).into_iter().flatten().filter(|(at, _)| *at <= by);
        let mut owners: Vec<_> = owners.map(|(_, intent)| *intent).collect();
        owners.sort();
        owners.dedup();
        owners
    }

    /// Returns the positions at which an answer or claim that had ended an intent was contradicted.
    pub(crate) fn contradictions(&self, intent: IntentNo) -> impl Iterator<Item = usize> {
        let contradicted = self.reports.iter().filter(move |(_, event)| match event {
            OrderEvent::Conflict { intent: given, other, .. } => *given == intent || *other == Some(intent),
            OrderEvent::AckNotListed { intent: given, .. }
            | OrderEvent::AckMismatch { intent: given, .. } => *given == intent,
            _ => false,
        });
        let reported: Vec<usize> = contradicted.map(|(at, _)| *at).collect();
        // A replay may report it again by itself.
        let earlier =
            self.contradicted_before(intent).filter(|before| !reported.iter().any(|at| at < before));
        reported.into_iter().chain(earlier)
    }

    /// Returns where a replay takes back an answer whose contradiction an earlier process reported.
    fn contradicted_before(&self, intent: IntentNo) -> Option<usize> {
        let named = |attempt: &&Attempt| {
            matches!(&attempt.closed, Some((_, Outcome::Accepted { order_id: Some(_) }, _)))
        };
        let (told, ..) = self.attempts_of(intent).find(named)?.closed.as_ref()?;
        let is_it = |step: &Step| matches!(&step.event, Event::Disbelieved(other) if *other == intent);
        self.steps[*told..].iter().position(is_it).map(|after| told + after)
    }

    /// Returns the start of a step's day.
    pub(crate) fn day_of(&self, at: usize) -> usize {
        self.days.get(at).or(self.days.last()).copied().unwrap_or(0)
    }

    /// Returns where this process took over from an earlier one, if it did.
    pub(crate) fn restart(&self) -> Option<usize> {
        self.steps.iter().position(|step| matches!(step.event, Event::Restarted))
    }

    /// True if the whole history lies within one day of one process.
    pub(crate) fn is_one_day(&self) -> bool {
        self.steps.is_empty() || self.day_of(self.steps.len() - 1) == 0 && self.restart().is_none()
    }
}

fn reports(steps: &[Step]) -> Vec<(usize, &OrderEvent)> {
    let effects =
        steps.iter().enumerate().flat_map(|(at, step)| step.effects.iter().map(move |effect| (at, effect)));
    let reports = effects.filter_map(|(at, effect)| match effect {
        Effect::Report(event) => Some((at, event)),
        _ => None,
    });
    reports.collect()
}

fn days(steps: &[Step]) -> Vec<usize> {
    let (mut day, mut began) = (None, 0);
    let days = steps.iter().enumerate().map(|(at, step)| {
        // The day gets another number and continues.
        if let Event::DayRenamed(epoch) = step.event {
            day = Some(epoch);
        }
        if let Event::DayBegan(epoch) = step.event
            && day.replace(epoch).is_some_and(|day| day != epoch)
        {
            began = at;
        }
        began
    });
    days.collect()
}

/// Records where an order was first known on a day, and first with the record of each of its legs.
fn note(
    seen: &mut BTreeMap<String, Vec<(usize, Option<OrderRecord>)>>,
    days: &[usize],
    order_id: &str,
    at: usize,
    record: Option<&OrderRecord>,
) {
    let places = seen.entry(order_id.to_owned()).or_default();
    let earlier = |(place, known): &(usize, Option<OrderRecord>)| {
        let same_leg = |record: &OrderRecord| {
            known
                .as_ref()
                .is_some_and(|known| (&known.side, &known.leg_type) == (&record.side, &record.leg_type))
        };
        *place <= at && days[*place] == days[at] && record.is_none_or(same_leg)
    };
    if !places.iter().any(earlier) {
        places.push((at, record.cloned()));
    }
}

impl Attempt {
    fn new(no: AttemptNo, session: Session) -> Self {
        Self { no, begun: None, session, sent: None, closed: None }
    }
}

/// The strict comparison, written independently from the rule.
pub(crate) fn is_same(record: &OrderRecord, order: &OrderRequest) -> bool {
    let carried = |shown: Option<bool>| shown.unwrap_or(true);
    let kind = order.order_type();
    record.leg_type.as_ref().is_none_or(|leg| *leg == Code::Known(LegType::Main))
        && record.sym_id.as_deref() == Some(order.sym_id().as_str())
        && record.side == Some(Code::Known(order.side()))
        && record.qty == Some(order.qty())
        && carried(record.product.as_ref().map(|code| *code == Code::Known(order.product())))
        && carried(record.order_type.as_ref().map(|code| *code == Code::Known(kind)))
        && carried(record.validity.as_ref().map(|code| *code == Code::Known(order.validity())))
        && (!kind.needs_limit_price()
            || carried(record.limit_price.map(|price| Some(price) == order.limit_price())))
        && (!kind.needs_trig_price()
            || carried(record.trig_price.map(|price| Some(price) == order.trig_price())))
}

/// The loose comparison, written independently from the rule.
pub(crate) fn is_like(record: &OrderRecord, order: &OrderRequest) -> bool {
    let exit = matches!(record.leg_type, Some(Code::Known(LegType::StopLoss | LegType::Target)));
    let symbol = record.sym_id.as_deref().is_none_or(|symbol| symbol == order.sym_id().as_str());
    let side = !matches!(&record.side, Some(Code::Known(side)) if *side != order.side());
    !exit && symbol && side
}

/// Returns an intent's name.
pub(crate) fn name_of(step: &Step) -> Option<&ext::IntentId> {
    match &step.event {
        Event::Opened { name, .. } => name.as_ref(),
        _ => None,
    }
}
