use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use steadfast::BoxError;
use steadfast_sandbox::State;
use steadfast_spec::Zone;
use steadfast_testkit::{accountings, densest_window};
use tokio::time::Instant;

use crate::{
    chooser::Chooser,
    orders::{
        oracle::Judgement,
        rivals::Policy,
        session::{self, Client, Session, World},
        trader::Told,
        workload::Workload,
    },
};

/// What is run, and until when.
#[derive(Clone, Debug)]
pub(crate) struct Campaign {
    pub(crate) world: World,
    pub(crate) seeds: Range<u64>,
    /// No new seed is begun after so many orders.
    pub(crate) orders: u64,
    /// No new seed is begun after so long, in real time.
    pub(crate) time: Option<Duration>,
    /// One in so many seeds is traded by the rivals, too; 0 for none.
    pub(crate) rivals_every: u64,
    /// What is not left to chance, by the names of its sites.
    pub(crate) without: Vec<String>,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) seeds: u64,
    pub(crate) end_seed: u64,
    pub(crate) ours: Judgement,
    pub(crate) naive: Judgement,
    pub(crate) checks_once: Judgement,
    pub(crate) attempts: u64,
    pub(crate) attempts_in_doubt: u64,
    pub(crate) requests: u64,
    pub(crate) simulated: Duration,
    pub(crate) elapsed: Duration,
    pub(crate) run_twice: u64,
    /// How often each fault struck our client.
    pub(crate) faults: BTreeMap<&'static str, u64>,
    /// Why orders of our client stayed unresolved.
    pub(crate) reasons: BTreeMap<&'static str, u64>,
    /// The seeds that broke a promise, the first of them at the least.
    pub(crate) failures: Vec<Failure>,
}

/// A seed that broke a promise.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) seed: u64,
    pub(crate) broken: Vec<(&'static str, u64)>,
}

/// One seed in a hundred is run twice, and its windows are recounted.
const CHECKED_EVERY: u64 = 100;
/// After so many failures a campaign ends: the first is shrunk, the rest are counted.
const MOST_FAILURES: usize = 20;

impl Campaign {
    /// Runs all of it on as many threads as there are processors.
    ///
    /// # Errors
    ///
    /// What keeps a simulation from being set up.
    pub(crate) fn run(&self) -> Result<Outcome, BoxError> {
        let start = Instant::now();
        let next = AtomicU64::new(self.seeds.start);
        let stop = AtomicBool::new(false);
        let total = Mutex::new(Outcome::default());
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let work = || -> Result<(), String> {
            loop {
                let late = self.time.is_some_and(|time| start.elapsed() >= time);
                if late || stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= self.seeds.end {
                    return Ok(());
                }
                let outcome = self.seed(seed).map_err(|error| format!("seed {seed}: {error}"))?;
                let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
                total.add(outcome);
                if total.ours.orders >= self.orders || total.failures.len() >= MOST_FAILURES {
                    stop.store(true, Ordering::Relaxed);
                }
            }
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let ends = workers.into_iter().map(|worker| worker.join());
            ends.map(|end| end.unwrap_or_else(|_| Err("a simulation panicked".into())))
                .collect::<Result<Vec<()>, String>>()
        })?;
        let mut total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
        total.elapsed = start.elapsed();
        total.failures.sort_by_key(|failure| failure.seed);
        Ok(total)
    }

    /// The choices of a seed.
    pub(crate) fn chooser(&self, seed: u64) -> Chooser {
        Chooser::rng(seed).without(&self.without)
    }

    /// Runs one seed with every client.
    fn seed(&self, seed: u64) -> Result<Outcome, BoxError> {
        let chooser = Arc::new(self.chooser(seed));
        let workload = Workload::of(&chooser);
        let session = session::run(&chooser, &self.world, &workload, Client::Ours)?;
        let ours = Judgement::of(&workload, &session);
        let mut broken = ours.broken(&self.world);
        let checked = seed.is_multiple_of(CHECKED_EVERY);
        if checked {
            let again = session::run(&chooser, &self.world, &workload, Client::Ours)?;
            if again.seen.trace != session.seen.trace || again.told != session.told {
                broken.push(("deterministic", 1));
            }
            let overfull = overfull_windows(&session.truth);
            if overfull > 0 {
                broken.push(("windows", overfull));
            }
        }
        let rival = |policy| -> Result<Judgement, BoxError> {
            if self.rivals_every == 0 || !seed.is_multiple_of(self.rivals_every) {
                return Ok(Judgement::default());
            }
            let session = session::run(&chooser, &self.world, &workload, Client::Rival(policy))?;
            Ok(Judgement::of(&workload, &session))
        };
        let Session { seen, truth, told, .. } = session;
        let mut reasons = BTreeMap::new();
        for told in told.into_iter().flatten() {
            if let Told::Unresolved(reason) = told {
                *reasons.entry(reason).or_default() += 1;
            }
        }
        Ok(Outcome {
            seeds: 1,
            end_seed: seed + 1,
            naive: rival(Policy::Naive)?,
            checks_once: rival(Policy::ChecksOnce)?,
            ours,
            attempts: seen.attempts,
            attempts_in_doubt: seen.attempts_in_doubt,
            requests: truth.requests,
            simulated: Duration::from_nanos(truth.now_ns),
            elapsed: Duration::ZERO,
            run_twice: u64::from(checked),
            faults: seen.struck.into_iter().collect(),
            reasons,
            failures: if broken.is_empty() { Vec::new() } else { vec![Failure { seed, broken }] },
        })
    }

    /// One run of our client, without anything beside it, and what it breaks.
    pub(crate) fn replay(&self, chooser: Chooser) -> Result<Replay, BoxError> {
        let chooser = Arc::new(chooser);
        let workload = Workload::of(&chooser);
        let session = session::run(&chooser, &self.world, &workload, Client::Ours)?;
        let broken = Judgement::of(&workload, &session).broken(&self.world);
        Ok(Replay { workload, session, broken })
    }
}

/// A run that is looked at closely.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    pub(crate) workload: Workload,
    pub(crate) session: Session,
    pub(crate) broken: Vec<(&'static str, u64)>,
}

impl Outcome {
    fn add(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.end_seed = self.end_seed.max(other.end_seed);
        self.ours.add(&other.ours);
        self.naive.add(&other.naive);
        self.checks_once.add(&other.checks_once);
        self.attempts += other.attempts;
        self.attempts_in_doubt += other.attempts_in_doubt;
        self.requests += other.requests;
        self.simulated += other.simulated;
        self.run_twice += other.run_twice;
        for (fault, times) in other.faults {
            *self.faults.entry(fault).or_default() += times;
        }
        for (reason, times) in other.reasons {
            *self.reasons.entry(reason).or_default() += times;
        }
        self.failures.extend(other.failures);
    }
}

/// The windows of every zone that hold more than they may, counted without any limiter's arithmetic.
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
