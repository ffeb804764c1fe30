//! The `scripts` simulation: every script of a few faults over one order.

use std::{
    env, fs,
    io::{self, Write},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use serde::Serialize;
use steadfast::{BoxError, dedup::Settings};

use crate::sim::{
    chooser::{Scripts, Site, Tape},
    console::complain,
    orders::{campaign::Campaign, script::script, world::Expected},
};

/// The command line of `sim scripts`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Prints JSON on standard output.
    #[arg(long)]
    json: bool,
    /// The most faults in one script.
    #[arg(long, value_name = "N", default_value_t = 2)]
    faults: usize,
    /// Runs the client's conservative settings.
    #[arg(long)]
    conservative: bool,
}

/// The sites of faults, followed by the circumstances: how late, how slow, and how patient the client is.
const NAMES: [&str; 11] = [
    "place.fault",
    "list.fault",
    "list.form",
    "token.dies",
    "order.patience",
    "journal",
    "place.late",
    "place.slow",
    "token.dies-at",
    "order.patience-ms",
    "attempt.timeout",
];
const FAULTS: usize = 5;

/// The output of `sim scripts --json`.
#[derive(Debug, Serialize)]
struct Report {
    schema_version: u32,
    faults: usize,
    scripts: u64,
    /// How many scripts have only plain choices, how many have one other, and so on.
    by_changes: Vec<u64>,
    went_in_doubt: u64,
    duplicated: u64,
    lost: u64,
    wrongly_claimed: u64,
    violations: u64,
}

/// Plays every script and prints the result. True if every promise was kept in every script.
///
/// # Errors
///
/// The error of setting up a simulation, or of writing a tape.
pub fn run(args: &Args) -> Result<bool, BoxError> {
    let report =
        play(args.faults, if args.conservative { Settings::conservative() } else { Settings::new() })?;
    let mut out = io::stdout().lock();
    // A closed standard output is no error.
    let _ = if args.json {
        writeln!(out, "{}", serde_json::to_string(&report)?)
    } else {
        writeln!(
            out,
            "{} scripts of at most {} faults over one order: {} violations ({} duplicated, {} lost, {} wrongly claimed)",
            report.scripts,
            report.faults,
            report.violations,
            report.duplicated,
            report.lost,
            report.wrongly_claimed
        )
    };
    complain(format_args!("figures: scripts={} violations={}", report.scripts, report.violations));
    Ok(report.violations == 0)
}

fn play(faults: usize, settings: Settings) -> Result<Report, BoxError> {
    let campaign = Campaign::endless(settings, Expected::WithinTheBound);
    let order: Tape = [(Site::new("order"), 1)].into_iter().collect();
    let [in_doubt, duplicated, lost, wrongly_claimed, violations] = [const { AtomicU64::new(0) }; 5];
    let first: Mutex<Option<Tape>> = Mutex::new(None);
    let by_changes = Scripts::new(order, faults, &NAMES, FAULTS).play(|chooser| -> Result<(), BoxError> {
        let replay = campaign.played(chooser)?;
        in_doubt.fetch_add(replay.judgement.went_in_doubt, Ordering::Relaxed);
        duplicated.fetch_add(replay.judgement.duplicated, Ordering::Relaxed);
        lost.fetch_add(replay.judgement.lost, Ordering::Relaxed);
        wrongly_claimed.fetch_add(replay.judgement.wrongly_claimed, Ordering::Relaxed);
        if !replay.broken.is_empty() {
            violations.fetch_add(1, Ordering::Relaxed);
            let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
            if first.is_none() {
                complain(format_args!("broken: {:?}", replay.broken));
                *first = chooser.on_tape().cloned();
            }
        }
        Ok(())
    })?;
    if let Some(tape) = first.into_inner().unwrap_or_else(PoisonError::into_inner) {
        let path = env::temp_dir().join("steadfast-script.tape");
        fs::write(&path, tape.to_string())?;
        complain(format_args!("the first of them:\n{}", script(&tape)));
        complain(format_args!("reproduce: cargo xtask sim orders --tape {}", path.display()));
    }
    Ok(Report {
        schema_version: 1,
        faults,
        scripts: by_changes.iter().sum(),
        by_changes,
        went_in_doubt: in_doubt.into_inner(),
        duplicated: duplicated.into_inner(),
        lost: lost.into_inner(),
        wrongly_claimed: wrongly_claimed.into_inner(),
        violations: violations.into_inner(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sim::chooser::Chooser;

    #[test]
    fn no_script_of_one_fault_breaks_a_promise() {
        let report = play(1, Settings::new()).unwrap();
        assert_eq!(report.violations, 0);
        // At least every fault of an order.
        assert!(report.scripts > crate::sim::wire::catalogue(crate::sim::wire::Kind::Place).len() as u64);
        assert!(report.went_in_doubt > 20, "{report:?}");
    }

    #[test]
    fn a_client_that_assumes_no_lateness_fails_some_script() {
        let report = play(1, Settings::new().lateness(Duration::ZERO)).unwrap();
        assert!(report.duplicated > 0 && report.violations > 0, "{report:?}");
    }

    #[test]
    fn a_script_answers_as_its_tape_does() {
        let tape: Tape =
            [(Site::new("order"), 1), (Site::new("place.fault").nth(1), 2)].into_iter().collect();
        let chooser = Chooser::tape(tape.clone());
        assert_eq!(chooser.on_tape(), Some(&tape));
    }
}
