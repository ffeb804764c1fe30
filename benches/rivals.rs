//! The clients for the burst: the stack, and the alternatives that users would build instead.

use std::{
    num::{NonZeroU32, NonZeroUsize},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use governor::{
    Quota, RateLimiter, clock, middleware::NoOpMiddleware, state::InMemoryState, state::NotKeyed,
};
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::Full;
use steadfast::{
    BoxError, Paths, Stack,
    auth::{ApiKey, TokenSource},
    call::Routes,
    deadline::DeadlineLayer,
};
use steadfast_sandbox::{Body, Credentials, NoAnswer};
use steadfast_verify::peers::TowerResilience;
use tokio::time::{Instant, Sleep, sleep};
use tower::{
    Service, ServiceBuilder, ServiceExt,
    retry::{Policy, RetryLayer},
    service_fn,
    util::BoxCloneSyncService,
};

use crate::wire::Wire;

/// A client. Only the head of an answer matters here.
pub(crate) type Client = BoxCloneSyncService<Request<Full<Bytes>>, Response<()>, BoxError>;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rival {
    Steadfast,
    /// governor for each limit, with the burst that the limit seems to allow, and four retries.
    Governor,
    /// The same without bursts.
    GovernorPaced,
    /// tower's rate limit for each limit, behind a buffer, and tower's retry around it.
    Tower,
    /// tower-resilience's sliding log for each limit, and its retry around it.
    TowerResilience,
}

impl Rival {
    pub(crate) const ALL: [Self; 5] =
        [Self::Steadfast, Self::Governor, Self::GovernorPaced, Self::Tower, Self::TowerResilience];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Steadfast => "steadfast",
            Self::Governor => "governor + retry",
            Self::GovernorPaced => "governor, paced + retry",
            Self::Tower => "tower's own layers",
            Self::TowerResilience => "tower-resilience",
        }
    }

    pub(crate) fn client(self, facts: &Credentials, wire: Wire) -> Result<Client, BoxError> {
        match self {
            Self::Steadfast => steadfast(facts, wire),
            Self::Governor => with_token(facts, governed(wire, |quota| quota)),
            Self::GovernorPaced => {
                with_token(facts, governed(wire, |quota| quota.allow_burst(NonZeroU32::MIN)))
            }
            Self::Tower => with_token(facts, towers(wire)),
            Self::TowerResilience => tower_resiliences(facts, wire),
        }
    }
}

fn steadfast(facts: &Credentials, wire: Wire) -> Result<Client, BoxError> {
    let tokens = TokenSource::fixed(ApiKey::new(facts.api_key.clone())?, facts.access_token.clone())?;
    let stack = Stack::new(facts.base_url.parse()?, tokens)
        .routes(Routes::new(&Paths::public()))
        .deadline(DeadlineLayer::new(Duration::from_secs(600)));
    Ok(BoxCloneSyncService::new(stack.service(wire).map_response(|answer| answer.map(drop))))
}

/// The rivals have no layer for the token, so it is added here.
fn with_token<S>(facts: &Credentials, service: S) -> Result<Client, BoxError>
where
    S: Service<Request<Full<Bytes>>, Response = Response<()>, Error = BoxError>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send,
{
    let token = HeaderValue::try_from(format!("Bearer {}:{}", facts.api_key, facts.access_token))?;
    let service = service.map_request(move |mut request: Request<Full<Bytes>>| {
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        request.headers_mut().insert(header::CONTENT_TYPE, form);
        request.headers_mut().insert(header::AUTHORIZATION, token.clone());
        request
    });
    Ok(BoxCloneSyncService::new(service))
}

fn is_order(request: &Request<Full<Bytes>>) -> bool {
    request.uri().path().ends_with("/place-order")
}

/// Repeats requests that the service might accept next time, after 1, 2, 4 and 8 s.
#[derive(Clone)]
struct Simple(std::slice::Iter<'static, u64>);

impl Simple {
    const DELAYS: &[u64] = &[1, 2, 4, 8];

    fn layer() -> RetryLayer<Self> {
        RetryLayer::new(Self(Self::DELAYS.iter()))
    }
}

impl<E> Policy<Request<Full<Bytes>>, Response<()>, E> for Simple {
    type Future = Sleep;

    fn retry(&mut self, _: &mut Request<Full<Bytes>>, result: &mut Result<Response<()>, E>) -> Option<Sleep> {
        result.as_ref().is_ok_and(is_passing).then_some(())?;
        self.0.next().map(|seconds| sleep(Duration::from_secs(*seconds)))
    }

    fn clone_request(&mut self, request: &Request<Full<Bytes>>) -> Option<Request<Full<Bytes>>> {
        Some(request.clone())
    }
}

fn is_passing(answer: &Response<()>) -> bool {
    answer.status() == StatusCode::TOO_MANY_REQUESTS || answer.status().is_server_error()
}

fn drop_body(answer: Result<Response<Body>, NoAnswer>) -> Result<Response<()>, BoxError> {
    Ok(answer?.map(drop))
}

type Governor = RateLimiter<NotKeyed, InMemoryState, Virtual, NoOpMiddleware<Duration>>;

/// governor's clock, which follows tokio's.
#[derive(Clone)]
struct Virtual(Instant);

impl clock::Clock for Virtual {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Does the same as governor's own `until_ready`, with a timer that follows tokio's clock.
async fn until_ready(limit: &Governor, clock: &Virtual) {
    while let Err(not_yet) = limit.check() {
        sleep(not_yet.wait_time_from(clock::Clock::now(clock))).await;
    }
}

fn governed(
    wire: Wire,
    burst: fn(Quota) -> Quota,
) -> impl Service<Request<Full<Bytes>>, Response = Response<()>, Error = BoxError, Future: Send>
+ Clone
+ Send
+ Sync {
    let clock = Virtual(Instant::now());
    let limit = |quota| Arc::new(Governor::direct_with_clock(burst(quota), clock.clone()));
    let second = || limit(Quota::per_second(TEN));
    let (orders, others, minute) = (second(), second(), limit(Quota::per_minute(FOUR_HUNDRED)));
    ServiceBuilder::new().layer(Simple::layer()).service(service_fn(move |request: Request<Full<Bytes>>| {
        let limits =
            if is_order(&request) { vec![orders.clone()] } else { vec![others.clone(), minute.clone()] };
        let (mut wire, clock) = (wire.clone(), clock.clone());
        async move {
            for limit in limits {
                until_ready(&limit, &clock).await;
            }
            drop_body(wire.call(request).await)
        }
    }))
}

const TEN: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);
const FOUR_HUNDRED: NonZeroU32 = NonZeroU32::MIN.saturating_add(399);

fn towers(
    wire: Wire,
) -> impl Service<Request<Full<Bytes>>, Response = Response<()>, Error = BoxError, Future: Send>
+ Clone
+ Send
+ Sync {
    let send = move |request: Request<Full<Bytes>>| {
        let mut wire = wire.clone();
        async move { drop_body(wire.call(request).await) }
    };
    let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
    let orders = ServiceBuilder::new()
        .layer(Simple::layer())
        .buffer(2_048)
        .rate_limit(10, second)
        .service(service_fn(send.clone()));
    let others = ServiceBuilder::new()
        .layer(Simple::layer())
        .buffer(2_048)
        .rate_limit(400, minute)
        .rate_limit(10, second)
        .service(service_fn(send));
    service_fn(move |request: Request<Full<Bytes>>| {
        if is_order(&request) { orders.clone() } else { others.clone() }.oneshot(request)
    })
}

fn tower_resiliences(facts: &Credentials, wire: Wire) -> Result<Client, BoxError> {
    const TRIES: NonZeroUsize = NonZeroUsize::MIN.saturating_add(Simple::DELAYS.len());
    let send = move |request: Request<Full<Bytes>>| {
        let mut wire = wire.clone();
        async move { drop_body(wire.call(request).await) }
    };
    let limits = TowerResilience::sliding_log();
    let orders = ServiceBuilder::new()
        .layer(TowerResilience::retry(TRIES, is_passing))
        .layer(limits.rate_limit(TEN, Duration::from_secs(1))?)
        .service(service_fn(send.clone()));
    let others = ServiceBuilder::new()
        .layer(TowerResilience::retry(TRIES, is_passing))
        .layer(limits.rate_limits(TEN, FOUR_HUNDRED)?)
        .service(service_fn(send));
    let orders = Client::new(orders.map_err(BoxError::from));
    let others = Client::new(others.map_err(BoxError::from));
    with_token(
        facts,
        service_fn(move |request: Request<Full<Bytes>>| {
            if is_order(&request) { orders.clone() } else { others.clone() }.oneshot(request)
        }),
    )
}
