//! The services that `overhead` and `allocations` look at: each layer alone, and all of them, over a service that does
//! nothing; beside them what tower and governor offer for the same.

use std::{
    future::{Ready, ready},
    num::NonZeroU32,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use governor::{DefaultDirectRateLimiter, Quota as GovernorQuota, RateLimiter};
use http::{Method, Request, Response};
use http_body_util::Full;
use steadfast::{
    BaseUrl, BoxError, Stack,
    auth::{ApiKey, AuthHeaderLayer, RefreshLayer, TokenSource},
    deadline::DeadlineLayer,
    dedup::{DedupLayer, Ledger, SendGuardLayer, Settings},
    ext,
    limit::{Quota, ZoneLimiter},
    retry::{AttemptTimeoutLayer, ClassifyLayer, RetryPolicy},
    route::RouteLayer,
    spec::{Routes, zones},
    trace::call_spans,
};
use tower::{
    Layer, Service, ServiceBuilder,
    limit::RateLimitLayer,
    retry::{Policy, RetryLayer},
    timeout::TimeoutLayer,
};

const BASE: &str = "https://api.example/v2";

/// What is asked of a row: a read, or an order.
#[derive(Clone, Copy)]
pub(crate) enum Call {
    Read,
    Order,
}

impl Call {
    /// A request as a caller makes it, and as the layers below Route see it.
    pub(crate) fn request(self, number: u64) -> Result<Request<Full<Bytes>>, BoxError> {
        let (method, path, body) = match self {
            Self::Read => (Method::GET, "/api/oms/orders", String::new()),
            Self::Order => (
                Method::POST,
                "/api/oms/place-order",
                format!(
                    "symId=EQT_INFY_EQ_NSE&qty={number}&side=buy&type=market&product=intraday&validity=day"
                ),
            ),
        };
        let mut request =
            Request::builder().method(&method).uri(format!("{BASE}{path}")).body(Full::from(body))?;
        if let Some(route) = Routes::default().find(&method, path) {
            request.extensions_mut().insert::<ext::Route>(route.clone());
        }
        Ok(request)
    }
}

/// Looks at one service.
pub(crate) trait Meter {
    fn measure<S>(&mut self, name: &str, call: Call, service: S) -> Result<(), BoxError>
    where
        S: Service<Request<Full<Bytes>>, Error: Into<BoxError>>;
}

/// Shows every service to `meter`.
pub(crate) fn each(meter: &mut impl Meter) -> Result<(), BoxError> {
    let base: BaseUrl = BASE.parse()?;
    let tokens = TokenSource::fixed(ApiKey::new("key")?, "token")?;
    let ledger = Ledger::new(Settings::default());
    let routes = RouteLayer::new(base.clone(), Routes::default());
    let header = AuthHeaderLayer::new(tokens.clone()).only_to(&base);
    let retry = || RetryPolicy::default().layer();

    meter.measure("nothing", Call::Read, Noop)?;
    let spans = call_spans(base.clone(), Routes::default());
    meter.measure("trace", Call::Read, spans.layer(Noop))?;
    meter.measure("deadline", Call::Read, DeadlineLayer::new(MINUTE).layer(Noop))?;
    meter.measure("route", Call::Read, routes.layer(Noop))?;
    meter.measure("dedup", Call::Read, DedupLayer::new(&ledger).layer(Noop))?;
    meter.measure("retry", Call::Read, retry().layer(Noop))?;
    meter.measure("refresh", Call::Read, RefreshLayer::new(tokens.clone()).layer(Noop))?;
    meter.measure("rate limit", Call::Read, unbounded()?.layer().layer(Noop))?;
    meter.measure("auth header", Call::Read, header.layer(Noop))?;
    meter.measure("send guard", Call::Read, SendGuardLayer::new(&ledger).layer(Noop))?;
    meter.measure("classify", Call::Read, ClassifyLayer::new().layer(Noop))?;
    meter.measure("attempt timeout", Call::Read, AttemptTimeoutLayer::default().layer(Noop))?;
    let stack = Stack::new(base, tokens).limiter(unbounded()?);
    meter.measure("whole stack", Call::Read, stack.service(Noop))?;
    meter.measure("whole stack, order", Call::Order, stack.service(Noop))?;

    meter.measure("tower timeout", Call::Read, TimeoutLayer::new(MINUTE).layer(Noop))?;
    meter.measure("tower retry", Call::Read, RetryLayer::new(FourTimes(4)).layer(Noop))?;
    meter.measure("tower rate limit", Call::Read, RateLimitLayer::new(u64::MAX, MINUTE).layer(Noop))?;
    meter.measure("governor", Call::Read, Governed::new(Noop))?;
    // A limit that can be cloned needs a buffer, and with it a task; without one it can only stand outside of Retry.
    let towers = ServiceBuilder::new()
        .layer(RateLimitLayer::new(u64::MAX, MINUTE))
        .layer(RetryLayer::new(FourTimes(4)))
        .layer(TimeoutLayer::new(MINUTE))
        .service(Noop);
    meter.measure("tower's three", Call::Read, towers)
}

const MINUTE: Duration = Duration::from_secs(60);

/// The service's zones, with windows so wide that nothing waits and so short that few stamps are kept.
fn unbounded() -> Result<ZoneLimiter, BoxError> {
    let mut builder = ZoneLimiter::builder();
    for zone in &zones() {
        builder = builder.zone(Quota::from(zone).clear_limits().limit(1_000_000, Duration::from_millis(1)));
    }
    Ok(builder.build()?)
}

/// Answers at once; to an order with an identifier.
#[derive(Clone, Copy)]
pub(crate) struct Noop;

impl<B> Service<Request<B>> for Noop {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Ready<Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        const PLACED: &[u8] = br#"{"s":"ok","d":{"orderId":"260000000001","msg":"placed"}}"#;
        ready(Ok(Response::new(Full::from(Bytes::from_static(PLACED)))))
    }
}

/// The least that a retry policy for tower can be: a server error is repeated at once, up to so many times.
#[derive(Clone)]
struct FourTimes(u32);

impl<R, E> Policy<Request<Full<Bytes>>, Response<R>, E> for FourTimes {
    type Future = Ready<()>;

    fn retry(
        &mut self,
        _: &mut Request<Full<Bytes>>,
        result: &mut Result<Response<R>, E>,
    ) -> Option<Ready<()>> {
        let again = result.as_ref().is_ok_and(|answer| answer.status().is_server_error());
        self.0 = self.0.checked_sub(1).filter(|_| again)?;
        Some(ready(()))
    }

    fn clone_request(&mut self, request: &Request<Full<Bytes>>) -> Option<Request<Full<Bytes>>> {
        Some(request.clone())
    }
}

/// governor in front of a service, as its own documentation shows it.
struct Governed<S> {
    inner: S,
    limiter: Arc<DefaultDirectRateLimiter>,
}

impl<S> Governed<S> {
    fn new(inner: S) -> Self {
        let quota = GovernorQuota::per_second(NonZeroU32::MAX);
        Self { inner, limiter: RateLimiter::direct(quota).into() }
    }
}

impl<S, B: Send + 'static> Service<Request<B>> for Governed<S>
where
    S: Service<Request<B>, Future: Send> + Clone + Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let limiter = self.limiter.clone();
        Box::pin(async move {
            limiter.until_ready().await;
            inner.call(request).await
        })
    }
}
