use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use steadfast::dedup::OrderEvent;

use crate::{
    orders::{
        cohort::kept_waiting,
        session::{Session, World},
        trader::Told,
        workload::{Shape, Workload},
    },
    wire::intent_number,
};

/// What the gateway's ground truth says of one client's session.
///
/// Identical orders are interchangeable (`orders.md` §2.4): the service has no notion of which of two twins an order
/// is, so they are counted together, and what counts is how many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Judgement {
    /// Orders that were wanted.
    pub(crate) orders: u64,
    /// Those that exist, each once.
    pub(crate) placed: u64,
    /// Those of which a send met something that does not say what became of it.
    pub(crate) went_in_doubt: u64,
    /// Orders beyond those that were wanted and those that a gateway made of requests by itself.
    pub(crate) duplicated: u64,
    /// Callers who were told of an order that does not exist.
    pub(crate) lost: u64,
    /// Callers who were told of somebody else's order: one of other terms, or one that another caller was told of.
    pub(crate) wrongly_claimed: u64,
    /// Callers who were told of an order like theirs that somebody else on the account has placed, or the gateway by
    /// itself: what an account that is not exclusive costs.
    pub(crate) adopted: u64,
    /// Callers who were told of an order by an answer that was not theirs: before anything contradicts it nobody knows.
    pub(crate) misled: u64,
    /// Orders that exist although their caller was told that they do not: not those that the service said it had refused,
    /// if the client has reported them since, or has said that it cannot confirm the refusal, or nothing is looked for after
    /// such a refusal.
    pub(crate) denied: u64,
    /// Callers who were told neither that an order is placed nor that this is not known.
    pub(crate) undecided: u64,
    pub(crate) rejected: u64,
    pub(crate) unresolved: u64,
    /// Those of them that could not be decided in time, because others of their key kept getting lost.
    pub(crate) kept_waiting: u64,
    pub(crate) not_observed: u64,
    /// Callers who went away before they were told.
    pub(crate) gone: u64,
    /// Orders in doubt after all was healed, and calls that did not end.
    pub(crate) stuck: u64,
    /// Orders that the client itself reported as late or too many.
    pub(crate) flagged: u64,
    /// Orders beyond those that callers know of or were told to be unsure of, and that nobody reported.
    pub(crate) unflagged: u64,
    pub(crate) http_429: u64,
    /// Requests that the gateway passed on twice.
    pub(crate) doubled: u64,
    /// Processes that died.
    pub(crate) crashes: u64,
    /// Orders that they had sent, and of which no caller knew the end.
    pub(crate) left_behind: u64,
    /// Those of them that the next process named before anybody asked for them.
    pub(crate) reported: u64,
    /// Sends that a recovery made, and later ones of orders that an earlier process had sent.
    pub(crate) sent_after_crash: u64,
}

/// The fault with which the gateway passes one request on twice.
const DOUBLED: &str = "placement.double-forward";

/// Identical orders, together.
#[derive(Debug, Default)]
struct Twins<'a> {
    wanted: u64,
    rejected: u64,
    /// Those of them that were placed all the same.
    refused: u64,
    /// And after whose refusal nobody looks.
    refused_for_good: u64,
    not_observed: u64,
    existing: Vec<&'a str>,
}

impl Twins<'_> {
    /// Those whose callers were not told that there is none.
    fn believed(&self) -> u64 {
        self.wanted - self.rejected - self.not_observed
    }
}

/// The orders that callers were told of as theirs, or as ones that may be, where no list shows prices.
///
/// Such a list tells orders apart no better than identical ones that differ in nothing but the price: whose is whose is a
/// convention then, and what counts is how many there are.
#[derive(Debug, Default)]
struct Named {
    candidates: BTreeSet<String>,
    /// Of each kind of order that such lists show alike, how many callers believe in one who have none of their terms.
    believers: Vec<(Shape, u64)>,
}

impl Named {
    fn of(workload: &Workload, session: &Session, twins: &BTreeMap<Shape, Twins<'_>>) -> Self {
        if !session.hides_prices {
            return Self::default();
        }
        // An answer that was another order's has named it.
        let misled = workload.wanted.iter().zip(&session.told).filter_map(|(wanted, told)| match told {
            Some(Told::Placed(order_id)) if session.seen.misled.contains(&wanted.number) => {
                Some(order_id.clone())
            }
            _ => None,
        });
        let candidates = session.events.iter().flat_map(|event| match event {
            OrderEvent::Unresolved { unresolved, .. } => unresolved.candidates.clone(),
            OrderEvent::Recovered { order_id, .. } => vec![order_id.clone()],
            _ => Vec::new(),
        });
        let mut believers: Vec<(Shape, u64)> = Vec::new();
        for (&shape, twins) in twins {
            let more = twins.believed().saturating_sub(twins.existing.len() as u64);
            match believers.iter_mut().find(|(kind, _)| kind.is_alike_without_prices(shape)) {
                Some((_, believers)) => *believers += more,
                None => believers.push((shape, more)),
            }
        }
        Self { candidates: candidates.chain(misled).collect(), believers }
    }

    /// How many of the orders of a shape, that nothing else was reported of, are told of so; each believer has one.
    fn take(&mut self, shape: Shape, existing: &[&str], flagged: &BTreeSet<String>) -> u64 {
        let told = existing.iter().filter(|id| self.candidates.contains(**id) && !flagged.contains(**id));
        let told = told.count() as u64;
        let kind = self.believers.iter_mut().find(|(kind, _)| kind.is_alike_without_prices(shape));
        kind.map_or(0, |(_, believers)| {
            let taken = told.min(*believers);
            *believers -= taken;
            taken
        })
    }
}

impl Judgement {
    pub(crate) fn of(workload: &Workload, session: &Session) -> Self {
        let shapes: BTreeMap<u64, Shape> =
            workload.wanted.iter().map(|wanted| (wanted.number, wanted.shape)).collect();
        let mut twins: BTreeMap<Shape, Twins<'_>> = BTreeMap::new();
        let mut shape_of: BTreeMap<&str, Shape> = BTreeMap::new();
        for order in &session.truth.orders {
            let number = order.intent.as_deref().and_then(intent_number);
            if let Some(&shape) = number.and_then(|number| shapes.get(&number)) {
                twins.entry(shape).or_default().existing.push(&order.order_id);
                shape_of.insert(&order.order_id, shape);
            }
        }
        let foreign = session.foreign.iter().map(|(order_id, &shape)| (order_id.as_str(), shape));
        shape_of.extend(foreign);
        let exists: BTreeSet<&str> =
            session.truth.orders.iter().map(|order| order.order_id.as_str()).collect();
        let crash = session.crash.clone().unwrap_or_default();
        // Nobody can keep to quotas that are counted in another way than they are written down, or that are spent before.
        let is_kept = session.counts_as_documented && !crash.starts_empty;
        let refused = if is_kept { session.truth.refusals.values().sum() } else { 0 };
        let mut judged = Self {
            orders: workload.wanted.len() as u64,
            kept_waiting: kept_waiting(workload, &session.told, &session.begun, &session.seen.losses),
            went_in_doubt: session.seen.doubted.len() as u64,
            stuck: session.left_in_doubt as u64,
            flagged: session.flagged.len() as u64,
            http_429: refused,
            doubled: session.seen.struck.iter().filter(|(name, _)| *name == DOUBLED).map(|(_, n)| n).sum(),
            crashes: u64::from(session.crash.is_some()),
            left_behind: crash.left,
            reported: crash.reported,
            sent_after_crash: crash.sent_by_recovery + crash.sent_again,
            ..Self::default()
        };
        let contradicted = contradicted(session);
        let mut claimed: BTreeSet<&str> = BTreeSet::new();
        let mut mistaken = Vec::new();
        for (wanted, told) in workload.wanted.iter().zip(&session.told) {
            let twins = twins.entry(wanted.shape).or_default();
            twins.wanted += 1;
            match told {
                Some(Told::Placed(order_id))
                    if contradicted.contains(order_id.as_str())
                        || session.seen.misled.contains(&wanted.number) =>
                {
                    judged.misled += 1;
                }
                Some(Told::Placed(order_id)) => {
                    if !exists.contains(order_id.as_str()) {
                        judged.lost += 1;
                        continue;
                    }
                    match shape_of.get(order_id.as_str()) {
                        _ if !claimed.insert(order_id) => judged.wrongly_claimed += 1,
                        None => judged.wrongly_claimed += 1,
                        Some(shape) if *shape == wanted.shape => {
                            judged.adopted += u64::from(session.foreign.contains_key(order_id));
                        }
                        Some(&shape) => mistaken.push((wanted.shape, shape)),
                    }
                }
                Some(Told::Rejected) => {
                    judged.rejected += 1;
                    twins.rejected += 1;
                    twins.refused += u64::from(session.seen.refused.contains(&wanted.number));
                    twins.refused_for_good +=
                        u64::from(session.seen.refused_for_good.contains(&wanted.number));
                }
                Some(Told::NotObserved) => {
                    judged.not_observed += 1;
                    twins.not_observed += 1;
                    // Its last send was refused, and is reported if it shows.
                    twins.refused += u64::from(session.seen.refused.contains(&wanted.number));
                }
                Some(Told::Unresolved(_)) => judged.unresolved += 1,
                Some(Told::Nonsense(_)) => judged.undecided += 1,
                Some(Told::Gone) => judged.gone += 1,
                None => judged.stuck += 1,
            }
        }
        let mistakes = mistaken.len() as u64;
        let wrong = unexcused(session.hides_prices, mistaken, left_over(session, &shape_of));
        judged.wrongly_claimed += wrong;
        judged.adopted += mistakes - wrong;
        let mut named = Named::of(workload, session, &twins);
        let mut unconfirmed = unconfirmed(session);
        for (&shape, twins) in &twins {
            let named = named.take(shape, &twins.existing, &session.flagged);
            judged.count(twins, session, named, &mut unconfirmed);
        }
        // Where nobody says when a connection has ended, no bound on lateness holds; what is late is reported.
        if !session.ending.is_promised() {
            judged.denied = judged.unflagged;
        }
        // Nobody can keep a gateway from placing one request twice, but the client adds none. It reports those that a list
        // shows it, and whoever is never in doubt reads no list.
        judged.duplicated = judged.duplicated.saturating_sub(judged.doubled);
        judged.unflagged = judged.unflagged.saturating_sub(judged.doubled);
        judged
    }

    /// `named`: so many of them the callers of others were told of, who have none of their own. `unconfirmed`: of so many
    /// refusals, of any shape, the client has said since that nobody can confirm them; each stands for one order.
    fn count(&mut self, twins: &Twins<'_>, session: &Session, named: u64, unconfirmed: &mut u64) {
        let existing = twins.existing.len() as u64;
        let reported =
            twins.existing.iter().filter(|id| session.flagged.contains(**id)).count() as u64 + named;
        let untold = existing.saturating_sub(twins.believed() + reported + twins.refused_for_good);
        let taken_back = untold.min(twins.refused).min(*unconfirmed);
        *unconfirmed -= taken_back;
        let reported = reported + taken_back;
        // A report of any of the twins is one of this one.
        let refused = (reported + twins.refused_for_good).min(twins.refused);
        let believed = twins.believed();
        self.placed += existing.min(twins.wanted);
        self.duplicated += existing.saturating_sub(twins.wanted);
        self.denied += existing.min(twins.wanted).saturating_sub(believed + refused + named);
        self.unflagged += existing.saturating_sub(believed + reported + twins.refused_for_good);
    }

    /// The promises that hold as long as no order is later than the client assumes, and how often each was broken.
    pub(crate) fn broken(&self, world: &World) -> Vec<(&'static str, u64)> {
        let always = [
            ("lost", self.lost),
            ("wrongly_claimed", self.wrongly_claimed),
            ("undecided", self.undecided),
            ("stuck", self.stuck),
            ("http_429", self.http_429),
            ("sent_after_crash", self.sent_after_crash),
        ];
        let bounded = [("duplicated", self.duplicated), ("denied", self.denied)];
        let unbounded = [("unflagged", self.unflagged)];
        let doubled = [("duplicated", self.duplicated)];
        let more: &[_] = match world.expected {
            Expected::WithinTheBound if self.doubled == 0 => &bounded,
            Expected::WithinTheBound => &doubled,
            Expected::Later => &unbounded,
        };
        let plain = [("unresolved", self.unresolved - self.kept_waiting)];
        let plain: &[_] = if world.plain { &plain } else { &[] };
        always.iter().chain(more).chain(plain).copied().filter(|(_, count)| *count > 0).collect()
    }

    pub(crate) fn add(&mut self, other: &Self) {
        let Self {
            orders,
            placed,
            went_in_doubt,
            duplicated,
            lost,
            wrongly_claimed,
            adopted,
            misled,
            denied,
            undecided,
            rejected,
            unresolved,
            kept_waiting,
            not_observed,
            gone,
            stuck,
            flagged,
            unflagged,
            http_429,
            doubled,
            crashes,
            left_behind,
            reported,
            sent_after_crash,
        } = other;
        for (sum, more) in [
            (&mut self.orders, orders),
            (&mut self.placed, placed),
            (&mut self.went_in_doubt, went_in_doubt),
            (&mut self.duplicated, duplicated),
            (&mut self.lost, lost),
            (&mut self.wrongly_claimed, wrongly_claimed),
            (&mut self.adopted, adopted),
            (&mut self.misled, misled),
            (&mut self.denied, denied),
            (&mut self.undecided, undecided),
            (&mut self.rejected, rejected),
            (&mut self.unresolved, unresolved),
            (&mut self.kept_waiting, kept_waiting),
            (&mut self.not_observed, not_observed),
            (&mut self.gone, gone),
            (&mut self.stuck, stuck),
            (&mut self.flagged, flagged),
            (&mut self.unflagged, unflagged),
            (&mut self.http_429, http_429),
            (&mut self.doubled, doubled),
            (&mut self.crashes, crashes),
            (&mut self.left_behind, left_behind),
            (&mut self.reported, reported),
            (&mut self.sent_after_crash, sent_after_crash),
        ] {
            *sum += more;
        }
    }
}

/// The refusals of which the client has said that no list has confirmed them, and those whose orders it has named as
/// other ones than the answers of others said.
fn unconfirmed(session: &Session) -> u64 {
    let was_refused = |order_id: &str| {
        let order = session.truth.orders.iter().find(|order| order.order_id == order_id);
        let number = order.and_then(|order| intent_number(order.intent.as_deref()?));
        number.is_some_and(|number| session.seen.refused.contains(&number))
    };
    let is_one = |event: &&OrderEvent| match event {
        OrderEvent::RefusalUnconfirmed { .. } => true,
        OrderEvent::AckMismatch { order_id, .. } => was_refused(order_id),
        _ => false,
    };
    session.events.iter().filter(is_one).count() as u64
}

/// The identifiers that answers gave to orders, and that the client has reported as another one's, or as nobody's.
fn contradicted(session: &Session) -> BTreeSet<&str> {
    let events = session.events.iter().filter_map(|event| match event {
        OrderEvent::Conflict { order_id, .. }
        | OrderEvent::AckNotListed { order_id, .. }
        | OrderEvent::AckMismatch { order_id, .. } => Some(order_id.as_str()),
        _ => None,
    });
    events.collect()
}

/// How many of the claims of an order of other terms (what was wanted, what was claimed) the client could have kept from.
///
/// It could not where the claimed order is one too many of its terms, because of somebody else or of the gateway itself, and
/// no list tells those terms from the wanted ones. Whoever takes such an order leaves his own over to the next, if there
/// is one.
fn unexcused(hides_prices: bool, mut mistaken: Vec<(Shape, Shape)>, mut left_over: Vec<Shape>) -> u64 {
    let excuse = |mistaken: &[(Shape, Shape)], left_over: &[Shape]| {
        mistaken.iter().enumerate().find_map(|(claim, (wanted, claimed))| {
            let order = left_over.iter().position(|order| order == claimed)?;
            let same = hides_prices && wanted.is_alike_without_prices(*claimed);
            same.then_some((claim, order))
        })
    };
    while let Some((claim, order)) = excuse(&mistaken, &left_over) {
        left_over[order] = mistaken.swap_remove(claim).0;
    }
    mistaken.len() as u64
}

/// The terms of the orders that no caller asked for: somebody else's, and those beyond the first of each name where a
/// gateway has passed requests on twice. And those of which an answer has told their caller otherwise.
fn left_over(session: &Session, shape_of: &BTreeMap<&str, Shape>) -> Vec<Shape> {
    let doubles = session.seen.struck.iter().any(|(name, _)| *name == DOUBLED);
    let mut seen = BTreeSet::new();
    let orders = session.truth.orders.iter().filter(|_| doubles);
    let again = orders.filter(|order| order.intent.as_deref().is_some_and(|name| !seen.insert(name)));
    let misled = session.truth.orders.iter().filter(|order| {
        let number = order.intent.as_deref().and_then(intent_number);
        number.is_some_and(|number| {
            session.seen.misled.contains(&number) || session.seen.refused.contains(&number)
        })
    });
    let ours = again.chain(misled).filter_map(|order| shape_of.get(order.order_id.as_str()));
    ours.chain(session.foreign.values()).copied().collect()
}

/// How late orders may be in a campaign, and so what its clients promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// No order is twice.
    WithinTheBound,
    /// Every order that is twice is reported.
    Later,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_no_list_shows_prices_an_order_is_told_of_by_whoever_may_have_it() {
        let (one, near, far) = (Shape::LIMIT, Shape::LIMIT_AT_ANOTHER_PRICE, Shape::MARKET);
        let named =
            || Named { candidates: ["1", "2", "3"].map(str::to_owned).into(), believers: vec![(near, 1)] };
        let (nothing, flagged) = (BTreeSet::new(), BTreeSet::from(["1".to_owned()]));
        assert_eq!(named().take(one, &["1"], &nothing), 1);
        assert_eq!(named().take(one, &["4"], &nothing), 0, "nobody was told of it");
        assert_eq!(named().take(one, &["1"], &flagged), 0, "it counts once");
        assert_eq!(named().take(far, &["1"], &nothing), 0, "the terms differ in more than the price");
        let mut named = named();
        assert_eq!(named.take(one, &["1", "2"], &nothing), 1, "one caller may have one");
        assert_eq!(named.take(near, &["3"], &nothing), 0);
    }

    #[test]
    fn a_claim_of_other_terms_is_excused_only_by_an_order_left_over_that_no_list_tells_from_it() {
        let (one, near, far) = (Shape::LIMIT, Shape::LIMIT_AT_ANOTHER_PRICE, Shape::MARKET);
        let first = || vec![(near, one)];
        assert_eq!(unexcused(true, first(), vec![one]), 0);
        assert_eq!(unexcused(false, first(), vec![one]), 1, "lists show the prices");
        assert_eq!(unexcused(true, first(), vec![near]), 1, "another order is left over");
        assert_eq!(
            unexcused(true, vec![(far, one)], vec![one]),
            1,
            "the terms differ in more than the price"
        );
        assert_eq!(
            unexcused(true, vec![(near, one), (one, near)], Vec::new()),
            2,
            "they only changed places"
        );
        assert_eq!(unexcused(true, vec![(near, one), (near, one)], vec![one]), 1, "one is left over");
        assert_eq!(unexcused(true, vec![(one, near), (near, one)], vec![one]), 0, "who took it left his own");
    }
}
