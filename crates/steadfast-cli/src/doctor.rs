//! `steadfast doctor`: looks for reasons why requests are not accepted, without a login or an order.

mod causes;
mod finding;
#[cfg(feature = "redis")]
mod shared_store;
mod token;

use std::net::UdpSocket;

use serde::Serialize;
use steadfast::{
    Transport,
    auth::{BrowserLogin, Cause, CodeSource, FileStore, Summary, TokenStore},
    call,
};

use self::{
    causes::clock,
    finding::{Finding, Findings},
    token::Tried,
};
use crate::{
    account::{self, Account, store_failed},
    exit::Failed,
    limits::Limits,
    probe::Probe,
    secret::{self, find},
    signal::interrupted,
    stdout::print_line,
    summary::{ACCOUNT_BUDGET, MANY_SESSIONS, recent_sessions, unknown_ends},
};

#[derive(clap::Args)]
#[command(after_help = account::SECRETS)]
pub(crate) struct Args {
    #[command(flatten)]
    account: account::Whose,
    #[cfg(feature = "redis")]
    #[command(flatten)]
    redis: crate::redis::Redis,
    /// Print the findings as one JSON object.
    #[arg(long)]
    json: bool,
}

/// The object of `doctor --json`.
#[derive(Debug, Serialize)]
struct Output<'a> {
    schema_version: u32,
    findings: &'a [Finding],
    /// Why the service may answer 401, the most likely cause first.
    causes: Vec<String>,
}

pub(crate) async fn run(args: Args) -> Result<(), Failed> {
    tokio::select! {
        () = interrupted() => Err(Failed::interrupted("interrupted")),
        ended = examine(args) => ended,
    }
}

async fn examine(args: Args) -> Result<(), Failed> {
    let account = Account::read(args.account).await?;
    let mut findings = Findings::default();
    findings.fine("base_url", &account.base);
    findings.fine("api_key", "can stand in a header");
    secrets(&mut findings);
    let summary = store(&account, &mut findings).await;
    limits(&account, &mut findings);
    #[cfg(feature = "redis")]
    shared_store::examine(args.redis, &mut findings).await;
    redirect(&account, &mut findings).await;
    address(&account, &mut findings);
    let causes = service(&account, summary, &mut findings).await?;

    if args.json {
        let causes = causes.iter().map(ToString::to_string).collect();
        let output = Output { schema_version: 1, findings: findings.all(), causes };
        print_line(serde_json::to_string(&output).map_err(Failed::error)?);
    } else {
        for finding in findings.all() {
            print_line(finding);
        }
        for (rank, cause) in (1..).zip(&causes) {
            print_line(format_args!("a 401 may be because: {rank}. {cause}"));
        }
    }
    if findings.any_bad() {
        return Err(Failed::already_said());
    }
    if findings.any_unchecked() {
        return Err(Failed::login_needed("the login was not checked: no token was accepted or refused"));
    }
    Ok(())
}

/// Checks the files that give secrets, also those that only a login needs.
fn secrets(findings: &mut Findings) {
    let (readable, unreadable): (Vec<_>, Vec<_>) =
        secret::files().into_iter().partition(|(_, read)| read.is_ok());
    if !readable.is_empty() {
        let names: Vec<_> = readable.into_iter().map(|(by, _)| by).collect();
        findings.fine("secrets", format_args!("can be read: {}", names.join(", ")));
    }
    unreadable
        .into_iter()
        .filter_map(|(_, read)| read.err())
        .for_each(|failed| findings.bad("secrets", failed));
}

/// Checks whether the store can be used, and returns its counts of failures and sessions.
async fn store(account: &Account, findings: &mut Findings) -> Result<Option<Summary>, Unusable> {
    let read = async {
        let store = FileStore::open(account.path()?).map_err(store_failed)?;
        let summary = store.summary_of(&account.identity()).await.map_err(store_failed)?;
        Ok::<_, Failed>((store.path().display().to_string(), summary))
    };
    let (path, summary) = match read.await {
        Ok(read) => read,
        Err(failed) => {
            findings.bad("store", failed);
            return Err(Unusable);
        }
    };
    findings.fine("store", format_args!("{path}, its owner's alone"));
    let Some(summary) = summary else { return Ok(None) };
    match summary.failures {
        _ if summary.needs_reset => {
            findings.bad(
                "logins",
                "latched, whatever the credentials: correct them, then `steadfast auth reset`",
            );
        }
        _ if summary.latched => {
            findings.bad("logins", "latched: correct the credentials, or see `steadfast auth reset --help`");
        }
        0 if summary.unknown > 0 => {
            findings.doubtful("logins", unknown_ends(&summary).unwrap_or_default());
        }
        0 => findings.fine("logins", "none has failed since the last success"),
        failures => {
            findings.doubtful("logins", format_args!("{failures} of {ACCOUNT_BUDGET} failures spent"))
        }
    }
    let sessions = recent_sessions(&summary);
    match sessions {
        many if many >= MANY_SESSIONS => {
            findings
                .doubtful("sessions", format_args!("{many} logins in 24 hours, and a user has ten sessions"));
        }
        few => findings.fine("sessions", format_args!("{few} of 10 in 24 hours")),
    }
    Ok(Some(summary))
}

/// Names the file in which the verbs of this account tell each other what they have spent.
fn limits(account: &Account, findings: &mut Findings) {
    match Limits::of(account).path() {
        Some(path) => {
            findings.fine("limits", format_args!("spent requests are counted in {}", path.display()))
        }
        None => {
            findings.doubtful("limits", "each command counts by itself, because the store cannot be used")
        }
    }
}

/// The store cannot be used.
#[derive(Clone, Copy, Debug)]
struct Unusable;

/// Checks whether the redirect's port is free.
async fn redirect(account: &Account, findings: &mut Findings) {
    use secrecy::ExposeSecret;
    let uri = match find("REDIRECT_URI").await {
        Ok(Some(uri)) => uri.expose_secret().to_owned(),
        Ok(None) => return,
        Err(failed) => return findings.bad("redirect", failed),
    };
    match BrowserLogin::new(&account.base, account.api_key.clone(), uri.clone(), |_| ()) {
        Err(error) => findings.bad("redirect", error),
        Ok(browser) => match browser.patience(std::time::Duration::ZERO).code().await {
            // It could listen, and no browser came within zero time.
            Err(error) if error.source().is_none() && !error.is::<steadfast::auth::InvalidRedirect>() => {
                findings.fine("redirect", format_args!("{uri} is free"));
            }
            Err(error) => findings.bad("redirect", chain(&*error)),
            Ok(_) => {}
        },
    }
}

/// Reports the local address of requests, as far as this machine knows.
fn address(account: &Account, findings: &mut Findings) {
    let uri = account.base.uri();
    let port = uri.port_u16().unwrap_or(443);
    // Connecting a datagram socket sends nothing; it only looks up the route.
    let local = UdpSocket::bind(("0.0.0.0", 0)).and_then(|socket| {
        socket.connect((uri.host().unwrap_or_default(), port))?;
        socket.local_addr()
    });
    match local {
        Ok(local) => findings.fine(
            "address",
            format_args!("requests leave from {}; behind NAT the service sees another one", local.ip()),
        ),
        Err(error) => findings.doubtful("address", format_args!("no route to the service: {error}")),
    }
}

/// Probes the service without and with the token.
async fn service(
    account: &Account,
    summary: Result<Option<Summary>, Unusable>,
    findings: &mut Findings,
) -> Result<Vec<Cause>, Failed> {
    let probe = Probe::new(account)?;
    if let Err(error) = Transport::new().reach(&account.base).await {
        findings.bad("service", error);
        return Ok(Vec::new());
    }
    let bare = match probe.without_token().await {
        Ok(bare) => bare,
        Err(error) => {
            findings.bad("service", format_args!("no answer: {}", chain(&*error)));
            return Ok(Vec::new());
        }
    };
    match bare.status {
        // §5.7: a missing header gives 401, so the path below /v2 was found.
        401 => findings.fine("service", "answers below /v2, and wants credentials"),
        404 => {
            findings.bad("service", "404: paths do not resolve; is the base url the one that ends in /v2?")
        }
        429 => findings.doubtful("service", "429: the limits are used up at the moment"),
        500.. => findings.bad("service", format_args!("{}: try again in a minute", bare.status)),
        status => findings.doubtful("service", format_args!("{status} where 401 was expected")),
    }
    let offset = clock(&bare, findings);
    let tried = Tried { probe: &probe, account, is_refused_without: bare.status == 401, offset };
    match find("ACCESS_TOKEN").await? {
        Some(token) => tried.given(token, findings).await,
        None => tried.stored(summary, findings).await,
    }
}

/// Returns an error with its causes, in one line.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    call::one_line(call::causes(error))
}
