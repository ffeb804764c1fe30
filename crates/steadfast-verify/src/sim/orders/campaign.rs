use std::{
    ops::Range,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use steadfast::{BoxError, dedup::Settings};
use steadfast_sandbox::State;
use steadfast_spec::Zone;
use tokio::time::Instant;

use crate::probes::{accountings, densest_window};
use crate::sim::{
    chooser::{Chooser, Fixed},
    orders::{
        canary::Canary,
        counts::Counts,
        invariants,
        oracle::Judgement,
        outcome::{Failure, Outcome},
        policy,
        rivals::Policy,
        session::Session,
        state::Run,
        trader::Told,
        trading::{self, Client},
        workload::Workload,
        world::{Expected, World},
    },
};

/// The choices of `--few`: three orders, each of another caller and equal to the one before.
pub(crate) const FEW: [Fixed; 5] = [
    ("orders.many", None, 3),
    ("orders", None, 2),
    ("callers.many", None, 1),
    ("callers", None, 2),
    ("order.twin", None, 1),
];

/// The world, the seeds and the limits of a campaign.
#[derive(Clone, Debug)]
pub(crate) struct Campaign {
    pub(crate) world: World,
    pub(crate) seeds: Range<u64>,
    /// No new seed is begun after this many orders.
    pub(crate) orders: u64,
    /// No new seed is begun after this time, in real time.
    pub(crate) time: Option<Duration>,
    /// The rivals also trade one seed in this many; 0 for none.
    pub(crate) rivals_every: u64,
    /// In one seed in this many the tracker keeps its history, and the invariants are checked over it; 0 for none.
    pub(crate) trace_every: u64,
    /// It ends after this many failures.
    pub(crate) most_failures: usize,
    /// The names of sites that are not left to chance.
    pub(crate) without: Vec<String>,
    /// The fixed choices in their place.
    pub(crate) fixed: Vec<Fixed>,
}

/// One seed in this many is run twice, and its windows are recounted.
const CHECKED_EVERY: u64 = 100;
/// Each canary must show within this many seeds, whichever seeds are run.
const CANARY_SEEDS: u64 = 40;
/// A campaign ends after this many failures: the first is shrunk, the rest are counted.
pub(crate) const MOST_FAILURES: usize = 20;
/// How often progress is saved; a killed campaign loses what it did since.
const KEPT_EVERY: Duration = Duration::from_secs(5);

impl Campaign {
    /// Creates an endless campaign.
    pub(crate) fn endless(settings: Settings, expected: Expected) -> Self {
        Self {
            world: World::of(settings, expected),
            seeds: 0..u64::MAX,
            orders: u64::MAX,
            time: None,
            rivals_every: 0,
            trace_every: 1,
            most_failures: MOST_FAILURES,
            without: Vec::new(),
            // A late order must be noticed without any caller's own read of the list.
            fixed: if expected == Expected::Later { vec![("order.looks", None, 0)] } else { Vec::new() },
        }
    }

    /// Continues `run` on as many threads as there are processors. `keep` saves the progress every few seconds and at
    /// the end.
    ///
    /// # Errors
    ///
    /// The error of setting up a simulation, or of writing its state.
    pub(crate) fn run<E>(
        &self,
        run: Run,
        keep: impl FnMut(&Run) -> Result<(), E> + Send,
    ) -> Result<Run, BoxError>
    where
        E: Into<BoxError>,
    {
        let start = Instant::now();
        let (before, earlier) = (run.outcome.elapsed, run.clone());
        let next = AtomicU64::new(run.next_seed);
        let stop = AtomicBool::new(run.outcome.ours.orders >= self.orders);
        let shared = Mutex::new((run, keep, start));
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let work = || -> Result<(), BoxError> {
            loop {
                let late = self.time.is_some_and(|time| start.elapsed() >= time);
                if late || stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= self.seeds.end {
                    return Ok(());
                }
                if earlier.is_done(seed) {
                    continue;
                }
                let outcome = self.seed(seed).map_err(|error| format!("seed {seed}: {error}"))?;
                let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
                let (run, keep, kept) = &mut *shared;
                run.finish(seed, outcome);
                let failures = run.outcome.failures.len() - earlier.outcome.failures.len();
                if run.outcome.ours.orders >= self.orders || failures >= self.most_failures {
                    stop.store(true, Ordering::Relaxed);
                }
                if kept.elapsed() >= KEPT_EVERY {
                    *kept = Instant::now();
                    run.took(before + start.elapsed());
                    keep(run).map_err(Into::into)?;
                }
            }
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let ends = workers.into_iter().map(|worker| worker.join());
            ends.map(|end| end.unwrap_or_else(|_| Err("a simulation panicked".into())))
                .collect::<Result<Vec<()>, BoxError>>()
        })?;
        let (mut run, mut keep, _) = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        run.took(before + start.elapsed());
        run.sort();
        keep(&run).map_err(Into::into)?;
        Ok(run)
    }

    /// Checks that the harness notices each kind of wrong client, by the promise that it breaks.
    ///
    /// # Errors
    ///
    /// An undetected canary.
    pub(crate) fn canaries(&self) -> Result<(), BoxError> {
        for canary in Canary::ALL {
            let mut campaign = self.clone();
            campaign.world.canary = Some(canary);
            campaign.world.crashes = false;
            // Whose one of a few equal orders is cannot be told.
            campaign.fixed.retain(|choice| !FEW.contains(choice));
            let expected = match self.world.expected {
                // A client that promises to report excess orders does not promise that there are none.
                Expected::Later if matches!(canary, Canary::SendsTwice | Canary::Denies) => continue,
                _ => (0..CANARY_SEEDS).any(|seed| {
                    let replay = campaign.replay(campaign.chooser(seed));
                    replay.is_ok_and(|replay| {
                        replay.broken.iter().any(|(promise, _)| *promise == canary.breaks())
                    })
                }),
            };
            if !expected {
                return Err(format!("the harness does not notice a client that {canary:?}").into());
            }
        }
        Ok(())
    }

    /// Returns the chooser of a seed.
    pub(crate) fn chooser(&self, seed: u64) -> Chooser {
        Chooser::rng(seed).without(&self.without).fixing(&self.fixed)
    }

    /// Runs one seed with every client.
    fn seed(&self, seed: u64) -> Result<Outcome, BoxError> {
        let chooser = Arc::new(self.chooser(seed));
        let workload = Workload::of(&chooser);
        let traced = self.trace_every > 0 && seed.is_multiple_of(self.trace_every);
        let world = World { traced, ..self.world.clone() };
        let session = trading::run(&chooser, &world, &workload, Client::Ours)?;
        let ours = Judgement::of(&workload, &session);
        let mut broken = self.broken(&ours, &workload, &session);
        let checked = seed.is_multiple_of(CHECKED_EVERY);
        if checked {
            let world = World { aftermath: true, ..self.world.clone() };
            let again = trading::run(&chooser, &world, &workload, Client::Ours)?;
            if again.tasks > 0 {
                broken.push(("tasks", again.tasks as u64));
            }
            if again.seen.trace != session.seen.trace || again.told != session.told {
                broken.push(("deterministic", 1));
            }
            let overfull = if session.counts_as_documented { overfull_windows(&session.truth) } else { 0 };
            if overfull > 0 {
                broken.push(("windows", overfull));
            }
        }
        let rival = |policy| -> Result<Judgement, BoxError> {
            if self.rivals_every == 0 || !seed.is_multiple_of(self.rivals_every) {
                return Ok(Judgement::default());
            }
            let session = trading::run(&chooser, &self.world, &workload, Client::Rival(policy))?;
            Ok(Judgement::of(&workload, &session))
        };
        let Session { seen, truth, told, written, .. } = session;
        let mut reasons = Counts::default();
        for told in told.into_iter().flatten() {
            if let Told::Unresolved(reason) = told {
                reasons.add(reason, 1);
            }
        }
        Ok(Outcome {
            seeds: 1,
            naive: rival(Policy::Naive)?,
            checks_once: rival(Policy::ChecksOnce)?,
            ours,
            attempts: seen.attempts,
            attempts_in_doubt: seen.attempts_in_doubt,
            requests: truth.requests,
            cancels: truth.arrivals.iter().filter(|arrival| arrival.method == "DELETE").count() as u64,
            simulated: Duration::from_nanos(truth.now_ns),
            elapsed: Duration::ZERO,
            run_twice: u64::from(checked),
            traced: u64::from(traced),
            written,
            faults: seen.struck.into_iter().collect(),
            reasons,
            failures: Failure::of(seed, broken).into_iter().collect(),
        })
    }

    fn broken(
        &self,
        judgement: &Judgement,
        workload: &Workload,
        session: &Session,
    ) -> Vec<(&'static str, u64)> {
        let mut broken = judgement.broken(&self.world);
        broken.extend(policy::broken(&self.world, workload, session));
        broken.extend(invariants::broken(session));
        broken
    }

    /// Runs our client alone, and returns what it breaks.
    pub(crate) fn replay(&self, chooser: Chooser) -> Result<Replay, BoxError> {
        self.played(&Arc::new(chooser))
    }

    /// The same, for callers that still need the chooser.
    pub(crate) fn played(&self, chooser: &Arc<Chooser>) -> Result<Replay, BoxError> {
        let workload = Workload::of(chooser);
        let session = trading::run(chooser, &self.world, &workload, Client::Ours)?;
        let judgement = Judgement::of(&workload, &session);
        let broken = self.broken(&judgement, &workload, &session);
        Ok(Replay { workload, session, judgement, broken })
    }
}

/// A run kept for close inspection.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    pub(crate) workload: Workload,
    pub(crate) session: Session,
    pub(crate) judgement: Judgement,
    pub(crate) broken: Vec<(&'static str, u64)>,
}

/// Returns the number of windows over their limit in all zones, counted without any limiter's arithmetic.
fn overfull_windows(truth: &State) -> u64 {
    let owner = truth.arrivals.iter().find_map(|arrival| arrival.owner.clone()).unwrap_or_default();
    let zones = steadfast_spec::zones();
    let mut overfull = 0;
    for spec in zones.iter().filter(|spec| spec.zone != Zone::OTP && spec.zone != Zone::API_KEY) {
        let instants = accountings(truth, spec.zone, &owner);
        for window in &spec.windows {
            let most = densest_window(&instants, window.period());
            overfull += u64::from(most > window.limit().get() as usize);
        }
    }
    overfull
}
