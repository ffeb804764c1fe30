//! The `orders` simulation: trading sessions in which answers get lost, judged by the gateway's books.
//!
//! Each seed is a session of 1 to 500 orders, mostly few, at about ten a second from 1 to 50 callers, three in ten of
//! them identical to the one before. Every seed draws its own subset of all faults, a rate for each, a latency, and a
//! reading of what the specification leaves open. Over all seeds, at least three in ten attempts are in doubt. In some
//! seeds the process dies and another one takes its place, or another program trades on the same account. Once all
//! calls have ended, no more faults occur, and no order may stay in doubt.
//!
//! A client is judged by the gateway's own book, in which every order bears the name of its caller.

mod args;
mod callers;
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
mod line;
mod oracle;
mod ours;
mod outcome;
mod policy;
mod reading;
mod remarks;
mod report;
pub mod requests;
mod rivals;
mod script;
pub mod scripts;
mod session;
mod state;
mod trader;
mod trading;
mod workload;
mod world;

use std::{fs, path::Path, sync::Arc};

use steadfast::BoxError;

pub use self::{
    args::{Args, Floor, Seeds},
    canary::Canary,
    ours::Medium,
    remarks::Echo,
};
use self::{
    campaign::Campaign,
    outcome::Failure,
    state::{Run, StateFile},
};
use crate::sim::{
    chooser::{Chooser, Tape, UnreadableTape},
    console::complain,
};

/// Runs the simulation and prints the result. True if every promise was kept.
///
/// # Errors
///
/// The error of setting up a simulation, of a tape, or of the file that keeps its state.
pub fn run(args: &Args) -> Result<bool, BoxError> {
    let campaign = args.campaign();
    if let Some(path) = &args.tape {
        return replay(args, &campaign, path);
    }
    if args.canary.is_none() {
        campaign.canaries()?;
    }
    let run = match &args.state {
        None => campaign.run(Run::from(&args.commit, "", campaign.seeds.start), |_| Ok::<_, BoxError>(()))?,
        Some(path) => {
            let mut file = StateFile::open(path)?;
            let run = file.resume(&args.commit, &args.modes(), campaign.seeds.start);
            let run = campaign.run(run, |run| file.keep(run))?;
            report::history(file.runs());
            run
        }
    };
    report::print(args, &run);
    let failures = &run.outcome.failures;
    if args.first {
        for Failure { seed, broken } in failures {
            complain(format_args!("failed: seed {seed} {broken:?}"));
        }
    } else if let Some(first) = failures.first() {
        failure::explain(args, &campaign, first)?;
        for other in &failures[1..] {
            complain(format_args!("also failed: seed {} {:?}", other.seed, other.broken));
        }
    }
    let enough = !args.demand_existence || existence::demand(&run.outcome, args.wire, args.axes);
    let enough = args.floor.is_none_or(|floor| floor.is_reached(&run.outcome)) && enough;
    Ok(failures.is_empty() && enough)
}

/// Replays a tape, and says how it went. True if every promise was kept.
fn replay(args: &Args, campaign: &Campaign, path: &Path) -> Result<bool, BoxError> {
    let named = |error: BoxError| format!("--tape {}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| named(error.into()))?;
    let tape: Tape = text.parse().map_err(|error: UnreadableTape| named(error.into()))?;
    let modes = args.modes();
    if let Some(recorded) = text.lines().find_map(|line| line.strip_prefix("# modes:"))
        && recorded.trim() != modes.trim()
    {
        let given = if modes.is_empty() { "none" } else { modes.trim() };
        complain(format_args!("the tape is of a run with{recorded}; this one has {given}"));
    }
    let chooser = Arc::new(Chooser::tape(tape.clone()).recording());
    let replay = campaign.played(&chooser)?;
    complain(format_args!(
        "{}\nwhat came of it:\n{}",
        script::script(&tape),
        script::course(&replay.workload, &replay.session)
    ));
    for (promise, count) in &replay.broken {
        complain(format_args!("broken: {promise} {count}"));
    }
    for (invariant, what) in &replay.session.violations {
        complain(format_args!("{invariant}: {what}"));
    }
    let met = chooser.recorded();
    for (site, choice) in tape.iter().filter(|&(site, choice)| met.get(site) != choice) {
        complain(format_args!("`{site} = {choice}` was met as {}", met.get(site)));
    }
    if replay.workload.wanted.is_empty() {
        return Err(format!("--tape {}: no order is wanted, so nothing was tried", path.display()).into());
    }
    Ok(replay.broken.is_empty())
}
