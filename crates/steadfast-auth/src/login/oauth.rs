use std::{fmt, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use steadfast_call::BoxError;
use steadfast_spec::{BaseUrl, Endpoint, Form, InvalidBaseUrl};
use tower_service::Service;

use super::{
    Attempt, CodeSource, Gate, Grant, Login, LoginFailure, LoginMode, OneTimeCode, OpenGate, code::ask,
    exchange::Exchange,
};
use crate::{secret::ApiKey, store::Identity};

/// Exchanges an authorization code for a token (§4.2).
///
/// `source` gets the code from a browser login; it is asked only by a call of
/// [`TokenSource::login`](crate::TokenSource::login). A code is used once. After a 401 a new one is needed; this proves
/// nothing about the credentials, so logins are not latched. If the request never left, or got a 429, the code is
/// unused, and the next attempt sends it again.
///
/// The source listens for the redirect, not this type.
pub struct CodeExchange<S, C, G = OpenGate> {
    exchange: Exchange<S, G>,
    api_key: ApiKey,
    client_secret: SecretString,
    redirect_uri: String,
    user: String,
    source: C,
    unused: Mutex<Option<OneTimeCode>>,
}

impl<S, C: CodeSource> CodeExchange<S, C> {
    /// Exchanges codes of `source` over `transport`; `redirect_uri` is the one registered with the app.
    ///
    /// # Errors
    ///
    /// [`InvalidBaseUrl`] if the endpoint's path cannot follow `base`.
    pub fn new(
        transport: S,
        base: &BaseUrl,
        api_key: ApiKey,
        client_secret: impl Into<SecretString>,
        redirect_uri: impl Into<String>,
        source: C,
    ) -> Result<Self, InvalidBaseUrl> {
        Ok(Self {
            exchange: Exchange::new(transport, OpenGate, base, Endpoint::Token)?,
            api_key,
            client_secret: client_secret.into(),
            redirect_uri: redirect_uri.into(),
            user: String::new(),
            source,
            unused: Mutex::new(None),
        })
    }
}

impl<S, C, G> CodeExchange<S, C, G> {
    /// Takes permits from `gate`; without it, exchanges are not limited.
    #[must_use]
    pub fn gate<H: Gate>(self, gate: H) -> CodeExchange<S, C, H> {
        CodeExchange {
            exchange: self.exchange.with_gate(gate),
            api_key: self.api_key,
            client_secret: self.client_secret,
            redirect_uri: self.redirect_uri,
            user: self.user,
            source: self.source,
            unused: self.unused,
        }
    }

    /// Names the user, if known. A store is then bound to the user too.
    #[must_use]
    pub fn user(self, user: impl Into<String>) -> Self {
        Self { user: user.into(), ..self }
    }

    /// Sets how long an attempt may take, counted from its send; the default is 30 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.exchange.timeout = timeout;
        self
    }

    fn form(&self, code: &OneTimeCode) -> Form {
        Form::new()
            .with("code", code.expose())
            .with("client_id", self.api_key.expose())
            .with("client_secret", self.client_secret.expose_secret())
            .with("redirect_uri", self.redirect_uri.as_str())
            .with("grant_type", "authorization_code")
    }
}

impl<S, ResBody, C, G> Login for CodeExchange<S, C, G>
where
    S: Service<Request<Full<Bytes>>, Response = Response<ResBody>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    ResBody: Body + Send,
    ResBody::Data: Send,
    ResBody::Error: Into<BoxError>,
    C: CodeSource,
    G: Gate,
{
    fn mode(&self) -> LoginMode {
        LoginMode::Attended
    }

    fn identity(&self) -> Option<Identity> {
        let account = Identity::new(&self.exchange.base, &self.api_key, &self.user);
        Some(account.with(self.client_secret.expose_secret()).with(&self.redirect_uri))
    }

    async fn attempt(&self, attempt: &Attempt) -> Result<Grant, LoginFailure> {
        let kept = self.unused.lock().take();
        let code = match kept {
            Some(code) => code,
            None => ask(&self.source).await?,
        };
        let result = match self.exchange.permit().await {
            Ok(permit) => self.exchange.send(permit, &self.form(&code), None, attempt, None).await,
            Err(failure) => Err(failure),
        };
        match result {
            Err(LoginFailure::Refused) => Err(LoginFailure::CodeRefused),
            Err(LoginFailure::NotSent(_) | LoginFailure::RateLimited { .. } | LoginFailure::Store(_)) => {
                *self.unused.lock() = Some(code);
                result
            }
            _ => result,
        }
    }
}

impl<S, C, G: fmt::Debug> fmt::Debug for CodeExchange<S, C, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodeExchange").field("exchange", &self.exchange).finish_non_exhaustive()
    }
}
