//! How long do 1,000 orders at once take beside polls and cancels, and what does the gateway refuse?
//!
//! It runs against the gateway in process: through the whole stack, and through the alternatives that users would
//! build instead. First in virtual time, over several networks and seeds, then the computing time alone. With
//! `--real` it uses the real clock instead, all clients at once, for two minutes.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

mod asked;
mod rivals;
mod session;
mod wire;

use std::time::Duration;

use criterion::{Criterion, Throughput};
use steadfast::BoxError;

use crate::{
    asked::Asked,
    rivals::Rival,
    session::{BOUND, Figures, ORDERS},
    wire::{NETWORKS, Network},
};

/// Each session has some twenty cancels.
const SESSIONS: u64 = 10;

fn main() -> Result<(), BoxError> {
    if std::env::args().any(|argument| argument == "--real") {
        return real_time();
    }
    let asked = Asked::of_us();
    if !asked.is_about("burst") {
        return Ok(());
    }
    let sessions = if asked == (Asked::Table { whole: false }) { 1 } else { SESSIONS };
    for network in NETWORKS {
        let runs = |rival| {
            (0..sessions).map(|seed| session::run(rival, network, seed)).collect::<Result<Vec<_>, _>>()
        };
        if let Asked::Lines { .. } = asked {
            for rival in Rival::ALL {
                lines(&asked, network, rival, &Sum::of(&runs(rival)?));
            }
        } else {
            head(network, &format!("{sessions} sessions"));
            for rival in Rival::ALL {
                println!("{}", row(rival, &Sum::of(&runs(rival)?)));
            }
        }
    }
    if let Asked::Table { .. } = asked {
        computing()?;
    }
    Ok(())
}

fn real_time() -> Result<(), BoxError> {
    let network = NETWORKS[1];
    head(network, "by the real clock");
    for (rival, run) in Rival::ALL.into_iter().zip(session::run_all(network, 0)?) {
        println!("{}", row(rival, &Sum::of(&[run])));
    }
    Ok(())
}

/// The results of the burst, averaged over the sessions, and the waits of all cancels.
struct Sum {
    placed: f64,
    refused: f64,
    seconds: f64,
    /// The share of placed orders among those that the quota allows in the time taken, in percent.
    quota: f64,
    polls: f64,
    /// Ascending.
    waits: Vec<Duration>,
}

impl Sum {
    fn of(runs: &[Figures]) -> Self {
        let mean = |figure: fn(&Figures) -> f64| runs.iter().map(figure).sum::<f64>() / runs.len() as f64;
        let mut waits: Vec<_> = runs.iter().flat_map(|run| run.waits.iter().copied()).collect();
        waits.sort_unstable();
        let (placed, seconds) = (mean(|run| run.placed as f64), mean(|run| run.took.as_secs_f64()));
        Self {
            placed,
            refused: mean(|run| run.refused as f64),
            seconds,
            quota: 100.0 * placed / ORDERS as f64 * BOUND.as_secs_f64() / seconds,
            polls: mean(|run| run.polls as f64),
            waits,
        }
    }
}

fn head(network: Network, how: &str) {
    println!("\n{ORDERS} orders at once, {}, {how}; {BOUND:?} is the least", network.name);
    println!(
        "{:24} {:>7} {:>7} {:>9} {:>6} {:>7} {:>28}",
        "", "placed", "429s", "time", "quota", "polls", "cancel waits p50 / p99 / max"
    );
}

fn row(rival: Rival, sum: &Sum) -> String {
    let wait = |part| share(&sum.waits, part).map_or_else(|| "-".to_owned(), |wait| format!("{wait:.3} s"));
    format!(
        "{:24} {:7.1} {:7.1} {:7.1} s {:5.1}% {:7.0} {:>28}",
        rival.name(),
        sum.placed,
        sum.refused,
        sum.seconds,
        sum.quota,
        sum.polls,
        format!("{} / {} / {}", wait(0.5), wait(0.99), wait(1.0)),
    )
}

fn lines(asked: &Asked, network: Network, rival: Rival, sum: &Sum) {
    let tell = |value, unit| asked.tell(network.name, rival.name(), value, unit);
    tell(sum.placed, "orders placed");
    tell(sum.refused, "429s");
    tell(sum.seconds, "s until all are placed");
    tell(sum.quota, "% of the quota");
    if let Some(wait) = share(&sum.waits, 0.99) {
        tell(wait, "seconds until a cancel leaves, p99");
    }
}

/// Returns the least wait that this share of all waits does not exceed.
fn share(sorted: &[Duration], share: f64) -> Option<f64> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    rank.checked_sub(1).and_then(|index| sorted.get(index)).map(Duration::as_secs_f64)
}

/// Measures how many requests a second pass through client, network and gateway if nothing waits for the clock.
fn computing() -> Result<(), BoxError> {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3))
        .sample_size(10)
        .configure_from_args();
    let mut group = criterion.benchmark_group("burst, computing alone");
    for rival in Rival::ALL {
        let requests = session::run(rival, NETWORKS[0], 0)?.requests;
        group.throughput(Throughput::Elements(requests));
        group.bench_function(rival.name(), |bencher| {
            bencher.iter(|| session::run(rival, NETWORKS[0], 0).is_ok())
        });
    }
    group.finish();
    criterion.final_summary();
    Ok(())
}
