use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use steadfast_call::Lane;
use steadfast_sandbox::State;
use steadfast_spec::OrderRequest;
use tokio::{sync::watch, task::JoinSet, time::Instant};

use super::{
    contender::{Contender, Told},
    live::Live,
    scenario::{Action, Event, Scenario},
};
use crate::arena::Arena;

/// A client's calls and results in a run, with its gateway's ground truth.
#[derive(Debug)]
pub(crate) struct Session {
    /// The result of each order; `None` for orders that were never placed, or whose call was interrupted.
    pub(crate) orders: Vec<Option<Answered>>,
    /// Every call, orders included.
    pub(crate) calls: Vec<Call>,
    pub(crate) truth: State,
    /// The time of the first order, by the gateway's clock.
    pub(crate) start: Duration,
    /// The end of the session, by the gateway's clock.
    pub(crate) end: Duration,
    pub(crate) cut_short: bool,
    /// Orders still in doubt, as far as the client knows.
    pub(crate) left_in_doubt: usize,
}

/// The end of an order's call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    /// By the gateway's clock.
    pub(crate) at: Duration,
    pub(crate) told: Told,
}

/// The start of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// Its name in the ground truth.
    pub(crate) name: String,
    pub(crate) lane: Lane,
    /// By the gateway's clock.
    pub(crate) at: Duration,
}

impl Session {
    /// Returns a line for each order whose caller got no id: the result, and the fault that struck it.
    pub(crate) fn unsettled(&self) -> impl Iterator<Item = String> {
        self.orders.iter().enumerate().filter_map(|(number, answered)| {
            let intent = Scenario::intent(number);
            let told = match answered.as_ref().map(|answered| &answered.told) {
                Some(Told::Placed { .. }) => return None,
                Some(Told::Rejected) => "rejected",
                Some(Told::NotObserved) => "not observed",
                Some(Told::Unresolved(why)) => why,
                None => "no answer",
            };
            let own = self.truth.arrivals.iter().filter(|a| a.intent.as_deref() == Some(intent.as_str()));
            let faults: Vec<&str> = own.flat_map(|arrival| arrival.faults.iter().copied()).collect();
            Some(format!("{intent}: {told} {}", faults.join(" ")))
        })
    }
}

/// How long the death of the token is delayed for orders still in doubt.
const LONGEST_DUSK: Duration = Duration::from_secs(10);
/// How long orders may take to end after the last was placed.
const LONGEST_END: Duration = Duration::from_secs(120);
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Takes one client through the scenario, beginning at `start`.
pub(crate) async fn trade<C: Contender>(
    contender: Arc<C>,
    arena: &Arena,
    scenario: &Scenario,
    start: Instant,
    live: &Arc<Live>,
    mut stop: watch::Receiver<bool>,
) -> Session {
    let mut script = Script {
        contender: contender.clone(),
        orders: scenario.orders.clone(),
        known: Arc::default(),
        live: live.clone(),
        calls: Vec::new(),
        open: JoinSet::new(),
    };
    let started = arena.now() + start.saturating_duration_since(Instant::now());
    let watcher = tokio::spawn(watch_doubt(contender.clone(), live.clone()));
    let cut_short = tokio::select! {
        () = script.play(arena, &scenario.events, start) => false,
        _ = stop.wait_for(|stop| *stop) => true,
    };
    let mut orders = vec![None; scenario.orders.len()];
    if cut_short {
        // Ends the calls whose order has not left. The client goes on with the others.
        script.open.shutdown().await;
    } else {
        let all = async {
            while let Some(ended) = script.open.join_next().await {
                if let Ok(Some((number, answered))) = ended {
                    orders[number] = Some(answered);
                }
            }
        };
        // The result of an order whose client never finishes is not known.
        let _ = tokio::time::timeout(LONGEST_END, all).await;
    }
    contender.finish().await;
    while !cut_short && arena.sandbox.state().pending_orders > 0 {
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    watcher.abort();
    live.in_doubt(contender.in_doubt());
    Session {
        orders,
        calls: script.calls,
        truth: arena.sandbox.state(),
        start: started,
        end: arena.now(),
        cut_short,
        left_in_doubt: contender.in_doubt(),
    }
}

async fn watch_doubt<C: Contender>(contender: Arc<C>, live: Arc<Live>) {
    loop {
        live.in_doubt(contender.in_doubt());
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}

/// Plays the scenario's events to the client.
struct Script<C> {
    contender: Arc<C>,
    orders: Vec<OrderRequest>,
    /// The ids of placed orders, for cancels.
    known: Arc<Mutex<HashMap<usize, String>>>,
    live: Arc<Live>,
    calls: Vec<Call>,
    open: JoinSet<Option<(usize, Answered)>>,
}

impl<C: Contender> Script<C> {
    async fn play(&mut self, arena: &Arena, events: &[Event], mut start: Instant) {
        for event in events {
            tokio::time::sleep_until(start + event.at).await;
            match event.action {
                Action::Place(number) => self.place(arena, number),
                Action::Cancel(number) => self.cancel(arena, number),
                Action::Poll => self.poll(arena),
                Action::Revoke => start += self.revoke(arena).await,
            }
        }
    }

    fn place(&mut self, arena: &Arena, number: usize) {
        let name = Scenario::intent(number);
        self.note(arena, &name, Lane::Trading);
        self.live.asked();
        let (contender, live, known) = (self.contender.clone(), self.live.clone(), self.known.clone());
        let order = self.orders[number].clone();
        let sandbox = arena.sandbox.clone();
        self.open.spawn(async move {
            let told = contender.place(&name, &order).await;
            live.ended(matches!(told, Told::Placed { .. }));
            if let Told::Placed { order_id, .. } = &told {
                known.lock().insert(number, order_id.clone());
            }
            Some((number, Answered { at: sandbox.now(), told }))
        });
    }

    fn cancel(&mut self, arena: &Arena, number: usize) {
        // An order without a known id cannot be cancelled.
        let Some(order_id) = self.known.lock().get(&number).cloned() else { return };
        let name = format!("cancel-{:04}", number + 1);
        self.note(arena, &name, Lane::Critical);
        let contender = self.contender.clone();
        self.open.spawn(async move {
            contender.cancel(&name, &order_id).await;
            None
        });
    }

    fn poll(&mut self, arena: &Arena) {
        let name = format!("poll-{:04}", self.calls.len());
        self.note(arena, &name, Lane::Normal);
        let contender = self.contender.clone();
        self.open.spawn(async move {
            contender.poll(&name).await;
            None
        });
    }

    /// Ends all tokens once nothing is in doubt, and returns how long that took.
    async fn revoke(&mut self, arena: &Arena) -> Duration {
        let asked = Instant::now();
        while self.contender.in_doubt() > 0 && asked.elapsed() < LONGEST_DUSK {
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        arena.sandbox.revoke(None);
        asked.elapsed()
    }

    fn note(&mut self, arena: &Arena, name: &str, lane: Lane) {
        self.calls.push(Call { name: name.to_owned(), lane, at: arena.now() });
    }
}
