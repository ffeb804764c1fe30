//! Finds a token that the service refuses for good, before an order or a search is spent on it.

use std::time::Duration;

use steadfast::{Client, deadline::DeadlineLayer};

use crate::{
    account::{LOG_IN, keep_refusal},
    exit::Failed,
    placement::Hindrance,
};

/// How long a list may take. A service that does not answer is not the token's fault.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long after its first refusal a token is tried once more: one 401 may be a mistake of the service, or come from a
/// part of it that does not know a new token yet.
const UNTIL_KNOWN: Duration = Duration::from_millis(2_100);

/// Reads the order list once, and a second time after a 401. If the token is refused for good, it says so with what was
/// `not_done`, and what is to be run `again` after the login.
pub(crate) async fn refuse_dead_token(client: &Client, not_done: &str, again: &str) -> Result<(), Failed> {
    let hurried = client.with_deadline(DeadlineLayer::new(PATIENCE));
    let mut list = hurried.orders().await;
    if list.as_ref().is_err_and(|error| Hindrance::of(error) == Hindrance::Login) {
        tokio::time::sleep(UNTIL_KNOWN).await;
        list = hurried.orders().await;
    }
    let Err(error) = list else { return Ok(()) };
    let why = Hindrance::of(&error);
    if !why.is_for_good() {
        return Ok(());
    }
    keep_refusal(client.tokens()).await;
    client.shutdown().await;
    let told = format!("{error}: {not_done}");
    Err(match why {
        Hindrance::Latched => Failed::latched(format_args!("{told}; see `steadfast auth reset --help`")),
        _ => Failed::login_needed(format_args!("{told}; {LOG_IN}, then {again} again")),
    })
}
