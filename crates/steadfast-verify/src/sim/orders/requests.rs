//! The `requests` simulation: the cost of a call on the wire, without faults and while answers are a 5xx.

use std::io::{self, Write};

use serde::Serialize;
use steadfast::{BoxError, dedup::Settings};

use crate::sim::{
    chooser::Fixed,
    console::complain,
    orders::{campaign::Campaign, state::Run, world::Expected},
    wire::{Kind, catalogue},
};

/// The command line of `sim requests`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Prints JSON on standard output.
    #[arg(long)]
    json: bool,
    /// Ends with the seed that completes so many orders, in calm and in storm.
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..))]
    orders: u64,
    /// With one answer in twenty, with eight in ten and with all of them a 5xx, too.
    #[arg(long)]
    curve: bool,
}

/// Requests on the wire for each call. The mix: sessions of 50 to 500 orders, ten a second from 1 to 50 callers, three
/// in ten identical to the one before, one in five cancelled. Reads of the list that resolve orders count as theirs.
#[derive(Debug, Serialize)]
struct Report {
    schema_version: u32,
    calls: u64,
    calm: f64,
    stormy: f64,
    /// The percentage of answers that are a 5xx, and requests on the wire for each call.
    curve: Vec<(u32, f64)>,
}

/// The faults that are switched off, in calm and in storm: all but lost answers.
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
/// The percentages, in the order of the weather's choices of a rate; two of them are always run.
const RATES: [u32; 5] = [0, 5, 30, 80, 100];
const ALWAYS: [u32; 2] = [0, 30];
/// The choices for no named fault, and for all of them alike.
const NONE: u32 = 0;
const ALIKE: u32 = 7;

/// Runs both and prints the cost.
///
/// # Errors
///
/// The error of setting up a simulation.
pub fn run(args: &Args) -> Result<(), BoxError> {
    let (mut calls, mut curve, mut end) = (0, Vec::new(), 0);
    for (choice, rate) in (0..).zip(RATES).filter(|(_, rate)| args.curve || ALWAYS.contains(rate)) {
        let cost = cost(args.orders, &storm(choice))?;
        curve.push((rate, cost.requests));
        end = end.max(cost.end_seed);
        if rate == 0 {
            calls = cost.calls;
        }
    }
    let at = |wanted| curve.iter().find(|(rate, _)| *rate == wanted).map_or(0.0, |(_, requests)| *requests);
    let [calm, stormy] = ALWAYS.map(at);
    let text = if args.json {
        let report = Report { schema_version: 1, calls, calm, stormy, curve };
        serde_json::to_string(&report)?
    } else {
        let line = |(rate, requests): &(u32, f64)| format!("{requests} with {rate} % of answers a 5xx");
        let curve: Vec<_> = curve.iter().map(line).collect();
        format!("requests for each call: {} ({calls} calls)", curve.join(", "))
    };
    // A closed standard output is no error.
    let _ = writeln!(io::stdout().lock(), "{text}");
    complain(format_args!("figures: calls={calls} calm={calm} stormy={stormy} seed_range=0..{end}"));
    Ok(())
}

/// Fixes the share of answers that are a 500, 502, 503 or 504, for orders and lists.
fn storm(rate: u32) -> Vec<Fixed> {
    let rates = |what, kind, stem: &str| -> Vec<Fixed> {
        let rate = |name: &str| if name.starts_with(stem) { ALIKE } else { NONE };
        (0..).zip(catalogue(kind)).map(|(index, fault)| (what, Some(index), rate(fault.name))).collect()
    };
    let mut fixed = vec![("swarm.doubt", None, rate), ("swarm.reads", None, rate)];
    fixed.extend(rates("swarm.place", Kind::Place, "placement.50"));
    fixed.extend(rates("swarm.list", Kind::List, "list.50"));
    fixed
}

struct Cost {
    calls: u64,
    /// For each call.
    requests: f64,
    end_seed: u64,
}

fn cost(orders: u64, fixed: &[Fixed]) -> Result<Cost, BoxError> {
    let mut campaign = Campaign::endless(Settings::new(), Expected::WithinTheBound);
    campaign.orders = orders;
    campaign.fixed = [fixed, &CALM].concat();
    let run = campaign.run(Run::from("", "", 0), |_| Ok::<_, BoxError>(()))?;
    let (outcome, end_seed) = (run.outcome, run.next_seed);
    if let Some(failure) = outcome.failures.first() {
        return Err(format!("seed {} broke {:?}", failure.seed, failure.broken).into());
    }
    let calls = outcome.ours.orders + outcome.cancels;
    let requests = (outcome.requests as f64 / calls.max(1) as f64 * 1_000.0).round() / 1_000.0;
    Ok(Cost { calls, requests, end_seed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_without_faults_costs_a_request_and_hardly_more() {
        let Cost { calls, requests, .. } = cost(300, &storm(NONE)).unwrap();
        assert!(calls > 300 && (1.0..=1.05).contains(&requests), "{requests} for each of {calls}");
    }

    #[test]
    fn a_storm_is_of_5xx_answers_alone() {
        let mut campaign = Campaign::endless(Settings::new(), Expected::WithinTheBound);
        campaign.orders = 100;
        campaign.fixed = [storm(2).as_slice(), &CALM].concat();
        let outcome = campaign.run(Run::from("", "", 0), |_| Ok::<_, BoxError>(())).unwrap().outcome;
        assert!(outcome.faults.sum() > 20);
        for (name, _) in outcome.faults.iter() {
            assert!(name.starts_with("placement.50") || name.starts_with("list.50"), "{name}");
        }
    }
}
