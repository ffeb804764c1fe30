use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use steadfast::{
    BoxError,
    dedup::{OrderEvent, Settings},
};
use steadfast_sandbox::{ListOrder, ListScope, RetryAfter, Sandbox, State};
use tokio::{
    runtime::Builder,
    sync::broadcast::{Receiver, error::RecvError},
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::{
    chooser::{Chooser, Site},
    orders::{
        oracle::Expected,
        ours::{Choices, Medium, Ours, wall_clock},
        rivals::{Policy, Rival},
        trader::{Told, Trader},
        workload::{Wanted, Workload},
    },
    wire::{Lateness, Seen, Weather, Wire},
};

/// What is the same for all seeds of a campaign.
#[derive(Clone, Debug)]
pub(crate) struct World {
    /// What the stack assumes.
    pub(crate) settings: Settings,
    pub(crate) expected: Expected,
    pub(crate) medium: Medium,
    /// How late an order really may be.
    pub(crate) lateness: Duration,
    /// How long the stack is watched after all is healed.
    pub(crate) watched: Duration,
}

/// Who trades.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    Ours,
    Rival(Policy),
}

/// What one client did in one seed, and what its gateway knows.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// What the callers were told, order by order; `None` for a call that did not end.
    pub(crate) told: Vec<Option<Told>>,
    pub(crate) truth: State,
    pub(crate) seen: Seen,
    /// The orders that the client itself has reported as too many or too late.
    pub(crate) flagged: BTreeSet<String>,
    /// Whatever else it has reported.
    pub(crate) events: Vec<OrderEvent>,
    /// Orders that are still in doubt after all was healed.
    pub(crate) left_in_doubt: usize,
}

/// The longest that the gateway works on a request that nobody waits for any more.
const GATEWAY_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest that an order's call may take, and then some.
const LONGEST_CALL: Duration = Duration::from_secs(400);
/// Within this time of the healing nothing may be in doubt any more.
const LONGEST_DOUBT: Duration = Duration::from_secs(600);

/// Takes a client through one seed, on a runtime of its own.
///
/// # Errors
///
/// What keeps the simulation itself from being set up.
pub(crate) fn run(
    chooser: &Arc<Chooser>,
    world: &World,
    workload: &Workload,
    client: Client,
) -> Result<Session, BoxError> {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build()?;
    runtime.block_on(trade(chooser, world, workload, client))
}

async fn trade(
    chooser: &Arc<Chooser>,
    world: &World,
    workload: &Workload,
    client: Client,
) -> Result<Session, BoxError> {
    let logs_in = workload.token_dies.is_some() && client == Client::Ours;
    let lateness = Lateness { bound: world.lateness, gateway: GATEWAY_TIMEOUT };
    let patience = [30, 10, 5][chooser.weigh(Site::new("attempt.timeout"), &[70, 20, 10]) as usize];
    let patience = Duration::from_secs(patience);
    let mut weather = Weather::of(chooser, lateness, patience, logs_in);
    if world.expected == Expected::Later {
        weather.list_terms_as_they_are();
    }
    let clock = wall_clock();
    let scope = scope(chooser, world.expected, logs_in);
    let sandbox = sandbox(chooser, &weather, scope, &clock)?;
    let wire = Wire::new(sandbox.clone(), chooser.clone(), weather);
    let session = match client {
        Client::Rival(policy) => {
            let rival = Arc::new(Rival::new(policy, &sandbox, &wire)?);
            let told = drive(rival, workload).await;
            sleep(world.lateness + GATEWAY_TIMEOUT).await;
            Session {
                told,
                truth: sandbox.state(),
                seen: wire.seen(),
                flagged: BTreeSet::new(),
                events: Vec::new(),
                left_in_doubt: 0,
            }
        }
        Client::Ours => {
            let choices = Choices {
                settings: world.settings.clone(),
                attempt_timeout: patience,
                logs_in,
                medium: world.medium,
            };
            let ours = Arc::new(Ours::new(&sandbox, &wire, choices, &clock)?);
            let events = Arc::new(Mutex::new(Vec::new()));
            let listener = tokio::spawn(listen(ours.ledger().events(), events.clone()));
            let death = workload.token_dies.map(|at| tokio::spawn(kill_tokens(sandbox.clone(), at)));
            let told = drive(ours.clone(), workload).await;
            if let Some(death) = death {
                death.abort();
            }
            // The second phase: nothing goes wrong any more, and all must come to an end.
            wire.heal();
            let drained = timeout(LONGEST_DOUBT, ours.ledger().shutdown()).await.is_ok();
            let left_in_doubt = ours.ledger().in_doubt() + usize::from(!drained);
            sleep(world.watched).await;
            let truth = sandbox.state();
            listener.abort();
            let events = std::mem::take(&mut *events.lock().unwrap_or_else(PoisonError::into_inner));
            let flagged = events.iter().filter_map(flagged).collect();
            Session { told, truth, seen: wire.seen(), flagged, events, left_in_doubt }
        }
    };
    Ok(session)
}

fn sandbox(
    chooser: &Chooser,
    weather: &Weather,
    scope: ListScope,
    clock: &steadfast_spec::WallClock,
) -> Result<Sandbox, BoxError> {
    let choose = |what, weights: &[u32]| chooser.weigh(Site::new(what), weights) as usize;
    let timeout = [200, 1_000, 5_000, 29_000][choose("gateway.timeout", &[60, 20, 15, 5])];
    let orders = [ListOrder::OldestFirst, ListOrder::NewestFirst, ListOrder::Shuffled];
    let waits = [RetryAfter::Absent, RetryAfter::Seconds, RetryAfter::Absurd];
    let sandbox = Sandbox::builder()
        .seed(u64::from(chooser.choose(Site::new("sandbox.seed"), 65_536)))
        .wall_clock(clock.clone())
        .gateway_timeout(Duration::from_millis(timeout))
        .stale_by(weather.list_lag)
        .list_scope(scope)
        .list_order(orders[choose("list.order", &[60, 25, 15])])
        .retry_after(waits[choose("retry-after", &[60, 30, 10])])
        .build()?;
    Ok(sandbox)
}

/// Which orders the list holds. What a dead session has placed later than anybody assumes, only a list of all the
/// user's orders can show.
fn scope(chooser: &Chooser, expected: Expected, logs_in: bool) -> ListScope {
    match chooser.weigh(Site::new("list.scope"), &[60, 40]) {
        0 if !(logs_in && expected == Expected::Later) => ListScope::LoginSession,
        _ => ListScope::User,
    }
}

/// Lets every caller ask for its orders, one after the other.
async fn drive<T: Trader>(trader: Arc<T>, workload: &Workload) -> Vec<Option<Told>> {
    let start = Instant::now();
    let mut callers = JoinSet::new();
    for caller in 0..workload.callers {
        let orders: Vec<(usize, Wanted)> = (0..)
            .zip(&workload.wanted)
            .filter(|(_, wanted)| wanted.caller == caller)
            .map(|(index, wanted)| (index, wanted.clone()))
            .collect();
        if orders.is_empty() {
            continue;
        }
        let trader = trader.clone();
        callers.spawn(async move {
            let mut told = Vec::with_capacity(orders.len());
            for (index, wanted) in orders {
                sleep_until(start + wanted.at).await;
                let patience = wanted.patience.unwrap_or(LONGEST_CALL);
                let answer = match timeout(patience, trader.place(&wanted)).await {
                    Ok(answer) => Some(answer),
                    Err(_) => wanted.patience.map(|_| Told::Gone),
                };
                if let (Some(Told::Placed(order_id)), true) = (&answer, wanted.cancelled) {
                    drop(timeout(LONGEST_CALL, trader.cancel(order_id)).await);
                }
                told.push((index, answer));
            }
            told
        });
    }
    let mut all = vec![None; workload.wanted.len()];
    while let Some(told) = callers.join_next().await {
        for (index, answer) in told.unwrap_or_default() {
            all[index] = answer;
        }
    }
    all
}

async fn kill_tokens(sandbox: Sandbox, at: Duration) {
    sleep(at).await;
    sandbox.revoke(None);
}

/// Collects what the ledger reports.
async fn listen(mut events: Receiver<OrderEvent>, heard: Arc<Mutex<Vec<OrderEvent>>>) {
    loop {
        match events.recv().await {
            Ok(event) => heard.lock().unwrap_or_else(PoisonError::into_inner).push(event),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}

/// The order that an event reports as late or too many.
fn flagged(event: &OrderEvent) -> Option<String> {
    match event {
        OrderEvent::LateDuplicate { order_id, .. } | OrderEvent::Excess { order_id, .. } => {
            Some(order_id.clone())
        }
        _ => None,
    }
}
