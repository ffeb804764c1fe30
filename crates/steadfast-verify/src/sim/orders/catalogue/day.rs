//! A short trading day on which one fault strikes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use steadfast::{BoxError, call::BootClock, limit::ColdStart};
use steadfast_sandbox::{Fault, FaultEntry, Sandbox};
use tokio::{
    runtime::Builder,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use crate::sim::{
    chooser::Chooser,
    orders::{
        callers::{Answers, drive},
        clocks::wall_clock,
        counts::Counts,
        oracle::Judgement,
        ours::{Choices, Medium, Ours},
        session::{Session, flagged},
        trading::{LONGEST_DOUBT, listen},
        workload::{Shape, Workload},
        world::World,
    },
    wire::{Ending, Seen},
};

/// The result of a day.
#[derive(Clone, Debug)]
pub(crate) struct Day {
    /// How often the fault struck.
    pub(crate) struck: u64,
    pub(crate) judgement: Judgement,
    /// The promises that were broken, and how often.
    pub(crate) broken: Vec<(&'static str, u64)>,
}

/// Orders that are placed before the fault, so that the list is not empty.
const EARLY: usize = 4;
/// Orders that the fault may strike.
const LATER: usize = 10;
/// By then acknowledged orders must be listed, and the client knows it.
const NOON: Duration = Duration::from_secs(25);
/// How often a fault strikes in a row. With more, a client could only give up.
const TIMES: u32 = 3;

/// Takes the stack through the day that `seed` draws, over connections of real bytes.
///
/// # Errors
///
/// The error of setting up the simulation.
pub(crate) fn day(fault: Fault, seed: u64, world: &World) -> Result<Day, BoxError> {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?
        .block_on(trade(fault, seed, world))
}

async fn trade(fault: Fault, seed: u64, world: &World) -> Result<Day, BoxError> {
    let (clock, chooser) = (wall_clock(), Chooser::rng(seed).fixing(&[("orders.many", None, 0)]));
    let (morning, afternoon) = workloads(&chooser);
    let sandbox = Sandbox::builder()
        .seed(seed)
        .wall_clock(clock.now())
        .gateway_timeout(Duration::from_millis(200))
        .late_by(Duration::from_secs(1), Duration::from_secs(10))
        .stale_by(Duration::from_secs(1))
        .build()?;
    let choices = Choices {
        settings: world.settings.clone(),
        // No machine is suspended here, and no clock is set.
        boot: BootClock::new(|| None),
        attempt_timeout: Duration::from_secs(10),
        logs_in: true,
        medium: Medium::Direct,
        journal: None,
        cold_start: ColdStart::Auto,
        axes: world.axes,
    };
    let ours = Arc::new(Ours::over_lines(&sandbox, choices, &clock)?);
    let events = Arc::new(Mutex::new(Vec::new()));
    let mut listeners = JoinSet::new();
    listeners.spawn(listen(ours.tracker().events(), events.clone()));

    let told = Answers::of(&morning);
    drive(ours.clone(), &morning, Instant::now(), &told, None).await;
    let (mut begun, mut answers) = told.take();
    sleep(NOON).await;
    inject(&sandbox, fault)?;
    let told = Answers::of(&afternoon);
    drive(ours.clone(), &afternoon, Instant::now(), &told, None).await;
    let (later, more) = told.take();
    begun.extend(later);
    answers.extend(more);

    let struck = sandbox.fault_counts().get(fault.as_str()).copied().unwrap_or_default();
    sandbox.heal();
    let drained = timeout(LONGEST_DOUBT, ours.tracker().shutdown()).await.is_ok();
    let left_in_doubt = ours.tracker().in_doubt() + usize::from(!drained);
    sleep(world.watched).await;
    let truth = sandbox.state();
    drop(listeners);
    let events = std::mem::take(&mut *events.lock().unwrap_or_else(PoisonError::into_inner));
    let session = Session {
        told: answers,
        begun,
        truth,
        seen: Seen { struck: vec![(fault.as_str(), struck)], ..Seen::default() },
        flagged: events.iter().flat_map(flagged).collect::<BTreeSet<_>>(),
        events,
        left_in_doubt,
        crash: None,
        written: Counts::default(),
        foreign: BTreeMap::new(),
        ending: Ending::default(),
        counts_as_documented: fault.group() != "quota",
        hides_prices: false,
        hidden: BTreeSet::new(),
        violations: Vec::new(),
        tasks: 0,
    };
    let mut wanted = morning;
    wanted.wanted.extend(afternoon.wanted);
    let judgement = Judgement::of(&wanted, &session);
    let mut broken = judgement.broken(world);
    if judgement.unflagged > 0 {
        broken.push(("unflagged", judgement.unflagged));
    }
    Ok(Day { struck, judgement, broken })
}

/// Returns the orders before and after noon.
fn workloads(chooser: &Chooser) -> (Workload, Workload) {
    let mut all = Workload::of(chooser);
    all.token_dies = None;
    all.callers = all.callers.min(5);
    all.wanted.truncate(EARLY + LATER);
    for (index, wanted) in all.wanted.iter_mut().enumerate() {
        wanted.patience = None;
        wanted.caller %= all.callers;
        if index < 2 {
            wanted.shape = Shape::MARKET;
        }
        if index < EARLY {
            wanted.cancelled = false;
        }
    }
    let later = all.wanted.split_off(EARLY.min(all.wanted.len()));
    let afternoon = Workload { wanted: later, ..all.clone() };
    (all, afternoon)
}

/// Injects the fault, and further ones that make the client meet it.
fn inject(sandbox: &Sandbox, fault: Fault) -> Result<(), BoxError> {
    let mut entries = vec![entry(fault.as_str(), Some(TIMES))];
    match fault.group() {
        "list" => {
            entries[0].endpoint = Some("orders".to_owned());
            if WRITTEN.contains(&fault) {
                entries[0].times = None;
            }
            // A client without doubt requests no list.
            entries.push(entry("placement.504-applied", Some(TIMES)));
        }
        "placement" if fault == Fault::PlacementDoubleForward => {
            // A client that reads the list reports excess orders in it.
            let mut doubt = entry("placement.504-applied", None);
            doubt.nth = Some(TIMES + 1);
            entries.push(doubt);
        }
        "answer" | "transport" => entries[0].endpoint = Some("place-order".to_owned()),
        _ => {}
    }
    for entry in entries {
        sandbox.inject(entry)?;
    }
    if fault.group() == "auth" {
        // The next request needs a login.
        sandbox.revoke(None);
    }
    Ok(())
}

/// Ways of writing a list; a service has one and keeps to it.
const WRITTEN: [Fault; 7] = [
    Fault::ListDuplicatedIds,
    Fault::ListNumericIds,
    Fault::ListUnknownEnums,
    Fault::ListMissingLegType,
    Fault::ListMissingPrice,
    Fault::ListPricesReformatted,
    Fault::ListMarketAsLimit,
];

fn entry(name: &str, times: Option<u32>) -> FaultEntry {
    let mut entry = FaultEntry::default();
    entry.name = name.to_owned();
    entry.times = times;
    entry
}
