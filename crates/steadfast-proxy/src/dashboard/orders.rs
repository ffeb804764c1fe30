//! The orders of the page: those that wait, those in doubt, and the last that were.

use std::collections::VecDeque;

use steadfast::{
    dedup::{OrderEvent, RecoveredOrder, Unresolved, Verdict},
    spec::OrderRequest,
};

use super::{
    state::{Order, Step, Unruled, Word},
    words,
};
use crate::ruling::Ruled;

/// How many orders with an end are kept.
const RESOLVED: usize = 200;
/// How many orders without an end are kept. Beyond them the count still tells.
const OPEN: usize = 1_000;
/// How long an order has waited when it is shown, in milliseconds. Most are answered before.
const SHOWN_AFTER: u64 = 1_500;
/// How many steps of one order are kept.
const STEPS: usize = 40;

/// How an order's call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The service answered with its id, and the first send was enough.
    Acknowledged,
    /// It is placed, and that took more than one answer: the word says how.
    Placed { how: &'static str, order_id: Option<String> },
    /// Nothing was placed.
    NotPlaced(String),
    /// Its caller was told that it is in doubt.
    InDoubt(Option<Doubt>),
    /// Its caller went away. It is still asked after.
    CallerLeft,
}

/// Why an order is in doubt, and what it may be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Doubt {
    pub(crate) reason: String,
    pub(crate) candidates: Vec<String>,
    /// The id that an answer gave it.
    pub(crate) answered: Option<String>,
}

impl From<&Unresolved> for Doubt {
    fn from(unresolved: &Unresolved) -> Self {
        Self {
            reason: unresolved.reason.as_str().replace('_', " "),
            candidates: unresolved.candidates.clone(),
            answered: unresolved.answered.clone(),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Orders {
    open: Vec<Order>,
    resolved: VecDeque<Order>,
}

impl Orders {
    /// Enters an order whose caller waits from now on.
    pub(crate) fn asked(&mut self, at: u64, name: &str, order: &OrderRequest) {
        if let Some(known) = self.open.iter_mut().find(|known| known.name == name) {
            known.step(at, "asked for again".to_owned());
            return;
        }
        if self.open.len() < OPEN {
            self.open.push(Order::asked(at, name, order, "waiting"));
        }
    }

    /// Enters how an order's call ended.
    pub(crate) fn ended(&mut self, at: u64, name: &str, end: End) {
        let Some(place) = self.open.iter().position(|order| order.name == name) else { return };
        let order = &mut self.open[place];
        match end {
            End::Acknowledged | End::NotPlaced(_) if order.stage == "waiting" => {
                drop(self.open.remove(place))
            }
            End::Acknowledged => self.resolve(at, place, "acknowledged", None, "acknowledged"),
            End::NotPlaced(why) => {
                order.reason = Some(why.clone());
                self.resolve(at, place, "not_placed", None, &format!("not placed: {why}"));
            }
            End::Placed { how, order_id } => {
                let words = match &order_id {
                    Some(id) => format!("{how}: {id}"),
                    None => how.to_owned(),
                };
                self.resolve(at, place, how, order_id, &words);
            }
            End::InDoubt(doubt) => {
                order.step(at, "its caller was told that it is in doubt".to_owned());
                order.doubt(doubt.as_ref());
            }
            End::CallerLeft => {
                order.step(at, "its caller went away; it is asked after".to_owned());
                if order.stage == "waiting" {
                    order.stage = Word::Borrowed("unheard");
                }
            }
        }
    }

    /// Enters a person's ruling.
    pub(crate) fn ruled(&mut self, at: u64, name: &str, order_id: Option<String>, words: &str) {
        let Some(place) = self.open.iter().position(|order| order.name == name) else { return };
        let how = if order_id.is_some() { "recovered" } else { "not_placed" };
        self.resolve(at, place, how, order_id, words);
    }

    /// Enters what an event says of an order.
    pub(crate) fn told(&mut self, at: u64, event: &OrderEvent) {
        let Some(name) = words::name_of(event) else { return };
        let (_, words) = words::of(event);
        let Some(place) = self.open.iter().position(|order| order.name == name.as_str()) else {
            // The end of an order may be contradicted.
            if let Some(order) = self.resolved.iter_mut().find(|order| order.name == name.as_str()) {
                order.step(at, words);
            }
            return;
        };
        let order = &mut self.open[place];
        match event {
            OrderEvent::Recovered { order_id, .. } if order.stage != "waiting" => {
                self.resolve(at, place, "recovered", Some(order_id.clone()), &words);
            }
            OrderEvent::PlacedUnheard { order_id, .. } => {
                self.resolve(at, place, "placed_unheard", Some(order_id.clone()), &words);
            }
            OrderEvent::LateDuplicate { order_id, .. } => {
                self.resolve(at, place, "late", Some(order_id.clone()), &words);
            }
            OrderEvent::Unresolved { unresolved, .. } => order.give_up(at, words, &unresolved.into()),
            _ => order.step(at, words),
        }
    }

    /// Enters how the orders stand that earlier processes left in doubt.
    pub(crate) fn left(&mut self, at: u64, left: &[RecoveredOrder]) {
        for known in left {
            let name = known
                .name
                .as_ref()
                .map_or_else(|| format!("earlier #{}", known.intent.0), ToString::to_string);
            let place = self.open.iter().position(|order| order.name == name);
            let place = match (place, &known.verdict) {
                (Some(place), _) => place,
                (None, Verdict::Pending | Verdict::Resend | Verdict::Unresolved(_))
                    if self.open.len() < OPEN =>
                {
                    let mut order = Order::asked(at, &name, &known.order, "in_doubt");
                    order.steps[0].words = "left in doubt by an earlier process".to_owned();
                    self.open.push(order);
                    self.open.len() - 1
                }
                _ => continue,
            };
            match &known.verdict {
                Verdict::Unresolved(unresolved) if self.open[place].stage != "unresolved" => {
                    let doubt = Doubt::from(unresolved);
                    let words = format!("could not be resolved: {}", doubt.reason);
                    self.open[place].give_up(at, words, &doubt);
                }
                Verdict::Acknowledged { order_id } | Verdict::Recovered { order_id, .. } => {
                    self.resolve(
                        at,
                        place,
                        "recovered",
                        Some(order_id.clone()),
                        &format!("found: {order_id}"),
                    );
                }
                Verdict::NotPlaced => self.resolve(at, place, "not_placed", None, "not placed"),
                _ => {}
            }
        }
    }

    /// Returns the orders that a person should see: in doubt, or waiting for some time.
    pub(crate) fn doubts(&self, at: u64) -> Vec<Order> {
        let shown = |order: &&Order| order.stage != "waiting" || order.asked_at + SHOWN_AFTER <= at;
        self.open.iter().filter(shown).cloned().collect()
    }

    pub(crate) fn resolved(&self) -> Vec<Order> {
        self.resolved.iter().cloned().collect()
    }

    #[cfg(test)]
    pub(crate) fn unresolved(&self) -> usize {
        self.open.iter().filter(|order| order.stage == "unresolved").count()
    }

    fn resolve(&mut self, at: u64, place: usize, how: &'static str, order_id: Option<String>, words: &str) {
        let mut order = self.open.remove(place);
        order.step(at, words.to_owned());
        order.stage = Word::Borrowed(how);
        order.ended_at = Some(at);
        order.order_id = order_id.or(order.order_id);
        self.resolved.push_front(order);
        self.resolved.truncate(RESOLVED);
    }
}

impl Unruled {
    /// Returns the first of those orders.
    pub(crate) fn first(unresolved: &[RecoveredOrder]) -> Vec<Self> {
        unresolved.iter().take(OPEN).map(Self::of).collect()
    }

    fn of(order: &RecoveredOrder) -> Self {
        Self {
            account: order.account.as_str().to_owned(),
            intent: order.intent.0,
            name: order.name.as_ref().map(ToString::to_string),
            what: format!("{} {}", order.order.side().as_str(), what(&order.order)),
            rule: Ruled::target(&order.account, order.intent),
        }
    }
}

impl Order {
    fn asked(at: u64, name: &str, order: &OrderRequest, stage: &'static str) -> Self {
        Self {
            name: name.to_owned(),
            what: what(order),
            side: Word::Borrowed(order.side().as_str()),
            stage: Word::Borrowed(stage),
            asked_at: at,
            ended_at: None,
            order_id: None,
            reason: None,
            candidates: Vec::new(),
            steps: vec![Step { at, words: "asked for".to_owned() }],
        }
    }

    fn step(&mut self, at: u64, words: String) {
        if self.steps.len() < STEPS {
            self.steps.push(Step { at, words });
        }
    }

    fn give_up(&mut self, at: u64, words: String, doubt: &Doubt) {
        self.step(at, words);
        self.doubt(Some(doubt));
        self.stage = Word::Borrowed("unresolved");
    }

    fn doubt(&mut self, doubt: Option<&Doubt>) {
        if self.stage != "unresolved" {
            self.stage = Word::Borrowed("in_doubt");
        }
        if let Some(doubt) = doubt {
            self.reason = Some(doubt.reason.clone());
            self.candidates.clone_from(&doubt.candidates);
            self.order_id = doubt.answered.clone().or_else(|| self.order_id.take());
        }
    }
}

/// Says what an order asks for, without its side.
fn what(order: &OrderRequest) -> String {
    let mut what = format!("{} {} {}", order.qty(), order.sym_id(), order.order_type().as_str());
    if let Some(price) = order.limit_price() {
        what.push_str(&format!(" {price}"));
    }
    if let Some(price) = order.trig_price() {
        what.push_str(&format!(" at {price}"));
    }
    format!("{what} {} {}", order.product().as_str(), order.validity().as_str())
}

#[cfg(test)]
mod tests {
    use steadfast::{dedup::IntentNo, ext::IntentId, spec::Form};

    use super::*;

    fn order(terms: &str) -> OrderRequest {
        let form = format!("symId=EQT_INFY_EQ_NSE&{terms}");
        OrderRequest::from_fields(Form::parse(form.as_bytes()).unwrap().iter()).unwrap()
    }

    #[test]
    fn an_order_that_was_given_up_counts_until_it_has_an_end() {
        let order = order(
            "qty=10&side=sell&type=stoplimit&limitPrice=100&trigPrice=101&product=delivery&validity=day",
        );
        let mut orders = Orders::default();
        orders.asked(1_000, "n", &order);
        let candidates = vec!["8".to_owned(), "9".to_owned()];
        let doubt = Doubt { reason: "near match".to_owned(), candidates, answered: None };
        orders.open[0].give_up(51_000, "order could not be resolved".to_owned(), &doubt);
        // Its caller is told afterwards, and of a reason that says less.
        orders.ended(52_000, "n", End::InDoubt(None));
        assert_eq!(orders.unresolved(), 1);
        let shown = &orders.doubts(52_000)[0];
        assert_eq!((shown.stage.as_ref(), shown.reason.as_deref()), ("unresolved", Some("near match")));
        assert_eq!((shown.candidates.len(), shown.side.as_ref()), (2, "sell"));
        assert_eq!(shown.what, "10 EQT_INFY_EQ_NSE stoplimit 100 at 101 delivery day");

        let (intent, name, order_id) = (IntentNo(1), Some(IntentId::new("n")), "9".to_owned());
        orders.told(70_000, &OrderEvent::LateDuplicate { intent, name, order_id, kept: None });
        assert_eq!((orders.unresolved(), orders.resolved()[0].stage.as_ref()), (0, "late"));
        // A later event about it is a step of its life.
        let (name, order_id) = (Some(IntentId::new("n")), "9".to_owned());
        orders.told(80_000, &OrderEvent::AckNotListed { intent, name, order_id });
        assert_eq!(orders.resolved()[0].steps.len(), 5);
    }

    #[test]
    fn the_oldest_of_too_many_orders_gives_way_only_if_it_has_an_end() {
        let order = order("qty=10&side=buy&type=market&product=intraday&validity=ioc");
        let mut orders = Orders::default();
        for number in 0..=OPEN {
            orders.asked(0, &number.to_string(), &order);
        }
        assert_eq!((orders.open.len(), orders.open[0].name.as_str()), (OPEN, "0"));
        assert_eq!(orders.open[0].what, "10 EQT_INFY_EQ_NSE market intraday ioc");
    }
}
