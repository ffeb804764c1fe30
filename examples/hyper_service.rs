//! The stack around a bare hyper client, over a real connection.
//!
//! [`HyperTransport`] adapts the client: its errors say whether anything of a request may have left. The connector, the pool and
//! its settings stay the caller's.
//!
//! Prints: "status":"completed"
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::{future::pending, time::Duration};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use steadfast::{
    BoxError, HyperTransport, Stack,
    auth::{ApiKey, TokenSource},
};
use steadfast_sandbox::Sandbox;
use tokio::net::TcpListener;
use tower::ServiceExt;

const ORDER: &str = "symId=EQT_INFY_EQ_NSE&qty=10&side=sell&type=market&product=intraday&validity=day";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let sandbox = Sandbox::builder().build()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let facts = sandbox.credentials_at(listener.local_addr()?);
    tokio::spawn(async move { sandbox.serve(listener, pending()).await });

    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(Duration::from_secs(30))
        .build(connector);

    let tokens = TokenSource::fixed(ApiKey::new(facts.api_key)?, facts.access_token)?;
    let service = Stack::new(facts.base_url.parse()?, tokens).service(HyperTransport::new(client));

    for (method, path, form) in [(Method::POST, "place-order", ORDER), (Method::GET, "orders", "")] {
        let uri = format!("{}/api/oms/{path}", facts.base_url);
        let request = Request::builder().method(method).uri(uri).body(Full::<Bytes>::from(form))?;
        let answer = service.clone().oneshot(request).await?;
        let body = answer.into_body().collect().await?.to_bytes();
        println!("{path}: {}", String::from_utf8_lossy(&body));
    }
    Ok(())
}
