//! The client's process, seen from outside.

use std::{collections::BTreeMap, env, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use crate::{
    gauge::{Gateway, Holds},
    load::{FACTS, LEAKS, SECONDS, TELLS},
};

/// The holdings of the client's process, and its report of the same second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) holds: Holds,
    pub(crate) tasks: f64,
    pub(crate) in_doubt: f64,
    pub(crate) calls: f64,
    pub(crate) orders: f64,
    pub(crate) logins: f64,
    /// Set once no call is made any more, and nothing is in doubt.
    pub(crate) at_rest: bool,
}

/// This same binary as a child that trades.
pub(crate) struct Client {
    process: Child,
    /// The client's process runs until this is closed.
    stdin: Option<ChildStdin>,
    stdout: Lines<BufReader<ChildStdout>>,
}

impl Client {
    pub(crate) fn start(gateway: &Gateway, leak: bool, time: Duration) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "child", "--test-threads=1", "--nocapture"]).env(FACTS, gateway.facts());
        command.env(SECONDS, time.as_secs().to_string());
        if leak {
            command.env(LEAKS, "1");
        }
        command.kill_on_drop(true).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let stdin = process.stdin.take();
        let stdout = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, stdin, stdout }
    }

    /// Waits for the client's report of the next second; `None` once it has ended.
    pub(crate) async fn sample(&mut self) -> Option<Sample> {
        loop {
            let line = self.stdout.next_line().await.unwrap()?;
            let Some(pairs) = line.split_once(TELLS).map(|(_, pairs)| pairs) else { continue };
            let said: BTreeMap<&str, f64> = pairs
                .split_whitespace()
                .filter_map(|pair| pair.split_once('='))
                .map(|(name, number)| (name, number.parse().unwrap()))
                .collect();
            let holds = Holds::of(self.process.id()?)?;
            if said["at_rest"] > 0.0 {
                self.stdin = None;
            }
            return Some(Sample {
                holds,
                tasks: said["tasks"],
                in_doubt: said["in_doubt"],
                calls: said["calls"],
                orders: said["orders"],
                logins: said["logins"],
                at_rest: said["at_rest"] > 0.0,
            });
        }
    }

    pub(crate) async fn ended_well(mut self) -> bool {
        self.process.wait().await.unwrap().success()
    }
}
