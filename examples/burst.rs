//! A thousand orders at once through the whole stack, in virtual time.
//!
//! The service allows ten a second (§8), so no client can place them in less than 99 seconds. A client that sends as
//! fast as it can collects 990 429s first.
//!
//! Prints: 1000 orders placed, 0 429s
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::try_join_all;
use http::Request;
use http_body_util::Full;
use steadfast::{
    BoxError, Stack,
    auth::{ApiKey, TokenSource},
    deadline::DeadlineLayer,
};
use steadfast_sandbox::Sandbox;
use tokio::time::Instant;
use tower::ServiceExt;

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), BoxError> {
    let sandbox = Sandbox::builder().build()?;
    let facts = sandbox.credentials();
    let tokens = TokenSource::fixed(ApiKey::new(facts.api_key)?, facts.access_token)?;
    let stack =
        Stack::new(facts.base_url.parse()?, tokens).deadline(DeadlineLayer::new(Duration::from_secs(180)));
    let service = stack.service(sandbox.gateway());

    let orders = (1..=1000).map(|qty| {
        let form =
            format!("symId=EQT_INFY_EQ_NSE&qty={qty}&side=buy&type=market&product=intraday&validity=day");
        Request::post(format!("{}/api/oms/place-order", facts.base_url)).body(Full::<Bytes>::from(form))
    });
    let orders = orders.collect::<Result<Vec<_>, _>>()?;

    let start = Instant::now();
    try_join_all(orders.into_iter().map(|order| service.clone().oneshot(order))).await?;
    let took = start.elapsed().as_secs_f64();

    let truth = sandbox.state();
    let refused = truth.arrivals.iter().filter(|arrival| arrival.status == 429).count();
    println!("{} orders placed, {refused} 429s, in {took:.1} s of 99.0 s at best", truth.orders.len());
    Ok(())
}
