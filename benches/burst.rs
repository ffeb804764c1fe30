//! How long do 1,000 orders at once take beside polls and cancels, and what does the gateway refuse?
//!
//! Against the gateway in process: through the whole stack, and through what its users would otherwise put together.
//! First in virtual time, as a table; then in real time, how fast all of it runs.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

mod rivals;
mod session;
mod wire;

use std::time::Duration;

use criterion::{Criterion, Throughput};
use steadfast::BoxError;

use crate::{
    rivals::Rival,
    session::{BOUND, Figures, ORDERS},
    wire::{NETWORKS, Network},
};

/// Each brings some twenty cancels.
const SESSIONS: u64 = 10;

fn main() -> Result<(), BoxError> {
    // Without this argument, cargo only wants to know that the program runs.
    let sessions = if std::env::args().any(|argument| argument == "--bench") { SESSIONS } else { 1 };
    for network in NETWORKS {
        table(network, sessions)?;
    }
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3))
        .sample_size(10)
        .configure_from_args();
    real_time(&mut criterion)?;
    criterion.final_summary();
    Ok(())
}

/// What came of the burst, on average over the sessions, and of all their cancels.
fn table(network: Network, sessions: u64) -> Result<(), BoxError> {
    println!("\n{ORDERS} orders at once, {}, {sessions} sessions; {BOUND:?} is the least", network.name);
    println!(
        "{:24} {:>7} {:>7} {:>9} {:>6} {:>7} {:>28}",
        "", "placed", "429s", "time", "quota", "polls", "cancel waits p50 / p99 / max"
    );
    for rival in Rival::ALL {
        let runs =
            (0..sessions).map(|seed| session::run(rival, network, seed)).collect::<Result<Vec<_>, _>>()?;
        println!("{}", row(rival, &runs));
    }
    Ok(())
}

fn row(rival: Rival, runs: &[Figures]) -> String {
    let mean = |figure: fn(&Figures) -> f64| runs.iter().map(figure).sum::<f64>() / runs.len() as f64;
    let mut waits: Vec<Duration> = runs.iter().flat_map(|run| run.waits.iter().copied()).collect();
    waits.sort_unstable();
    let placed = mean(|run| run.placed as f64);
    let took = mean(|run| run.took.as_secs_f64());
    // Of the orders that the quota allows within the time taken, how many were placed.
    let quota = placed / ORDERS as f64 * BOUND.as_secs_f64() / took;
    format!(
        "{:24} {placed:7.1} {:7.1} {took:7.1} s {:5.1}% {:7.0} {:>28}",
        rival.name(),
        mean(|run| run.refused as f64),
        100.0 * quota,
        mean(|run| run.polls as f64),
        format!("{} / {} / {}", share(&waits, 0.5), share(&waits, 0.99), share(&waits, 1.0)),
    )
}

/// The least wait that such a share of all does not exceed.
fn share(sorted: &[Duration], share: f64) -> String {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    let wait = rank.checked_sub(1).and_then(|index| sorted.get(index));
    wait.map_or_else(|| "-".to_owned(), |wait| format!("{:.3} s", wait.as_secs_f64()))
}

/// How many requests a second go through client, network and gateway when nobody waits for the clock.
fn real_time(criterion: &mut Criterion) -> Result<(), BoxError> {
    let mut group = criterion.benchmark_group("burst, real time");
    for rival in Rival::ALL {
        let requests = session::run(rival, NETWORKS[0], 0)?.requests;
        group.throughput(Throughput::Elements(requests));
        group.bench_function(rival.name(), |bencher| {
            bencher.iter(|| session::run(rival, NETWORKS[0], 0).is_ok())
        });
    }
    group.finish();
    Ok(())
}
