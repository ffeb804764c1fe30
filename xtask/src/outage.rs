use std::time::Duration;

use anyhow::Result;

use crate::cargo::cargo;
use crate::report::Tally;
use crate::runner::{self, echo};
use crate::workspace::Workspace;

/// The time that a run takes at most beside its cells: the build.
const BESIDE: Duration = Duration::from_secs(15 * 60);
/// How long one takes beside its outage: a search for an order after a killed process, and late sends of the kernel.
const CELL: u64 = 300;
/// How many run at once, of four for each length and time.
const AT_ONCE: u64 = 40;

/// Outages of a real network in the middle of an order, and processes killed in them. It is a test of `steadfast`, which
/// makes the networks.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Their lengths: around the attempt timeout of 30 s, the earliest resend, and the kernel's own tries, whose pauses
    /// double.
    #[arg(long, value_delimiter = ',', default_value = "20,28,33,40,44,49,58,90")]
    #[arg(value_parser = clap::value_parser!(u64).range(2..=600))]
    seconds: Vec<u64>,
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    times: u64,
}

/// Runs the outages; it is one check.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<Tally> {
    let mut command = cargo(&workspace.root);
    command.args(["test", "--package", "steadfast", "--test", "outage", "--", "--nocapture"]);
    command.args(["--exact", "campaign::o01_an_order_in_an_outage_is_placed_once_or_told_to_be_in_doubt"]);
    let lengths: Vec<String> = args.seconds.iter().map(u64::to_string).collect();
    command.env("STEADFAST_OUTAGE_CAMPAIGN", format!("{};{}", lengths.join(","), args.times));
    command.env("STEADFAST_MUST_RUN", "1");
    let cells = 4 * args.times * args.seconds.len() as u64;
    let longest = args.seconds.iter().max().copied().unwrap_or_default();
    let limit = BESIDE + Duration::from_secs(cells.div_ceil(AT_ONCE) * (2 * longest + CELL));
    Ok(runner::count(runner::libtest, &mut command, Some(limit), echo)?.tally)
}
