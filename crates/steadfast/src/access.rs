use std::{error::Error, fmt};

use secrecy::SecretString;
use steadfast_auth::{ApiKey, Credentials, IndividualLogin, InvalidSecret, TokenSource, TotpSecret};
use steadfast_dedup::Ledger;
use steadfast_limit::{Account, ZoneLimiter};
use steadfast_spec::BaseUrl;

use crate::{client::InvalidClient, gate::LimiterGate, transport::Transport};

/// How a [`Client`](crate::Client) gets its tokens (§5.4).
#[derive(Debug)]
pub struct Access(Kind);

enum Kind {
    Totp { api_key: ApiKey, credentials: Credentials, secret: TotpSecret },
    Source(TokenSource),
}

impl Access {
    /// A token that somebody else obtained. Nobody renews it.
    ///
    /// # Errors
    ///
    /// [`InvalidAccess`] naming the value that cannot stand in a header; it does not echo it.
    pub fn token(
        api_key: impl Into<SecretString>,
        token: impl Into<SecretString>,
    ) -> Result<Self, InvalidAccess> {
        let source = TokenSource::fixed(key(api_key)?, token);
        Ok(Self(Kind::Source(source.map_err(|source| InvalidAccess { value: "access_token", source })?)))
    }

    /// Logins with an authenticator's secret, in base32 (§4.3).
    ///
    /// # Errors
    ///
    /// [`InvalidAccess`] naming the value that cannot be used; it does not echo it.
    pub fn totp(
        api_key: impl Into<SecretString>,
        client_id: impl Into<SecretString>,
        password: impl Into<SecretString>,
        secret: impl Into<SecretString>,
    ) -> Result<Self, InvalidAccess> {
        let secret =
            TotpSecret::new(secret).map_err(|source| InvalidAccess { value: "totp_secret", source })?;
        let credentials = Credentials::new(client_id, password);
        Ok(Self(Kind::Totp { api_key: key(api_key)?, credentials, secret }))
    }

    /// Tokens from a source that the caller has put together.
    #[must_use]
    pub fn source(source: TokenSource) -> Self {
        Self(Kind::Source(source))
    }

    /// The source: its logins take permits from `limiter`, and none is renewed ahead while an order is in doubt.
    pub(crate) fn into_source(
        self,
        base: &BaseUrl,
        transport: &Transport,
        limiter: &ZoneLimiter,
        account: &Account,
        ledger: &Ledger,
    ) -> Result<TokenSource, InvalidClient> {
        Ok(match self.0 {
            Kind::Source(source) => source,
            Kind::Totp { api_key, credentials, secret } => {
                let gate = LimiterGate::new(limiter.clone(), base, account.clone())
                    .local_address(transport.source());
                let leaf = transport.leaf().map_err(InvalidClient::Tls)?;
                let login = IndividualLogin::totp(leaf, base, api_key.clone(), credentials, secret)
                    .map_err(InvalidClient::BaseUrl)?
                    .gate(gate);
                // Weak: the ledger keeps the stack that reads lists alive, and the stack this source.
                let ledger = ledger.downgrade();
                TokenSource::builder(api_key, login).may_renew(move || ledger.in_doubt() == 0).build()
            }
        })
    }
}

fn key(api_key: impl Into<SecretString>) -> Result<ApiKey, InvalidAccess> {
    ApiKey::new(api_key).map_err(|source| InvalidAccess { value: "api_key", source })
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Totp { .. } => "Totp",
            Self::Source(_) => "Source",
        })
    }
}

/// Credentials that cannot be used, found before anything was sent.
#[derive(Debug)]
pub struct InvalidAccess {
    value: &'static str,
    source: InvalidSecret,
}

impl InvalidAccess {
    /// The value that cannot be used.
    #[must_use]
    pub fn value(&self) -> &'static str {
        self.value
    }
}

impl fmt::Display for InvalidAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be used", self.value)
    }
}

impl Error for InvalidAccess {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}
