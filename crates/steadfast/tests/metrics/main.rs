//! Names for dashboards, and a check that a whole day of trouble records no others.
//!
//! Alone in its binary: a subscriber of one test would miss spans that another test's thread has met first.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../it/world.rs"]
#[allow(dead_code, reason = "the other tests use the rest of it")]
mod world;

mod names;
mod recorded;
mod spans;

use std::time::{Duration, UNIX_EPOCH};

use steadfast::{
    Paths, Stack,
    auth::{ApiKey, Credentials, IndividualLogin, TokenSource, TotpSecret},
    call::{Routes, WallClock},
    metrics::MeteredLogin,
};
use tokio::time::Instant;

/// Returns a stack that logs in by itself, around a sandbox with these faults. The wall clock follows the paused one,
/// so that waiting for a code succeeds.
fn logging_in(faults: &str) -> world::World {
    let (noon, start) = (UNIX_EPOCH + Duration::from_secs(1_795_240_800), Instant::now());
    let clock = WallClock::new(move || noon + start.elapsed());
    let sandbox = world::script(faults).wall_clock(clock.now()).build().unwrap();
    let facts = sandbox.credentials();
    let base = facts.base_url.parse().unwrap();
    let api_key = ApiKey::new(facts.api_key).unwrap();
    let credentials = Credentials::new(facts.client_id, facts.password);
    let secret = TotpSecret::new(facts.totp_secret).unwrap();
    let login =
        IndividualLogin::totp(sandbox.gateway(), &base, api_key.clone(), credentials, secret).unwrap();
    let tokens = TokenSource::builder(api_key, MeteredLogin::new(login)).clock(clock).build();
    let stack = Stack::new(base, tokens).routes(Routes::new(&Paths::public()));
    world::World::around(sandbox, stack)
}
