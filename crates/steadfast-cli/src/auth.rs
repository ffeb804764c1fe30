//! `steadfast auth`: shows what is known of the token and of failed logins, and forgets either.

use std::time::SystemTime;

use clap::Subcommand;
use secrecy::ExposeSecret;
use serde::Serialize;
use steadfast::auth::{Summary, TokenStore};

use crate::{
    account::{self, Account, note_if_held, store_failed},
    clock::{seconds, wall},
    exit::{Failed, print_note},
    secret::find,
    signal::interrupted,
    stdout::{self, print_line, print_secret},
    summary::{ACCOUNT_BUDGET, BUDGET, is_refused, recent_sessions, refusal, throttled, unknown_ends},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Print the token that the other verbs use, for a program that asks for it. It is a secret.
    Token(Options),
    /// Show the token's life and what is left of the failure budget.
    Status(Options),
    /// Allow logins again, once the cause of the wrong ones is corrected.
    Reset(Options),
    /// Forget the token. Its session lives on at the service, which has no way to end it.
    Logout(Options),
}

#[derive(clap::Args)]
#[command(after_help = account::SECRETS)]
struct Options {
    #[command(flatten)]
    account: account::Whose,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
}

/// The object of `auth status --json`.
#[derive(Debug, Serialize)]
struct Output {
    schema_version: u32,
    /// `valid`, `unverified` if it was never used, `expired`, `refused` or `none`; `given` if the environment has a token,
    /// which replaces the stored one.
    token: &'static str,
    /// Seconds since the Unix epoch.
    expires_at: Option<u64>,
    has_worked: bool,
    /// When the service has refused the token last (401), in seconds since the Unix epoch.
    refused_at: Option<u64>,
    /// Wrong logins of the account since the last success; three latch it.
    failures: u32,
    /// Wrong logins with the credentials used last; two latch them.
    failures_of_credentials: u32,
    latched: bool,
    /// Logins since the last success whose end is unknown; each may have been wrong.
    unknown_ends: u32,
    /// Why the end of the last of them is unknown.
    unknown_why: Option<String>,
    /// Logins in a row that were answered with 429. They count as no failure; the wait for the next one grows to 5 min.
    throttled: u32,
    /// When the next login may leave after them, or follows a refused token, in seconds since the Unix epoch.
    next_login_at: Option<u64>,
    sessions: usize,
    store: String,
}

/// The object of the other verbs' `--json`.
#[derive(Debug, Serialize)]
struct Done {
    schema_version: u32,
    result: &'static str,
    store: String,
}

pub(crate) async fn run(args: Args) -> Result<(), Failed> {
    tokio::select! {
        () = interrupted() => Err(Failed::interrupted("interrupted")),
        ended = act(args) => ended,
    }
}

async fn act(args: Args) -> Result<(), Failed> {
    match args.verb {
        Verb::Token(options) => token(options).await,
        Verb::Status(options) => status(options).await,
        Verb::Reset(options) => {
            let (json, account) = (options.json, Account::read(options.account).await?);
            let store = account.store()?;
            note_if_held(&store).await;
            store.reset_of(&account.identity()).await.map_err(store_failed)?;
            done("reset", "logins are allowed again", store.path().display().to_string(), json)
        }
        Verb::Logout(options) => {
            let (json, store) = (options.json, Account::read(options.account).await?.store()?);
            note_if_held(&store).await;
            store.forget_token().await.map_err(store_failed)?;
            done("logged_out", "token forgotten", store.path().display().to_string(), json)
        }
    }
}

/// The object of `auth token --json`.
#[derive(Debug, Serialize)]
struct Given<'a> {
    schema_version: u32,
    access_token: &'a str,
    /// Seconds since the Unix epoch; `null` for a token of the environment.
    expires_at: Option<u64>,
}

/// Prints the token of the environment, else the stored one. Never logs in.
async fn token(options: Options) -> Result<(), Failed> {
    let account = Account::read(options.account).await?;
    let (token, expires_at) = match find("ACCESS_TOKEN").await? {
        Some(token) => (token, None),
        None => {
            let expires = account.expires().await?;
            (account.kept_token().await?, expires.map(seconds))
        }
    };
    if options.json {
        let given = Given { schema_version: 1, access_token: token.expose_secret(), expires_at };
        print_secret(&serde_json::to_string(&given).map_err(Failed::error)?);
    } else {
        print_secret(token.expose_secret());
    }
    Ok(())
}

async fn status(options: Options) -> Result<(), Failed> {
    let account = Account::read(options.account).await?;
    let store = account.store()?;
    let summary = store.summary_of(&account.identity()).await.map_err(store_failed)?;
    let mut output = Output::new(summary.as_ref(), wall(), store.path().display().to_string());
    if find("ACCESS_TOKEN").await?.is_some() {
        // The other verbs use a given token without looking at the store, and so does this one.
        (output.token, output.expires_at, output.has_worked) = ("given", None, false);
        output.refused_at = None;
        print_note(
            "the token of STEADFAST_ACCESS_TOKEN is used, and not the one that is kept; `steadfast doctor` tries it",
        );
    }
    if options.json {
        print_line(serde_json::to_string(&output).map_err(Failed::error)?);
    } else {
        output.print(summary.as_ref());
    }
    match output.token {
        // A valid token works even if the next login cannot.
        "valid" | "unverified" | "given" => Ok(()),
        _ if output.latched => Err(Failed::latched(
            "logins are latched so that the account is not locked: correct the credentials and `steadfast login`, or \
             see `steadfast doctor` and `steadfast auth reset --help`",
        )),
        _ => Err(Failed::login_needed("no usable token; see `steadfast login --help`")),
    }
}

impl Output {
    fn new(summary: Option<&Summary>, now: SystemTime, store: String) -> Self {
        let issued = summary.and_then(|summary| summary.issued_at);
        let expires = summary.and_then(|summary| summary.expires_at);
        let token = match (issued, expires) {
            (None, _) => "none",
            (Some(_), Some(end)) if end <= now => "expired",
            _ if summary.is_some_and(is_refused) => "refused",
            _ if summary.is_some_and(|summary| summary.has_worked) => "valid",
            (Some(_), _) => "unverified",
        };
        Self {
            schema_version: 1,
            token,
            expires_at: expires.map(seconds),
            has_worked: summary.is_some_and(|summary| summary.has_worked),
            refused_at: summary.and_then(|summary| summary.refused_at).map(seconds),
            failures: summary.map_or(0, |summary| summary.failures),
            failures_of_credentials: summary.map_or(0, |summary| summary.failures_of_credentials),
            latched: summary.is_some_and(|summary| summary.latched),
            unknown_ends: summary.map_or(0, |summary| summary.unknown),
            unknown_why: summary.and_then(|summary| summary.unknown_why.clone()),
            throttled: summary.map_or(0, |summary| summary.throttled),
            next_login_at: summary.and_then(|s| s.next_login_at.max(s.renewed_at)).map(seconds),
            sessions: summary.map_or(0, recent_sessions),
            store,
        }
    }

    fn print(&self, summary: Option<&Summary>) {
        let end = summary.and_then(|summary| summary.expires_at).filter(|_| self.token != "given");
        let never_used = if self.token == "unverified" { ": never used" } else { "" };
        print_line(format_args!("token     {}{never_used}", self.token));
        if let Some(end) = end {
            print_line(format_args!("until     {}", httpdate::fmt_http_date(end)));
        }
        if !matches!(self.token, "none" | "given") {
            let refused = summary.filter(|summary| is_refused(summary)).map(refusal);
            print_line(match (refused, self.has_worked) {
                (Some(refused), true) => format!("accepted  not any more: refused ({refused})"),
                (Some(refused), false) => format!("accepted  never: refused ({refused})"),
                (None, true) => "accepted  yes".to_owned(),
                (None, false) => "accepted  not yet".to_owned(),
            });
        }
        if let Some(next) = summary.and_then(|summary| summary.renewed_at).filter(|_| self.token == "refused")
        {
            print_line(match next > wall() {
                true => {
                    format!("renewal   by the program that uses it, at {}", httpdate::fmt_http_date(next))
                }
                false => "renewal   due, by the program that uses it".to_owned(),
            });
        }
        // Latched without a wrong login: the service refused the request itself (400, 415).
        let refused = self.latched && self.failures < ACCOUNT_BUDGET && self.failures_of_credentials < BUDGET;
        if refused {
            print_line(format_args!(
                "failures  latched: the service refused the login's form (400, 415), not its credentials"
            ));
        } else {
            print_line(format_args!(
                "failures  {} of {ACCOUNT_BUDGET}, {} of {BUDGET} with the credentials used last{}",
                self.failures,
                self.failures_of_credentials,
                if self.latched { ", latched" } else { "" }
            ));
        }
        if let Some(said) = summary.and_then(unknown_ends) {
            print_line(format_args!("unknown   {said}"));
        }
        if let Some(said) = summary.and_then(throttled) {
            print_line(format_args!("limited   {said}"));
        }
        print_line(format_args!("sessions  {} of 10 in 24 hours", self.sessions));
        print_line(format_args!("store     {}", self.store));
    }
}

fn done(result: &'static str, said: &str, store: String, json: bool) -> Result<(), Failed> {
    stdout::done(format_args!("it is done: {said}"));
    if json {
        let done = Done { schema_version: 1, result, store };
        print_line(serde_json::to_string(&done).map_err(Failed::error)?);
    } else {
        print_line(said);
    }
    Ok(())
}
