//! Runs the command that was built with this test.

use std::process::{Output, Stdio};

use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStdout, Command},
};

/// Returns the command with `args`, killed when dropped.
pub(crate) fn steadfast(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
    command.args(args).kill_on_drop(true).stdin(Stdio::null());
    // Not the state directory of the developer.
    command.env("XDG_STATE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"));
    command
}

/// Runs the command to its end.
pub(crate) async fn output(args: &[&str]) -> Output {
    steadfast(args).output().await.unwrap()
}

/// Ends a running command, as Ctrl-C does.
#[cfg(unix)]
pub(crate) async fn interrupt(child: &Child) {
    signal(child, "-INT").await;
}

/// Sends a signal to a running command.
#[cfg(unix)]
pub(crate) async fn signal(child: &Child, signal: &str) {
    let pid = child.id().unwrap().to_string();
    let sent = Command::new("kill").args([signal, &pid]).status().await.unwrap();
    assert!(sent.success(), "nobody is there to be interrupted");
}

/// A sandbox on a free port.
pub(crate) struct RunningSandbox {
    pub(crate) facts: serde_json::Value,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "it ends when it is dropped"))]
    child: Child,
    // Held open, so that the command does not print into a closed pipe.
    _stdout: BufReader<ChildStdout>,
}

impl RunningSandbox {
    pub(crate) async fn start(args: &[&str]) -> Self {
        let mut command = steadfast(&["sandbox", "--port", "0", "--json"]);
        let mut child = command.args(args).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).await.unwrap();
        Self { facts: serde_json::from_str(&line).unwrap(), child, _stdout: stdout }
    }

    pub(crate) fn fact(&self, name: &str) -> &str {
        self.facts[name].as_str().unwrap()
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    /// Returns `host:port` of the gateway.
    pub(crate) fn authority(&self) -> &str {
        self.fact("base_url").strip_prefix("http://").unwrap().strip_suffix("/v2").unwrap()
    }
}
