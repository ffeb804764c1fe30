use std::{
    io::IsTerminal,
    sync::atomic::{AtomicBool, Ordering},
};

use clap::ValueEnum;
use secrecy::ExposeSecret;
use steadfast::{
    BoxError, LimiterGate, Transport,
    auth::{
        BrowserLogin, CodeExchange, FileStore, IndividualLogin, OneTimeCode, TokenSource, TokenStore,
        TotpSecret,
    },
    limit::Account as LimitAccount,
};

use crate::{
    account::Account,
    exit::{Failed, print_note},
    limits::zones,
    login::{
        typed::Typed,
        wait::{self, REFUSED},
    },
    secret::{ask, code_command, find, find_or_ask, origin, printed_by},
};

/// A way to log in (§5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Flow {
    /// With codes made from an authenticator's secret.
    Totp,
    /// With a code from a message: asked for, or printed by STEADFAST_OTP_COMMAND.
    Otp,
    /// In a browser.
    Browser,
}

/// Returns the requested flow, or the one for which there are secrets.
pub(super) async fn choose(asked: Option<Flow>) -> Result<Flow, Failed> {
    if let Some(flow) = asked {
        return Ok(flow);
    }
    for (name, flow) in [("TOTP_SECRET", Flow::Totp), ("CLIENT_SECRET", Flow::Browser)] {
        if origin(name)?.is_some() {
            return Ok(flow);
        }
    }
    Ok(Flow::Otp)
}

/// Creates a source that logs in by `flow` and shares its token through `store`.
pub(super) async fn source(
    flow: Flow,
    account: &Account,
    typed: &Typed,
    store: FileStore,
    paste: bool,
    is_silent: bool,
) -> Result<TokenSource, Failed> {
    let Account { base, api_key, client_id, .. } = account;
    let transport = Transport::new().to(base).map_err(Failed::error)?;
    let limits = zones().build().map_err(Failed::error)?;
    let gate = LimiterGate::new(limits, base, LimitAccount::default());
    let builder = match flow {
        Flow::Totp => {
            let secret = find_or_ask("TOTP_SECRET", "TOTP secret").await?;
            let secret = TotpSecret::new(secret)
                .map_err(|error| Failed::usage(format_args!("STEADFAST_TOTP_SECRET: {error}")))?;
            let credentials = typed.credentials(account).await?;
            let login = IndividualLogin::totp(transport, base, api_key.clone(), credentials, secret);
            TokenSource::builder(api_key.clone(), login.map_err(Failed::usage)?.gate(gate))
        }
        Flow::Otp => {
            let credentials = typed.credentials(account).await?;
            let (asked, kept, typed) = (AtomicBool::new(false), store.clone(), typed.clone());
            let codes = move || {
                let again = asked.swap(true, Ordering::Relaxed);
                one_time_code(again.then(|| (kept.clone(), typed.clone())))
            };
            let login = IndividualLogin::otp(transport, base, api_key.clone(), credentials, codes);
            TokenSource::builder(api_key.clone(), login.map_err(Failed::usage)?.gate(gate))
        }
        Flow::Browser => {
            let secret = find_or_ask("CLIENT_SECRET", "client secret").await?;
            let redirect = find("REDIRECT_URI").await?.ok_or_else(|| {
                Failed::usage("STEADFAST_REDIRECT_URI is not set: the redirect registered with the app")
            })?;
            let redirect = redirect.expose_secret().to_owned();
            let browser = BrowserLogin::new(base, api_key.clone(), redirect.clone(), |address| {
                crate::exit::print_address(format_args!("Open this address and log in:\n\n{address}\n"));
            });
            let browser = browser.map_err(Failed::usage)?;
            let (base, key) = (base, api_key.clone());
            if paste {
                let asked = AtomicBool::new(false);
                let browser = browser.paste(move || pasted_address(asked.swap(true, Ordering::Relaxed)));
                let login = CodeExchange::new(transport, base, key, secret, redirect, browser);
                let login = login.map_err(Failed::usage)?.user(account.user());
                TokenSource::builder(api_key.clone(), login.gate(gate))
            } else {
                let login = CodeExchange::new(transport, base, key, secret, redirect, browser);
                let login = login.map_err(Failed::usage)?.user(account.user());
                TokenSource::builder(api_key.clone(), login.gate(gate))
            }
        }
    };
    let builder = if is_silent { builder } else { builder.on_login_wait(wait::note) };
    // A user who was asked for his name is not asked by the verbs that use the token.
    Ok(if client_id.is_some() { builder.store(store) } else { builder.unnamed_store(store) }.build())
}

/// Gets a code from a message, by a command or by asking. `again` has the store, and what was typed, if the user is asked for
/// another code. It fails if that has corrected the rest: the code is for another login then.
async fn one_time_code(again: Option<(FileStore, Typed)>) -> Result<OneTimeCode, BoxError> {
    let failed = |failed: Failed| -> BoxError { failed.to_string().into() };
    if let Some((command, by)) = code_command().map_err(failed)? {
        return Ok(OneTimeCode::new(printed_by(&command, &by).await.map_err(failed)?));
    }
    if let Some((store, credentials)) = again {
        let refused = store.summary().await?.is_some_and(|summary| summary.failures > 0);
        if refused {
            print_note(format_args!(
                "steadfast: {REFUSED}; one more refusal stops these logins, and Ctrl-C is safe"
            ));
        } else {
            print_note("steadfast: the service did not look at that code; a fresh one is needed");
        }
        if refused && std::io::stdin().is_terminal() && credentials.correct().await? {
            return Err("other credentials were typed".into());
        }
    }
    typed(
        "one-time code",
        "no terminal to ask for a code at: set STEADFAST_TOTP_SECRET or STEADFAST_OTP_COMMAND, see --help",
    )
    .await
}

async fn pasted_address(again: bool) -> Result<OneTimeCode, BoxError> {
    if again {
        print_note(
            "steadfast: that is not the address of this login; copy all of what the browser shows after it",
        );
    }
    typed("the address that the browser was sent to", "no terminal to paste the address at").await
}

async fn typed(prompt: &str, no_terminal: &'static str) -> Result<OneTimeCode, BoxError> {
    if !std::io::stdin().is_terminal() {
        return Err(no_terminal.into());
    }
    Ok(OneTimeCode::new(ask(prompt).await?))
}
