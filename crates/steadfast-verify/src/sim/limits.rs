//! The `limits` simulation: how many 429s each limiter gets from each way of counting, behind each network.
//!
//! Clients, gateways, lines and demands are combined in virtual time; in each combination every client meets the same
//! draws. steadfast's pure core and governor are driven by instants; tower, tower-resilience and leaky-bucket run on
//! tokio's paused clock. The gateways are the sandbox's enforcers, with new phases and clocks in every session.
//!
//! A row that promises no 429 fails if it has one, or if some stretch of a window's length held more than the window's
//! limit at the gateway, by an independent count.

mod args;
mod campaign;
mod client;
mod contender;
mod demand;
mod gateway;
mod json;
mod load;
mod losses;
mod matrix;
mod ours;
mod peers;
mod play;
mod plots;
mod restless;
mod row;
mod seeds;
mod session;
mod table;
mod tally;
#[cfg(test)]
mod tests;
mod tokio_peers;
mod words;

use std::io;

use tower::BoxError;

pub use self::args::Args;
use crate::sim::console::complain;

/// Runs the simulation and prints the result. True if every promise was kept.
///
/// # Errors
///
/// The error of a peer, of standard output, or of writing the plots.
pub fn run(args: &Args) -> Result<bool, BoxError> {
    let campaign = args.campaign();
    if campaign.rows.is_empty() {
        return Err("no row has such a name".into());
    }
    complain(format_args!(
        "seed {}, {} rows, {} threads",
        campaign.seed,
        campaign.rows.len(),
        campaign.threads
    ));
    let outcome = campaign.run(|outcome| {
        complain(format_args!(
            "round {} after {:.0} s: {} sends where no 429 is promised, {} rows broken",
            outcome.rounds,
            outcome.took.as_secs_f64(),
            words::grouped(outcome.promised_sends()),
            outcome.broken().count(),
        ));
    })?;
    let out = io::stdout().lock();
    if args.json {
        json::write(&outcome, out)?
    } else {
        table::write(&campaign, &outcome, out)?
    }
    if let Some(folder) = &args.plots {
        plots::write(&outcome, folder)?;
    }
    let promised = outcome.sum(row::Row::promises_zero);
    complain(format_args!(
        "figures: promised_sends={} promised_429={} overfull={} seed_range={}..{}",
        outcome.promised_sends(),
        promised.avoidable_429(),
        promised.overfull,
        campaign.seed,
        campaign.seed.saturating_add(1),
    ));
    Ok(outcome.broken().next().is_none())
}
