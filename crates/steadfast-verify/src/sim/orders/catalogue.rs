//! The `catalogue` simulation: every fault of the sandbox, often enough that its absence would show.

mod day;

use std::{
    io::{self, Write},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use serde::Serialize;
use steadfast::{BoxError, dedup::Settings};
use steadfast_sandbox::Fault;

use self::day::day;
use crate::sim::{
    axes::{Axes, Axis},
    console::complain,
    orders::world::{Expected, World},
};

/// The command line of `sim catalogue`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Prints JSON on standard output.
    #[arg(long)]
    json: bool,
    /// Only this fault.
    #[arg(long, value_name = "NAME")]
    fault: Option<Fault>,
    /// The faults of these axes, too: names with commas between them, `all` or `none`.
    #[arg(long, value_name = "NAMES", default_value_t = Axes::DEFAULT)]
    axes: Axes,
    /// How often each fault must strike.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    times: u64,
    /// The seed of each fault's first day.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// The most days of one fault.
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u64).range(1..))]
    days: u64,
}

/// The results of one fault's days.
#[derive(Clone, Debug, Serialize)]
struct Item {
    fault: &'static str,
    struck: u64,
    days: u64,
    orders: u64,
    unresolved: u64,
    /// The days on which a promise was broken, by their seeds.
    broken: Vec<(u64, Vec<(&'static str, u64)>)>,
}

#[derive(Debug, Serialize)]
struct Report {
    schema_version: u32,
    items: usize,
    /// Items that struck as often as required.
    fired: usize,
    days: u64,
    orders: u64,
    violations: usize,
    faults: Vec<Item>,
}

/// Plays every fault and prints the result. True if every fault struck, and no promise was broken.
///
/// # Errors
///
/// The error of setting up a simulation.
pub fn run(args: &Args) -> Result<bool, BoxError> {
    let report = play(args)?;
    let mut out = io::stdout().lock();
    // A closed standard output is no error.
    let _ = if args.json {
        writeln!(out, "{}", serde_json::to_string(&report)?)
    } else {
        let Report { items, fired, days, orders, violations, .. } = &report;
        writeln!(out, "{fired} of {items} faults, {days} days, {orders} orders: {violations} violations")
    };
    for item in &report.faults {
        if item.struck < args.times {
            complain(format_args!("too rare: {} {} of {}", item.fault, item.struck, args.times));
        }
        for (seed, broken) in &item.broken {
            let again = format_args!("sim catalogue --fault {} --days 1 --seed {seed}", item.fault);
            complain(format_args!("broken: {broken:?}; reproduce: cargo xtask {again}"));
        }
    }
    let Report { items, fired, orders, violations, .. } = report;
    complain(format_args!("figures: items={items} fired={fired} orders={orders} violations={violations}"));
    Ok(fired == items && violations == 0)
}

fn play(args: &Args) -> Result<Report, BoxError> {
    let world = World::of(Settings::new(), Expected::WithinTheBound);
    let is_played = |fault: &Fault| match args.fault {
        Some(only) => only == *fault,
        None => args.axes.admit(Axis::of(*fault)),
    };
    let faults: Vec<Fault> = Fault::ALL.iter().copied().filter(is_played).collect();
    let (next, items) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || -> Result<(), BoxError> {
        while let Some(&fault) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
            let item = days(fault, args, &world)?;
            items.lock().unwrap_or_else(PoisonError::into_inner).push(item);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let ends = workers.into_iter().map(|worker| worker.join());
        ends.map(|end| end.unwrap_or_else(|_| Err("a simulation panicked".into())))
            .collect::<Result<Vec<()>, BoxError>>()
    })?;
    let mut faults = items.into_inner().unwrap_or_else(PoisonError::into_inner);
    faults.sort_by_key(|item| item.fault);
    Ok(Report {
        schema_version: 1,
        items: faults.len(),
        fired: faults.iter().filter(|item| item.struck >= args.times).count(),
        days: faults.iter().map(|item| item.days).sum(),
        orders: faults.iter().map(|item| item.orders).sum(),
        violations: faults.iter().map(|item| item.broken.len()).sum(),
        faults,
    })
}

/// Plays days until the fault has struck often enough.
fn days(fault: Fault, args: &Args, world: &World) -> Result<Item, BoxError> {
    let name = fault.as_str();
    let mut item = Item { fault: name, struck: 0, days: 0, orders: 0, unresolved: 0, broken: Vec::new() };
    while item.struck < args.times && item.days < args.days {
        let seed = args.seed.wrapping_add(item.days);
        let day = day(fault, seed, world).map_err(|error| format!("{fault}, seed {seed}: {error}"))?;
        item.days += 1;
        item.struck += day.struck;
        item.orders += day.judgement.orders;
        item.unresolved += day.judgement.unresolved;
        if !day.broken.is_empty() {
            item.broken.push((seed, day.broken));
        }
    }
    Ok(item)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_strikes_on_its_day_and_breaks_no_promise() {
        let deep = std::env::var_os("STEADFAST_DEEP").is_some();
        let (axes, times) = (Axes::DEFAULT, if deep { 20 } else { 1 });
        let args = Args { json: false, fault: None, axes, times, seed: 0, days: 40 };
        let report = play(&args).unwrap();
        let played = Fault::ALL.iter().filter(|fault| axes.admit(Axis::of(**fault))).count();
        assert_eq!((report.fired, report.items), (played, played));
        assert_eq!(report.violations, 0, "{:?}", report.faults);
    }
}
