//! The `orders` simulation: trading sessions in which answers get lost, judged by the gateway's books.
//!
//! Each seed is a session of 1 to 500 orders, mostly few, at about ten a second from 1 to 50 callers, three in ten of
//! them identical to the one before. Every seed draws its own subset of all faults, a rate for each, a latency, and a
//! reading of what the specification leaves open. Over all seeds, at least three in ten attempts are in doubt. In some
//! seeds the process dies and another one takes its place, or another program trades on the same account. Once all
//! calls have ended, no more faults occur, and no order may stay in doubt.
//!
//! A client is judged by the gateway's own book, in which every order bears the name of its caller.

mod campaign;
mod canary;
pub mod catalogue;
mod clocks;
mod cohort;
mod counts;
mod crash;
mod existence;
mod failure;
mod foreign;
mod invariants;
mod oracle;
mod ours;
mod policy;
mod reading;
mod report;
pub mod requests;
mod rivals;
mod script;
pub mod scripts;
mod session;
mod state;
mod trader;
mod workload;

pub use self::{canary::Canary, ours::Medium};

use std::{
    fs, num::NonZeroU64, ops::Range, path::PathBuf, process::ExitCode, str::FromStr, sync::Arc,
    time::Duration,
};

use steadfast::{BoxError, dedup::Settings};

use crate::sim::{
    axes::Axes,
    chooser::{Chooser, Tape, UnreadableTape},
    orders::{
        campaign::{Campaign, Failure, MOST_FAILURES, Outcome},
        oracle::Expected,
        session::World,
        state::{Run, StateFile},
    },
};

/// What the command line of `sim orders` takes.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Prints JSON on standard output.
    #[arg(long)]
    pub json: bool,
    /// Runs this seed only.
    #[arg(long, value_name = "N", conflicts_with_all = ["seeds", "tape"])]
    pub seed: Option<u64>,
    /// Runs these seeds: `A..B`, B excluded, or `A..`.
    #[arg(long, value_name = "A..B", default_value = "0..")]
    pub seeds: Seeds,
    /// Begins with a seed of the code's own, so that each state of it runs other seeds, and always the same ones.
    #[arg(long, conflicts_with_all = ["seed", "seeds", "tape"])]
    pub seeds_of_commit: bool,
    /// Replays a tape, such as a failure leaves behind.
    #[arg(long, value_name = "FILE", conflicts_with = "seeds")]
    pub tape: Option<PathBuf>,
    /// Ends with the seed that completes so many orders: a million, and with `--state` never.
    #[arg(long, value_name = "N")]
    pub orders: Option<NonZeroU64>,
    /// Goes on with the campaign in this file, or begins it; it is written every few seconds, so that a campaign can be
    /// run in slices and killed at any time.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "tape"])]
    pub state: Option<PathBuf>,
    /// The commit, or the hash of our crates, that the sums of a campaign are kept for.
    #[arg(long, value_name = "HASH", env = "STEADFAST_COMMIT", default_value = "", hide_env = true)]
    pub commit: String,
    /// Ends with the first seed that breaks a promise, and only names it.
    #[arg(long)]
    pub first: bool,
    /// Begins no new seed after so many minutes.
    #[arg(long, value_name = "M")]
    pub minutes: Option<NonZeroU64>,
    /// Begins no new seed after so many seconds.
    #[arg(long, value_name = "S", conflicts_with = "minutes")]
    pub seconds: Option<NonZeroU64>,
    /// Lets orders come to exist up to ten minutes after they were given up: every duplicate must be reported.
    #[arg(long)]
    pub unbounded: bool,
    /// Runs the client's conservative settings.
    #[arg(long)]
    pub conservative: bool,
    /// The lateness bound that the client assumes, in seconds, if it is not to be the true one: less than that breaks
    /// the client's promise, and shows that the simulation notices.
    #[arg(long, value_name = "S")]
    pub assume_lateness: Option<u64>,
    /// What lies between the client and the gateway.
    #[arg(long, value_enum, default_value_t = Medium::Direct)]
    pub wire: Medium,
    /// Leaves the lists, and what the specification leaves open, as plain as can be, and spares what is sent again, and
    /// cancels, whose storms of 429s hold back every look: then every order must be resolved.
    #[arg(long, conflicts_with = "unbounded")]
    pub plain: bool,
    /// Kills the process once in each session, and lets another one go on with its journal.
    #[arg(long, conflicts_with = "unbounded")]
    pub crashes: bool,
    /// The rivals trade one seed out of so many; 0 for none.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub rivals_every: u64,
    /// In one seed of so many the tracker keeps its history, and the invariants are checked over it; 0 for none.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub trace_every: u64,
    /// Fails unless every fault has struck a hundred times, and every outcome and state of the journal was met; with
    /// `--wire pipe`, unless all has happened to connections that can.
    #[arg(long)]
    pub demand_existence: bool,
    /// Fails unless so many seeds were run, with so many orders: a run that its time has cut short proves less.
    #[arg(long, value_name = "SEEDS,ORDERS")]
    pub floor: Option<Floor>,
    /// What the world does beside what it always did, such as `orphans`: names with commas between them, `all` or `none`.
    #[arg(long, value_name = "NAMES", default_value_t = Axes::DEFAULT)]
    pub axes: Axes,
    /// Ends connections in an orderly way although the transport says that nothing arrives after their end: with the
    /// axis `orphans` the run must fail.
    #[arg(long)]
    pub orderly_close: bool,
    /// Makes the client wrong on purpose: then the run must fail.
    #[arg(long, value_enum, conflicts_with = "crashes")]
    pub canary: Option<Canary>,
    /// Leaves a choice at its plain value, by the name that it has on tapes, such as `list.form`; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub without: Vec<String>,
}

/// A range of seeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(Range<u64>);

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not of the form A..B");
        let (start, end) = text.split_once("..").ok_or_else(wrong)?;
        let start = start.parse().map_err(|_| wrong())?;
        let end = if end.is_empty() { u64::MAX } else { end.parse().map_err(|_| wrong())? };
        if start < end { Ok(Self(start..end)) } else { Err(format!("{text:?} holds no seed")) }
    }
}

/// The least that a run must have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    seeds: u64,
    orders: u64,
}

impl FromStr for Floor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |_| format!("{text:?} is not of the form SEEDS,ORDERS");
        let (seeds, orders) = text.split_once(',').unwrap_or((text, ""));
        Ok(Self { seeds: seeds.parse().map_err(wrong)?, orders: orders.parse().map_err(wrong)? })
    }
}

impl Floor {
    fn is_reached(self, outcome: &Outcome) -> bool {
        let reached = outcome.seeds >= self.seeds && outcome.ours.orders >= self.orders;
        if !reached {
            let Self { seeds, orders } = self;
            report::complain(format_args!("too little was run: the floor is {seeds} seeds, {orders} orders"));
        }
        reached
    }
}

/// The longest that an order may take beyond the client's assumption, if lateness has no bound.
const UNBOUNDED: Duration = Duration::from_secs(600);
/// The longest time between two reads for orders that ended without certainty.
const WATCH_INTERVAL: Duration = Duration::from_secs(1_800);
const SPARE: Duration = Duration::from_secs(120);

/// The sites at which lists fail or are written differently, sessions and callers end early, and refusals of other
/// requests hold back every read.
const OPEN_QUESTIONS: [&str; 11] = [
    "day",
    "orders.interval",
    "swarm.reads",
    "swarm.refused-share",
    "swarm.cancels",
    "list.form",
    "list.scope",
    "list.order",
    "token.dies",
    "order.patience",
    "retry-after",
];

/// Runs the simulation and prints the result.
pub fn run(args: &Args) -> ExitCode {
    match simulate(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            report::complain(format_args!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// True if every promise was kept.
fn simulate(args: &Args) -> Result<bool, BoxError> {
    let campaign = campaign(args);
    if let Some(path) = &args.tape {
        let named = |error: BoxError| format!("--tape {}: {error}", path.display());
        let text = fs::read_to_string(path).map_err(|error| named(error.into()))?;
        let tape: Tape = text.parse().map_err(|error: UnreadableTape| named(error.into()))?;
        let modes = failure::modes(args);
        if let Some(recorded) = text.lines().find_map(|line| line.strip_prefix("# modes:"))
            && recorded.trim() != modes.trim()
        {
            let given = if modes.is_empty() { "none" } else { modes.trim() };
            report::complain(format_args!("the tape is of a run with{recorded}; this one has {given}"));
        }
        let chooser = Arc::new(Chooser::tape(tape.clone()).recording());
        let replay = campaign.played(&chooser)?;
        report::complain(format_args!(
            "{}\nwhat came of it:\n{}",
            script::script(&tape),
            script::course(&replay.workload, &replay.session)
        ));
        for (promise, count) in &replay.broken {
            report::complain(format_args!("broken: {promise} {count}"));
        }
        for (invariant, what) in &replay.session.violations {
            report::complain(format_args!("{invariant}: {what}"));
        }
        let met = chooser.recorded();
        for (site, choice) in tape.iter().filter(|&(site, choice)| met.get(site) != choice) {
            report::complain(format_args!("`{site} = {choice}` was met as {}", met.get(site)));
        }
        if replay.workload.wanted.is_empty() {
            return Err(format!("--tape {}: no order is wanted, so nothing was tried", path.display()).into());
        }
        return Ok(replay.broken.is_empty());
    }
    if args.canary.is_none() {
        campaign.canaries()?;
    }
    let run = match &args.state {
        None => campaign.run(Run::from(&args.commit, "", campaign.seeds.start), |_| Ok::<_, BoxError>(()))?,
        Some(path) => {
            let mut file = StateFile::open(path)?;
            let run = file.resume(&args.commit, &failure::modes(args), campaign.seeds.start);
            let run = campaign.run(run, |run| file.keep(run))?;
            report::history(file.runs());
            run
        }
    };
    report::print(args, &run);
    let failures = &run.outcome.failures;
    if args.first {
        for Failure { seed, broken } in failures {
            report::complain(format_args!("failed: seed {seed} {broken:?}"));
        }
    } else if let Some(first) = failures.first() {
        failure::explain(args, &campaign, first)?;
        for other in &failures[1..] {
            report::complain(format_args!("also failed: seed {} {:?}", other.seed, other.broken));
        }
    }
    let enough = !args.demand_existence || existence::demand(&run.outcome, args.wire, args.axes);
    let enough = args.floor.is_none_or(|floor| floor.is_reached(&run.outcome)) && enough;
    Ok(failures.is_empty() && enough)
}

fn campaign(args: &Args) -> Campaign {
    let settings = if args.conservative { Settings::conservative() } else { Settings::new() };
    let expected = if args.unbounded { Expected::Later } else { Expected::WithinTheBound };
    let mut campaign = campaign_of(settings.clone(), expected);
    if let Some(seconds) = args.assume_lateness {
        campaign.world.settings = settings.lateness(Duration::from_secs(seconds));
    }
    campaign.seeds = match args.seed {
        Some(seed) => seed..seed + 1,
        None if args.seeds_of_commit => first_seed(&args.commit)..u64::MAX,
        None => args.seeds.0.clone(),
    };
    let many = if args.state.is_some() { u64::MAX } else { 1_000_000 };
    campaign.orders = args.orders.map_or(many, NonZeroU64::get);
    let minutes = args.minutes.map(|minutes| minutes.get().saturating_mul(60));
    campaign.time = minutes.or(args.seconds.map(NonZeroU64::get)).map(Duration::from_secs);
    campaign.world.medium = args.wire;
    campaign.most_failures = if args.first { 1 } else { MOST_FAILURES };
    campaign.without.clone_from(&args.without);
    campaign.world.crashes = args.crashes;
    campaign.world.canary = args.canary;
    campaign.world.axes = args.axes;
    campaign.world.orderly_close = args.orderly_close;
    if args.plain {
        campaign.world.plain = true;
        campaign.without.extend(OPEN_QUESTIONS.map(str::to_owned));
    }
    // A finding in a seed must be reproduced by that seed alone, whatever its number.
    let every = |n: u64| if args.seed.is_some() { n.min(1) } else { n };
    campaign.rivals_every = every(args.rivals_every);
    campaign.trace_every = every(args.trace_every);
    campaign
}

/// Returns the first seed for a state of the code; a modified tree has the same one as its commit.
fn first_seed(commit: &str) -> u64 {
    let commit = commit.trim_end_matches("-dirty");
    // Small enough for a number in JSON, and a million apart, so that two commits share no seed.
    u64::from(crc32fast::hash(commit.as_bytes())) * 1_000_000
}

/// Creates an endless campaign in a world as late as `settings` assume, or without a bound.
fn campaign_of(settings: Settings, expected: Expected) -> Campaign {
    let (lateness, watched) = match expected {
        // If the client assumes too little, the world keeps the true bound.
        Expected::WithinTheBound => {
            let bound = settings.lateness_bound().max(Settings::new().lateness_bound());
            (bound, bound)
        }
        Expected::Later => (UNBOUNDED, UNBOUNDED + WATCH_INTERVAL),
    };
    Campaign {
        world: World {
            settings,
            expected,
            medium: Medium::Direct,
            plain: false,
            crashes: false,
            aftermath: false,
            traced: true,
            axes: Axes::DEFAULT,
            orderly_close: false,
            canary: None,
            lateness,
            watched: watched + SPARE,
        },
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
