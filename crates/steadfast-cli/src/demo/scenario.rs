use std::{collections::BTreeMap, time::Duration};

use steadfast_call::BoxError;
use steadfast_sandbox::{Fault, FaultEntry, Sandbox, enforce::Kind};
use steadfast_spec::{OrderRequest, OrderType, Zone};

use super::{
    dice::Dice,
    misfortune::Misfortune,
    timetable::{STANDARD, Timetable, Wave},
    trader::Trader,
};

/// All calls of a run and all faults of its gateway, as a function of a seed.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    /// In call order; the index is the intent's number.
    pub(crate) orders: Vec<OrderRequest>,
    /// Sorted by time.
    pub(crate) events: Vec<Event>,
    /// At most one for each order.
    pub(crate) faults: BTreeMap<usize, Misfortune>,
}

/// Something that happens at a set time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) at: Duration,
    pub(crate) action: Action,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The client is asked to place the order of this number.
    Place(usize),
    /// The client is asked to cancel the order of this number.
    Cancel(usize),
    /// The client is asked for the order list.
    Poll,
    /// All tokens die.
    Revoke,
}

/// A fault, its minimum count in a run, and the share of the first session in which it may strike.
///
/// A resend comes 15 to 25 s later at the earliest, and an order that is applied late is found up to 15 s later.
/// Both must be over when the token dies.
const BEFORE_NIGHT: [(Fault, usize, f64); 6] = [
    (Fault::Placement504Applied, 8, 1.0),
    (Fault::Placement504Late, 4, 5.0 / 6.0),
    (Fault::Placement504NotApplied, 4, 0.5),
    (Fault::PlacementResetApplied, 2, 1.0),
    (Fault::Placement400InternalApplied, 1, 1.0),
    (Fault::Placement200Truncated, 1, 1.0),
];

/// After the night only faults whose order is in the list at once: a new session does not list the old one's orders,
/// and the run is about to end.
const AFTER_NIGHT: [(Fault, usize); 4] = [
    (Fault::Placement504Applied, 2),
    (Fault::Placement502Applied, 1),
    (Fault::Placement500Applied, 1),
    (Fault::Placement503Applied, 1),
];

impl Scenario {
    /// Creates the scenario of a seed with this number of orders.
    pub(crate) fn new(seed: u64, orders: usize) -> Self {
        Self::with(seed, &Timetable::standard(orders))
    }

    /// Creates the scenario of a seed with a given timetable.
    pub(crate) fn with(seed: u64, timetable: &Timetable) -> Self {
        let mut dice = Dice::new(seed);
        let count = timetable.orders();
        let faults = misfortunes(&mut dice, timetable);
        let mut trader = Trader::new(count);
        let orders: Vec<OrderRequest> =
            (0..count).map(|number| trader.order(&mut dice, faults.get(&number))).collect();
        let events = events(&mut dice, timetable, &orders, &faults);
        Self { orders, events, faults }
    }

    /// Builds a gateway that counts each zone by a sliding log and injects the scenario's faults.
    pub(crate) fn gateway(&self, seed: u64) -> Result<Sandbox, BoxError> {
        let mut builder = Sandbox::builder().seed(seed);
        for zone in Zone::ALL {
            builder = builder.enforcer(zone, Kind::SlidingLog);
        }
        for (&number, misfortune) in &self.faults {
            let mut entry = FaultEntry::default();
            entry.name = misfortune.fault.as_str().to_owned();
            entry.intent = Some(Self::intent(number));
            // Strikes the first send that gets as far as placement. A send refused for its quota meets no fault, and
            // no order meets two.
            entry.times = Some(1);
            entry.late_by_ms = misfortune.late_by.map(|by| u64::try_from(by.as_millis()).unwrap_or(u64::MAX));
            builder = builder.script_entry(entry)?;
        }
        Ok(builder.build()?)
    }

    /// Returns the name of an order's intent.
    pub(crate) fn intent(number: usize) -> String {
        format!("order-{:04}", number + 1)
    }
}

fn misfortunes(dice: &mut Dice, timetable: &Timetable) -> BTreeMap<usize, Misfortune> {
    let (before_night, count) = (timetable.before_night(), timetable.orders());
    let share = (count / STANDARD).max(1);
    let mut struck: BTreeMap<usize, Misfortune> = BTreeMap::new();
    // Faults with the least room first.
    let mut wanted: Vec<(Fault, usize, usize, usize)> = BEFORE_NIGHT
        .iter()
        .map(|&(fault, least, until)| (fault, least * share, 0, (before_night as f64 * until) as usize))
        .chain(AFTER_NIGHT.iter().map(|&(fault, least)| (fault, least * share, before_night, count)))
        .collect();
    wanted.sort_by_key(|&(.., from, to)| to - from);
    for (fault, times, from, to) in wanted {
        let mut free: Vec<usize> = (from..to).filter(|number| !struck.contains_key(number)).collect();
        dice.shuffle(&mut free);
        for number in free.into_iter().take(times) {
            let late_by =
                (fault == Fault::Placement504Late).then(|| Duration::from_millis(dice.between(2_000, 8_000)));
            struck.insert(number, Misfortune { fault, late_by });
        }
    }
    struck
}

fn events(
    dice: &mut Dice,
    timetable: &Timetable,
    orders: &[OrderRequest],
    faults: &BTreeMap<usize, Misfortune>,
) -> Vec<Event> {
    let mut events = Vec::new();
    let mut next = 0;
    for &Wave { at, orders } in timetable.waves() {
        events.extend((next..next + orders).map(|number| Event { at, action: Action::Place(number) }));
        next += orders;
    }
    events.extend(timetable.polls().map(|at| Event { at, action: Action::Poll }));
    let mut resting: Vec<usize> = (0..timetable.before_night())
        .filter(|number| !faults.contains_key(number))
        .filter(|&number| matches!(orders[number].order_type(), OrderType::Limit | OrderType::StopLimit))
        .collect();
    dice.shuffle(&mut resting);
    let cancels = timetable.cancels(dice);
    events.extend(
        resting.into_iter().zip(cancels).map(|(number, at)| Event { at, action: Action::Cancel(number) }),
    );
    // The token dies before other events of the same instant.
    events.splice(0..0, timetable.night().map(|at| Event { at, action: Action::Revoke }));
    // Stable: events of one instant keep the order of intents.
    events.sort_by_key(|event| event.at);
    events
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Counts the orders before the token dies.
    fn before_night(scenario: &Scenario) -> usize {
        let night = scenario.events.iter().position(|event| event.action == Action::Revoke).unwrap();
        let before = scenario.events.iter().take(night);
        before.filter(|event| matches!(event.action, Action::Place(_))).count()
    }

    fn count(scenario: &Scenario, fault: Fault) -> usize {
        scenario.faults.values().filter(|misfortune| misfortune.fault == fault).count()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_seed_holds_the_least_count_of_each_fault(seed: u64, orders in 60_usize..900) {
            let scenario = Scenario::new(seed, orders);
            prop_assert_eq!(scenario.orders.len(), orders);
            for (fault, least, _) in BEFORE_NIGHT {
                prop_assert!(count(&scenario, fault) >= least, "{}", fault);
            }
            for (number, misfortune) in &scenario.faults {
                let late_by = misfortune.late_by.map(|by| by.as_millis());
                if misfortune.fault == Fault::Placement504Late {
                    prop_assert!(late_by.is_some_and(|by| (2_000..=8_000).contains(&by)));
                } else {
                    prop_assert!(late_by.is_none());
                }
                if *number >= before_night(&scenario) {
                    prop_assert!(AFTER_NIGHT.iter().any(|(fault, _)| *fault == misfortune.fault));
                }
            }
        }

        #[test]
        fn orders_that_can_be_told_apart_only_by_their_list_are_never_twins(seed: u64) {
            let scenario = Scenario::new(seed, STANDARD);
            let mut looks = BTreeSet::new();
            let mut keys = BTreeSet::new();
            for (number, order) in scenario.orders.iter().enumerate() {
                let key = (order.sym_id().to_string(), order.side());
                prop_assert!(looks.insert((key.clone(), order.qty())), "{:?}", order);
                if scenario.faults.contains_key(&number) {
                    prop_assert!(keys.insert(key), "two in doubt could hide each other: {:?}", order);
                }
            }
        }

        #[test]
        fn only_limit_orders_get_lost_and_early_enough_to_be_sent_again(seed: u64) {
            let scenario = Scenario::new(seed, STANDARD);
            for (number, misfortune) in &scenario.faults {
                if misfortune.fault == Fault::Placement504NotApplied {
                    prop_assert_eq!(scenario.orders[*number].order_type(), OrderType::Limit);
                    prop_assert!(*number < before_night(&scenario) / 2);
                }
            }
        }

        #[test]
        fn events_are_in_order_and_polls_ask_for_more_than_the_quota(seed: u64, orders in 60_usize..900) {
            let scenario = Scenario::new(seed, orders);
            prop_assert!(scenario.events.is_sorted_by_key(|event| event.at));
            let at = |wanted: fn(&Action) -> bool| -> Vec<Duration> {
                scenario.events.iter().filter(|event| wanted(&event.action)).map(|event| event.at).collect()
            };
            let polls = at(|action| *action == Action::Poll);
            prop_assert!(polls.windows(12).step_by(6).all(|twelve| twelve[11] - twelve[0] < Duration::from_secs(1)));
            let cancels = at(|action| matches!(action, Action::Cancel(_)));
            prop_assert!(cancels.windows(6).all(|six| six[5] - six[0] >= Duration::from_secs(1)), "five in any second");
            let last = polls[polls.len() - 1] + Duration::from_secs(1);
            prop_assert!(cancels.iter().all(|at| (polls[0]..last).contains(at)), "polls go on around each cancel");
            let placed: Vec<usize> = scenario.events.iter().filter_map(|event| match event.action {
                Action::Place(number) => Some(number),
                _ => None,
            }).collect();
            prop_assert_eq!(placed, (0..orders).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_standard_run_is_the_one_of_the_script() {
        let scenario = Scenario::new(7, STANDARD);
        assert_eq!(before_night(&scenario), 180);
        let night = scenario.events.iter().find(|event| event.action == Action::Revoke).unwrap();
        assert_eq!(night.at, Duration::from_secs(38));
        assert!(scenario.events.last().unwrap().at < Duration::from_secs(52));
        assert!(scenario.events.iter().filter(|e| matches!(e.action, Action::Cancel(_))).count() >= 30);
    }

    #[test]
    fn one_seed_is_one_scenario() {
        let (a, b) = (Scenario::new(3, 300), Scenario::new(3, 300));
        assert_eq!((&a.orders, &a.events, &a.faults), (&b.orders, &b.events, &b.faults));
        assert_ne!(a.orders, Scenario::new(4, 300).orders);
    }
}
