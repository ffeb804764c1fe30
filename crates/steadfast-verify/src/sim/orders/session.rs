use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use steadfast::{
    BoxError,
    dedup::{OrderEvent, Settings},
    limit::ColdStart,
};
use steadfast_sandbox::{ListOrder, ListScope, OrderIds, Prices, RetryAfter, Sandbox, State, enforce::Kind};
use steadfast_spec::Zone;
use tokio::{
    runtime::{Builder, Handle},
    sync::broadcast::{Receiver, error::RecvError},
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout, timeout_at},
};

use crate::sim::{
    axes::{Axes, Axis},
    chooser::{Chooser, Site},
    orders::{
        canary::{Canary, Planted},
        clocks::Clocks,
        counts::Counts,
        crash::{self, Crash, MemoryJournal},
        foreign,
        invariants::{self, Violation},
        oracle::Expected,
        ours::{Choices, Medium, Ours},
        reading::Reading,
        rivals::{Policy, Rival},
        trader::{Told, Trader},
        workload::{Shape, Wanted, Workload},
    },
    wire::{Ending, Lateness, Seen, Weather, Wire},
};

/// The settings of all seeds of a campaign.
#[derive(Clone, Debug)]
pub(crate) struct World {
    /// The stack's settings.
    pub(crate) settings: Settings,
    pub(crate) expected: Expected,
    pub(crate) medium: Medium,
    /// True if no event makes an order unresolvable.
    pub(crate) plain: bool,
    /// True if the stack's process dies once and another one takes its place.
    pub(crate) crashes: bool,
    /// True if tasks that outlive the client are counted at the end.
    pub(crate) aftermath: bool,
    /// True if the tracker keeps its history, and the invariants are checked over it.
    pub(crate) traced: bool,
    /// The axes that are added to the world.
    pub(crate) axes: Axes,
    /// True if connections end gracefully although the transport claims that nothing arrives afterwards.
    pub(crate) orderly_close: bool,
    /// The client's planted mistake.
    pub(crate) canary: Option<Canary>,
    /// How late an order may really be.
    pub(crate) lateness: Duration,
    /// How long the stack is watched after the faults ended.
    pub(crate) watched: Duration,
}

/// The client that trades.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    Ours,
    Rival(Policy),
}

/// The course of one client in one seed, with its gateway's ground truth.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// The results of the calls, order by order; `None` for a call that did not end.
    pub(crate) told: Vec<Option<Told>>,
    /// When the last call for each order began.
    pub(crate) begun: Vec<Option<Instant>>,
    pub(crate) truth: State,
    pub(crate) seen: Seen,
    /// The orders that the client itself has reported as excess or late.
    pub(crate) flagged: BTreeSet<String>,
    /// All other reports.
    pub(crate) events: Vec<OrderEvent>,
    /// Orders that are still in doubt after the faults ended.
    pub(crate) left_in_doubt: usize,
    /// The state of a process that died, and its successor's handling of it.
    pub(crate) crash: Option<Crash>,
    /// The records in a journal, if there was one.
    pub(crate) written: Counts,
    /// Foreign orders on the same account, with their terms.
    pub(crate) foreign: BTreeMap<String, Shape>,
    /// How the client's connections ended.
    pub(crate) ending: Ending,
    /// True if the gateway counts as documented in the table of zones.
    pub(crate) counts_as_documented: bool,
    /// True if some list hid the prices of orders.
    pub(crate) hides_prices: bool,
    /// The violations in the histories of the trackers, if they were kept.
    pub(crate) violations: Vec<Violation>,
    /// Tasks that still ran when the trading day was over and everything had been dropped.
    pub(crate) tasks: usize,
}

/// The longest that the gateway works on an abandoned request.
const GATEWAY_TIMEOUT: Duration = Duration::from_secs(30);
/// A generous limit for an order's call.
const LONGEST_CALL: Duration = Duration::from_secs(400);
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
        let mut session = trade(chooser, world, workload, client).await?;
        if world.aftermath {
            sleep(AFTERMATH).await;
            session.tasks = Handle::current().metrics().num_alive_tasks();
        }
        Ok(session)
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
    if reading.axes.order_ids != OrderIds::default() {
        weather.list_ids_as_they_are();
    }
    let sandbox = sandbox(chooser, &weather, scope, reading, &clocks.gateway, world.axes)?;
    let wire = Wire::new(sandbox.clone(), chooser.clone(), weather);
    let mut session = match client {
        Client::Rival(policy) => {
            let rival = Arc::new(Rival::new(policy, &sandbox, &wire)?);
            let told = Answers::of(workload);
            drive(rival, workload, Instant::now(), &told).await;
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
                settings: settings.clone(),
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
            let others = world.meets_others().then(|| foreign.place(chooser, &sandbox, workload, start));
            let planted = |ours: &Arc<Ours>| Arc::new(Planted::new(ours.clone(), world.canary));
            if let Some(journal) = journal.filter(|_| dies) {
                let (at, down) = crash::moments(chooser, start, workload.wanted.len());
                if timeout_at(at, drive(planted(&ours), workload, start, &told)).await.is_err() {
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
                    let mut found = Crash::of(&left, &recovered.iter().map(|(number, _)| *number).collect());
                    found.sent_by_recovery = after - before;
                    found.starts_empty = starts_empty;
                    told.inherit(workload, recovered);
                    if !clocks.do_names_hold() {
                        told.go();
                    }
                    crash = Some(found);
                }
            }
            drive(planted(&ours), workload, start, &told).await;
            if let Some(crash) = &mut crash {
                (_, crash.sent_again) = wire.sends();
            }
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
                tasks: 0,
            }
        }
    };
    session.ending = ending;
    session.counts_as_documented = reading.axes.counts_as_documented() && !world.axes.has(Axis::Quotas);
    session.hides_prices = reading.axes.prices != Prices::default()
        || session.seen.struck.iter().any(|(name, _)| *name == "list.missing-price");
    Ok(session)
}

impl World {
    /// True if, beside the faults on the wire, only events that keep an order resolvable may happen.
    fn is_strict(&self) -> bool {
        self.plain || self.canary.is_some() || self.expected == Expected::Later
    }

    fn dies(&self, chooser: &Chooser) -> bool {
        let chosen = chooser.weigh(Site::new("crash"), &[92, 8]) == 1;
        self.crashes || (chosen && !self.is_strict())
    }

    fn writes(&self, chooser: &Chooser) -> bool {
        chooser.weigh(Site::new("journal"), &[70, 30]) == 1 && self.canary.is_none()
    }

    fn meets_others(&self) -> bool {
        !self.is_strict()
    }
}

fn sandbox(
    chooser: &Chooser,
    weather: &Weather,
    scope: ListScope,
    reading: Reading,
    clock: &steadfast_spec::WallClock,
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
        .wall_clock(clock.clone())
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

/// The results of the calls so far, order by order.
#[derive(Clone, Debug)]
pub(crate) struct Answers(Arc<Mutex<Vec<Asked>>>);

/// When an order was last asked for, and its caller's result.
#[derive(Clone, Debug, Default)]
struct Asked {
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

    pub(crate) fn take(&self) -> (Vec<Option<Instant>>, Vec<Option<Told>>) {
        std::mem::take(&mut *self.lock()).into_iter().map(|asked| (asked.begun, asked.told)).unzip()
    }

    /// Returns those of `orders` whose callers have no result yet.
    fn untold(&self, workload: &Workload, orders: &BTreeSet<u64>) -> BTreeSet<u64> {
        let asked = self.lock();
        let untold = workload.wanted.iter().zip(&*asked).filter(|(_, asked)| asked.told.is_none());
        untold.map(|(wanted, _)| wanted.number).filter(|number| orders.contains(number)).collect()
    }

    /// Replaces results by what a process found out about its predecessor's orders. A result of the dead process may be
    /// outdated: its record may be lost with the process, and twins then change places.
    fn inherit(&self, workload: &Workload, recovered: Vec<(u64, Told)>) {
        let recovered: BTreeMap<u64, Told> = recovered.into_iter().collect();
        for (wanted, asked) in workload.wanted.iter().zip(&mut *self.lock()) {
            if let Some(found) = recovered.get(&wanted.number) {
                asked.told = Some(found.clone());
            }
        }
    }

    /// Ends open calls without a result, because on another day a name means another order. Their orders go by what was
    /// recovered.
    fn go(&self) {
        let begun = |asked: &&mut Asked| asked.begun.is_some() && asked.told.is_none();
        self.lock().iter_mut().filter(begun).for_each(|asked| asked.told = Some(Told::Gone));
    }
}

/// Runs every caller; each asks for its orders without a result, one after the other.
pub(crate) async fn drive<T: Trader>(trader: Arc<T>, workload: &Workload, start: Instant, answers: &Answers) {
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
        let (trader, answers) = (trader.clone(), answers.clone());
        callers.spawn(async move {
            for (index, wanted) in orders {
                sleep_until(start + wanted.at).await;
                answers.lock()[index].begun = Some(Instant::now());
                let patience = wanted.patience.unwrap_or(LONGEST_CALL);
                let answer = match timeout(patience, trader.place(&wanted)).await {
                    Ok(answer) => Some(answer),
                    Err(_) => wanted.patience.map(|_| Told::Gone),
                };
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

/// Asks once more for every order that has a name and was placed. On the same day nothing may be sent for it.
async fn ask_again(trader: &Ours, workload: &Workload, answers: &Answers, clocks: &Clocks) {
    let asked = answers.lock().clone();
    for (wanted, asked) in workload.wanted.iter().zip(asked) {
        // An order that is in doubt again may make the call wait until the day is over.
        if clocks.is_first_day() && trader.names(wanted) && matches!(asked.told, Some(Told::Placed(_))) {
            drop(timeout(LONGEST_CALL, trader.place(wanted)).await);
        }
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

/// Returns the orders that an event reports as late or excess. An unresolved order is reported with all its candidates,
/// of which at most one is its own.
pub(crate) fn flagged(event: &OrderEvent) -> Vec<String> {
    match event {
        OrderEvent::LateDuplicate { order_id, .. }
        | OrderEvent::RefusedButPlaced { order_id, .. }
        | OrderEvent::Excess { order_id, .. } => vec![order_id.clone()],
        OrderEvent::Unresolved { unresolved, .. } => unresolved.candidates.iter().skip(1).cloned().collect(),
        _ => Vec::new(),
    }
}
