//! A 504 says nothing about an order: it may have been placed, it may be placed in a moment, it may be lost.
//!
//! The stack reads the order list until the result is certain, and sends an order again only if it is certainly
//! absent. Time is virtual, so the seconds of reading the list take none.
//!
//! Prints: placed once
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use steadfast::{
    BoxError, Stack,
    auth::{ApiKey, TokenSource},
    dedup::Resolution,
};
use steadfast_sandbox::Sandbox;
use tokio::time::Instant;
use tower::ServiceExt;

const ORDER: &str =
    "symId=EQT_INFY_EQ_NSE&qty=10&side=buy&type=limit&limitPrice=1500.05&product=delivery&validity=day";

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), BoxError> {
    for fault in ["placement.504-applied", "placement.504-late", "placement.504-not-applied"] {
        let sandbox = Sandbox::builder().script(&format!("[[fault]]\nname = '{fault}'\nnth = 1"))?.build()?;
        let facts = sandbox.credentials();
        let tokens = TokenSource::fixed(ApiKey::new(facts.api_key)?, facts.access_token)?;
        let service = Stack::new(facts.base_url.parse()?, tokens).service(sandbox.gateway());

        let start = Instant::now();
        let order = Request::post(format!("{}/api/oms/place-order", facts.base_url));
        let answer = service.oneshot(order.body(Full::<Bytes>::from(ORDER))?).await?;
        let seconds = start.elapsed().as_secs_f64();

        let orders = sandbox.state().orders;
        let times = if orders.len() == 1 { "once".to_owned() } else { format!("{} times", orders.len()) };
        let how = match answer.extensions().get() {
            Some(Resolution::Recovered { order_id, .. }) => format!("found in the list as {order_id}"),
            Some(Resolution::Resent) => "absent, so sent again".to_owned(),
            _ => "in doubt".to_owned(),
        };
        println!("{fault}: {how} after {seconds:.1} s: placed {times}");
    }
    Ok(())
}
