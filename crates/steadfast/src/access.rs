mod totp;

use std::{error::Error, fmt};

use secrecy::{ExposeSecret, SecretString};
use steadfast_auth::{
    ApiKey, Credentials, FileStore, Identity, IndividualLogin, InvalidSecret, Stored, TokenSource,
    TokenSourceBuilder, TotpSecret,
};
use steadfast_dedup::OrderTracker;
use steadfast_limit::{Account, ColdStart, InvalidLimiter, TokenOrigin, ZoneLimiter};
use steadfast_spec::BaseUrl;

pub use self::totp::TotpCredentials;
use crate::{gate::LimiterGate, invalid_client::InvalidClient, transport::Transport};

/// How a [`Client`](crate::Client) gets its tokens (§5.4).
#[derive(Debug)]
#[must_use]
pub struct Access {
    kind: Kind,
    store: Option<FileStore>,
    #[cfg(feature = "redis")]
    shared_store: Option<steadfast_redis::RedisStore>,
}

enum Kind {
    Totp { api_key: ApiKey, credentials: Credentials, secret: TotpSecret },
    Stored { api_key: ApiKey, client_id: SecretString },
    Given(TokenSource),
    Source(TokenSource),
}

impl Access {
    /// Uses a token that another program obtained. It is never renewed.
    ///
    /// # Errors
    ///
    /// [`InvalidAccess`] naming the value that cannot stand in a header; it does not echo it.
    pub fn token(
        api_key: impl Into<SecretString>,
        token: impl Into<SecretString>,
    ) -> Result<Self, InvalidAccess> {
        let source = TokenSource::fixed(key(api_key)?, token);
        Ok(Self::of(Kind::Given(source.map_err(|source| InvalidAccess { value: "access_token", source })?)))
    }

    /// Logs in with the secret of an authenticator app, in base32 (§4.3).
    ///
    /// # Errors
    ///
    /// [`InvalidAccess`] naming the value that cannot be used; it does not echo it.
    pub fn totp(credentials: TotpCredentials) -> Result<Self, InvalidAccess> {
        let TotpCredentials { api_key, client_id, password, totp_secret } = credentials;
        for (value, given) in [("client_id", &client_id), ("password", &password)] {
            if given.expose_secret().is_empty() {
                return Err(InvalidAccess { value, source: InvalidSecret::Empty });
            }
        }
        let secret =
            TotpSecret::new(totp_secret).map_err(|source| InvalidAccess { value: "totp_secret", source })?;
        let credentials = Credentials::new(client_id, password);
        Ok(Self::of(Kind::Totp { api_key: key(api_key)?, credentials, secret }))
    }

    /// Uses tokens that another program, such as `steadfast login`, fetches and keeps in `store`. No password is
    /// needed. `client_id` is empty where that program knows none.
    ///
    /// # Errors
    ///
    /// [`InvalidAccess`] naming the value that cannot be used; it does not echo it.
    pub fn stored(
        api_key: impl Into<SecretString>,
        client_id: impl Into<SecretString>,
        store: FileStore,
    ) -> Result<Self, InvalidAccess> {
        let kind = Kind::Stored { api_key: key(api_key)?, client_id: client_id.into() };
        Ok(Self { store: Some(store), ..Self::of(kind) })
    }

    /// Uses tokens from a source that the caller has built.
    pub fn source(source: TokenSource) -> Self {
        Self::of(Kind::Source(source))
    }

    /// Keeps the token and the failure budget in a file, for restarts and for other programs of the account.
    ///
    /// Has no effect on a given token or on a source of the caller's own.
    pub fn store(self, store: FileStore) -> Self {
        Self { store: Some(store), ..self }
    }

    /// Keeps the token and the failure budget where the processes of all machines find them. It takes the place of a
    /// [file](Self::store).
    ///
    /// Has no effect on a given token or on a source of the caller's own.
    #[cfg(feature = "redis")]
    pub fn shared_store(self, store: steadfast_redis::RedisStore) -> Self {
        Self { shared_store: Some(store), ..self }
    }

    fn of(kind: Kind) -> Self {
        Self {
            kind,
            store: None,
            #[cfg(feature = "redis")]
            shared_store: None,
        }
    }

    /// Returns the default rate limits. What a stored token has spent is kept beside it, because the gateway counts per
    /// token, not per process. `ends`: the connections of a process end with it.
    pub(crate) fn limiter(
        &self,
        base: &BaseUrl,
        account: &Account,
        ends: bool,
    ) -> Result<ZoneLimiter, InvalidLimiter> {
        let kept = matches!(self.kind, Kind::Totp { .. } | Kind::Stored { .. });
        let Some(store) = self.store.as_ref().filter(|_| kept) else { return Ok(ZoneLimiter::preset()) };
        let mut path = store.path().as_os_str().to_owned();
        path.push(".limits");
        let preset = || {
            let preset = ZoneLimiter::builder().preset();
            if ends { preset.ends_with_process() } else { preset }
        };
        let limiter = match preset().cold_start(ColdStart::Journal(path.into())).build() {
            Err(InvalidLimiter::JournalInUse(path)) => {
                tracing::warn!(
                    path = %path.display(),
                    "another client uses the stored token; neither sees what the other spends"
                );
                return preset().build();
            }
            built => built?,
        };
        if store.path().exists() {
            let authority = base.uri().authority().map(ToString::to_string).unwrap_or_default();
            limiter.token_is(limiter.keys(&authority, account), TokenOrigin::Stored);
        }
        Ok(limiter)
    }

    /// Builds the token source. Its logins take permits at `gate`; it starts no early renewal while an order is in
    /// doubt.
    pub(crate) fn into_source(
        self,
        base: &BaseUrl,
        transport: &Transport,
        gate: LimiterGate,
        tracker: &OrderTracker,
    ) -> Result<TokenSource, InvalidClient> {
        let kept = |builder: TokenSourceBuilder| match self.store {
            Some(store) => builder.store(store),
            None => builder,
        };
        // The last one given counts.
        #[cfg(feature = "redis")]
        let kept = |builder: TokenSourceBuilder| match self.shared_store {
            Some(store) => kept(builder).store(store),
            None => kept(builder),
        };
        Ok(match self.kind {
            Kind::Source(source) => source,
            Kind::Given(source) => {
                gate.begin(TokenOrigin::Given);
                source
            }
            Kind::Stored { api_key, client_id } => {
                let identity = Identity::new(&base.to_string(), &api_key, client_id.expose_secret());
                kept(TokenSource::builder(api_key, Stored::new(identity))).build()
            }
            Kind::Totp { api_key, credentials, secret } => {
                let over = transport.to(base).map_err(InvalidClient::Tls)?;
                let login = IndividualLogin::totp(over, base, api_key.clone(), credentials, secret)
                    .map_err(InvalidClient::BaseUrl)?
                    .gate(gate);
                #[cfg(feature = "metrics")]
                let login = crate::metrics::MeteredLogin::new(login);
                kept(after_doubt(TokenSource::builder(api_key, login), tracker)).build()
            }
        })
    }
}

/// Delays renewals that can wait while an order is in doubt: a new session may not list the orders of the old one.
fn after_doubt(builder: TokenSourceBuilder, tracker: &OrderTracker) -> TokenSourceBuilder {
    // Weak, to avoid a cycle: the tracker keeps the stack that reads lists, and the stack keeps this source.
    let tracker = tracker.downgrade();
    builder.may_renew(move || tracker.in_doubt() == 0)
}

fn key(api_key: impl Into<SecretString>) -> Result<ApiKey, InvalidAccess> {
    ApiKey::new(api_key).map_err(|source| InvalidAccess { value: "api_key", source })
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Totp { .. } => "Totp",
            Self::Stored { .. } => "Stored",
            Self::Given(_) => "Given",
            Self::Source(_) => "Source",
        })
    }
}

/// Credentials that cannot be used; found before anything was sent.
pub struct InvalidAccess {
    value: &'static str,
    source: InvalidSecret,
}

impl InvalidAccess {
    /// Returns the name of the value that cannot be used.
    #[must_use]
    pub fn value(&self) -> &'static str {
        self.value
    }
}

impl fmt::Display for InvalidAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be used: {}", self.value, self.source)
    }
}

reads_like_display!(InvalidAccess);

impl Error for InvalidAccess {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use bytes::Bytes;
    use http::Request;
    use http_body_util::Full;
    use steadfast_auth::{Renewal, TokenPhase};
    use steadfast_call::{Routes, WallClock};
    use steadfast_dedup::Settings;
    use steadfast_sandbox::Sandbox;
    use steadfast_spec::Paths;
    use tokio::time::{Instant, sleep};
    use tower::ServiceExt;

    use super::*;
    use crate::Stack;

    /// Returns a sandbox whose list can be read once, so that orders stay in doubt, and a source that has just logged
    /// in.
    async fn logged_in(tracker: &OrderTracker) -> (Sandbox, TokenSource) {
        let (noon, start) = (UNIX_EPOCH + Duration::from_secs(1_795_240_800), Instant::now());
        let clock = WallClock::new(move || noon + start.elapsed());
        let script = "[[fault]]\nname = 'placement.504-applied'\nendpoint = 'place-order'\n\
                      [[fault]]\nname = 'list.504'\nendpoint = 'orders'\nnth = 2\ntimes = 1000";
        let sandbox = Sandbox::builder().wall_clock(clock.now()).script(script).unwrap().build().unwrap();
        let facts = sandbox.credentials();
        let base = facts.base_url.parse().unwrap();
        let api_key = key(facts.api_key).unwrap();
        let secret = TotpSecret::new(facts.totp_secret).unwrap();
        let credentials = Credentials::new(facts.client_id, facts.password);
        let login =
            IndividualLogin::totp(sandbox.gateway(), &base, api_key.clone(), credentials, secret).unwrap();
        let renewal = Renewal::new().daily(None).jitter_seed(7);
        let builder = TokenSource::builder(api_key, login).clock(clock).renewal(renewal);
        let tokens = after_doubt(builder, tracker).build();
        tokens.login().await.unwrap();
        (sandbox, tokens)
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_ahead_waits_for_an_order_in_doubt() {
        let tracker = OrderTracker::new(Settings::default());
        // When the renewal is due, jitter included. No request asks this source for a token.
        let (_, twin) = logged_in(&tracker).await;
        let start = Instant::now();
        sleep(Duration::from_secs(22 * 3_600)).await;
        while twin.status().phase == TokenPhase::Valid {
            sleep(Duration::from_secs(1)).await;
        }
        let due = start.elapsed();

        let (sandbox, tokens) = logged_in(&tracker).await;
        let base: BaseUrl = sandbox.credentials().base_url.parse().unwrap();
        let service = Stack::new(base.clone(), tokens.clone())
            .routes(Routes::new(&Paths::public()))
            .tracker(tracker.clone())
            .service(sandbox.gateway());
        tokio::spawn(tokens.keep_fresh());
        let logins = || sandbox.state().logins.succeeded;
        sleep(due - Duration::from_secs(10)).await;
        let body =
            "symId=EQT_INFY_EQ_NSE&qty=10&side=buy&type=limit&limitPrice=1&product=delivery&validity=day";
        let order = Request::post(base.join("/api/oms/place-order").unwrap())
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Full::<Bytes>::from(body))
            .unwrap();
        let call = tokio::spawn(service.oneshot(order));
        sleep(Duration::from_secs(1)).await;
        let mut waited = 0;
        while tracker.in_doubt() > 0 {
            assert_eq!(logins(), 1, "no renewal while an order is in doubt");
            waited += u32::from(tokens.status().phase == TokenPhase::Advisory);
            if waited == 60 {
                sandbox.heal();
            }
            sleep(Duration::from_secs(1)).await;
        }
        assert!(waited >= 60, "{waited} s: the renewal was due for longer than the background looks away");
        sleep(Duration::from_secs(31)).await;
        assert_eq!(logins(), 2, "then it is made");
        drop(call);
    }
}
