use std::time::UNIX_EPOCH;

use http::HeaderValue;
use http_body_util::BodyExt;
use steadfast::{
    Access, Client, Operation, OrderRequest, Paths, TotpCredentials,
    call::WallClock,
    dedup::{Resolution, Settings},
};
use steadfast_sandbox::Credentials;

use super::contender::{Contender, How, Told};
use crate::{
    arena::Arena,
    exit::Failed,
    placement::{self, INTENT, Placement, Tell},
};

const DAY: u64 = 86_400;

/// This project's client, with its defaults.
pub(crate) struct Stack(Client);

impl Stack {
    /// Creates a client of `arena` that logs in by itself.
    pub(crate) fn totp(arena: &Arena) -> Result<Self, Failed> {
        let Credentials { api_key, client_id, password, totp_secret, .. } = arena.credentials.clone();
        let access = Access::totp(TotpCredentials {
            api_key: api_key.into(),
            client_id: client_id.into(),
            password: password.into(),
            totp_secret: totp_secret.into(),
        });
        Self::new(arena, access.map_err(Failed::error)?)
    }

    /// Creates a client of `arena` with an existing token, so that no code has to be waited for.
    #[cfg(test)]
    pub(crate) fn with_token(arena: &Arena) -> Result<Self, Failed> {
        let Credentials { api_key, access_token, .. } = arena.credentials.clone();
        Self::new(arena, Access::token(api_key, access_token).map_err(Failed::error)?)
    }

    fn new(arena: &Arena, access: Access) -> Result<Self, Failed> {
        let base = arena.credentials.base_url.parse().map_err(Failed::error)?;
        // The gateway takes cancels at the publicly documented path, which the specification does not show.
        let client = Client::builder(base, access).paths(Paths::public()).order_safety(at_noon()).build();
        client.map(Self).map_err(Failed::error)
    }

    /// Sends a call and reads its answer to the end.
    async fn read(&self, name: &str, operation: &Operation) {
        let Ok(mut request) = self.0.request(operation) else { return };
        if let Ok(name) = HeaderValue::from_str(name) {
            request.headers_mut().insert(INTENT, name);
        }
        if let Ok(response) = self.0.raw(request).await {
            let _ = response.into_body().collect().await;
        }
    }
}

/// Shifts the trading day so that it is noon now: near midnight a lost order is not sent again, and the demo shows that it is.
fn at_noon() -> Settings {
    let clock = WallClock::system();
    let since_midnight = clock.now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs() % DAY);
    let offset = (DAY / 2).cast_signed() - since_midnight.cast_signed();
    Settings::default().trading_day(clock, i32::try_from(offset).unwrap_or_default())
}

impl From<Placement> for Told {
    fn from(placement: Placement) -> Self {
        match placement {
            Placement::Placed { order_id, resolution, .. } => {
                let how = match resolution {
                    Some(Resolution::Recovered { .. }) => How::Found,
                    Some(Resolution::Resent) => How::SentAgain,
                    _ => How::Acknowledged,
                };
                Self::Placed { order_id, how }
            }
            // The demo never halts. Nothing of such an order has left.
            Placement::Refused { .. } | Placement::NotExecuted { .. } | Placement::NotSent { .. } => {
                Self::Rejected
            }
            Placement::NotObserved { .. } => Self::NotObserved,
            Placement::Unresolved { reason, .. } => Self::Unresolved(reason),
        }
    }
}

impl Contender for Stack {
    async fn prepare(&self) -> Result<(), String> {
        if self.0.tokens().token().is_some() {
            return Ok(());
        }
        self.0.tokens().login().await.map_err(|error| error.to_string())
    }

    async fn place(&self, name: &str, order: &OrderRequest) -> Told {
        placement::place(&self.0, name, order, Tell::Sandbox).await.into()
    }

    async fn cancel(&self, name: &str, order_id: &str) {
        self.read(name, &Operation::cancel_order(order_id)).await;
    }

    async fn poll(&self, name: &str) {
        self.read(name, &Operation::orders()).await;
    }

    fn in_doubt(&self) -> usize {
        self.0.in_doubt()
    }

    async fn finish(&self) {
        self.0.shutdown().await;
    }
}
