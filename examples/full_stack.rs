//! All layers around a custom transport: here the sandbox's gateway in process, in virtual time.
//!
//! The gateway refuses the first read with a 429, answers the first order with a 504 although it placed it, and has a
//! bad minute after that. The caller sees three good answers.
//!
//! Prints: 3 calls answered 200, 1 order exists
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use steadfast::{
    BoxError, Stack,
    auth::{ApiKey, TokenSource},
};
use steadfast_sandbox::Sandbox;
use tokio::time::Instant;
use tower::ServiceExt;

const TROUBLE: &str = "
[[fault]]
name = 'list.429'
nth = 1
[[fault]]
name = 'placement.504-applied'
nth = 1
[[fault]]
name = 'list.504'
nth = 4
times = 2
";
const ORDER: &str = "symId=EQT_INFY_EQ_NSE&qty=10&side=buy&type=market&product=intraday&validity=day";

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), BoxError> {
    let gateway = Sandbox::builder().script(TROUBLE)?.build()?;
    let facts = gateway.credentials();
    let tokens = TokenSource::fixed(ApiKey::new(facts.api_key)?, facts.access_token)?;
    let stack = Stack::new(facts.base_url.parse()?, tokens);
    let service = stack.service(gateway.gateway());

    let (start, mut answered) = (Instant::now(), 0);
    for (method, path, form) in [("GET", "orders", ""), ("POST", "place-order", ORDER), ("GET", "orders", "")]
    {
        let uri = format!("{}/api/oms/{path}", facts.base_url);
        let request = Request::builder().method(method).uri(uri).body(Full::<Bytes>::from(form))?;
        let answer = service.clone().oneshot(request).await?;
        println!("{:5.1} s  {method} {path}: {}", start.elapsed().as_secs_f64(), answer.status());
        answered += usize::from(answer.status() == StatusCode::OK);
    }
    let truth = gateway.state();
    let statuses = truth.arrivals.iter().map(|arrival| arrival.status.to_string());
    println!("the gateway's own answers: {}", statuses.collect::<Vec<_>>().join(" "));
    println!("{answered} calls answered 200, {} order exists", truth.orders.len());
    Ok(())
}
