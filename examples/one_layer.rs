//! The limiter alone, around a bare hyper-util client: 25 orders at once over loopback, without it and with it.
//!
//! The service allows ten orders a second (§8). Without the layer all 25 leave at once, and 15 are refused; with it each
//! waits for its turn, and the whole quota is used.
//!
//! Prints: with the layer: 0 of 25 refused with 429
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::future::pending;

use bytes::Bytes;
use futures_util::future::try_join_all;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use steadfast::{BoxError, limit::ZoneLimiter};
use steadfast_sandbox::{Credentials, Sandbox};
use tokio::{net::TcpListener, time::Instant};
use tower::{Service, ServiceBuilder, ServiceExt};

const ORDER: &str = "symId=EQT_INFY_EQ_NSE&qty=1&side=buy&type=market&product=intraday&validity=day";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    for limited in [false, true] {
        let sandbox = Sandbox::builder().build()?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let facts = sandbox.credentials_at(listener.local_addr()?);
        tokio::spawn(async move { sandbox.serve(listener, pending()).await });

        let hyper = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
        let start = Instant::now();
        let (name, refused) = if limited {
            let client = ServiceBuilder::new().layer(ZoneLimiter::preset().layer()).service(hyper);
            ("with the layer", burst(client, &facts).await?)
        } else {
            ("without it", burst(hyper, &facts).await?)
        };
        println!("{name}: {refused} of 25 refused with 429, in {:.1} s", start.elapsed().as_secs_f64());
    }
    Ok(())
}

/// Sends 25 orders at once; how many were refused with 429.
async fn burst<S, B>(client: S, facts: &Credentials) -> Result<usize, BoxError>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>, Error: Into<BoxError>> + Clone,
{
    let token = format!("Bearer {}:{}", facts.api_key, facts.access_token);
    let orders = (0..25).map(|_| {
        Request::post(format!("{}/api/oms/place-order", facts.base_url))
            .header(header::AUTHORIZATION, &token)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Full::from(ORDER))
    });
    let orders = orders.collect::<Result<Vec<_>, _>>()?;
    let answers = try_join_all(orders.into_iter().map(|order| client.clone().oneshot(order)));
    let answers = answers.await.map_err(Into::into)?;
    Ok(answers.iter().filter(|answer| answer.status() == StatusCode::TOO_MANY_REQUESTS).count())
}
