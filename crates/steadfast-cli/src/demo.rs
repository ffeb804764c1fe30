//! `steadfast demo`: three clients trade through the same faults, side by side.

mod checks_once;
mod contender;
mod dice;
mod live;
mod misfortune;
mod naive;
mod progress;
mod quota;
mod report;
mod scenario;
mod session;
mod stack;
mod table;
mod tally;
mod timetable;
mod trader;
mod trail;
mod wait;
mod wire;

use std::{
    fs::OpenOptions,
    hash::{BuildHasher, Hasher, RandomState},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use serde::Serialize;
use tokio::{sync::watch, time::Instant};

use self::{
    checks_once::ChecksOnce,
    contender::Contender,
    live::Live,
    naive::Naive,
    progress::Progress,
    report::Report,
    scenario::Scenario,
    session::{Session, trade},
    stack::Stack,
    table::Table,
    tally::{Doubts, Tally},
    timetable::STANDARD,
    wire::Wire,
};
use crate::{
    arena::Arena,
    exit::{Failed, print_note},
    signal::stop_on_signal,
    stdout::print_line,
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where orders, faults and their times come from; a random one, which is printed, if absent.
    #[arg(long)]
    seed: Option<u64>,
    /// How many orders each client is asked to place, from 60 to 3,000; more take longer.
    #[arg(long, default_value_t = STANDARD as u64, value_parser = clap::value_parser!(u64).range(60..=3_000))]
    orders: u64,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
    /// Write a report with plots: one HTML page that needs nothing else.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Show no progress.
    #[arg(long, short)]
    quiet: bool,
}

/// The columns of all output, in their order.
const NAMES: [&str; 3] = ["steadfast", "checks once", "naive"];

/// Fewer recovered orders in doubt than this prove too little.
const LEAST_RECOVERED: usize = 15;

const INTERRUPTED: &str = "interrupted: following what is in doubt to its end; interrupt again to leave it";

/// The object of `demo --json`.
#[derive(Debug, Serialize)]
struct Output<'a> {
    schema_version: u32,
    seed: u64,
    elapsed_s: f64,
    steadfast: &'a Tally,
    checks_once: &'a Tally,
    naive: &'a Tally,
}

pub(crate) async fn run(args: Args) -> Result<(), Failed> {
    let seed = args.seed.unwrap_or_else(any_seed);
    let scenario = Scenario::new(seed, usize::try_from(args.orders).unwrap_or(STANDARD));
    if !args.quiet {
        print_note(format_args!(
            "seed {seed}, {} orders, faults on {}",
            scenario.orders.len(),
            scenario.faults.len()
        ));
    }
    if let Some(file) = &args.report {
        // Opened before the run, which takes a minute. An existing file is kept until the end.
        let opened = OpenOptions::new().create(true).append(true).open(file);
        opened.map_err(|error| Failed::usage(format_args!("{}: {error}", file.display())))?;
    }
    let began = Instant::now();
    let sessions = side_by_side(seed, &scenario, args.quiet).await?;
    let elapsed = began.elapsed();

    let tallies = tallies(&sessions);
    let [steadfast, ..] = &sessions;
    if steadfast.cut_short {
        return Err(Failed::interrupted(format_args!(
            "interrupted; {} orders in doubt, {} followed to their end",
            steadfast.left_in_doubt,
            tallies[0].orders.went_in_doubt.saturating_sub(steadfast.left_in_doubt),
        )));
    }
    if let Some(file) = &args.report {
        let report = Report::new(seed, elapsed, &scenario, &NAMES, &sessions, &tallies);
        write(file, &report.to_string())?;
    }
    print(seed, elapsed, &tallies, args.json)?;
    match tallies[0].broken_promises(LEAST_RECOVERED) {
        broken if broken.is_empty() => Ok(()),
        broken => {
            for line in steadfast.unsettled() {
                print_note(line);
            }
            Err(Failed::error(format_args!("promises broken with seed {seed}: {}", broken.join(", "))))
        }
    }
}

/// Runs the three clients at the same time, each with its own gateway.
async fn side_by_side(seed: u64, scenario: &Scenario, quiet: bool) -> Result<[Session; 3], Failed> {
    let gateway = || scenario.gateway(seed).map_err(Failed::error);
    let arenas =
        [Arena::serve(gateway()?).await?, Arena::serve(gateway()?).await?, Arena::serve(gateway()?).await?];
    let steadfast = Arc::new(Stack::totp(&arenas[0])?);
    let checks_once = Arc::new(ChecksOnce::new(Wire::new(&arenas[1])));
    let naive = Arc::new(Naive::new(Wire::new(&arenas[2])));
    tokio::try_join!(steadfast.prepare(), checks_once.prepare(), naive.prepare()).map_err(Failed::error)?;

    let lives: [Arc<Live>; 3] = Default::default();
    let watched = NAMES.into_iter().zip(lives.clone()).collect();
    let progress = Progress::new(watched, scenario.orders.len(), quiet);
    let (stop, stopped) = watch::channel(false);
    let start = Instant::now() + Duration::from_millis(200);
    let trading = async {
        tokio::join!(
            trade(steadfast, &arenas[0], scenario, start, &lives[0], stopped.clone()),
            trade(checks_once, &arenas[1], scenario, start, &lives[1], stopped.clone()),
            trade(naive, &arenas[2], scenario, start, &lives[2], stopped.clone()),
        )
    };
    let sessions = tokio::select! {
        sessions = trading => Ok(sessions.into()),
        never = progress.show() => match never {},
        failed = stop_on_signal(stop, || print_note(INTERRUPTED)) => Err(failed),
    };
    progress.end();
    sessions
}

/// Counts each client's session. The naive client never looks for lost orders.
fn tallies([steadfast, checks_once, naive]: &[Session; 3]) -> [Tally; 3] {
    [(steadfast, Doubts::Resolves), (checks_once, Doubts::Resolves), (naive, Doubts::Never)]
        .map(|(session, doubts)| Tally::of(session, doubts))
}

fn print(seed: u64, elapsed: Duration, tallies: &[Tally; 3], json: bool) -> Result<(), Failed> {
    let [steadfast, checks_once, naive] = tallies;
    if json {
        let elapsed_s = (elapsed.as_secs_f64() * 10.0).round() / 10.0;
        let output = Output { schema_version: 1, seed, elapsed_s, steadfast, checks_once, naive };
        print_line(serde_json::to_string(&output).map_err(Failed::error)?);
    } else {
        let columns: Vec<(&str, &Tally)> = NAMES.into_iter().zip(tallies).collect();
        print_line(Table(&columns));
        print_line(format_args!("\nseed {seed}, {:.0} s", elapsed.as_secs_f64()));
    }
    Ok(())
}

fn write(file: &std::path::Path, text: &str) -> Result<(), Failed> {
    std::fs::write(file, text).map_err(|error| Failed::error(format_args!("{}: {error}", file.display())))
}

/// Returns a random seed: the standard library keys its hash maps with the system's randomness.
fn any_seed() -> u64 {
    // Short enough to type again.
    RandomState::new().build_hasher().finish() % 1_000_000_000
}

#[cfg(test)]
mod tests;
