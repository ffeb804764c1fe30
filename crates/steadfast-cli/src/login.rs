//! `steadfast login`: fetches a token and keeps it for every program of the account.

mod flow;
mod progress;
mod typed;
mod wait;

use std::io::IsTerminal;

use serde::Serialize;
use steadfast::{
    auth::{
        AuthError, AuthErrorKind, FileStore, LoginFailure, Status, Summary, TokenSource, TokenStore,
        UnknownEnds,
    },
    call::{causes, one_line},
};

use self::{
    flow::{Flow, source},
    progress::Progress,
    typed::Typed,
};
use crate::{
    account::{self, Account, note_if_held, store_failed},
    clock::seconds,
    exit::{Failed, print_note},
    probe::Probe,
    reach::reach,
    signal::interrupted,
    stdout::{self, print_line},
    summary::{ACCOUNT_BUDGET, BUDGET, MANY_SESSIONS, recent_sessions, throttled, unknown_ends},
};

#[derive(clap::Args)]
#[command(after_help = account::SECRETS)]
pub(crate) struct Args {
    #[command(flatten)]
    account: account::Whose,
    /// How to log in; what the environment has secrets for if absent.
    #[arg(long, value_enum)]
    flow: Option<Flow>,
    /// Log in even if there is a token that is still good. A user has ten sessions.
    #[arg(long)]
    force: bool,
    /// Ask for the address that the browser is sent to, for a browser on another machine.
    #[arg(long)]
    paste: bool,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
    /// Show no progress.
    #[arg(long, short)]
    quiet: bool,
}

/// The object of `login --json`.
#[derive(Debug, Serialize)]
struct Output {
    schema_version: u32,
    result: &'static str,
    /// Seconds since the Unix epoch.
    expires_at: Option<u64>,
    sessions: usize,
    store: String,
}

pub(crate) async fn run(args: Args) -> Result<(), Failed> {
    tokio::select! {
        () = interrupted() => Err(Failed::interrupted(
            "interrupted; a login that has left counts in any case, see `steadfast auth status`",
        )),
        ended = log_in(args) => ended,
    }
}

async fn log_in(args: Args) -> Result<(), Failed> {
    let account = Account::read(args.account).await?;
    let store = account.store()?;
    let path = store.path().display().to_string();
    let flow = flow::choose(args.flow).await?;
    let probe = Probe::new(&account)?;
    let base = account.base.clone();
    let identity = account.identity();
    // A terminal shows the time until the next code.
    let is_shown = flow == Flow::Totp && !args.quiet;
    let is_silent = args.quiet || (is_shown && std::io::stderr().is_terminal());
    let typed = Typed::default();
    loop {
        let source = source(flow, &account, &typed, store.clone(), args.paste, is_silent).await?;
        let restored = source.restore().await.map_err(store_failed)?;
        let held = restored && !args.force && is_accepted(&probe, &source).await?;
        if !held {
            if !args.force {
                spare_sessions(&store).await?;
            }
            // Before a code is asked for or made, since it is valid for half a minute only.
            reach(&base).await?;
            note_if_held(&store).await;
            let progress = Progress::start(is_shown, &source);
            let ended = source.login().await;
            drop(progress);
            match ended {
                Ok(_) => {}
                Err(_) if typed.take_corrected() => continue,
                Err(error) => {
                    return Err(failed(&error, store.summary_of(&identity).await.ok().flatten().as_ref()));
                }
            }
        }
        let result = if held { "already_logged_in" } else { "logged_in" };
        return show(&source.status(), result, path, args.json);
    }
}

/// Returns whether the service still accepts the held token. An answer that proves nothing is no reason for a login.
async fn is_accepted(probe: &Probe, source: &TokenSource) -> Result<bool, Failed> {
    let answer = match probe.with_token(source).await? {
        Ok(probed) if probed.status == 401 => {
            print_note("steadfast: the service refuses the token that was kept: logging in again");
            return Ok(false);
        }
        Ok(probed) if matches!(probed.status, 200 | 403) => return Ok(true),
        Ok(probed) => probed.status.to_string(),
        Err(error) => one_line(causes(&*error)),
    };
    print_note(format_args!("steadfast: whether the service accepts the token is not known ({answer})"));
    Ok(true)
}

/// Refuses a login if the service rejects each new token: another login would not help, and may end a session in use.
async fn spare_sessions(store: &FileStore) -> Result<(), Failed> {
    let Some(summary) = store.summary().await.ok().flatten() else { return Ok(()) };
    let sessions = recent_sessions(&summary);
    if summary.is_refused && !summary.has_worked && sessions >= MANY_SESSIONS {
        return Err(Failed::login_needed(format_args!(
            "the service has refused the last token at its first use, and {sessions} logins of 24 hours approach the ten \
             sessions of a user: find out why with `steadfast doctor`, or log in all the same with --force"
        )));
    }
    Ok(())
}

fn show(status: &Status, result: &'static str, store: String, json: bool) -> Result<(), Failed> {
    if status.sessions >= MANY_SESSIONS {
        print_note(format_args!(
            "steadfast: warning: {} logins in 24 hours, and a user has ten sessions",
            status.sessions
        ));
    }
    stdout::done(format_args!("{}: the token is in {store}", result.replace('_', " ")));
    if json {
        let expires_at = status.expires_at.map(seconds);
        let output = Output { schema_version: 1, result, expires_at, sessions: status.sessions, store };
        print_line(serde_json::to_string(&output).map_err(Failed::error)?);
        return Ok(());
    }
    let result = if result == "logged_in" { "logged in" } else { "already logged in" };
    match status.expires_at {
        Some(at) => print_line(format_args!("{result} until {}", httpdate::fmt_http_date(at))),
        None => print_line(result),
    }
    Ok(())
}

/// Names all that may be wrong, and explains why one wrong password makes two logins.
const TWICE: &str = "\na 401 does not say which of these is wrong: STEADFAST_API_KEY, STEADFAST_CLIENT_ID, STEADFAST_PASSWORD, the \
                     one-time code (or STEADFAST_TOTP_SECRET, or a clock), or this machine's address, which is not registered; \
                     credentials that are refused are tried once more, with the next code, and not a third time";

/// Returns the failure with its causes, and the exit code for what the user has to do.
fn failed(error: &AuthError, summary: Option<&Summary>) -> Failed {
    let mut text = format!("{error:#}");
    let (mut rate_limited, mut no_code, mut refused) = (false, false, false);
    let mut next: Option<&(dyn std::error::Error + 'static)> = std::error::Error::source(error);
    while let Some(cause) = next {
        text.push_str(": ");
        // The error has the time for this process. The next one goes by the store.
        let stored = summary.filter(|_| cause.is::<UnknownEnds>()).and_then(unknown_ends);
        text.push_str(&stored.unwrap_or_else(|| format!("{cause:#}")));
        rate_limited |= matches!(cause.downcast_ref(), Some(LoginFailure::RateLimited { .. }));
        no_code |= matches!(cause.downcast_ref(), Some(LoginFailure::NoCode(_)));
        refused |= matches!(cause.downcast_ref(), Some(LoginFailure::Refused));
        next = cause.source();
    }
    for cause in error.causes() {
        text.push_str("\n  perhaps ");
        text.push_str(&cause.to_string());
    }
    if refused && error.kind() == AuthErrorKind::Latched {
        text.push_str(TWICE);
    }
    if text.contains("cannot listen for the redirect") {
        text.push_str("\nstop what listens there, or use `steadfast login --paste`");
    }
    match error.kind() {
        AuthErrorKind::Latched => Failed::latched(format_args!("{text}\n{}", latched(summary))),
        AuthErrorKind::Unavailable if rate_limited => {
            if let Some(throttled) = summary.and_then(throttled) {
                text.push_str(&format!("\n{throttled}"));
            }
            Failed::rate_limited(text)
        }
        AuthErrorKind::Unavailable if no_code => Failed::login_needed(text),
        AuthErrorKind::Unavailable if is_of_store(error) => Failed::error(text),
        AuthErrorKind::Unavailable => Failed::unavailable(text),
        _ => Failed::login_needed(text),
    }
}

/// Says which tries are spent and left, and the next step. No time ends a latch.
fn latched(summary: Option<&Summary>) -> String {
    let failures = summary.map_or(0, |summary| summary.failures);
    let own = summary.map_or(0, |summary| summary.failures_of_credentials);
    if failures >= ACCOUNT_BUDGET || summary.is_some_and(|summary| summary.needs_reset) {
        format!(
            "{failures} logins of this account have failed since the last that succeeded: 0 of {ACCOUNT_BUDGET} tries are left, \
             and no login with any credentials is sent, however long you wait, so that it is not locked: correct them in \
             every program that logs in to it, and then `steadfast auth reset`"
        )
    } else if own >= BUDGET {
        let left = match ACCOUNT_BUDGET - failures {
            1 => "1 try is".to_owned(),
            left => format!("{left} tries are"),
        };
        format!(
            "0 of {BUDGET} tries with these credentials are left, and no login with them is sent, however long you wait, so that \
             the account is not locked\nif they are wrong: correct them and `steadfast login` again; {left} left\nif they \
             are right: find out why with `steadfast doctor`, and then `steadfast auth reset`"
        )
    } else {
        "no login is sent until then, however long you wait, so that the account is not locked: correct the credentials or \
         the settings and `steadfast login` again, or find out why with `steadfast doctor` and then `steadfast auth reset`"
            .to_owned()
    }
}

fn is_of_store(error: &AuthError) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.is::<steadfast::auth::StoreError>())
}
