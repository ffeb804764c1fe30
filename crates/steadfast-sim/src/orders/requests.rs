//! The `requests` simulation: what a call costs on the wire, without faults and while three answers in ten are a 5xx.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use serde::Serialize;
use steadfast::{BoxError, dedup::Settings};

use crate::{
    chooser::Fixed,
    orders::{Expected, Run, campaign_of, report::complain},
    wire::{Kind, catalogue},
};

/// What the command line of `sim requests` takes.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Prints JSON on standard output.
    #[arg(long)]
    json: bool,
    /// Ends with the seed that completes so many orders, in calm and in storm.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    orders: u64,
}

/// Requests on the wire for each call. The mix: sessions of 50 to 500 orders, ten a second from 1 to 50 callers, three in
/// ten identical to the one before, one in five cancelled; reads of the list that resolve orders count as theirs.
#[derive(Debug, Serialize)]
struct Report {
    schema_version: u32,
    calls: u64,
    calm: f64,
    stormy: f64,
}

/// What a session has none of, in calm and in storm: all but lost answers.
const CALM: [Fixed; 17] = [
    ("orders.many", None, 0),
    ("orders.interval", None, 0),
    ("order.looks", None, 0),
    ("day", None, 0),
    ("latency.lists", None, 0),
    ("latency.acks", None, 0),
    ("swarm.twins", None, 0),
    ("swarm.cancelled", None, 0),
    ("swarm.haste", None, 0),
    ("swarm.refused-share", None, 0),
    ("swarm.cancels", None, 0),
    ("list.form", None, 0),
    ("token.dies", None, 0),
    ("order.patience", None, 0),
    ("crash", None, 0),
    ("journal", None, 0),
    ("foreign.trades", None, 0),
];
/// The choices of the rates: nothing, three in ten, and every fault of that name alike.
const NONE: u32 = 0;
const THREE_IN_TEN: u32 = 2;
const ALIKE: u32 = 7;

/// Runs both and prints what they cost.
pub fn run(args: &Args) -> ExitCode {
    match simulate(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(format_args!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn simulate(args: &Args) -> Result<(), BoxError> {
    let (calls, calm, end) = cost(args.orders, &[("swarm.doubt", None, NONE), ("swarm.reads", None, NONE)])?;
    let (_, stormy, stormy_end) = cost(args.orders, &storm())?;
    let report = Report { schema_version: 1, calls, calm, stormy };
    let text = if args.json {
        serde_json::to_string(&report)?
    } else {
        format!(
            "{calls} calls: {calm} requests each without faults, {stormy} with three answers in ten a 5xx"
        )
    };
    // Whoever closes standard output does not want it.
    let _ = writeln!(io::stdout().lock(), "{text}");
    let end = end.max(stormy_end);
    complain(format_args!("figures: calls={calls} calm={calm} stormy={stormy} seed_range=0..{end}"));
    Ok(())
}

/// Three answers in ten are a 500, 502, 503 or 504, of orders and of lists.
fn storm() -> Vec<Fixed> {
    let rates = |what, kind, stem: &str| -> Vec<Fixed> {
        let rate = |name: &str| if name.starts_with(stem) { ALIKE } else { NONE };
        (0..).zip(catalogue(kind)).map(|(index, fault)| (what, Some(index), rate(fault.name))).collect()
    };
    let mut fixed = vec![("swarm.doubt", None, THREE_IN_TEN), ("swarm.reads", None, THREE_IN_TEN)];
    fixed.extend(rates("swarm.place", Kind::Place, "placement.50"));
    fixed.extend(rates("swarm.list", Kind::List, "list.50"));
    fixed
}

/// How many calls there were, how many requests each took, and where the seeds end.
fn cost(orders: u64, fixed: &[Fixed]) -> Result<(u64, f64, u64), BoxError> {
    let mut campaign = campaign_of(Settings::new(), Expected::WithinTheBound);
    campaign.orders = orders;
    campaign.fixed = [fixed, &CALM].concat();
    let run = campaign.run(Run::from("", "", 0), |_| Ok::<_, BoxError>(()))?;
    let (outcome, end) = (run.outcome, run.next_seed);
    if let Some(failure) = outcome.failures.first() {
        return Err(format!("seed {} broke {:?}", failure.seed, failure.broken).into());
    }
    let calls = outcome.ours.orders + outcome.cancels;
    Ok((calls, (outcome.requests as f64 / calls.max(1) as f64 * 1_000.0).round() / 1_000.0, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_without_faults_costs_a_request_and_hardly_more() {
        let fixed = [("swarm.doubt", None, NONE), ("swarm.reads", None, NONE)];
        let (calls, calm, _) = cost(300, &fixed).unwrap();
        assert!(calls > 300 && (1.0..=1.05).contains(&calm), "{calm} for each of {calls}");
    }

    #[test]
    fn a_storm_is_of_5xx_answers_alone() {
        let mut campaign = campaign_of(Settings::new(), Expected::WithinTheBound);
        campaign.orders = 100;
        campaign.fixed = [storm().as_slice(), &CALM].concat();
        let outcome = campaign.run(Run::from("", "", 0), |_| Ok::<_, BoxError>(())).unwrap().outcome;
        assert!(outcome.faults.sum() > 20);
        for (name, _) in outcome.faults.iter() {
            assert!(name.starts_with("placement.50") || name.starts_with("list.50"), "{name}");
        }
    }
}
