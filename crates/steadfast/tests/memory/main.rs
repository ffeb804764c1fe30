//! Measures the memory for a long list, and for a clone of the client.
//!
//! Alone in its binary, because its allocator counts all threads.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::alloc::System;

use http::{HeaderValue, header::USER_AGENT};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use steadfast::{Access, Client, Paths};
use steadfast_sandbox::Sandbox;
use tokio::sync::Mutex;

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn in_use() -> usize {
    let stats = MEMORY.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// Makes the tests count one after the other.
static ALONE: Mutex<()> = Mutex::const_new(());

fn client(sandbox: &Sandbox) -> Client {
    let facts = sandbox.credentials();
    let access = Access::token(facts.api_key, facts.access_token).unwrap();
    let builder = Client::builder(facts.base_url.parse().unwrap(), access).paths(Paths::public());
    let agent = HeaderValue::from_static("desk/1.0");
    builder.header(USER_AGENT, agent).build_over(sandbox.gateway()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_clone_of_a_client_is_one_allocation() {
    let _alone = ALONE.lock().await;
    let client = client(&Sandbox::builder().build().unwrap());
    let before = MEMORY.stats().allocations;
    let clones: [_; 10] = std::array::from_fn(|_| client.clone());
    assert_eq!(MEMORY.stats().allocations - before, clones.len());
}

const MIB: usize = 1024 * 1024;

/// Returns the number of instruments and the minimum length of their list: 8 MiB, in the deep stages 200.
fn instruments() -> (u64, usize) {
    if std::env::var_os("STEADFAST_DEEP").is_some() { (2_600_000, 200 * MIB) } else { (100_000, 8 * MIB) }
}

#[tokio::test(start_paused = true)]
async fn a_scrip_master_of_any_length_is_read_within_a_few_mebibytes() {
    let _alone = ALONE.lock().await;
    let (instruments, least) = instruments();
    let sandbox = Sandbox::builder().large_scrip_master(instruments).build().unwrap();
    let client = client(&sandbox);
    let before = in_use();
    let mut scrips = client.scrip_master().await.unwrap();
    let (mut count, mut bytes, mut most) = (0, 0, 0);
    while let Some(scrip) = scrips.next().await {
        count += 1;
        bytes += scrip.unwrap().text().len();
        most = most.max(in_use().saturating_sub(before));
    }
    println!("{count} instruments, {bytes} bytes, {most} bytes of memory at most");
    assert_eq!(count, instruments);
    assert!(bytes >= least, "{bytes} bytes are not {least}");
    // The design allows 16 MiB.
    assert!(most < 2 * MIB, "{most} bytes for an answer of {bytes}");
}
