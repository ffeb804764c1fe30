//! The `orders` simulation.

use std::process::ExitCode;

/// What the command line of `sim orders` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Prints JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Runs the simulation and prints what it found.
pub fn run(_args: &Args) -> ExitCode {
    ExitCode::FAILURE
}
