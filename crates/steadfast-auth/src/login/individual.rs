use std::{borrow::Cow, fmt, time::Duration};

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
    Attempt, CodeSource, Gate, Grant, Login, LoginFailure, LoginMode, OneTimeCode, OpenGate, TotpSecret,
    code::ask, exchange::Exchange, totp::UsedSteps,
};
use crate::{
    secret::{ApiKey, Credentials},
    store::Identity,
};

/// Logs in with a password and a second factor at the individual-token endpoint (§4.3).
///
/// It sends through a transport of its own, because a login must not wait for a token. The transport sees one `POST
/// /api-gw/oauth/individual-token-v2` for each attempt, with `Authorization` and `Content-Type` set.
///
/// With a [`TotpSecret`] it is unattended:
///
/// 1. it takes the permit first, then makes the code, then the form, so that no code grows stale in a queue;
/// 2. it does not use a code with less than 4 s left, but waits for the next one;
/// 3. it never submits a time step twice, unless the first request certainly never left.
///
/// With a [`CodeSource`] (codes from messages) a person is needed, and the login never starts by itself.
pub struct IndividualLogin<S, C, G = OpenGate> {
    exchange: Exchange<S, G>,
    api_key: ApiKey,
    credentials: Credentials,
    factor: C,
    fields: LoginFields,
}

/// Names of the form's fields. Which fields are sent is "not shown" (§4.3).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoginFields {
    /// `client_id`; `None` leaves the field out.
    pub client_id: Option<Cow<'static, str>>,
    /// `password`.
    pub password: Cow<'static, str>,
    /// `twoFa`.
    pub two_fa: Cow<'static, str>,
    /// `twoFaTyp`.
    pub two_fa_type: Cow<'static, str>,
}

impl LoginFields {
    /// The names of §4.3, without `client_id`.
    #[must_use]
    pub fn without_client_id() -> Self {
        Self { client_id: None, ..Self::default() }
    }
}

impl Default for LoginFields {
    fn default() -> Self {
        Self {
            client_id: Some("client_id".into()),
            password: "password".into(),
            two_fa: "twoFa".into(),
            two_fa_type: "twoFaTyp".into(),
        }
    }
}

/// Codes made from a secret; the second factor of [`IndividualLogin::totp`].
pub struct Totp {
    secret: TotpSecret,
    used: Mutex<UsedSteps>,
}

/// Codes from a [`CodeSource`]; the second factor of [`IndividualLogin::otp`].
pub struct Otp<C> {
    source: C,
    // A code that never left, so that the person need not fetch another.
    unsent: Mutex<Option<OneTimeCode>>,
}

impl<S> IndividualLogin<S, Totp> {
    /// Logs in with codes made from `secret`, over `transport`.
    ///
    /// # Errors
    ///
    /// [`InvalidBaseUrl`] if the endpoint's path cannot follow `base`.
    pub fn totp(
        transport: S,
        base: &BaseUrl,
        api_key: ApiKey,
        credentials: Credentials,
        secret: TotpSecret,
    ) -> Result<Self, InvalidBaseUrl> {
        let factor = Totp { secret, used: Mutex::default() };
        Self::new(transport, base, api_key, credentials, factor)
    }
}

impl<S, C: CodeSource> IndividualLogin<S, Otp<C>> {
    /// Logs in with codes from messages, which `source` fetches, over `transport`.
    ///
    /// # Errors
    ///
    /// [`InvalidBaseUrl`] if the endpoint's path cannot follow `base`.
    pub fn otp(
        transport: S,
        base: &BaseUrl,
        api_key: ApiKey,
        credentials: Credentials,
        source: C,
    ) -> Result<Self, InvalidBaseUrl> {
        let factor = Otp { source, unsent: Mutex::new(None) };
        Self::new(transport, base, api_key, credentials, factor)
    }
}

impl<S, C> IndividualLogin<S, C> {
    fn new(
        transport: S,
        base: &BaseUrl,
        api_key: ApiKey,
        credentials: Credentials,
        factor: C,
    ) -> Result<Self, InvalidBaseUrl> {
        let exchange = Exchange::new(transport, OpenGate, base, Endpoint::IndividualToken)?;
        Ok(Self { exchange, api_key, credentials, factor, fields: LoginFields::default() })
    }
}

impl<S, C, G> IndividualLogin<S, C, G> {
    /// Takes permits from `gate`; without it, logins are not limited.
    #[must_use]
    pub fn gate<H: Gate>(self, gate: H) -> IndividualLogin<S, C, H> {
        IndividualLogin {
            exchange: self.exchange.with_gate(gate),
            api_key: self.api_key,
            credentials: self.credentials,
            factor: self.factor,
            fields: self.fields,
        }
    }

    /// Names the form's fields.
    #[must_use]
    pub fn fields(self, fields: LoginFields) -> Self {
        Self { fields, ..self }
    }

    /// Sets how long an attempt may take, counted from its send; the default is 30 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.exchange.timeout = timeout;
        self
    }

    fn identity(&self) -> Identity {
        let user = self.credentials.client_id.expose_secret();
        let LoginFields { client_id, password, two_fa, two_fa_type } = &self.fields;
        Identity::new(&self.exchange.base, &self.api_key, user)
            .with(self.credentials.password.expose_secret())
            .with(client_id.as_deref().unwrap_or_default())
            .with(&**password)
            .with(&**two_fa)
            .with(&**two_fa_type)
    }

    fn form(&self, code: &str, kind: &'static str) -> Form {
        let LoginFields { client_id, password, two_fa, two_fa_type } = self.fields.clone();
        let mut form = Form::new();
        if let Some(name) = client_id {
            form = form.with(name, self.credentials.client_id.expose_secret());
        }
        form.with(password, self.credentials.password.expose_secret())
            .with(two_fa, code)
            .with(two_fa_type, kind)
    }
}

impl Totp {
    /// Learns the time steps that other processes have used.
    fn learn(&self, attempt: &Attempt) {
        let mut used = self.used.lock();
        for step in attempt.used_steps() {
            used.note(step);
        }
    }

    /// Waits until a code may be submitted, without claiming it.
    async fn wait(&self, attempt: &Attempt) {
        let mut is_noted = false;
        loop {
            let usable = Self::usable(&self.used.lock(), attempt);
            let Err(wait) = usable else { return };
            if !std::mem::replace(&mut is_noted, true) {
                attempt.note_wait(wait);
            }
            tokio::time::sleep(wait.min(Attempt::NAP)).await;
        }
    }

    fn usable(used: &UsedSteps, attempt: &Attempt) -> Result<u64, Duration> {
        used.usable(attempt.code_time_ms(), attempt.code_time_margin_ms())
    }

    /// Claims the code of the current step as soon as it may be sent. No other login gets that code.
    async fn claim(&self, attempt: &Attempt) -> (u64, SecretString) {
        loop {
            attempt.queue_for_otp_zone().await;
            let claimed = {
                let mut used = self.used.lock();
                Self::usable(&used, attempt).inspect(|&step| used.claim(step))
            };
            match claimed {
                Ok(step) => return (step, self.secret.code(step)),
                // The step ended during the wait for the place. Take the next place when the next step begins.
                Err(_) => self.wait(attempt).await,
            }
        }
    }
}

impl<S, ResBody, G> Login for IndividualLogin<S, Totp, G>
where
    S: Service<Request<Full<Bytes>>, Response = Response<ResBody>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    ResBody: Body + Send,
    ResBody::Data: Send,
    ResBody::Error: Into<BoxError>,
    G: Gate,
{
    fn mode(&self) -> LoginMode {
        LoginMode::Unattended
    }

    fn identity(&self) -> Option<Identity> {
        Some(self.identity().with(self.factor.secret.expose()))
    }

    async fn attempt(&self, attempt: &Attempt) -> Result<Grant, LoginFailure> {
        self.factor.learn(attempt);
        // It may take half a minute until a step is free. A permit held that long would keep others out.
        self.factor.wait(attempt).await;
        let permit = self.exchange.permit().await?;
        let (step, code) = self.factor.claim(attempt).await;
        let form = self.form(code.expose_secret(), "totp");
        let result =
            self.exchange.send(permit, &form, Some(self.api_key.header()), attempt, Some(step)).await;
        if let Err(LoginFailure::NotSent(_) | LoginFailure::Store(_)) = result {
            self.factor.used.lock().release(step);
        }
        result
    }
}

impl<S, ResBody, C, G> Login for IndividualLogin<S, Otp<C>, G>
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
        Some(self.identity())
    }

    async fn attempt(&self, attempt: &Attempt) -> Result<Grant, LoginFailure> {
        let kept = self.factor.unsent.lock().take();
        let code = match kept {
            Some(code) => code,
            // A person is slower than the zone, so here the permit comes after the code.
            None => ask(&self.factor.source).await?,
        };
        let result = match self.exchange.permit().await {
            Ok(permit) => {
                attempt.queue_for_otp_zone().await;
                let form = self.form(code.expose(), "otp");
                self.exchange.send(permit, &form, Some(self.api_key.header()), attempt, None).await
            }
            Err(failure) => Err(failure),
        };
        if let Err(LoginFailure::NotSent(_) | LoginFailure::Store(_)) = result {
            *self.factor.unsent.lock() = Some(code);
        }
        result
    }
}

impl<S, C, G: fmt::Debug> fmt::Debug for IndividualLogin<S, C, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndividualLogin")
            .field("exchange", &self.exchange)
            .field("fields", &self.fields)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Totp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Totp").finish_non_exhaustive()
    }
}

impl<C> fmt::Debug for Otp<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Otp").finish_non_exhaustive()
    }
}
