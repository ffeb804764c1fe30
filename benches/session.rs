//! The burst: orders at once, polls without pause, and cancels at random times.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::try_join_all;
use http::{Request, StatusCode};
use http_body_util::Full;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use steadfast::{BoxError, OrderRequest};
use steadfast_sandbox::Sandbox;
use tokio::{
    runtime::Builder,
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tower::ServiceExt;

use crate::{
    rivals::{Client, Rival},
    wire::{Network, OnTheWay, Wire, exponential},
};

pub(crate) const ORDERS: u64 = 1_000;
/// Each asks again as soon as it has an answer: far more than the quota allows.
const POLLS: usize = 16;
/// On average, one every five seconds.
const BETWEEN_CANCELS: Duration = Duration::from_secs(5);
/// The shortest possible time for 1,000 orders at ten a second.
pub(crate) const BOUND: Duration = Duration::from_secs(99);

/// The results of one burst.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) placed: usize,
    pub(crate) refused: u64,
    pub(crate) requests: u64,
    pub(crate) polls: usize,
    /// The time until the last order had its last answer.
    pub(crate) took: Duration,
    /// How long each cancel waited, without the network's own time.
    pub(crate) waits: Vec<Duration>,
}

/// Runs the burst through a client, in virtual time.
pub(crate) fn run(rival: Rival, network: Network, seed: u64) -> Result<Figures, BoxError> {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build()?;
    runtime.block_on(burst(rival, network, seed))
}

/// Runs the burst through every client at the same time, each with its own gateway, by the real clock.
pub(crate) fn run_all(network: Network, seed: u64) -> Result<Vec<Figures>, BoxError> {
    let runtime = Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(try_join_all(Rival::ALL.map(|rival| burst(rival, network, seed))))
}

async fn burst(rival: Rival, network: Network, seed: u64) -> Result<Figures, BoxError> {
    let sandbox = Sandbox::builder().seed(seed).build()?;
    let facts = sandbox.credentials();
    let client = rival.client(&facts, Wire::new(sandbox.gateway(), network, seed))?;
    let base: Arc<str> = facts.base_url.into();

    let start = Instant::now();
    let mut orders = JoinSet::new();
    for number in 1..=ORDERS {
        let order = Request::post(format!("{base}/api/oms/place-order")).body(Full::from(form(number)))?;
        orders.spawn(client.clone().oneshot(order));
    }
    let over = Arc::new(AtomicBool::new(false));
    let mut polls = JoinSet::new();
    for _ in 0..POLLS {
        polls.spawn(poll(client.clone(), base.clone(), over.clone()));
    }
    let mut cancels = JoinSet::new();
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    let mut at = start;
    loop {
        at += BETWEEN_CANCELS.mul_f64(exponential(&mut chance));
        if at > start + BOUND {
            break;
        }
        let order_id = sandbox.place_foreign(&resting()?);
        let cancel = Request::delete(format!("{base}/api/oms/cancel-order?orderId={order_id}"))
            .body(Full::default())?;
        cancels.spawn(cancel_at(client.clone(), at, cancel));
    }

    let mut figures = Figures::default();
    while let Some(order) = orders.join_next().await {
        figures.placed += usize::from(order??.status() == StatusCode::OK);
    }
    figures.took = start.elapsed();
    over.store(true, Ordering::Relaxed);
    while let Some(wait) = cancels.join_next().await {
        figures.waits.push(wait??);
    }
    while let Some(answered) = polls.join_next().await {
        figures.polls += answered??;
    }
    let truth = sandbox.state();
    figures.requests = truth.requests;
    figures.refused = truth.refusals.values().sum();
    Ok(figures)
}

/// Asks for the margin of an order, again and again until the orders are done. Returns the number of answers.
///
/// Of all polls that share the cancels' quota, this one costs the gateway least, so the figures are the clients'.
async fn poll(client: Client, base: Arc<str>, over: Arc<AtomicBool>) -> Result<usize, BoxError> {
    let mut answered = 0;
    while !over.load(Ordering::Relaxed) {
        let margin = Request::post(format!("{base}/api/oms/margin")).body(Full::from(form(1)))?;
        answered += usize::from(client.clone().oneshot(margin).await?.status() == StatusCode::OK);
    }
    Ok(answered)
}

fn form(qty: u64) -> String {
    format!("symId=EQT_INFY_EQ_NSE&qty={qty}&side=buy&type=market&product=intraday&validity=day")
}

/// Returns how long a cancel waited for its answer, apart from the way there and back.
async fn cancel_at(
    client: Client,
    at: Instant,
    cancel: Request<Full<bytes::Bytes>>,
) -> Result<Duration, BoxError> {
    sleep_until(at).await;
    let answer = client.oneshot(cancel).await?;
    let on_the_way = answer.extensions().get().map_or(Duration::ZERO, |OnTheWay(time)| *time);
    // Measured from `at`, although a timer may fire up to a millisecond late.
    Ok(at.elapsed().saturating_sub(on_the_way))
}

fn resting() -> Result<OrderRequest, BoxError> {
    Ok(OrderRequest::from_fields([
        ("symId", "EQT_TCS_EQ_NSE"),
        ("qty", "1"),
        ("side", "sell"),
        ("type", "limit"),
        ("limitPrice", "4000"),
        ("product", "delivery"),
        ("validity", "day"),
    ])?)
}
