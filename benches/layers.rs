//! The services for `overhead` and `allocations`: each layer alone, and all of them, over a service that does
//! nothing. Beside them stand the counterparts of tower and governor.

use std::{
    collections::VecDeque,
    future::{Ready, ready},
    num::{NonZeroU32, NonZeroUsize},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Method, Request, Response};
use http_body_util::Full;
use parking_lot::Mutex;
use steadfast::{
    BaseUrl, BoxError, Stack,
    auth::{ApiKey, AuthHeaderLayer, RefreshLayer, TokenSource},
    call::Routes,
    deadline::DeadlineLayer,
    dedup::{DedupLayer, OrderTracker, SendGuardLayer, Settings},
    limit::{Quota, ZoneLimiter},
    retry::{AttemptTimeoutLayer, ClassifyLayer, RetryPolicy},
    route::RouteLayer,
    span::call_spans,
    spec::zones,
};
use steadfast_verify::peers::{Governor, TowerResilience, rate_limits};
use tower::{
    Layer, Service,
    retry::{Policy, RetryLayer},
    timeout::TimeoutLayer,
};

const BASE: &str = "https://api.example/v2";

/// Makes the request with a number.
pub(crate) type Call<'a> = &'a dyn Fn(u64) -> Result<Request<Full<Bytes>>, BoxError>;

/// Makes a read with its route in its extensions, as further in the stack: stamps of a layer are added there.
fn read(_: u64) -> Result<Request<Full<Bytes>>, BoxError> {
    routed(Method::GET, "/api/oms/orders", String::new())
}

/// Makes an order. Each order is different, and so is its identifier.
fn order(number: u64) -> Result<Request<Full<Bytes>>, BoxError> {
    let answer =
        format!(r#"{{"s":"ok","d":{{"orderId":"{:012}","msg":"placed"}}}}"#, 260_000_000_000 + number);
    ANSWERS.lock().push_back(answer.into());
    let form =
        format!("symId=EQT_INFY_EQ_NSE&qty={number}&side=buy&type=market&product=intraday&validity=day");
    routed(Method::POST, "/api/oms/place-order", form)
}

fn routed(method: Method, path: &str, body: String) -> Result<Request<Full<Bytes>>, BoxError> {
    let request = Request::builder().method(&method).uri(format!("{BASE}{path}"));
    let mut request = request.body(Full::from(body))?;
    if let Some(route) = Routes::default().find(&method, path) {
        steadfast::call::Call::of_mut(request.extensions_mut()).set_route(route.clone());
    }
    Ok(request)
}

/// This crate's name in every table.
pub(crate) const STEADFAST: &str = "steadfast";

/// Measures one service.
pub(crate) trait Meter {
    fn measure<S>(
        &mut self,
        case: &'static str,
        who: &'static str,
        call: Call<'_>,
        service: S,
    ) -> Result<(), BoxError>
    where
        S: Service<Request<Full<Bytes>>, Error: Into<BoxError>>;
}

/// Passes every service to `meter`.
pub(crate) fn each(meter: &mut impl Meter) -> Result<(), BoxError> {
    let base: BaseUrl = BASE.parse()?;
    let tokens = TokenSource::fixed(ApiKey::new("key")?, "token")?;
    let tracker = OrderTracker::new(Settings::default());
    let routes = RouteLayer::new(base.clone(), Routes::default());
    let spans = call_spans(base.clone(), Routes::default());
    let header = AuthHeaderLayer::new(tokens.clone()).only_to(&base);

    meter.measure("nothing", STEADFAST, &read, Noop)?;
    meter.measure("trace", STEADFAST, &read, spans.layer(Noop))?;
    meter.measure("deadline", STEADFAST, &read, DeadlineLayer::new(MINUTE).layer(Noop))?;
    meter.measure("route", STEADFAST, &read, routes.layer(Noop))?;
    meter.measure("dedup", STEADFAST, &read, DedupLayer::new(&tracker).layer(Noop))?;
    meter.measure("retry", STEADFAST, &read, RetryPolicy::default().layer().layer(Noop))?;
    meter.measure("refresh", STEADFAST, &read, RefreshLayer::new(tokens.clone()).layer(Noop))?;
    meter.measure("rate limit", STEADFAST, &read, unbounded()?.layer().layer(Noop))?;
    meter.measure("auth header", STEADFAST, &read, header.layer(Noop))?;
    meter.measure("send guard", STEADFAST, &read, SendGuardLayer::new(&tracker).layer(Noop))?;
    meter.measure("classify", STEADFAST, &read, ClassifyLayer::new().layer(Noop))?;
    meter.measure("timeout", STEADFAST, &read, AttemptTimeoutLayer::default().layer(Noop))?;
    let stack = Stack::new(base, tokens).limiter(unbounded()?);
    meter.measure("whole stack", STEADFAST, &read, stack.service(Noop))?;
    meter.measure("whole stack, an order", STEADFAST, &order, stack.service(Exchange))?;
    towers(meter)?;
    tower_resiliences(meter)?;
    meter.measure("rate limit", "governor ×2", &read, Governed::new(Noop))
}

fn towers(meter: &mut impl Meter) -> Result<(), BoxError> {
    const TOWER: &str = "tower";
    let retry = || RetryLayer::new(FourTimes(4));
    meter.measure("timeout", TOWER, &read, TimeoutLayer::new(MINUTE).layer(Noop))?;
    meter.measure("retry", TOWER, &read, retry().layer(Noop))?;
    meter.measure("rate limit", "tower ×2", &read, rate_limits(MOST, MOST).service(Noop))?;
    // A cloneable limit needs a buffer, and thereby a task. Without one it can only stand outside of Retry.
    let three = rate_limits(MOST, MOST).layer(retry()).layer(TimeoutLayer::new(MINUTE)).service(Noop);
    meter.measure("whole stack", "tower's three", &read, three)
}

fn tower_resiliences(meter: &mut impl Meter) -> Result<(), BoxError> {
    const TOWER_RESILIENCE: &str = "tower-resilience";
    const FOUR: NonZeroUsize = NonZeroUsize::MIN.saturating_add(3);
    let again = |answer: &Response<Full<Bytes>>| answer.status().is_server_error();
    let timeout = || TowerResilience::timeout(MINUTE);
    let limits = TowerResilience::fixed_window().rate_limits(MOST, MOST)?;
    meter.measure("timeout", TOWER_RESILIENCE, &read, timeout().layer(Noop))?;
    meter.measure("retry", TOWER_RESILIENCE, &read, TowerResilience::retry(FOUR, again).layer(Noop))?;
    meter.measure("rate limit", "tower-resilience ×2", &read, limits.layer(Noop))?;
    let three = (TowerResilience::retry(FOUR, again), limits, timeout()).layer(Noop);
    meter.measure("whole stack", "tower-resilience's three", &read, three)
}

/// A limit that no bench reaches.
pub(crate) const MOST: NonZeroU32 = NonZeroU32::MAX;
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// Returns the service's zones, with windows so wide that nothing waits and so short that few stamps are kept.
pub(crate) fn unbounded() -> Result<ZoneLimiter, BoxError> {
    let mut builder = ZoneLimiter::builder();
    for zone in &zones() {
        let windows = zone.windows.len() as u32;
        let quota = (1..=windows).fold(Quota::from(zone).clear_limits(), |quota, nth| {
            quota.limit(1_000_000, nth * Duration::from_millis(1))
        });
        builder = builder.zone(quota);
    }
    Ok(builder.build()?)
}

/// Answers at once.
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

/// The answers to orders, made together with their requests and therefore not counted.
static ANSWERS: Mutex<VecDeque<Bytes>> = Mutex::new(VecDeque::new());

/// Places orders, and lists none. A repeated identifier would be a conflict, which is examined and reported.
#[derive(Clone, Copy)]
struct Exchange;

impl<B> Service<Request<B>> for Exchange {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Ready<Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        const NO_ORDERS: &[u8] = br#"{"s":"no-data"}"#;
        let placed = (*request.method() == Method::POST).then(|| ANSWERS.lock().pop_front()).flatten();
        ready(Ok(Response::new(Full::from(placed.unwrap_or(Bytes::from_static(NO_ORDERS))))))
    }
}

/// The smallest possible retry policy for tower: it repeats a server error at once, up to this many times.
#[derive(Clone)]
pub(crate) struct FourTimes(pub(crate) u32);

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

/// governor in front of a service, as in its own documentation.
struct Governed<S> {
    inner: S,
    limits: Arc<Governor>,
}

impl<S> Governed<S> {
    fn new(inner: S) -> Self {
        Self { inner, limits: Governor::new(MOST, MOST).into() }
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
        let limits = self.limits.clone();
        Box::pin(async move {
            limits.until_ready().await;
            inner.call(request).await
        })
    }
}
