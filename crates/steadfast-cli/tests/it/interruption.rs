//! An interrupted replay follows what it asked for to its end; a second signal leaves it.
#![cfg(unix)]

use std::process::Stdio;

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::{Child, ChildStderr, ChildStdout},
};

use crate::{
    command::{RunningSandbox, interrupt, steadfast},
    readme::exchange,
};

/// A replay on its way, with the first row's result read.
struct Replay {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: BufReader<ChildStderr>,
    results: String,
    said: String,
}

/// How a replay ended: its exit code, its results and what it said.
struct Ended {
    code: Option<i32>,
    results: String,
    said: String,
}

impl Replay {
    /// Starts to place a file at `sandbox`, and waits until the first order is placed; all others are still to come.
    async fn begun(file: &str, sandbox: &RunningSandbox) -> Self {
        let data = format!("{}/../../examples/data/{file}", env!("CARGO_MANIFEST_DIR"));
        // What another run wrote down belongs to another sandbox.
        let port = sandbox.authority().rsplit(':').next().unwrap();
        let journal = format!("{}/{file}-{port}.journal", env!("CARGO_TARGET_TMPDIR"));
        drop(std::fs::remove_file(&journal));
        let base = sandbox.fact("base_url");
        let mut command = steadfast(&["replay", &data, "--base-url", base, "--journal", &journal]);
        command.env("STEADFAST_API_KEY", sandbox.fact("api_key"));
        command.env("STEADFAST_ACCESS_TOKEN", sandbox.fact("access_token"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut replay = Self { child, stdout, stderr, results: String::new(), said: String::new() };
        while !replay.results.contains(",placed,") {
            let read = replay.stdout.read_line(&mut replay.results).await.unwrap();
            assert!(read > 0, "ended before its first order: {}", replay.results);
        }
        replay
    }

    /// Interrupts it, and waits until it says so.
    async fn interrupted(mut self) -> Self {
        interrupt(&self.child).await;
        while !self.said.contains("interrupted: waiting for the orders that were asked for") {
            let read = self.stderr.read_line(&mut self.said).await.unwrap();
            assert!(read > 0, "ended without a word of the interruption: {}", self.said);
        }
        self
    }

    async fn ended(mut self) -> Ended {
        let Self { stdout, stderr, results, said, .. } = &mut self;
        let (out, err) = tokio::join!(stdout.read_to_string(results), stderr.read_to_string(said));
        out.and(err).unwrap();
        let code = self.child.wait().await.unwrap().code();
        Ended { code, results: self.results, said: self.said }
    }
}

/// A sandbox whose first order exists, although its answer is a 504.
async fn sandbox(name: &str) -> RunningSandbox {
    let script = format!("{}/{name}.toml", env!("CARGO_TARGET_TMPDIR"));
    let fault = "[[fault]]\nname = 'placement.504-applied'\nnth = 1\nanswer_after_ms = 500\n";
    std::fs::write(&script, fault).unwrap();
    RunningSandbox::start(&["--script", &script]).await
}

/// How many requests to place an order the sandbox has seen, whatever it answered.
async fn sends_to(sandbox: &RunningSandbox) -> usize {
    let admin = sandbox.fact("admin_url").strip_prefix("http://").unwrap();
    let (_, state) = exchange(admin, "/state", "", None).await;
    let state: serde_json::Value = serde_json::from_str(&state).unwrap();
    let arrivals = state["arrivals"].as_array().unwrap();
    arrivals.iter().filter(|arrival| arrival["path"].as_str().unwrap().ends_with("/place-order")).count()
}

#[tokio::test]
async fn a_file_that_has_been_read_to_its_end_is_placed_and_nothing_is_left_in_doubt() {
    let sandbox = sandbox("interrupted-40").await;
    let replay = Replay::begun("orders-40.csv", &sandbox).await;
    let Ended { code, results, said } = replay.interrupted().await.ended().await;
    assert_eq!(code, Some(130), "{said}");
    assert_eq!(said.lines().last(), Some("placed 40 refused 0 unresolved 0"), "{said}");
    assert_eq!(results.lines().count(), 41, "{results}");
    assert_eq!(results.matches(",recovered,").count(), 1, "the order in doubt: {results}");
    assert_eq!(sends_to(&sandbox).await, 40, "each order is sent once");
}

#[tokio::test]
async fn the_rest_of_a_long_file_is_left_unread() {
    let sandbox = sandbox("interrupted-1040").await;
    let replay = Replay::begun("orders.csv", &sandbox).await;
    let Ended { code, results, said } = replay.interrupted().await.ended().await;
    assert_eq!(code, Some(130), "{said}");
    let rows = results.lines().count() - 1;
    assert!((64..100).contains(&rows), "{rows} of 1040 rows");
    assert!(said.ends_with(&format!("placed {rows} refused 0 unresolved 0\n")), "{said}");
}

#[tokio::test]
async fn a_second_interruption_leaves_at_once() {
    let sandbox = sandbox("interrupted-twice").await;
    let replay = Replay::begun("orders-40.csv", &sandbox).await.interrupted().await;
    interrupt(&replay.child).await;
    let Ended { code, results, said } = replay.ended().await;
    assert_eq!(code, Some(130), "{said}");
    assert_eq!(said.lines().last(), Some("steadfast: interrupted; orders may be in doubt"));
    assert!(results.lines().count() < 41, "all orders were waited for: {results}");
}
