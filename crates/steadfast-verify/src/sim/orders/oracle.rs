use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use steadfast::dedup::{OrderEvent, Reason};

use crate::sim::{
    orders::{
        cohort::kept_waiting,
        session::Session,
        trader::Told,
        workload::{Shape, Workload},
        world::{Expected, World},
    },
    wire::intent_number,
};

/// The judgement of one client's session by the gateway's ground truth.
///
/// Identical orders are interchangeable (`docs/design/orders.md`, section 6): the service cannot tell twins apart. So
/// they are counted together, and only their number matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Judgement {
    /// Orders that were wanted.
    pub(crate) orders: u64,
    /// Wanted orders that exist, each counted once.
    pub(crate) placed: u64,
    /// Orders with a send whose end was unknown.
    pub(crate) went_in_doubt: u64,
    /// Orders beyond those that were wanted and those that a gateway duplicated by itself.
    pub(crate) duplicated: u64,
    /// Callers that got an order id that does not exist.
    pub(crate) lost: u64,
    /// Callers that got another order: one with other terms, or one that another caller got.
    pub(crate) wrongly_claimed: u64,
    /// Callers that got an equal order that another program, or the gateway by itself, has placed: the cost of an
    /// account that is not exclusive.
    pub(crate) adopted: u64,
    /// Callers that got an order id from an answer to another order. Before it is contradicted this is not detectable.
    pub(crate) misled: u64,
    /// Orders that exist although their call said that they do not. Exceptions are refused orders that the client has
    /// reported since, or whose refusal it says it cannot confirm, or after whose refusal no search is made.
    pub(crate) denied: u64,
    /// Callers that were told neither that an order is placed nor that this is unknown.
    pub(crate) undecided: u64,
    pub(crate) rejected: u64,
    pub(crate) unresolved: u64,
    /// Those of them that could not be decided in time, because others of their key kept getting lost.
    pub(crate) kept_waiting: u64,
    pub(crate) not_observed: u64,
    /// Callers that left before the end.
    pub(crate) gone: u64,
    /// Orders in doubt after all faults ended, and calls that did not end.
    pub(crate) stuck: u64,
    /// Orders that the client itself reported as late or excess.
    pub(crate) flagged: u64,
    /// Orders that it reported as excess although they are those of callers that were told of an invented identifier, or
    /// of one under which lists show another quantity.
    pub(crate) falsely_excess: u64,
    /// Orders that no caller knows or was warned about, and that were not reported.
    pub(crate) unflagged: u64,
    pub(crate) http_429: u64,
    /// Requests that the gateway passed on twice.
    pub(crate) doubled: u64,
    /// Processes that died.
    pub(crate) crashes: u64,
    /// Orders that they had sent, and whose end no caller had learned.
    pub(crate) left_behind: u64,
    /// Those of them that the next process named without a request.
    pub(crate) reported: u64,
    /// Sends made by a recovery, and later sends of orders that an earlier process had sent.
    pub(crate) sent_after_crash: u64,
}

/// The fault with which the gateway passes one request on twice.
const DOUBLED: &str = "placement.double-forward";

/// Identical orders, together.
#[derive(Debug, Default)]
struct Twins<'a> {
    wanted: u64,
    rejected: u64,
    /// Those of the refused ones that were placed.
    refused: u64,
    /// Those of them after whose refusal no search is made.
    refused_for_good: u64,
    not_observed: u64,
    existing: Vec<&'a str>,
}

impl Twins<'_> {
    /// Returns how many have a caller that was not told that there is none.
    fn believed(&self) -> u64 {
        self.wanted - self.rejected - self.not_observed
    }
}

/// The orders that callers got as theirs or as candidates, for lists without prices.
///
/// Such a list cannot tell apart orders that differ only in price. Their assignment is then a convention, and only
/// their number matters.
#[derive(Debug, Default)]
struct Named {
    candidates: BTreeSet<String>,
    /// For each group of orders that such lists show alike: how many callers count on one without an order of their own
    /// terms.
    believers: Vec<(Shape, u64)>,
}

impl Named {
    fn of(workload: &Workload, session: &Session, twins: &BTreeMap<Shape, Twins<'_>>) -> Self {
        if !session.hides_prices {
            return Self::default();
        }
        // An answer to another order has named it.
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

    /// Takes the orders of a shape that were named in this way and not reported otherwise; returns how many, at most
    /// one for each caller that counts on one.
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
        // No client can keep to quotas that are counted differently than documented, or that were spent before.
        let is_kept = session.counts_as_documented && !crash.starts_empty;
        let refused = if is_kept { session.truth.refusals.values().sum() } else { 0 };
        let mut judged = Self {
            orders: workload.wanted.len() as u64,
            kept_waiting: kept_waiting(workload, &session.told, &session.begun, &session.seen.losses),
            went_in_doubt: session.seen.doubted.len() as u64,
            stuck: session.left_in_doubt as u64,
            flagged: session.flagged.len() as u64,
            falsely_excess: falsely_excess(workload, session, &shape_of),
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
                    // Its last send was refused, and is reported if the order shows.
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
        // If the end of connections is not known, no bound on lateness holds; late orders are reported.
        if !session.ending.is_promised() {
            judged.denied = judged.unflagged;
        }
        // No client can prevent a gateway from placing one request twice, but it adds none. It reports those in a list
        // that it reads; without doubt it reads none.
        judged.duplicated = judged.duplicated.saturating_sub(judged.doubled);
        judged.unflagged = judged.unflagged.saturating_sub(judged.doubled);
        judged
    }

    /// Counts the twins. `named`: how many of them were named to callers of other orders that have none of their own.
    /// `unconfirmed`: how many refusals, of any shape, the client has since called unconfirmable; each stands for one
    /// order.
    fn count(&mut self, twins: &Twins<'_>, session: &Session, named: u64, unconfirmed: &mut u64) {
        let existing = twins.existing.len() as u64;
        // A client cannot report an order that no list can show to it.
        let is_reported = |id: &&&str| session.flagged.contains(**id) || session.hidden.contains(**id);
        let reported = twins.existing.iter().filter(is_reported).count() as u64 + named;
        let untold = existing.saturating_sub(twins.believed() + reported + twins.refused_for_good);
        let taken_back = untold.min(twins.refused).min(*unconfirmed);
        *unconfirmed -= taken_back;
        let reported = reported + taken_back;
        // A report of any of the twins counts for this one.
        let refused = (reported + twins.refused_for_good).min(twins.refused);
        let believed = twins.believed();
        self.placed += existing.min(twins.wanted);
        self.duplicated += existing.saturating_sub(twins.wanted);
        self.denied += existing.min(twins.wanted).saturating_sub(believed + refused + named);
        self.unflagged += existing.saturating_sub(believed + reported + twins.refused_for_good);
    }

    /// Returns the promises that hold while no order is later than assumed, and how often each was broken.
    pub(crate) fn broken(&self, world: &World) -> Vec<(&'static str, u64)> {
        let always = [
            ("lost", self.lost),
            ("wrongly_claimed", self.wrongly_claimed),
            ("falsely_excess", self.falsely_excess),
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
        // In a shared account nothing but a tag resolves an order.
        let plain: &[_] = if world.plain && !world.is_shared() { &plain } else { &[] };
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
            falsely_excess,
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
            (&mut self.falsely_excess, falsely_excess),
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

/// Returns the refusals that the client reported as unconfirmed, and those whose orders it named as other ones than the
/// answers to others said.
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

/// Returns how many orders the client has reported as one too many although they are those of callers that were told of
/// an identifier which no order has, or one of another quantity, and none of their terms is left over.
///
/// An identifier of another order of the same quantity is not judged: it may differ in its price alone, which contradicts
/// nothing. Nor are lists without prices, which show different orders alike, and sessions over midnight.
fn falsely_excess(workload: &Workload, session: &Session, shape_of: &BTreeMap<&str, Shape>) -> u64 {
    let over_midnight = session.events.iter().any(|event| {
        matches!(event, OrderEvent::Unresolved { unresolved, .. } if unresolved.reason == Reason::EpochChanged)
    });
    if session.hides_prices || over_midnight {
        return 0;
    }
    let owner = |order: &str| {
        let order = session.truth.orders.iter().find(|it| it.order_id == order)?;
        intent_number(order.intent.as_deref()?)
    };
    let told = workload.wanted.iter().zip(&session.told).filter_map(|(wanted, told)| match told {
        Some(Told::Placed(order_id)) => Some((wanted, order_id.as_str())),
        _ => None,
    });
    let is_wrong = |shape: Shape, order_id: &str| {
        let exists = session.truth.orders.iter().any(|order| order.order_id == order_id);
        !exists || shape_of.get(order_id).is_some_and(|shown| shown.is_of_another_quantity(shape))
    };
    let wrong: BTreeSet<u64> = told
        .clone()
        .filter(|(wanted, order_id)| is_wrong(wanted.shape, order_id))
        .map(|(wanted, _)| wanted.number)
        .collect();
    // A caller whose order was never placed leaves none less for the others.
    let placed: BTreeSet<u64> =
        session.truth.orders.iter().filter_map(|order| owner(order.order_id.as_str())).collect();
    let mut left_over: BTreeMap<Shape, u64> = BTreeMap::new();
    shape_of.values().for_each(|&shape| *left_over.entry(shape).or_default() += 1);
    for (wanted, _) in told.filter(|(wanted, _)| placed.contains(&wanted.number)) {
        if let Some(left) = left_over.get_mut(&wanted.shape) {
            *left = left.saturating_sub(1);
        }
    }
    // The next process reports one again.
    let excess: BTreeSet<&str> = session
        .events
        .iter()
        .filter_map(|event| match event {
            OrderEvent::Excess { order_id, .. } => Some(order_id.as_str()),
            _ => None,
        })
        .collect();
    let is_false = |order_id: &&str| {
        let shape = shape_of.get(order_id);
        owner(order_id).is_some_and(|number| wrong.contains(&number))
            && shape.is_some_and(|shape| left_over.get(shape).is_none_or(|&left| left == 0))
    };
    excess.into_iter().filter(is_false).count() as u64
}

/// Returns the identifiers from answers that the client has reported as another order's, or as no order's.
fn contradicted(session: &Session) -> BTreeSet<&str> {
    let events = session.events.iter().filter_map(|event| match event {
        OrderEvent::Conflict { order_id, .. }
        | OrderEvent::AckNotListed { order_id, .. }
        | OrderEvent::AckMismatch { order_id, .. } => Some(order_id.as_str()),
        _ => None,
    });
    events.collect()
}

/// Returns how many claims of an order with other terms (wanted, claimed) the client could have avoided.
///
/// It could not avoid a claim if the claimed order is in excess for its terms, because of a foreign program or the
/// gateway, and no list tells those terms from the wanted ones. A claim of such an order leaves the caller's own order
/// over for the next claim, if there is one.
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

/// Returns the terms of orders that no caller asked for: foreign ones, and, if a gateway has passed requests on twice,
/// those beyond the first of each name. Includes orders whose callers got a different answer.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_prices_any_possible_owner_may_name_an_order() {
        let (one, near, far) = (Shape::LIMIT, Shape::LIMIT_AT_ANOTHER_PRICE, Shape::MARKET);
        let named =
            || Named { candidates: ["1", "2", "3"].map(str::to_owned).into(), believers: vec![(near, 1)] };
        let (nothing, flagged) = (BTreeSet::new(), BTreeSet::from(["1".to_owned()]));
        assert_eq!(named().take(one, &["1"], &nothing), 1);
        assert_eq!(named().take(one, &["4"], &nothing), 0, "no caller was told of it");
        assert_eq!(named().take(one, &["1"], &flagged), 0, "it counts once");
        assert_eq!(named().take(far, &["1"], &nothing), 0, "the terms differ in more than the price");
        let mut named = named();
        assert_eq!(named.take(one, &["1", "2"], &nothing), 1, "one caller may have one");
        assert_eq!(named.take(near, &["3"], &nothing), 0);
    }

    #[test]
    fn a_claim_of_other_terms_needs_an_indistinguishable_order() {
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
