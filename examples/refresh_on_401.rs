//! The service ends every token at night and only answers 401. Ten calls that meet it share one login, and each of
//! them is answered.
//!
//! A one-time code is valid once, so the new login waits for the next one. Time is virtual, the wall clock included.
//!
//! Prints: 10 of 10 calls answered 200, 1 login
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::future::try_join_all;
use http::Request;
use http_body_util::Full;
use steadfast::{
    BaseUrl, BoxError, Stack,
    auth::{ApiKey, Credentials, IndividualLogin, TokenSource, TotpSecret},
    call::WallClock,
};
use steadfast_sandbox::Sandbox;
use tokio::time::{Instant, sleep};
use tower::{ServiceBuilder, ServiceExt};

const NIGHT: &str = "[[fault]]\nname = 'auth.all-tokens-revoked'\nendpoint = 'orders'\nnth = 2";

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), BoxError> {
    let start = Instant::now();
    let clock = WallClock::new(move || UNIX_EPOCH + Duration::from_secs(1_800_000_000) + start.elapsed());
    let sandbox = Sandbox::builder().wall_clock(clock.now()).script(NIGHT)?.build()?;
    let facts = sandbox.credentials();
    let base: BaseUrl = facts.base_url.parse()?;

    let (key, secret) = (ApiKey::new(facts.api_key)?, TotpSecret::new(facts.totp_secret)?);
    let credentials = Credentials::new(facts.client_id, facts.password);
    let login = IndividualLogin::totp(sandbox.gateway(), &base, key.clone(), credentials, secret)?;
    let tokens = TokenSource::builder(key, login).clock(clock).build();
    let wire = ServiceBuilder::new().map_future(|answer| async {
        sleep(Duration::from_millis(20)).await;
        answer.await
    });
    let wire = wire.service(sandbox.gateway());
    let service = Stack::new(base, tokens).service(wire);

    let read = || Request::get(format!("{}/api/oms/orders", facts.base_url)).body(Full::<Bytes>::default());
    println!("first call: {}, after a login", service.clone().oneshot(read()?).await?.status());
    let evening = sandbox.state();

    // The night comes with the next request.
    let reads = (0..10).map(|_| read()).collect::<Result<Vec<_>, _>>()?;
    let answers = try_join_all(reads.into_iter().map(|read| service.clone().oneshot(read))).await?;
    let morning = sandbox.state();
    let refused = morning.arrivals.iter().filter(|arrival| arrival.status == 401).count();
    println!("{refused} of 10 were on their way and met a 401; all ended at {:.0?}", start.elapsed());
    let good = answers.iter().filter(|answer| answer.status().is_success()).count();
    let logins = morning.logins.succeeded - evening.logins.succeeded;
    println!("{good} of 10 calls answered 200, {logins} login");
    Ok(())
}
