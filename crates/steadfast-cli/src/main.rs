//! The `steadfast` command.
//!
//! Data goes to standard output, everything else to standard error. Each verb is a module of its own.

mod account;
mod arena;
mod auth;
mod core_dump;
mod demo;
mod doctor;
mod exit;
mod login;
mod orders;
mod placement;
mod replay;
mod sandbox;
mod secret;
mod signal;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use crate::exit::Failed;

/// Resilient request orchestration for trading over HTTP.
#[derive(Parser)]
#[command(name = "steadfast", version, arg_required_else_help = true)]
#[command(after_help = "STEADFAST_LOG=debug (or any filter of tracing) writes a log to standard error.")]
struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// What is known of the token and of failed logins.
    Auth(auth::Args),
    /// Look for what keeps requests from being accepted.
    Doctor(doctor::Args),
    /// Fetch a token, and keep it for every program of this account.
    Login(login::Args),
    /// Trade for a minute against gateways with faults: this stack, and two other clients beside it.
    Demo(demo::Args),
    /// What earlier runs left in doubt.
    Orders(orders::Args),
    /// Place a file of orders, each of them once.
    Replay(replay::Args),
    /// Run a gateway that enforces the specification, and misbehaves on demand.
    Sandbox(sandbox::Args),
}

fn main() -> ExitCode {
    let args = Args::parse();
    let ended = core_dump::forbid().and_then(|()| log()).and_then(|()| match args.verb {
        Verb::Auth(args) => run(auth::run(args)),
        Verb::Doctor(args) => run(doctor::run(args)),
        Verb::Login(args) => run(login::run(args)),
        Verb::Demo(args) => run(demo::run(args)),
        Verb::Orders(args) => run(orders::run(args)),
        Verb::Replay(args) => run(replay::run(args)),
        Verb::Sandbox(args) => run(sandbox::run(args)),
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            exit::say(&failed);
            failed.code()
        }
    }
}

/// Writes a log to standard error if the environment asks for one.
fn log() -> Result<(), Failed> {
    let Ok(filter) = std::env::var("STEADFAST_LOG") else { return Ok(()) };
    let filter =
        EnvFilter::try_new(filter).map_err(|error| Failed::usage(format_args!("STEADFAST_LOG: {error}")))?;
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    Ok(())
}

/// Runs a verb on a runtime; a worker that has not ended within a second is left behind.
fn run(verb: impl Future<Output = Result<(), Failed>>) -> Result<(), Failed> {
    let runtime = tokio::runtime::Runtime::new().map_err(Failed::error)?;
    let ended = runtime.block_on(verb);
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    ended
}
