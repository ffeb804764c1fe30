//! The `steadfast` command.
//!
//! Data goes to standard output, everything else to standard error. Each verb is a module of its own.

mod account;
mod arena;
mod auth;
mod check_config;
mod client;
mod clock;
mod completions;
mod config;
mod core_dump;
mod dead_token;
mod demo;
mod doctor;
mod events;
mod exec;
mod exit;
mod journal;
mod limits;
mod log;
mod login;
mod man;
mod orders;
mod peer;
mod placement;
mod probe;
mod proxy;
mod question;
mod reach;
mod readable;
mod reason;
#[cfg(feature = "redis")]
mod redis;
mod replay;
mod resends;
mod row_name;
mod sandbox;
mod secret;
mod sends;
mod signal;
mod stdout;
mod summary;
mod wait;
mod words;

use std::process::ExitCode;

use clap::{
    Parser, Subcommand,
    error::{ContextKind, ContextValue},
};
use secrecy::SecretString;

use crate::{
    config::{Parsed, Refused},
    exit::Failed,
};

/// Resilient request orchestration for trading over HTTP.
#[derive(Parser)]
#[command(name = "steadfast", version, arg_required_else_help = true)]
#[command(after_help = exit::CODES)]
struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Show what is known of the token and of failed logins.
    Auth(auth::Args),
    /// Look for what keeps requests from being accepted.
    Doctor(doctor::Args),
    /// Run a program with a proxy of its own, in any language.
    Exec(exec::Args),
    /// Fetch a token, and keep it for every program of this account.
    Login(login::Args),
    /// Trade for a minute against gateways with faults: this stack, and two other clients beside it.
    Demo(demo::Args),
    /// List, look for and rule on what earlier runs left in doubt.
    Orders(orders::Args),
    /// Serve the service's paths on a local address, for programs in any language.
    Proxy(proxy::Args),
    /// Place a file of orders, each of them once.
    Replay(replay::Args),
    /// Run a gateway that enforces the specification, and misbehaves on demand.
    Sandbox(sandbox::Args),
    /// Wait until a server answers, such as a sandbox that a script has started.
    Wait(wait::Args),
    /// Say what is wrong with a config file, and start nothing.
    CheckConfig(check_config::Args),
    /// Print what a shell needs to complete this command.
    Completions(completions::Args),
    /// Print the manual page of this command, or write those of all verbs.
    Man(man::Args),
}

fn main() -> ExitCode {
    let begun = core_dump::forbid().map_err(Refused::File);
    let done = match begun.and_then(|()| config::parse(std::env::args_os().collect())) {
        Ok(Parsed::Run(args)) => verb(*args),
        Ok(Parsed::Show(origins)) => config::print::show(&origins),
        Err(Refused::Line(error)) => return refuse(&error),
        Err(Refused::File(failed)) => {
            exit::say(&failed);
            return failed.code();
        }
    };
    match stdout::settle(done) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            exit::say(&failed);
            failed.code()
        }
    }
}

fn verb(args: Args) -> Result<(), Failed> {
    log::begin()?;
    match args.verb {
        Verb::Auth(args) => run(auth::run(args)),
        Verb::Doctor(args) => run(doctor::run(args)),
        Verb::Exec(args) => run(exec::run(args)),
        Verb::Login(args) => run(login::run(args)),
        Verb::Demo(args) => run(demo::run(args)),
        Verb::Orders(args) => run(orders::run(args)),
        Verb::Proxy(args) => run(proxy::run(args)),
        Verb::Replay(args) => run(replay::run(args)),
        Verb::Sandbox(args) => run(sandbox::run(args)),
        Verb::Wait(args) => run(wait::run(args)),
        Verb::Completions(args) => completions::run(&args),
        Verb::CheckConfig(args) => check_config::run(&args),
        Verb::Man(args) => man::run(&args),
    }
}

/// Shows the requested help, or the error in the command line without secrets that it may quote.
fn refuse(error: &clap::Error) -> ExitCode {
    let code = ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
    if !error.use_stderr() {
        stdout::keep(error.print());
        return stdout::settle(Ok(())).map_or_else(|failed| failed.code(), |()| code);
    }
    for name in ["API_KEY", "ACCESS_TOKEN", "PASSWORD", "TOTP_SECRET", "CLIENT_SECRET"] {
        if let Ok(secret) = std::env::var(format!("STEADFAST_{name}")) {
            readable::hide(&SecretString::from(secret));
        }
    }
    // The service's address may have been written without `https://`.
    if let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue)
        && let Some((_, rest)) = value.split_once(['?', '#'])
    {
        readable::hide(&SecretString::from(rest));
    }
    let mut told = error.render().to_string();
    // Only the arguments may hold control characters; the words around them are ours.
    let kinds = [ContextKind::InvalidValue, ContextKind::InvalidSubcommand, ContextKind::InvalidArg];
    for given in kinds.into_iter().filter_map(|kind| error.get(kind)) {
        if let ContextValue::String(given) = given {
            told = told.replace(given.as_str(), &readable::readable(given));
        }
    }
    exit::print_note(told.trim_end());
    code
}

/// Runs a verb on a runtime. A worker that does not end within a second is abandoned.
fn run(verb: impl Future<Output = Result<(), Failed>>) -> Result<(), Failed> {
    let runtime = tokio::runtime::Runtime::new().map_err(Failed::error)?;
    let ended = runtime.block_on(async {
        signal::survive_file_limits();
        verb.await
    });
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    ended
}
