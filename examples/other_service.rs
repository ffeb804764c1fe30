//! "Five requests a second and a hundred a minute, never a 429" for a service that has nothing to do with trading: over
//! an existing reqwest client, and over a tower stack. The weather service here is made up.
//!
//! Prints: over reqwest: 0 of 12 refused with 429
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{Router, http::StatusCode, routing::get};
use bytes::Bytes;
use futures_util::future::try_join_all;
use http::Request;
use http_body_util::Full;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use steadfast::{
    BoxError,
    limit::{MINUTE, Quota, SECOND, Scope, Zone, ZoneLimiter},
};
use steadfast_sandbox::enforce::{Enforcer, Kind, Window, decide};
use tokio::{net::TcpListener, time::Instant};
use tower::{ServiceBuilder, ServiceExt as _};

const WEATHER: Zone = Zone::new("weather");

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    over_reqwest(weather_service().await?).await?;
    over_tower(weather_service().await?).await
}

async fn over_reqwest(address: SocketAddr) -> Result<(), BoxError> {
    let quota = Quota::new(WEATHER, Scope::Shared).limit(5, SECOND).limit(100, MINUTE);
    let limiter = ZoneLimiter::builder().zone(quota).build()?;
    let client = reqwest::Client::new();
    let ask = async || {
        limiter.send(&client, client.get(today(address)).build()?, WEATHER).await.map_err(BoxError::from)
    };
    let answers = try_join_all((0..12).map(|_| ask())).await?;

    let refused = answers.iter().filter(|answer| answer.status() == StatusCode::TOO_MANY_REQUESTS).count();
    println!("over reqwest: {refused} of {} refused with 429", answers.len());
    Ok(())
}

async fn over_tower(address: SocketAddr) -> Result<(), BoxError> {
    let quota = Quota::new(WEATHER, Scope::Shared).limit(5, SECOND).limit(100, MINUTE);
    let layer = ZoneLimiter::builder().zone(quota).build()?.layer().all_in(WEATHER);
    let hyper = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let service = ServiceBuilder::new().layer(layer).service(hyper);
    let requests = (0..12).map(|_| Request::get(today(address)).body(Full::default()));
    let requests = requests.collect::<Result<Vec<_>, _>>()?;
    let answers = try_join_all(requests.into_iter().map(|request| service.clone().oneshot(request))).await?;

    let refused = answers.iter().filter(|answer| answer.status() == StatusCode::TOO_MANY_REQUESTS).count();
    println!("over tower: {refused} of {} refused with 429", answers.len());
    Ok(())
}

fn today(address: SocketAddr) -> String {
    format!("http://{address}/v1/today")
}

/// Starts a service that answers 429 to the sixth request of a second and to the hundred-and-first of a minute.
async fn weather_service() -> Result<SocketAddr, BoxError> {
    let window =
        |limit, period| Window::new(limit, period).map(|window| Enforcer::new(Kind::SlidingLog, window));
    let windows = Arc::new(Mutex::new([window(5, SECOND)?, window(100, MINUTE)?]));
    let start = Instant::now();
    let today = async move || {
        let mut windows = windows.lock().map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
        let [second, minute] = &mut *windows;
        decide(&mut [second, minute], start.elapsed()).map_err(|_| StatusCode::TOO_MANY_REQUESTS)?;
        Ok::<_, StatusCode>("sunny")
    };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/v1/today", get(today))).await });
    Ok(address)
}
