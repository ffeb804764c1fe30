//! Question: what does a dead token cost each of 1,000 callers that meet it at once?
//!
//! The first send of each caller is answered with 401. One login serves all, and each sends once more. Header and
//! renewal stand over a service that answers at once: half of the count is the first sends, half the second ones.

mod asked;

use std::{
    alloc::System,
    convert::Infallible,
    future::{Ready, ready},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::join_all;
use http::{Request, Response, StatusCode, header::AUTHORIZATION};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, Stats, StatsAlloc};
use steadfast::{
    BoxError,
    auth::{
        ApiKey, Attempt, AuthHeaderLayer, Grant, Login, LoginFailure, LoginMode, RefreshLayer, TokenSource,
    },
};
use tokio::{runtime::Builder, time::Instant};
use tower::{Service, ServiceBuilder, ServiceExt as _};

use crate::asked::Asked;

#[global_allocator]
static COUNTED: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const CALLERS: usize = 1_000;
const ROUNDS: usize = 8;
const CASE: &str = "a caller of 1,000 on a 401";

fn main() -> Result<(), BoxError> {
    let asked = Asked::of_us();
    if !asked.is_about("renewal") {
        return Ok(());
    }
    Builder::new_current_thread().enable_time().build()?.block_on(callers(&asked))
}

/// Each login brings the next token. Calls are answered with 401 unless they carry the live one.
#[derive(Clone, Default)]
struct Gateway {
    logins: Arc<AtomicU64>,
    alive: Arc<AtomicU64>,
}

impl Login for Gateway {
    fn mode(&self) -> LoginMode {
        LoginMode::Unattended
    }

    async fn attempt(&self, attempt: &Attempt) -> Result<Grant, LoginFailure> {
        let token = self.logins.fetch_add(1, Ordering::Relaxed) + 1;
        // All refused calls wait by now.
        tokio::task::yield_now().await;
        Ok(Grant::new(token.to_string(), attempt.now()))
    }
}

impl Service<Request<()>> for Gateway {
    type Response = Response<()>;
    type Error = Infallible;
    type Future = Ready<Result<Response<()>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        let header = request.headers().get(AUTHORIZATION).and_then(|header| header.to_str().ok());
        let token = header.and_then(|header| header.rsplit_once(':')?.1.parse::<u64>().ok());
        let mut answer = Response::new(());
        if token.is_none_or(|token| token < self.alive.load(Ordering::Relaxed)) {
            *answer.status_mut() = StatusCode::UNAUTHORIZED;
        }
        ready(Ok(answer))
    }
}

async fn callers(asked: &Asked) -> Result<(), BoxError> {
    let (mut allocations, mut nanos) = (0, 0.0);
    for round in 0..=ROUNDS {
        let (change, took) = meet_a_dead_token().await?;
        // The first round fills whatever is filled only once.
        if round > 0 {
            allocations += change.allocations + change.reallocations;
            nanos += took.as_nanos() as f64;
        }
    }
    let each = (ROUNDS * CALLERS) as f64;
    asked.tell(CASE, "steadfast", allocations as f64 / each, "allocations");
    asked.tell(CASE, "steadfast", nanos / each, "ns");
    Ok(())
}

/// Returns the cost of all callers together until they have their answers.
async fn meet_a_dead_token() -> Result<(Stats, Duration), BoxError> {
    let gateway = Gateway::default();
    let tokens = TokenSource::builder(ApiKey::new("key")?, gateway.clone()).build();
    let stack = ServiceBuilder::new()
        .layer(RefreshLayer::new(tokens.clone()))
        .layer(AuthHeaderLayer::new(tokens))
        .service(gateway.clone());
    let request = || Request::get("https://api.example/v2/api/oms/orders").body(());
    stack.clone().oneshot(request()?).await?;
    // From here on only the second token is live.
    gateway.alive.store(2, Ordering::Relaxed);

    let calls = (0..CALLERS).map(|_| Ok(stack.clone().oneshot(request()?)));
    let calls = calls.collect::<Result<Vec<_>, http::Error>>()?;
    let (region, start) = (Region::new(COUNTED), Instant::now());
    let answers = join_all(calls).await;
    let cost = (region.change(), start.elapsed());
    for answer in answers {
        if answer?.status() != StatusCode::OK {
            return Err("a caller was left with the dead token".into());
        }
    }
    if gateway.logins.load(Ordering::Relaxed) != 2 {
        return Err("the callers did not share one login".into());
    }
    Ok(cost)
}
