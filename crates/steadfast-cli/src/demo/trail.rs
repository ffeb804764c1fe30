use std::time::Duration;

use super::{
    contender::{How, Told},
    misfortune::Misfortune,
    scenario::Scenario,
    session::Session,
};

/// The events of one order in doubt, by the time since its first send.
#[derive(Clone, Debug)]
pub(crate) struct Trail {
    /// Each request for it that reached the gateway.
    pub(crate) sends: Vec<Duration>,
    /// Each time that an order came into existence for it.
    pub(crate) applied: Vec<Duration>,
    pub(crate) ended: Option<(Duration, Told)>,
}

/// How it ended, for the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Placed once, and the caller has the id.
    Resolved(How),
    /// Placed more than once.
    Duplicated(usize),
    /// The caller was given an id, but there is no order.
    Lost,
    /// The caller was told that the outcome is not known.
    Open,
    /// It never reached the gateway.
    Unsent,
}

impl Trail {
    /// Returns the trail of the order with this number.
    pub(crate) fn of(session: &Session, number: usize) -> Self {
        let intent = Scenario::intent(number);
        let is_own = |name: &Option<String>| name.as_deref() == Some(intent.as_str());
        let sends: Vec<u64> =
            session.truth.arrivals.iter().filter(|a| is_own(&a.intent)).map(|a| a.at_ns).collect();
        let first = sends.first().copied().unwrap_or_default();
        let since = |ns: u64| Duration::from_nanos(ns.saturating_sub(first));
        let applied = session.truth.orders.iter().filter(|order| is_own(&order.intent));
        let answered = session.orders.get(number).and_then(Option::as_ref);
        Self {
            applied: applied.map(|order| since(order.applied_ns)).collect(),
            ended: answered.map(|answered| {
                (answered.at.saturating_sub(Duration::from_nanos(first)), answered.told.clone())
            }),
            sends: sends.into_iter().map(since).collect(),
        }
    }

    pub(crate) fn ending(&self) -> Ending {
        match (self.applied.len(), &self.ended) {
            _ if self.sends.is_empty() => Ending::Unsent,
            (0, Some((_, Told::Placed { .. }))) => Ending::Lost,
            (1, Some((_, Told::Placed { how, .. }))) => Ending::Resolved(*how),
            (0 | 1, _) => Ending::Open,
            (orders, _) => Ending::Duplicated(orders),
        }
    }
}

/// Describes a fault for the report.
pub(crate) fn words(misfortune: &Misfortune) -> String {
    let name = misfortune.fault.as_str();
    let name = name.strip_prefix("placement.").unwrap_or(name);
    let text = match name.split_once('-') {
        Some(("200", _)) => "200 cut off, placed".to_owned(),
        Some(("reset", _)) => "connection reset, placed".to_owned(),
        Some(("400", _)) => "400 internal, placed".to_owned(),
        Some((status, "applied")) => format!("{status}, placed"),
        Some((status, "not-applied")) => format!("{status}, not placed"),
        Some((status, "late")) => format!("{status}, placed later"),
        _ => name.to_owned(),
    };
    match misfortune.late_by {
        Some(late_by) => text.replace("later", &format!("{:.1} s later", late_by.as_secs_f64())),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use steadfast_sandbox::Fault;

    use super::*;

    fn trail(applied: usize, told: Option<Told>) -> Trail {
        Trail {
            sends: vec![Duration::ZERO],
            applied: vec![Duration::ZERO; applied],
            ended: told.map(|told| (Duration::ZERO, told)),
        }
    }

    #[test]
    fn two_orders_are_a_duplicate_whatever_the_caller_was_told() {
        let placed = Told::Placed { order_id: "1".to_owned(), how: How::SentAgain };
        assert_eq!(trail(2, Some(placed.clone())).ending(), Ending::Duplicated(2));
        assert_eq!(trail(2, None).ending(), Ending::Duplicated(2));
        assert_eq!(trail(1, Some(placed.clone())).ending(), Ending::Resolved(How::SentAgain));
        assert_eq!(trail(0, Some(placed)).ending(), Ending::Lost);
        assert_eq!(trail(1, Some(Told::Unresolved("x"))).ending(), Ending::Open);
        assert_eq!(trail(0, None).ending(), Ending::Open);
    }

    #[test]
    fn faults_are_told_in_words() {
        let told = |fault, late_by| words(&Misfortune { fault, late_by });
        assert_eq!(told(Fault::Placement504Applied, None), "504, placed");
        assert_eq!(told(Fault::Placement504NotApplied, None), "504, not placed");
        let late_by = Some(Duration::from_millis(5_240));
        assert_eq!(told(Fault::Placement504Late, late_by), "504, placed 5.2 s later");
        assert_eq!(told(Fault::Placement200Truncated, None), "200 cut off, placed");
    }
}
