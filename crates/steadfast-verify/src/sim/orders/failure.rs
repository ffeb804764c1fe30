use std::{env, fs, sync::Arc, time::Duration};

use steadfast::BoxError;
use tokio::time::Instant;

use crate::sim::{
    chooser::{Chooser, Site, Tape, shrink},
    console::complain,
    orders::{
        args::Args,
        campaign::Campaign,
        outcome::Failure,
        script::{course, script},
        trading::{self, Client},
        workload::Workload,
    },
};

/// The most shorter forms of a failing tape that are tried.
const MOST_RUNS: usize = 3_000;
/// The longest time for that: a session of hundreds of orders takes seconds.
const LONGEST: Duration = Duration::from_secs(60);

/// Prints on standard error which promise a seed broke, the shortest script that breaks it, and how to repeat it.
///
/// # Errors
///
/// The error of setting up a simulation, or of writing the tape.
pub(crate) fn explain(args: &Args, campaign: &Campaign, failure: &Failure) -> Result<(), BoxError> {
    let Failure { seed, broken } = failure;
    complain(format_args!("broken promise in seed {seed}:"));
    for (promise, count) in broken {
        complain(format_args!("  {promise} {count}"));
    }
    let modes = args.modes();
    complain(format_args!("reproduce: cargo xtask sim orders --seed {seed}{modes}"));
    let chooser = Arc::new(campaign.chooser(*seed).recording());
    let workload = Workload::of(&chooser);
    let session = trading::run(&chooser, &campaign.world, &workload, Client::Ours)?;
    for (invariant, what) in &session.violations {
        complain(format_args!("  {invariant}: {what}"));
    }
    let Some(tape) = shortest(campaign, failure, &chooser.recorded()) else {
        complain(format_args!("the seed alone does not show it again: what broke is not a choice"));
        complain(format_args!("whole script:\n{}", script(&without_rates(&chooser.recorded()))));
        complain(format_args!("what came of it:\n{}", course(&workload, &session)));
        return Ok(());
    };
    let path = env::temp_dir().join(format!("steadfast-orders-{seed}.tape"));
    let script = script(&tape);
    // Also in words, because the tape names a fault by its index in the catalogue.
    let words: String = script.lines().map(|line| format!("#{line}\n")).collect();
    fs::write(&path, format!("# seed {seed}: {broken:?}\n# modes:{modes}\n{words}{tape}"))?;
    complain(format_args!("shortest script:\n{script}"));
    complain(format_args!("reproduce the script: cargo xtask sim orders --tape {}{modes}", path.display()));
    Ok(())
}

/// Returns the shortest tape that breaks the first promise that the seed breaks.
fn shortest(campaign: &Campaign, failure: &Failure, recorded: &Tape) -> Option<Tape> {
    let (promise, _) = failure.broken.first()?;
    let tape = without_rates(recorded);
    let begun = Instant::now();
    let fails = |tape: &Tape| breaks(campaign, tape, promise);
    fails(&tape).then(|| shrink(&tape, MOST_RUNS, |tape| begun.elapsed() < LONGEST && fails(tape)))
}

/// True if a replay of `tape` breaks `promise`.
fn breaks(campaign: &Campaign, tape: &Tape, promise: &str) -> bool {
    let replay = campaign.replay(Chooser::tape(tape.clone()));
    replay.is_ok_and(|replay| replay.broken.iter().any(|(name, _)| *name == promise))
}

/// Removes probabilities from a tape; only the events matter.
fn without_rates(tape: &Tape) -> Tape {
    tape.iter().filter(|(site, _): &(Site, u32)| !site.what().starts_with("swarm.")).collect()
}

#[cfg(test)]
mod tests {
    use steadfast::dedup::Settings;

    use super::*;
    use crate::sim::orders::world::Expected;

    /// Three orders, the second of them late, with other faults that change nothing.
    const TAPE: &str = "order 1 0 = 1
        place.fault 1 1 = 1
        order 4 0 = 1
        order.shape 4 0 = 60
        place.fault 4 1 = 3
        place.late 4 1 = 9000
        place.fault 4 2 = 19
        order 9 0 = 1
        order.twin 9 0 = 1
        list.fault 5 0 = 1
        callers 0 0 = 3";

    fn campaign(settings: Settings) -> Campaign {
        Campaign::endless(settings, Expected::WithinTheBound)
    }

    #[test]
    fn only_a_client_that_assumes_no_lateness_duplicates_an_order() {
        let tape: Tape = TAPE.parse().unwrap();
        assert!(!breaks(&campaign(Settings::new()), &tape, "duplicated"));
        assert!(breaks(&campaign(Settings::new().lateness(std::time::Duration::ZERO)), &tape, "duplicated"));
    }

    #[test]
    fn a_failure_is_cut_down_to_the_one_fault_that_it_needs() {
        let campaign = campaign(Settings::new().lateness(std::time::Duration::ZERO));
        let short = shrink(&TAPE.parse().unwrap(), MOST_RUNS, |tape| breaks(&campaign, tape, "duplicated"));
        let words = script(&short);
        assert_eq!(words.matches("send").count(), 2, "{words}");
        assert!(words.contains("send 1: placement.504-late") && !words.contains("read"), "{words}");
        assert_eq!(words.matches("order ").count(), 1, "{words}");
    }

    #[test]
    fn a_replay_of_what_was_recorded_takes_the_same_course() {
        let campaign = campaign(Settings::new());
        let chooser = Arc::new(Chooser::rng(11).recording());
        let workload = Workload::of(&chooser);
        let first = trading::run(&chooser, &campaign.world, &workload, Client::Ours).unwrap();
        let again = campaign.replay(Chooser::tape(chooser.recorded())).unwrap().session;
        assert_eq!((first.seen.trace, first.told), (again.seen.trace, again.told));
    }
}
