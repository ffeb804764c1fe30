use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use steadfast_call::Lane;

use super::{
    contender::Told,
    quota::{Share, Usage},
    scenario::Scenario,
    session::Session,
    wait::{Until, Waits},
};

/// One client's result, as `demo --json` prints it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Tally {
    pub(crate) orders: Orders,
    /// 429s that the gateway attributes to this client's own traffic.
    pub(crate) http_429: u64,
    pub(crate) wire_requests: u64,
    pub(crate) quota_used_pct: Share,
    /// From the call to the first byte on the wire.
    pub(crate) cancel_wait_ms: Quantiles,
    /// From the call to the first request within the quota. For display only, not in the JSON output.
    #[serde(skip)]
    pub(crate) cancel_admitted_ms: Quantiles,
}

/// The outcomes of the orders, in the terms of the output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Orders {
    /// Intents.
    pub(crate) asked: usize,
    /// Intents with at least one order in the ground truth.
    pub(crate) placed: usize,
    /// Orders beyond the first of their intent.
    pub(crate) duplicated: usize,
    /// Intents without an order whose caller was told something other than rejected, not observed or unresolved.
    pub(crate) lost: usize,
    pub(crate) rejected: usize,
    pub(crate) not_observed: usize,
    /// Intents in doubt at the end.
    pub(crate) unresolved: usize,
    /// Intents that were ever in doubt: the answer to a send did not say whether it was placed.
    pub(crate) went_in_doubt: usize,
    /// Those of them whose caller has the order id.
    pub(crate) recovered: usize,
}

/// Two quantiles, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Quantiles {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

impl Quantiles {
    fn of(sorted: &[f64]) -> Self {
        Self { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) }
    }
}

/// The orders of each intent in the ground truth.
pub(crate) type Applied = BTreeMap<String, Vec<String>>;

/// Whether a client looks for lost orders. One that only sends again recovers nothing by definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubts {
    Resolves,
    Never,
}

impl Orders {
    /// Compares the results in `told` with the orders in `applied`.
    pub(crate) fn count(
        told: &[Option<Told>],
        applied: &Applied,
        in_doubt: &BTreeSet<String>,
        doubts: Doubts,
    ) -> Self {
        let mut orders = Self { asked: told.len(), ..Self::default() };
        for (number, told) in told.iter().enumerate() {
            let intent = Scenario::intent(number);
            let own = applied.get(&intent).map(Vec::as_slice).unwrap_or_default();
            let doubted = in_doubt.contains(&intent);
            orders.placed += usize::from(!own.is_empty());
            orders.duplicated += own.len().saturating_sub(1);
            orders.went_in_doubt += usize::from(doubted);
            match told {
                Some(Told::Placed { order_id, .. }) => {
                    orders.lost += usize::from(own.is_empty());
                    let recovered = doubts == Doubts::Resolves && doubted && own.contains(order_id);
                    orders.recovered += usize::from(recovered);
                }
                Some(Told::Rejected) => orders.rejected += 1,
                Some(Told::NotObserved) => orders.not_observed += 1,
                // A call that has not ended has no result.
                Some(Told::Unresolved(_)) | None => orders.unresolved += 1,
            }
        }
        orders
    }
}

impl Tally {
    pub(crate) fn of(session: &Session, doubts: Doubts) -> Self {
        let told: Vec<Option<Told>> =
            session.orders.iter().map(|answered| answered.as_ref().map(|a| a.told.clone())).collect();
        let cancels = |until| Quantiles::of(&Waits::of(session, until).of_lane(Lane::Critical));
        Self {
            orders: Orders::count(&told, &applied(session), &in_doubt(session), doubts),
            http_429: session.truth.refusals.values().sum::<u64>() + session.truth.injected_429s,
            wire_requests: session.truth.requests,
            quota_used_pct: Usage::of(session).share(),
            cancel_wait_ms: cancels(Until::Sent),
            cancel_admitted_ms: cancels(Until::Admitted),
        }
    }

    /// Returns each promise of this project that was broken, with the count.
    ///
    /// Every order in doubt must be recovered, and at least `least_recovered` of them.
    pub(crate) fn broken_promises(&self, least_recovered: usize) -> Vec<String> {
        let orders = &self.orders;
        let mut broken = Vec::new();
        let mut promise = |name: &str, kept: bool, counted: u64| {
            if !kept {
                broken.push(format!("{name} {counted}"));
            }
        };
        promise("duplicated", orders.duplicated == 0, orders.duplicated as u64);
        promise("lost", orders.lost == 0, orders.lost as u64);
        promise("unresolved", orders.unresolved == 0, orders.unresolved as u64);
        promise("placed", orders.placed == orders.asked, orders.placed as u64);
        promise("http_429", self.http_429 == 0, self.http_429);
        promise(
            "recovered",
            orders.recovered == orders.went_in_doubt.max(least_recovered),
            orders.recovered as u64,
        );
        broken
    }
}

/// Returns the orders of each intent in the ground truth. Exit legs belong to no intent.
pub(crate) fn applied(session: &Session) -> Applied {
    let mut applied = Applied::new();
    for order in &session.truth.orders {
        if let Some(intent) = &order.intent {
            applied.entry(intent.clone()).or_default().push(order.order_id.clone());
        }
    }
    applied
}

/// Returns the intents with a send that met a placement fault, whose answer does not say what happened.
pub(crate) fn in_doubt(session: &Session) -> BTreeSet<String> {
    let struck =
        session.truth.arrivals.iter().filter(|a| a.faults.iter().any(|f| f.starts_with("placement.")));
    struck.filter_map(|arrival| arrival.intent.clone()).collect()
}

/// Returns the smallest of `sorted` that covers this share of the values; zero without values.
pub(crate) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil().max(1.0) as usize;
    let value = sorted.get(rank - 1).copied().unwrap_or_default();
    // Rounded to microseconds, the precision of the measurement.
    (value * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::{super::contender::How, *};

    fn placed(order_id: &str) -> Option<Told> {
        Some(Told::Placed { order_id: order_id.to_owned(), how: How::Found })
    }

    fn count(told: &[Option<Told>], applied: &[(usize, &[&str])], in_doubt: &[usize]) -> Orders {
        let applied = applied
            .iter()
            .map(|(number, ids)| (Scenario::intent(*number), ids.iter().map(|id| (*id).to_owned()).collect()))
            .collect();
        let in_doubt = in_doubt.iter().map(|number| Scenario::intent(*number)).collect();
        Orders::count(told, &applied, &in_doubt, Doubts::Resolves)
    }

    #[test]
    fn placed_and_duplicated_count_the_ground_truth_whatever_callers_were_told() {
        let orders = count(
            &[placed("a"), Some(Told::Unresolved("x")), None],
            &[(0, &["a", "b", "c"]), (1, &["d"])],
            &[],
        );
        assert_eq!((orders.asked, orders.placed, orders.duplicated), (3, 2, 2));
        assert_eq!((orders.unresolved, orders.lost), (2, 0));
    }

    #[test]
    fn only_an_order_that_is_believed_to_be_placed_is_lost() {
        let told = [placed("x"), Some(Told::Rejected), Some(Told::NotObserved), Some(Told::Unresolved("x"))];
        let orders = count(&told, &[], &[]);
        assert_eq!((orders.lost, orders.rejected, orders.not_observed, orders.unresolved), (1, 1, 1, 1));
    }

    #[test]
    fn recovered_needs_doubt_and_ones_own_identifier() {
        let told = [placed("a"), placed("b"), placed("wrong"), Some(Told::Unresolved("x"))];
        let applied: [(usize, &[&str]); 4] = [(0, &["a"]), (1, &["b"]), (2, &["c"]), (3, &["d"])];
        let orders = count(&told, &applied, &[0, 2, 3]);
        assert_eq!((orders.went_in_doubt, orders.recovered), (3, 1));
    }

    #[test]
    fn a_client_that_never_doubts_recovers_nothing() {
        let applied = Applied::from([(Scenario::intent(0), vec!["a".to_owned()])]);
        let in_doubt = BTreeSet::from([Scenario::intent(0)]);
        let orders = Orders::count(&[placed("a")], &applied, &in_doubt, Doubts::Never);
        assert_eq!((orders.went_in_doubt, orders.recovered), (1, 0));
    }

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(quantile(&values, 0.5), 50.0);
        assert_eq!(quantile(&values, 0.99), 99.0);
        assert_eq!(quantile(&[7.0], 0.99), 7.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }

    #[test]
    fn every_broken_promise_is_named_with_its_count() {
        let orders =
            Orders { asked: 9, placed: 8, duplicated: 1, lost: 2, unresolved: 3, ..Orders::default() };
        let tally = Tally {
            orders,
            http_429: 4,
            wire_requests: 0,
            quota_used_pct: Share::default(),
            cancel_wait_ms: Quantiles::default(),
            cancel_admitted_ms: Quantiles::default(),
        };
        let broken = ["duplicated 1", "lost 2", "unresolved 3", "placed 8", "http_429 4"];
        assert_eq!(tally.broken_promises(0), broken);
        assert_eq!(tally.broken_promises(15).last().map(String::as_str), Some("recovered 0"));
    }
}
