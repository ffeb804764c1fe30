//! Zones are set from code: the same 12 reads under the service's own table, under a tighter one, and with a zone
//! that the service does not have.
//!
//! Each line shows how many requests reached the gateway in each second.
//!
//! Prints: two a second: 2 2 2 2 2 2
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use bytes::Bytes;
use futures_util::future::try_join_all;
use http::Request;
use http_body_util::Full;
use steadfast::{
    BoxError, Stack,
    auth::{ApiKey, TokenSource},
    call::Routes,
    limit::{Profile, Quota, SECOND, Scope, Zone, ZoneLimiter},
    spec::Endpoint,
};
use steadfast_sandbox::Sandbox;
use tower::ServiceExt;

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), BoxError> {
    // The service's table (§8). Reads leave two of ten slots a second to changes and cancels.
    show("as the service says", ZoneLimiter::preset(), Routes::default()).await?;

    // A changed row of the table, for a gateway that is known to count exactly.
    let limiter = ZoneLimiter::builder().preset();
    let limiter = limiter
        .adjust(Zone::GENERAL, |general| general.clear_limits().limit(2, SECOND).profile(Profile::WindowLog))
        .build()?;
    show("two a second", limiter, Routes::default()).await?;

    // A row in addition to the service's: the order list is read at most three times in two seconds.
    let lists = Zone::new("lists");
    let quota = Quota::new(lists, Scope::AuthToken).limit(3, 2 * SECOND).profile(Profile::WindowLog);
    let limiter = ZoneLimiter::builder().preset().zone(quota).build()?;
    let routes = Routes::default().override_endpoint(Endpoint::Orders, |route| route.zones.push(lists));
    show("a zone of one's own", limiter, routes).await
}

/// Reads the order list 12 times at once and prints when the gateway received the requests.
async fn show(name: &str, limiter: ZoneLimiter, routes: Routes) -> Result<(), BoxError> {
    let sandbox = Sandbox::builder().build()?;
    let facts = sandbox.credentials();
    let tokens = TokenSource::fixed(ApiKey::new(facts.api_key)?, facts.access_token)?;
    let stack = Stack::new(facts.base_url.parse()?, tokens).limiter(limiter).routes(routes);
    let service = stack.service(sandbox.gateway());
    let reads = (0..12)
        .map(|_| Request::get(format!("{}/api/oms/orders", facts.base_url)).body(Full::<Bytes>::default()));
    let reads = reads.collect::<Result<Vec<_>, _>>()?;
    try_join_all(reads.into_iter().map(|read| service.clone().oneshot(read))).await?;

    let arrivals = sandbox.state().arrivals;
    let seconds = arrivals.last().map_or(0, |last| last.at_ns / 1_000_000_000);
    let in_second = |s: u64| arrivals.iter().filter(|a| a.at_ns / 1_000_000_000 == s).count().to_string();
    println!("{name}: {}", (0..=seconds).map(in_second).collect::<Vec<_>>().join(" "));
    Ok(())
}
