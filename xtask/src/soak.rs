use std::time::Duration;

use anyhow::Result;

use crate::cargo::cargo;
use crate::report::Tally;
use crate::runner::{self, echo};
use crate::workspace::Workspace;

/// The time that a run takes beside the soak itself: the build, and orders that are in doubt at its end.
const BESIDE: u64 = 15;

/// A client's process and a gateway's under faults: nothing may grow. It is a test of `steadfast-cli`, which has both.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    minutes: u64,
    /// Lets the client leak, which has to be found.
    #[arg(long)]
    leak: bool,
}

/// Soaks; it is one check.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<Tally> {
    let mut command = cargo(&workspace.root);
    command.args(["test", "--profile", "deep", "--package", "steadfast-cli", "--test", "soak"]);
    command.args(["--", "--exact", "nothing_of_a_client_grows", "--nocapture"]);
    command.env("STEADFAST_SOAK_MINUTES", args.minutes.to_string());
    if args.leak {
        command.env("STEADFAST_SOAK_LEAK", "1");
    }
    let limit = Duration::from_secs(60 * (args.minutes + BESIDE));
    Ok(runner::count(runner::libtest, &mut command, Some(limit), echo)?.tally)
}
