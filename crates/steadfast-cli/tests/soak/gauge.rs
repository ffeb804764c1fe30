//! The system's measurements of a process.

use std::{fs, process::Stdio};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStdout, Command},
};

/// The resources of a process at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Holds {
    pub(crate) memory_kib: f64,
    pub(crate) descriptors: f64,
    pub(crate) threads: f64,
}

impl Holds {
    /// `None` if the process has ended.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let number = |name: &str| -> Option<f64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        Some(Self {
            memory_kib: number("VmRSS:")?,
            threads: number("Threads:")?,
            descriptors: fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as f64,
        })
    }
}

/// `steadfast sandbox` on a free port, ended when dropped.
pub(crate) struct Gateway {
    facts: Value,
    _process: Child,
    // Held open, so that the command does not print into a closed pipe.
    _stdout: BufReader<ChildStdout>,
}

impl Gateway {
    pub(crate) async fn start(faults: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
        command.args(["sandbox", "--port", "0", "--json"]);
        command.args(faults.iter().flat_map(|fault| ["--fault", fault]));
        command.kill_on_drop(true).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).await.unwrap();
        Self { facts: serde_json::from_str(&line).unwrap(), _process: process, _stdout: stdout }
    }

    pub(crate) fn facts(&self) -> String {
        self.facts.to_string()
    }
}
