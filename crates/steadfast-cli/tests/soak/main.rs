//! Runs a client and a gateway as separate processes, under faults, for `STEADFAST_SOAK_MINUTES`: nothing of the client
//! may grow. The same with `steadfast proxy` in its place.
//!
//! A plain run takes some seconds of real time, because only the system knows what a process holds.
//! `STEADFAST_SOAK_MINUTES=30 cargo test --profile deep -p steadfast-cli --test soak` is a long run. A client that keeps what
//! it should release must be found.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod client;
mod gauge;
mod load;
mod sidecar;
mod verdict;

use std::{env, time::Duration};

use crate::{client::Client, gauge::Gateway, sidecar::Sidecar, verdict::Verdict};

/// The faults and their rates: answers lost before and after orders are placed, broken connections, HTML pages,
/// refusals, and tokens that die and are renewed.
const FAULTS: &[&str] = &[
    "placement.504-applied=0.1",
    "placement.504-not-applied=0.05",
    "placement.reset-applied=0.05",
    "list.504=0.05",
    "connection.reset-before=0.01",
    "connection.reset-mid-body=0.01",
    "connection.max-requests=0.01",
    "answer.html-502=0.01",
    "quota.storm=0.002",
    "auth.token-revoked=0.001",
];

async fn soak(faults: &[&str], leak: bool, time: Duration) -> Verdict {
    let gateway = Gateway::start(faults).await;
    let mut client = Client::start(&gateway, leak, time);
    let mut samples = Vec::new();
    while let Some(sample) = client.sample().await {
        samples.push(sample);
    }
    assert!(client.ended_well().await, "the client broke");
    Verdict::of(&samples)
}

/// Returns the length of a long run.
fn minutes() -> Option<Duration> {
    let minutes = env::var("STEADFAST_SOAK_MINUTES").ok().map(|minutes| minutes.parse().expect("minutes"));
    let deep = env::var_os("STEADFAST_DEEP").map(|_| 1);
    minutes.or(deep).map(|minutes: u64| Duration::from_secs(60 * minutes))
}

#[tokio::test]
async fn nothing_of_a_client_grows() {
    let leak = env::var_os("STEADFAST_SOAK_LEAK").is_some();
    let verdict = soak(FAULTS, leak, minutes().unwrap_or(Duration::from_secs(12))).await;
    println!("{verdict}\n{}", verdict.figures());
    verdict.assert();
}

#[tokio::test]
async fn nothing_of_a_sidecar_grows() {
    let gateway = Gateway::start(FAULTS).await;
    let sidecar = Sidecar::start(&gateway).await;
    let verdict = Verdict::of(&sidecar.soak(minutes().unwrap_or(Duration::from_secs(16))).await);
    println!("{verdict}");
    verdict.assert();
}

/// Checks that the soak finds a leak.
#[tokio::test]
async fn a_client_that_keeps_every_body_is_found() {
    let verdict = soak(&[], true, Duration::from_secs(12)).await;
    println!("{verdict}");
    assert!(verdict.memory_grew(), "{verdict}");
}

/// The client's process; see [`Client::start`].
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    load::run_if_asked().await;
}
