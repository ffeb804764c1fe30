//! The callers of a session, and what each was told.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::sim::orders::{
    clocks::Clocks,
    ours::Ours,
    trader::{Told, Trader},
    workload::{Wanted, Workload},
};

/// A generous limit for an order's call.
const LONGEST_CALL: Duration = Duration::from_secs(400);

/// The results of the calls so far, order by order.
#[derive(Clone, Debug)]
pub(crate) struct Answers(Arc<Mutex<Vec<Asked>>>);

/// When an order was first and last asked for, and its caller's result.
#[derive(Clone, Debug, Default)]
struct Asked {
    first: Option<Instant>,
    begun: Option<Instant>,
    told: Option<Told>,
}

impl Answers {
    pub(crate) fn of(workload: &Workload) -> Self {
        Self(Arc::new(Mutex::new(vec![Asked::default(); workload.wanted.len()])))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Asked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that an order is asked for now.
    fn ask(&self, index: usize) {
        let asked = &mut self.lock()[index];
        asked.begun = Some(Instant::now());
        asked.first = asked.first.or(asked.begun);
    }

    pub(crate) fn take(&self) -> (Vec<Option<Instant>>, Vec<Option<Told>>) {
        std::mem::take(&mut *self.lock()).into_iter().map(|asked| (asked.begun, asked.told)).unzip()
    }

    /// Returns those of `orders` whose callers have no result yet.
    pub(crate) fn untold(&self, workload: &Workload, orders: &BTreeSet<u64>) -> BTreeSet<u64> {
        let asked = self.lock();
        let untold = workload.wanted.iter().zip(&*asked).filter(|(_, asked)| asked.told.is_none());
        untold.map(|(wanted, _)| wanted.number).filter(|number| orders.contains(number)).collect()
    }

    /// Replaces results by what a process found out about its predecessor's orders. A result of the dead process may be
    /// outdated: its record may be lost with the process, and twins then change places.
    pub(crate) fn inherit(&self, workload: &Workload, recovered: Vec<(u64, Told)>) {
        let recovered: BTreeMap<u64, Told> = recovered.into_iter().collect();
        for (wanted, asked) in workload.wanted.iter().zip(&mut *self.lock()) {
            if let Some(found) = recovered.get(&wanted.number) {
                asked.told = Some(found.clone());
            }
        }
    }

    /// Ends open calls without a result, because on another day a name means another order. Their orders go by what was
    /// recovered.
    pub(crate) fn go(&self) {
        let begun = |asked: &&mut Asked| asked.begun.is_some() && asked.told.is_none();
        self.lock().iter_mut().filter(begun).for_each(|asked| asked.told = Some(Told::Gone));
    }
}

/// Runs every caller; each asks for its orders without a result, one after the other.
///
/// Where callers repeat, they ask once more for an order with a name that was refused, until the day of `repeated_on`
/// is over: then a name means another order.
pub(crate) async fn drive<T: Trader>(
    trader: Arc<T>,
    workload: &Workload,
    start: Instant,
    answers: &Answers,
    repeated_on: Option<&Clocks>,
) {
    let mut callers = JoinSet::new();
    for caller in 0..workload.callers {
        let asked = answers.lock();
        let orders: Vec<(usize, Wanted)> = (0..)
            .zip(&workload.wanted)
            .filter(|(index, wanted)| wanted.caller == caller && asked[*index].told.is_none())
            .map(|(index, wanted)| (index, wanted.clone()))
            .collect();
        drop(asked);
        if orders.is_empty() {
            continue;
        }
        let (trader, answers, repeated_on) = (trader.clone(), answers.clone(), repeated_on.cloned());
        callers.spawn(async move {
            for (index, wanted) in orders {
                sleep_until(start + wanted.at).await;
                answers.ask(index);
                let patience = wanted.patience.unwrap_or(LONGEST_CALL);
                let place = async || match timeout(patience, trader.place(&wanted)).await {
                    Ok(answer) => Some(answer),
                    Err(_) => wanted.patience.map(|_| Told::Gone),
                };
                let mut answer = place().await;
                if let Some(clocks) = &repeated_on
                    && wanted.named
                    && answer == Some(Told::Rejected)
                {
                    sleep(wanted.repeated_after).await;
                    if clocks.is_first_day() {
                        answers.ask(index);
                        answer = place().await;
                    }
                }
                answers.lock()[index].told.clone_from(&answer);
                if let (Some(Told::Placed(order_id)), true) = (&answer, wanted.cancelled) {
                    drop(timeout(wanted.haste.unwrap_or(LONGEST_CALL), trader.cancel(order_id)).await);
                }
                if wanted.looks {
                    drop(timeout(wanted.haste.unwrap_or(LONGEST_CALL), trader.look(wanted.number)).await);
                }
            }
        });
    }
    while callers.join_next().await.is_some() {}
}

/// Asks once more for every order that has a name and was placed. On the day on which it was asked for, nothing may be sent
/// for it.
pub(crate) async fn ask_again(trader: &Ours, workload: &Workload, answers: &Answers, clocks: &Clocks) {
    let asked = answers.lock().clone();
    for (wanted, asked) in workload.wanted.iter().zip(asked) {
        // An order that is in doubt again may make the call wait until the day is over.
        let is_its_day = || asked.first.is_some_and(|at| clocks.is_day_of(at));
        if trader.names(wanted) && matches!(asked.told, Some(Told::Placed(_))) && is_its_day() {
            drop(timeout(LONGEST_CALL, trader.place(wanted)).await);
        }
    }
}
