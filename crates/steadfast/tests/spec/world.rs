//! A stack over a recorded wire.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use steadfast::{
    BoxError, LimiterGate, Operation, OrderRequest, Paths, ResponseBody, Stack,
    auth::{ApiKey, CodeExchange, Credentials, IndividualLogin, OneTimeCode, TokenSource, TotpSecret},
    call::{Routes, WallClock},
    dedup::{OrderTracker, Settings},
    ext::Account,
    limit::ZoneLimiter,
    spec::{BaseUrl, PlacedOrder},
};
use steadfast_sandbox::{Sandbox, SandboxBuilder};
use tokio::time::Instant;
use tower::{ServiceExt, util::BoxCloneSyncService};

use crate::wire::{Scripted, Wire};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const HOUR: Duration = Duration::from_secs(3_600);
/// The UTC offset of the trading day, in seconds.
const INDIA: i32 = 19_800;
pub(crate) const BASE: &str = "http://localhost/v2";
pub(crate) const KEY: &str = "Kq7Xw2Vb9Zt4Rm6C";
pub(crate) const TOKEN: &str = "Ta5Qe9Wr2Ty7Ui3Op";
/// RFC 4226's key in base32.
pub(crate) const TOTP: &str = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";

type Service = BoxCloneSyncService<Request<Full<Bytes>>, Response<Bytes>, BoxError>;

#[derive(Clone)]
pub(crate) struct World {
    pub(crate) wire: Wire,
    pub(crate) stack: Stack,
    base: String,
    service: Service,
}

impl World {
    /// Creates the default stack, with a given token, over a wire.
    pub(crate) fn over(wire: Wire) -> Self {
        Self::with(wire, |stack| stack)
    }

    pub(crate) fn with(wire: Wire, settings: impl FnOnce(Stack) -> Stack) -> Self {
        let tokens = TokenSource::fixed(ApiKey::new(KEY).unwrap(), TOKEN).unwrap();
        Self::assemble(BASE, wire, settings(stack(base(), tokens)))
    }

    /// Creates a stack over a script.
    pub(crate) fn scripted(answers: impl IntoIterator<Item = Scripted>) -> Self {
        Self::over(Wire::scripted(answers))
    }

    /// Creates a stack over a sandbox, with the token of its first user.
    pub(crate) fn at(sandbox: &Sandbox) -> Self {
        Self::at_with(sandbox, |stack| stack)
    }

    pub(crate) fn at_with(sandbox: &Sandbox, settings: impl FnOnce(Stack) -> Stack) -> Self {
        let facts = sandbox.credentials();
        let tokens = TokenSource::fixed(ApiKey::new(facts.api_key).unwrap(), facts.access_token).unwrap();
        Self::assemble(BASE, Wire::to(sandbox), settings(stack(base(), tokens)))
    }

    /// Creates a stack over a wire, with tokens that it fetches itself by `tokens`.
    pub(crate) fn logging_in(wire: Wire, tokens: TokenSource) -> Self {
        Self::assemble(BASE, wire, stack(base(), tokens))
    }

    /// Creates a stack below the given base address.
    pub(crate) fn below(base: &str, wire: Wire) -> Self {
        let tokens = TokenSource::fixed(ApiKey::new(KEY).unwrap(), TOKEN).unwrap();
        Self::assemble(base, wire, stack(base.parse().unwrap(), tokens))
    }

    fn assemble(base: &str, wire: Wire, stack: Stack) -> Self {
        let stack = stack.routes(Routes::new(&Paths::public()));
        let service = stack.service(wire.clone()).and_then(
            |response: Response<ResponseBody<Full<Bytes>>>| async move {
                let (parts, body) = response.into_parts();
                let body = body.collect().await?;
                Ok(Response::from_parts(parts, body.to_bytes()))
            },
        );
        Self { wire, stack, base: base.to_owned(), service: BoxCloneSyncService::new(service) }
    }

    pub(crate) fn request(&self, method: Method, target: &str, body: &str) -> Request<Full<Bytes>> {
        let body = Full::from(Bytes::copy_from_slice(body.as_bytes()));
        Request::builder().method(method).uri(format!("{}{target}", self.base)).body(body).unwrap()
    }

    pub(crate) async fn call(&self, request: Request<Full<Bytes>>) -> Result<Response<Bytes>, BoxError> {
        self.service.clone().oneshot(request).await
    }

    pub(crate) async fn send(&self, operation: &Operation) -> Result<Response<Bytes>, BoxError> {
        let target = operation.target(&Paths::public()).unwrap();
        let body = operation.body().unwrap_or_default();
        self.call(self.request(operation.method(), &target, &body)).await
    }

    pub(crate) async fn orders(&self) -> Response<Bytes> {
        self.send(&Operation::orders()).await.unwrap()
    }

    pub(crate) async fn place(&self, order: &OrderRequest) -> Result<PlacedOrder, Response<Bytes>> {
        let response = self.send(&Operation::place_order(order)).await.unwrap();
        PlacedOrder::parse(response.body()).map_err(|_| response)
    }
}

pub(crate) fn base() -> BaseUrl {
    BASE.parse().unwrap()
}

/// Returns the default stack on a trading day that began hours ago, by a sandbox's clock too.
fn stack(base: BaseUrl, tokens: TokenSource) -> Stack {
    let settings = Settings::default().trading_day(wall_clock(), INDIA);
    Stack::new(base, tokens).tracker(OrderTracker::new(settings))
}

pub(crate) fn sandbox(builder: SandboxBuilder) -> Sandbox {
    builder.wall_clock(morning()).build().unwrap()
}

/// Creates a sandbox with one or more exact faults.
pub(crate) fn faulty(script: &str) -> Sandbox {
    sandbox(Sandbox::builder().seed(3).script(script).unwrap())
}

/// 2023-11-14 05:00:00 UTC.
fn morning() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_699_938_000)
}

/// Returns a wall clock that follows tokio's, from the same start as a [`sandbox`]'s.
pub(crate) fn wall_clock() -> WallClock {
    let start = Instant::now();
    WallClock::new(move || morning() + start.elapsed())
}

/// Returns a source that logs in at a sandbox with an authenticator's codes.
pub(crate) fn totp_source(sandbox: &Sandbox, wire: &Wire) -> TokenSource {
    let facts = sandbox.credentials();
    let key = ApiKey::new(facts.api_key).unwrap();
    let credentials = Credentials::new(facts.client_id, facts.password);
    let secret = TotpSecret::new(facts.totp_secret).unwrap();
    let login = IndividualLogin::totp(wire.clone(), &base(), key.clone(), credentials, secret).unwrap();
    TokenSource::builder(key, login).clock(wall_clock()).build()
}

/// Returns a source that logs in over a scripted wire with an authenticator's codes, under the
/// limits of `limiter`.
pub(crate) fn limited_totp_source(wire: &Wire, limiter: &ZoneLimiter, account: &str) -> TokenSource {
    let key = ApiKey::new(KEY).unwrap();
    let credentials = Credentials::new(account, "hunter2");
    let secret = TotpSecret::new(TOTP).unwrap();
    let gate = LimiterGate::new(limiter.clone(), &base(), Account::new(account));
    let login = IndividualLogin::totp(wire.clone(), &base(), key.clone(), credentials, secret).unwrap();
    TokenSource::builder(key, login.gate(gate)).clock(wall_clock()).build()
}

/// Returns a source that logs in with a code sent to the user.
pub(crate) fn otp_source(wire: &Wire, credentials: Credentials, key: &str, code: String) -> TokenSource {
    let key = ApiKey::new(key).unwrap();
    let codes = move || {
        let code = code.clone();
        async move { Ok::<_, BoxError>(OneTimeCode::new(code)) }
    };
    let login = IndividualLogin::otp(wire.clone(), &base(), key.clone(), credentials, codes).unwrap();
    TokenSource::builder(key, login).clock(wall_clock()).build()
}

/// Returns a source that exchanges the codes from `next`.
pub(crate) fn exchange_source(
    wire: &Wire,
    key: &str,
    secret: &str,
    redirect_uri: &str,
    next: impl Fn() -> String + Send + Sync + 'static,
) -> TokenSource {
    let key = ApiKey::new(key).unwrap();
    let codes = move || {
        let code = next();
        async move { Ok::<_, BoxError>(OneTimeCode::new(code)) }
    };
    let login = CodeExchange::new(wire.clone(), &base(), key.clone(), secret, redirect_uri.to_owned(), codes)
        .unwrap();
    TokenSource::builder(key, login).clock(wall_clock()).build()
}

/// Returns an order with `changes` to its fields; an empty value removes a field.
pub(crate) fn order_with(changes: &[(&str, &str)]) -> OrderRequest {
    OrderRequest::from_fields(fields_with(changes)).unwrap()
}

/// Returns the fields of a limit order with `changes`; an empty value removes a field.
pub(crate) fn fields_with<'a>(changes: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut fields = vec![
        ("symId", "EQT_INFY_EQ_NSE"),
        ("qty", "10"),
        ("side", "buy"),
        ("type", "limit"),
        ("product", "delivery"),
        ("validity", "day"),
        ("limitPrice", "100.05"),
    ];
    for &(name, value) in changes {
        fields.retain(|(known, _)| *known != name);
        if !value.is_empty() {
            fields.push((name, value));
        }
    }
    fields
}
