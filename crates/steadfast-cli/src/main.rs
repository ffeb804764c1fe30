//! The `steadfast` command.
//!
//! Data goes to standard output, everything else to standard error. Each verb is a module of its own.

mod exit;
mod sandbox;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::exit::Failed;

/// Resilient request orchestration for trading over HTTP.
#[derive(Parser)]
#[command(name = "steadfast", version, arg_required_else_help = true)]
struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run a gateway that enforces the specification, and misbehaves on demand.
    Sandbox(sandbox::Args),
}

fn main() -> ExitCode {
    let args = Args::parse();
    let ended = match args.verb {
        Verb::Sandbox(args) => run(sandbox::run(args)),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            exit::say(&failed);
            failed.code()
        }
    }
}

/// Runs a verb on a runtime; a worker that has not ended within a second is left behind.
fn run(verb: impl Future<Output = Result<(), Failed>>) -> Result<(), Failed> {
    let runtime = tokio::runtime::Runtime::new().map_err(Failed::error)?;
    let ended = runtime.block_on(verb);
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    ended
}
