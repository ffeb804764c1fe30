//! Whether the service accepts the account's token, as the client knows it.

use std::time::Duration;

use http::StatusCode;
use parking_lot::Mutex;
use steadfast::{
    Client,
    auth::{Status, TokenPhase},
    call::WallClock,
    deadline::DeadlineLayer,
};
use tokio::time::{Instant, timeout};

use crate::answer::Own;

/// How often a list is read, while orders are asked for and no token is accepted.
const EACH: Duration = Duration::from_secs(5);
/// How long that list may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long an order waits for the store of the token.
const LOOK: Duration = Duration::from_secs(1);

/// Returns why requests that need a token fail now, and when the next login starts by itself; `None` if they do not.
pub(crate) fn trouble(status: &Status) -> Option<String> {
    if !status.unusable {
        return None;
    }
    let why = match status.phase {
        TokenPhase::Suspect => "the service refuses the token (401)",
        TokenPhase::Latched => "there is no token, and logins have stopped until a reset",
        TokenPhase::NeedsHuman => "there is no token, and only a person can log in",
        _ => "there is no usable token",
    };
    let next = match status.next_login_at {
        Some(at) => format!("the next login starts at {}", httpdate::fmt_http_date(at)),
        None => "no login starts by itself".to_owned(),
    };
    Some(format!("{why}; {next}"))
}

/// Refuses orders while no token is accepted: one that is sent is answered with 401, which no list can confirm, so that
/// it would end in doubt.
///
/// A refused order has the token looked for: in the store, where a login of another process puts it, and once in five
/// seconds by a read of the order list, which the service may accept again.
#[derive(Debug)]
pub(crate) struct TokenGuard {
    clock: WallClock,
    /// When the next list may be read.
    next: Mutex<Instant>,
}

impl Default for TokenGuard {
    fn default() -> Self {
        Self { clock: WallClock::system(), next: Mutex::new(Instant::now()) }
    }
}

impl TokenGuard {
    /// Returns the answer to an order that would be refused; `None` if it may be sent.
    pub(crate) async fn refusal(&self, client: &Client) -> Option<Own> {
        let tokens = client.tokens();
        trouble(&tokens.status())?;
        // The list is read without it, too.
        let _ = timeout(LOOK, tokens.restore()).await;
        let status = tokens.status();
        let why = trouble(&status)?;
        self.read_list(client);
        let details = format!("the order was not sent: {why}");
        let own = Own::new(StatusCode::SERVICE_UNAVAILABLE, "http_request_denied", &details);
        Some(match status.next_login_at {
            Some(at) => own.retry_after(at.duration_since(self.clock.now()).unwrap_or_default()),
            None => own,
        })
    }

    /// Reads the order list, once in five seconds at most: its answer says whether a token is accepted, and the date.
    pub(crate) fn read_list(&self, client: &Client) {
        let now = Instant::now();
        let mut next = self.next.lock();
        if now < *next {
            return;
        }
        *next = now + EACH;
        let client = client.with_deadline(DeadlineLayer::new(PATIENCE));
        tokio::spawn(async move {
            if let Err(error) = client.orders().await {
                tracing::debug!(%error, "order list cannot be read yet");
            }
        });
    }
}
