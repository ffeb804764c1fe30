//! No secret reaches a log, a metric, a `Debug` or an error, whatever goes wrong.
//!
//! Alone in its binary: a subscriber for one test would miss spans that another test's thread has met first.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod memory;
mod stored;
#[path = "../it/world.rs"]
#[allow(dead_code, reason = "the other tests use the rest of it")]
mod world;

use std::{
    io,
    sync::{Arc, Mutex},
};

use metrics_util::debugging::DebuggingRecorder;
use steadfast::{Access, Client, Operation, Paths, TotpCredentials};
use steadfast_sandbox::Sandbox;
use tracing_subscriber::{filter::LevelFilter, fmt::MakeWriter};

use crate::world::{World, order};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Log;

    fn make_writer(&'a self) -> Log {
        self.clone()
    }
}

/// Returns the secret itself, any eight consecutive characters of it, and its usual encodings.
fn pieces(secret: &str) -> Vec<String> {
    let chars: Vec<char> = secret.chars().collect();
    let mut pieces: Vec<String> =
        chars.windows(8.min(chars.len())).map(|piece| piece.iter().collect()).collect();
    pieces.push(chars.iter().rev().collect());
    pieces
}

#[tokio::test(start_paused = true)]
async fn a_trace_of_everything_holds_no_secret() {
    let log = Log::default();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE).with_writer(log.clone()).finish();
    let guard = tracing::subscriber::set_default(subscriber);
    let recorder = DebuggingRecorder::new();
    let metrics = recorder.snapshotter();
    let recording = ::metrics::set_default_local_recorder(&recorder);
    let mut shown = String::new();

    let world = World::new(
        Sandbox::builder()
            .fault("placement.504-applied", 0.5)
            .unwrap()
            .fault("list.401", 0.3)
            .unwrap()
            .fault("quota.storm", 0.1)
            .unwrap(),
    );
    let facts = world.sandbox.credentials();
    for intent in 0..10 {
        shown += &format!("{:?}", world.place(&intent.to_string()).await);
        shown += &format!("{:?}", world.send(&Operation::orders(), None).await);
    }
    shown += &format!("{:?} {:?} {:?}", world.stack, world.sandbox, world.sandbox.state());

    let credentials = TotpCredentials {
        api_key: facts.api_key.clone().into(),
        client_id: facts.client_id.clone().into(),
        password: facts.password.clone().into(),
        totp_secret: facts.totp_secret.clone().into(),
    };
    shown += &format!("{credentials:?}");
    let access = Access::totp(credentials).unwrap();
    shown += &format!("{access:?}");
    let retry = steadfast::retry::RetryPolicy::default().schedule(steadfast::retry::Schedule::never());
    let client = Client::builder("http://127.0.0.1:9/v2".parse().unwrap(), access)
        .paths(Paths::public())
        .retry(retry)
        .build()
        .unwrap();
    let error = client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap_err();
    shown += &format!("{error:?} {error} {client:?}");

    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("auth.json");
    shown += &stored::logins(|| steadfast::auth::FileStore::open(&path).unwrap()).await;
    let kept = std::fs::read_to_string(&path).unwrap();
    let fetched = kept.split_once("\"access_token\":\"").unwrap().1.split_once('"').unwrap().0.to_owned();
    assert_eq!(fetched.len(), facts.access_token.len(), "the stored token was found");

    steadfast::metrics::describe();
    steadfast::metrics::record(&world.stack);
    client.record_metrics();

    drop((guard, recording));
    let metrics = format!("{:?}", metrics.snapshot());
    assert!(metrics.contains("steadfast_call_duration_seconds"), "nothing is recorded");
    let log = String::from_utf8_lossy(&log.0.lock().unwrap()).into_owned();
    assert!(log.contains("place-order"), "the trace is empty");
    assert!(log.contains("token taken over from the store"), "the store was in use");
    let limits = std::fs::read(folder.path().join("auth.json.limits")).unwrap();
    let limits = String::from_utf8_lossy(&limits);
    // All these gateways have the same secrets, except for the fetched token.
    for secret in [
        &facts.access_token,
        &fetched,
        &facts.api_key,
        &facts.password,
        &facts.totp_secret,
        &facts.client_secret,
    ] {
        for piece in pieces(secret) {
            assert!(secret == &fetched || !kept.contains(&piece), "the store holds more than the token");
            assert!(!limits.contains(&piece), "the limiter's journal holds a secret");
            assert!(!log.contains(&piece), "a trace line holds a secret");
            assert!(!metrics.contains(&piece), "a metric's name, label or description holds a secret");
            assert!(!shown.contains(&piece), "a Debug or error holds a secret: {piece}");
        }
    }
}
