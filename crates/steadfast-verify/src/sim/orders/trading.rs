//! Takes one client through one seed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use steadfast::{BoxError, dedup::OrderEvent, limit::ColdStart};
use steadfast_sandbox::{
    ArrivalTruth, ListOrder, ListScope, OldToken, OrderIds, OrderTruth, Prices, RetryAfter, Sandbox, State,
    enforce::Kind,
};
use steadfast_spec::Zone;
use tokio::{
    runtime::{Builder, Handle},
    sync::broadcast::{Receiver, error::RecvError},
    task::JoinSet,
    time::{Instant, sleep, timeout, timeout_at},
};

use crate::sim::{
    axes::{Axes, Axis},
    chooser::{Chooser, Site},
    orders::{
        callers::{Answers, ask_again, drive},
        canary::Planted,
        clocks::Clocks,
        counts::Counts,
        crash::{self, Crash, MemoryJournal},
        foreign, invariants,
        ours::{Choices, Ours},
        reading::Reading,
        remarks,
        rivals::{Policy, Rival},
        session::{Session, flagged},
        workload::Workload,
        world::{Expected, World},
    },
    wire::{Ending, Lateness, Weather, Wire},
};

/// The client that trades.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    Ours,
    Rival(Policy),
}

/// The longest that the gateway works on an abandoned request.
const GATEWAY_TIMEOUT: Duration = Duration::from_secs(30);
/// The time after the end of the faults in which all doubt must end.
pub(crate) const LONGEST_DOUBT: Duration = Duration::from_secs(600);

/// The time after which the reads for given-up orders have happened, so late that no request can be on its way any
/// more.
const LAST_OF_THE_LATE: Duration = Duration::from_secs(300);

/// By then the trading day is over, and with it the client's search for late orders.
const AFTERMATH: Duration = Duration::from_secs(13 * 3_600);

/// Takes a client through one seed, on a runtime of its own.
///
/// # Errors
///
/// The error of setting up the simulation.
pub(crate) fn run(
    chooser: &Arc<Chooser>,
    world: &World,
    workload: &Workload,
    client: Client,
) -> Result<Session, BoxError> {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build()?;
    runtime.block_on(async {
        let session = trade(chooser, world, workload, client).await?;
        if !world.aftermath {
            return Ok(session);
        }
        sleep(AFTERMATH).await;
        Ok(Session { tasks: Handle::current().metrics().num_alive_tasks(), ..session })
    })
}

async fn trade(
    chooser: &Arc<Chooser>,
    world: &World,
    workload: &Workload,
    client: Client,
) -> Result<Session, BoxError> {
    // Without this choice on a tape the client logs in, to which every fault is fair.
    let given = workload.token_dies.is_none() && chooser.weigh(Site::new("token.given"), &[0, 1]) == 1;
    let logs_in = !given && client == Client::Ours;
    let lateness = Lateness { bound: world.lateness, gateway: GATEWAY_TIMEOUT };
    let patience = [30, 10, 5][chooser.weigh(Site::new("attempt.timeout"), &[70, 20, 10]) as usize];
    let patience = Duration::from_secs(patience);
    let mut weather = Weather::of(chooser, lateness, patience, logs_in, world.axes);
    if world.orderly_close {
        weather.ending = weather.ending.orderly();
    }
    let ending = weather.ending;
    if world.expected == Expected::Later {
        weather.list_terms_as_they_are();
    }
    if world.plain {
        weather.spare_what_could_be_resolved();
    }
    let clocks = Clocks::of(chooser, world.axes);
    let clock = clocks.wall.clone();
    if clocks.is_wrong() {
        weather.list_all_orders();
    }
    let scope = scope(chooser, world.expected, logs_in);
    if scope == ListScope::LoginSession {
        weather.list_sessions_apart();
    }
    let strict = world.is_strict() || client != Client::Ours;
    let reading = if strict { Reading::default() } else { Reading::of(chooser, weather.list_lag) };
    let mut reading = reading;
    reading.axes.remarks = remarks::shown(chooser, world.axes, world.echo);
    if reading.axes.order_ids != OrderIds::default() {
        weather.list_ids_as_they_are();
    }
    let sandbox = sandbox(chooser, &weather, scope, reading, &clocks.gateway, world.axes)?;
    let wire = Wire::new(sandbox.clone(), clocks.boot.clone(), chooser.clone(), weather);
    let session = match client {
        Client::Rival(policy) => {
            let rival = Arc::new(Rival::new(policy, &sandbox, &wire)?);
            let told = Answers::of(workload);
            drive(rival, workload, Instant::now(), &told, None).await;
            let (begun, told) = told.take();
            sleep(world.lateness + GATEWAY_TIMEOUT).await;
            Session {
                told,
                begun,
                truth: sandbox.state(),
                seen: wire.seen(),
                flagged: BTreeSet::new(),
                events: Vec::new(),
                left_in_doubt: 0,
                crash: None,
                written: Counts::default(),
                foreign: BTreeMap::new(),
                ending: Ending::default(),
                counts_as_documented: true,
                hides_prices: false,
                hidden: BTreeSet::new(),
                violations: Vec::new(),
                tasks: 0,
            }
        }
        Client::Ours => {
            let dies = world.dies(chooser);
            let journal = (dies || world.writes(chooser)).then(MemoryJournal::default);
            let (mut written, foreign) = (journal.clone(), foreign::Orders::default());
            let settings = world.settings.clone().boot_clock(clocks.boot.clone());
            let settings = if world.traced { settings.traced() } else { settings };
            let mut histories = Vec::new();
            let choices = |journal, cold_start| Choices {
                settings: remarks::tagged(chooser, world.axes, settings.clone()),
                boot: clocks.boot.clone(),
                attempt_timeout: patience,
                logs_in,
                medium: world.medium,
                journal,
                cold_start,
                axes: world.axes,
            };
            let mut ours =
                Arc::new(Ours::new(&sandbox, &wire, choices(journal.clone(), ColdStart::Auto), &clock)?);
            let events = Arc::new(Mutex::new(Vec::new()));
            let mut listeners = JoinSet::new();
            listeners.spawn(listen(ours.tracker().events(), events.clone()));
            let suspended = tokio::spawn(clocks.clone().suspend(sandbox.clone()));
            let death = workload.token_dies.map(|at| tokio::spawn(kill_tokens(sandbox.clone(), at)));
            let (start, told, mut crash) = (Instant::now(), Answers::of(workload), None);
            let others =
                world.meets_others().then(|| foreign.place(chooser, &sandbox, workload, start, world));
            let repeated_on = world.axes.has(Axis::Repeats).then_some(&clocks);
            let planted = |ours: &Arc<Ours>| Arc::new(Planted::new(ours.clone(), world.canary));
            if let Some(journal) = journal.filter(|_| dies) {
                let (at, down) = crash::moments(chooser, start, workload.wanted.len());
                if timeout_at(at, drive(planted(&ours), workload, start, &told, repeated_on)).await.is_err() {
                    let (end, stood) = wire.cut();
                    // The process did not reach its end.
                    histories.extend(world.traced.then(|| invariants::history(&ours, &settings, usize::MAX)));
                    let left = told.untold(workload, &stood);
                    let journal = journal.crash(chooser);
                    written = Some(journal.clone());
                    sleep(down).await;
                    let cold_start = crash::cold_start(chooser);
                    let starts_empty = cold_start == ColdStart::Auto;
                    ours = Arc::new(Ours::new(&sandbox, &end, choices(Some(journal), cold_start), &clock)?);
                    listeners.spawn(listen(ours.tracker().events(), events.clone()));
                    let (before, _) = wire.sends();
                    let recovered = ours.recover().await;
                    let (after, _) = wire.sends();
                    let reported = recovered.iter().map(|(number, _)| *number).collect();
                    crash = Some(Crash::of(&left, &reported, after - before, starts_empty));
                    told.inherit(workload, recovered);
                    if !clocks.do_names_hold() {
                        told.go();
                    }
                }
            }
            drive(planted(&ours), workload, start, &told, repeated_on).await;
            let (_, sent_again) = wire.sends();
            let crash = crash.map(|crash| crash.then_sent(sent_again));
            if world.axes.has(Axis::WallClock) {
                ask_again(&ours, workload, &told, &clocks).await;
            }
            let (begun, told) = told.take();
            suspended.abort();
            if let Some(death) = death {
                death.abort();
            }
            drop(others);
            // The second phase: no more faults, and everything must end.
            wire.heal();
            let drained = timeout(LONGEST_DOUBT, ours.tracker().shutdown()).await.is_ok();
            let left_in_doubt = ours.tracker().in_doubt() + usize::from(!drained);
            sleep(world.watched).await;
            if !ending.is_promised() {
                // A request that arrives up to two minutes after its order was given up is shown by the read five
                // minutes after that.
                sleep(LAST_OF_THE_LATE).await;
            }
            let truth = sandbox.state();
            let seen = wire.seen();
            histories.extend(world.traced.then(|| invariants::history(&ours, &settings, left_in_doubt)));
            drop(listeners);
            let events = std::mem::take(&mut *events.lock().unwrap_or_else(PoisonError::into_inner));
            let flagged = events.iter().flat_map(flagged).collect();
            Session {
                told,
                begun,
                truth,
                violations: invariants::violations(histories, &seen),
                seen,
                flagged,
                events,
                left_in_doubt,
                crash,
                written: written.map(|journal| journal.counts()).unwrap_or_default(),
                foreign: foreign.take(),
                ending: Ending::default(),
                counts_as_documented: true,
                hides_prices: false,
                hidden: BTreeSet::new(),
                tasks: 0,
            }
        }
    };
    let counts_as_documented = reading.axes.counts_as_documented() && !world.axes.has(Axis::Quotas);
    let hides_prices = reading.axes.prices != Prices::default()
        || session.seen.struck.iter().any(|(name, _)| *name == "list.missing-price");
    let session = Session { ending, counts_as_documented, hides_prices, ..session };
    if !session.ending.is_promised() {
        let hidden = hidden(&session.truth, scope, reading.axes.old_token);
        return Ok(Session { hidden, ..session });
    }
    Ok(session)
}

/// Returns the orders that no list has shown although lists were asked for.
///
/// Where lists show one session's orders, no client can see an order of a session that is over before the next list: a
/// login has ended it, or its token died and a login followed. Nor can one while lists are refused, because the token died
/// and no login is due.
fn hidden(truth: &State, scope: ListScope, old_token: OldToken) -> BTreeSet<String> {
    let is_login = |it: &ArrivalTruth| it.path.contains("/oauth/") && it.status == 200;
    let asks = |it: &ArrivalTruth| it.path.ends_with("/oms/orders");
    let is_hidden = |order: &&OrderTruth| {
        let mut is_dead = old_token == OldToken::Dies;
        let mut is_refused = false;
        for it in truth.arrivals.iter().filter(|arrival| arrival.at_ns >= order.applied_ns) {
            match it.status {
                200 | 404 if asks(it) => return false,
                401 if asks(it) => (is_dead, is_refused) = (true, true),
                _ if is_login(it) && is_dead && scope == ListScope::LoginSession => return true,
                _ => {}
            }
        }
        is_refused
    };
    truth.orders.iter().filter(is_hidden).map(|order| order.order_id.clone()).collect()
}

fn sandbox(
    chooser: &Chooser,
    weather: &Weather,
    scope: ListScope,
    reading: Reading,
    clock: &steadfast_call::WallClock,
    axes: Axes,
) -> Result<Sandbox, BoxError> {
    let choose = |what, weights: &[u32]| chooser.weigh(Site::new(what), weights) as usize;
    let timeout = [200, 1_000, 5_000, 29_000][choose("gateway.timeout", &[60, 20, 15, 5])];
    let orders = [ListOrder::OldestFirst, ListOrder::NewestFirst, ListOrder::Shuffled];
    let waits = [RetryAfter::Absent, RetryAfter::Seconds, RetryAfter::Absurd, RetryAfter::Garbage];
    let mut builder = Sandbox::builder();
    if axes.has(Axis::Quotas) {
        builder = match choose("axis.quotas", &[25, 40, 35]) {
            0 => builder,
            1 => builder.counted_after_answer(Duration::from_millis(100)),
            _ => builder.enforcer(Zone::PLACE_ORDER, Kind::LeakyBucket { burst: 0 }),
        };
    }
    if axes.has(Axis::CachedLists) {
        let age = 1 + chooser.choose(Site::new("list.cached-for"), 90);
        builder = builder.cached_for(Duration::from_secs(u64::from(age)));
    }
    let sandbox = builder
        .seed(u64::from(chooser.choose(Site::new("sandbox.seed"), 65_536)))
        .wall_clock(clock.now())
        .gateway_timeout(Duration::from_millis(timeout))
        .interpretation(reading.axes)
        // An order that is listed late, in an old list, must still be listed within the bound.
        .stale_by(weather.list_lag.saturating_sub(reading.visible_after))
        .list_scope(scope)
        .list_order(orders[choose("list.order", &[60, 25, 15])])
        .retry_after(waits[choose("retry-after", &[55, 30, 10, 5])])
        .build()?;
    Ok(sandbox)
}

/// Chooses which orders the list holds. An order that a dead session has placed later than assumed shows only in a list
/// of all the user's orders.
fn scope(chooser: &Chooser, expected: Expected, logs_in: bool) -> ListScope {
    match chooser.weigh(Site::new("list.scope"), &[60, 40]) {
        0 if !(logs_in && expected == Expected::Later) => ListScope::LoginSession,
        _ => ListScope::User,
    }
}

async fn kill_tokens(sandbox: Sandbox, at: Duration) {
    sleep(at).await;
    sandbox.revoke(None);
}

/// Collects the tracker's reports.
pub(crate) async fn listen(mut events: Receiver<OrderEvent>, heard: Arc<Mutex<Vec<OrderEvent>>>) {
    loop {
        match events.recv().await {
            Ok(event) => heard.lock().unwrap_or_else(PoisonError::into_inner).push(event),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}
