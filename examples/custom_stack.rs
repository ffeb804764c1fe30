//! A stack put together by hand with tower's `ServiceBuilder`: the order is the caller's, and so are the gaps.
//!
//! This one reads market data and account data and places no orders, so the two halves of the deduplication are left out,
//! and tower's own concurrency limit stands where it is needed.
//!
//! Prints: answered 200 after 1 retry
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use steadfast::{
    BaseUrl, BoxError,
    auth::{ApiKey, AuthHeaderLayer, RefreshLayer, TokenSource},
    call::Routes,
    deadline::DeadlineLayer,
    limit::ZoneLimiter,
    retry::{AttemptTimeoutLayer, ClassifyLayer, Jitter, RetryPolicy},
    route::RouteLayer,
};
use steadfast_sandbox::Sandbox;
use tower::{ServiceBuilder, ServiceExt, limit::ConcurrencyLimitLayer};

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), BoxError> {
    let sandbox = Sandbox::builder().script("[[fault]]\nname = 'list.504'\nnth = 1")?.build()?;
    let facts = sandbox.credentials();
    let base: BaseUrl = facts.base_url.parse()?;
    let tokens = TokenSource::fixed(ApiKey::new(facts.api_key)?, facts.access_token)?;

    let service = ServiceBuilder::new()
        .layer(DeadlineLayer::new(Duration::from_secs(30))) // every wait below honours it; a late read is of no use
        .layer(RouteLayer::new(base.clone(), Routes::default())) // says what the request is to everybody below
        .layer(RetryPolicy::default().jitter(Jitter::NONE).layer()) // outside the limit: a retry takes a permit too
        .layer(RefreshLayer::new(tokens.clone())) // inside retry: a retry may need a token that did not exist before
        .layer(ZoneLimiter::preset().layer()) // inside all that sends again, so that every send is counted
        .layer(AuthHeaderLayer::new(tokens).only_to(&base)) // after the wait, so that the token is the one of now
        .layer(ClassifyLayer::new()) // what each answer proves, for Retry
        .layer(AttemptTimeoutLayer::new(Duration::from_secs(5))) // inside Classify, which sees its end as an answer
        .layer(ConcurrencyLimitLayer::new(4)) // nearest to the wire: at most four requests on their way
        .service(sandbox.gateway());

    let read = Request::get(format!("{}/api/oms/orders", facts.base_url)).body(Full::<Bytes>::default())?;
    let answer = service.oneshot(read).await?;
    let sends = sandbox.state().requests;
    println!("answered {} after {} retry", answer.status().as_u16(), sends - 1);
    Ok(())
}
