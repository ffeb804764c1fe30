//! A cancel leaves at once behind a wall of polls; in the lane of the polls it does not.
//!
//! Two hundred polls of the order list wait when a cancel comes.
//!
//! Prints: a cancel: 0.000 s behind 200 polls
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use steadfast::call::Call;
use steadfast::{
    BoxError, Paths, Stack,
    auth::{ApiKey, TokenSource},
    call::Routes,
    limit::{Lane, ZoneLimiter},
};
use steadfast_sandbox::Sandbox;
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), BoxError> {
    // The route puts a cancel into the critical lane by itself.
    show("a cancel", None).await?;
    // A request may name its lane, for example an order that is an exit. This lane is the wrong one.
    show("a cancel among the polls", Some(Lane::Bulk)).await
}

async fn show(name: &str, lane: Option<Lane>) -> Result<(), BoxError> {
    let sandbox = Sandbox::builder().paths(Paths::public()).build()?;
    let facts = sandbox.credentials();
    let tokens = TokenSource::fixed(ApiKey::new(facts.api_key)?, facts.access_token)?;
    let (limiter, routes) = (ZoneLimiter::preset(), Routes::new(&Paths::public()));
    let stack = Stack::new(facts.base_url.parse()?, tokens).limiter(limiter.clone()).routes(routes);
    let service = stack.service(sandbox.gateway());
    let request = |method: Method, path: &str, lane: Option<Lane>| {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", facts.base_url))
            .body(Full::<Bytes>::default())?;
        if let Some(lane) = lane {
            Call::of_mut(request.extensions_mut()).set_lane(lane);
        }
        Ok::<_, http::Error>(request)
    };

    for _ in 0..208 {
        tokio::spawn(service.clone().oneshot(request(Method::GET, "/api/oms/orders", Some(Lane::Bulk))?));
    }
    sleep(Duration::from_millis(1)).await;
    let polls: u32 =
        limiter.snapshot().zones.iter().flat_map(|zone| &zone.lanes).map(|lane| lane.waiting).sum();
    let asked = Instant::now();
    service.oneshot(request(Method::DELETE, "/api/oms/cancel-order?orderId=1", lane)?).await?;
    println!("{name}: {:.3} s behind {polls} polls", asked.elapsed().as_secs_f64());
    Ok(())
}
